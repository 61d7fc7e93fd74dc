//! What an agent answers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use readings::{BottleneckSample, InstructionScope, ServerStart};
use serde::{Deserialize, Serialize};

use super::measured::Measured;
use super::{Driven, Loaded};

/// An answer of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Answer {
    /// Its version and identity.
    Hello {
        /// Version of its program; must equal the caller's.
        version: String,
        pid: i32,
        folder: String,
        program: String,
        /// Identifies its network namespace, across machines.
        network: String,
    },
    /// What time it is.
    Clock {
        /// CLOCK_REALTIME, ns.
        wall_ns: i64,
        /// CLOCK_MONOTONIC, ns.
        monotonic_ns: i64,
    },
    /// The description of this machine.
    Machine {
        /// As in `hosts.json`.
        machine: serde_json::Value,
    },
    /// What was found of what a recipe or a driver needs.
    Found {
        /// Programs by the name that was given for them.
        programs: BTreeMap<String, PathBuf>,
        /// What is missing and how to install it.
        missing: Option<String>,
    },
    /// Whether a server could listen there.
    Free {
        /// Whether it could.
        free: bool,
    },
    /// The schema of a gRPC method.
    Schema {
        /// A `FileDescriptorSet`, encoded, base64.
        set: String,
    },
    Measured {
        /// By the numbers of the readings.
        readings: Vec<Measured>,
        /// Scheduling in the last window, where that was sampled.
        seen: Option<Box<BottleneckSample>>,
    },
    /// An order was carried out, at these times by CLOCK_MONOTONIC of the agent's machine.
    Timed {
        /// When it began, ns.
        began_ns: i64,
        /// When it was done, ns.
        ended_ns: i64,
        of: Box<Answer>,
    },
    /// Which instructions are counted; `None` where none are.
    InstructionScope { scope: Option<InstructionScope> },
    /// What was counted in each load.
    Counted {
        /// Instructions of each server, by name; servers without usable readings are left out.
        loads: Vec<BTreeMap<String, u64>>,
    },
    /// A folder was made.
    Folder {
        /// Its absolute path.
        path: String,
        /// Where the server can run `weigh`, if its user cannot run the agent's own program.
        weigh: Option<String>,
    },
    /// A server or a driver was started.
    Started {
        /// Its process, leader of a process group of its own.
        pid: i32,
        /// The folder of its control group, if it has one.
        group: Option<String>,
        /// The file in which it counts what it receives.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        counts: Option<PathBuf>,
        /// The congestion control that the kernel gives TCP connections in its network namespace.
        tcp_congestion: Option<String>,
    },
    /// The order was carried out.
    Done,
    /// What an address that was waited for answered; [`Self::Done`] where it is no HTTP.
    Ready(AnswerSummary),
    /// A server that was waited for by its name is up: how it started.
    Up(ServerStart),
    /// When the state that was polled was first observed, ns of CLOCK_MONOTONIC; `None`: not yet.
    Observed { at_ns: Option<i64> },
    /// The server was stopped.
    Stopped {
        /// Whether it had to be killed.
        killed: bool,
        /// Whether it had ended by itself before.
        ended_before: bool,
    },
    /// Logs, by file name; long ones hold only their end.
    Logs {
        /// Name and text.
        files: BTreeMap<String, String>,
    },
    /// Progress of a load.
    Progress {
        /// Number of the segment.
        segment: usize,
        /// Good answers since the last one.
        requests: u64,
        /// Failures since the last one.
        errors: u64,
    },
    /// A load's measured window has opened.
    WindowOpens {
        /// Number of the segment.
        segment: usize,
        /// When, by CLOCK_MONOTONIC of the agent's machine, ns.
        at_ns: i64,
    },
    /// A load's measured window has closed. The load now only awaits the last answers.
    WindowCloses {
        /// Number of the segment.
        segment: usize,
    },
    /// A row of a load is over.
    Row(Box<load::Row>),
    /// What a server has used so far.
    Usage {
        /// CPU time since it was started, s.
        cpu_s: f64,
        /// Connections that are open at the port, including those that it has not accepted yet.
        connections: Option<u64>,
        /// Its memory as [`readings::ServerStart::rest_bytes`] has it, where that was asked for.
        memory_bytes: Option<u64>,
    },
    /// What a load measured.
    Loaded(Box<Loaded>),
    /// Scheduling without load.
    Scheduling(Box<BottleneckSample>),
    /// What a driver's run came to.
    Driven(Box<Driven>),
    /// The order could not be carried out.
    Failed {
        /// Why.
        reason: String,
    },
}

/// An HTTP answer in short, to be compared with other answers to the same request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerSummary {
    pub status: u16,
    /// Length of the body without its transfer coding.
    pub body_bytes: u64,
    /// FNV-1a of the body.
    pub body_hash: u64,
    /// The content coding, such as `gzip`; empty without one.
    pub coding: String,
}
