//! The orders and answers of the protocol between an agent and its caller.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use readings::{BottleneckSample, HttpVersion, InstructionScope};
use serde::{Deserialize, Serialize};

use crate::sampling::timeline::{Measured, Spans};

mod instructions;
mod links;
mod load;
mod profile;
mod words;

pub use instructions::IdleTimes;
pub use links::PeerLink;
pub use load::{LoadOrder, Loaded, QuotaOrder};
pub use profile::{CallGraph, ProfileOrder, ServerProfile};
pub use words::{LAST_OUTPUT, time_limit_phrase, without_last_output};

/// An order to an agent. Each gets one answer; a load reports its progress before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "order")]
pub enum Order {
    /// Greet.
    Hello {
        /// The coordinator's version; must equal the agent's.
        #[serde(default)]
        version: String,
        /// After this time without a heartbeat, the agent ends itself and all that it started, ms;
        /// `None` if the pipe ends with its owner.
        #[serde(default)]
        silence_ms: Option<u64>,
    },
    /// Make an empty folder for a server; answered with its path, and that of `weigh` for the
    /// server's user.
    Folder {
        server: String,
        /// The user that the server runs as and that the folder is given to. Without it, a user of
        /// the server's own. Ignored when the agent is not root.
        user: Option<String>,
    },
    /// Write a server's files into its folder and start it. If it ran before in this folder, it is
    /// only started.
    Start(StartServer),
    /// Wait until a server answers as expected.
    Await(AwaitServer),
    /// Poll whether a started server is ready. The time limit runs from the first poll.
    IsReady(AwaitServer),
    /// Send a server the first of the signals that stop it, without waiting: several servers end at
    /// the same time. [`Order::Stop`] follows, which does not send this signal again.
    BeginStop { server: String, signal: String },
    /// Go on stopping a server: as [`Order::Stop`], but without waiting, until it is observed to be
    /// stopped.
    PollStop {
        server: String,
        /// Signals to send and how long to wait after each, ms.
        signals: Vec<(String, u64)>,
    },
    /// Stop a server, gently first.
    Stop {
        server: String,
        /// Signals to send and how long to wait after each, ms.
        signals: Vec<(String, u64)>,
    },
    /// Suspend all processes of a server, or resume them.
    Suspend {
        server: String,
        /// Whether to suspend them.
        suspended: bool,
    },
    /// Replace files of a server and have it read its configuration again. Answered when the reload
    /// has begun.
    Reload(ReloadServer),
    /// Poll whether the latest reload is in effect.
    IsReloaded(ReloadProbe),
    /// Limit the CPU time of a server.
    Quota {
        server: String,
        /// CPUs; `None` ends the limit.
        cpus: Option<f64>,
    },
    /// Set the link of this agent's host up or down.
    Link {
        /// Whether to set it up.
        up: bool,
        /// Whether it has the host's default route.
        routed: bool,
    },
    /// Make or change the links between this agent's host, which is a machine, and all hosts to
    /// which it has one; those that are not named end.
    PeerLinks {
        /// The address by which the others know this host.
        address: IpAddr,
        peers: Vec<PeerLink>,
    },
    /// Report what a server has used so far.
    Usage {
        server: String,
        /// Count open connections at this port.
        #[serde(default)]
        port: Option<u16>,
    },
    /// Send a server's logs.
    Logs { server: String },
    /// Make load.
    Load(LoadOrder),
    /// Sample scheduling of servers of this agent for a time, without load.
    SampleScheduling {
        servers: Vec<String>,
        /// Servers of other agents on this machine.
        #[serde(default)]
        others: Vec<OtherServer>,
        /// How long, ms.
        duration_ms: u64,
    },
    /// Run an outside driver once; [`Answer::Started`] comes before its result.
    Drive(DriveOrder),
    /// Read the clocks.
    Clock,
    /// Remove what killed programs have left on this machine.
    Sweep,
    /// Wait until an agent that did not confirm its end has ended.
    AwaitEnd {
        /// The name of that agent's folder.
        folder: String,
        /// How long it may take until it ends itself, ms.
        within_ms: u64,
    },
    /// Describe this machine.
    Describe,
    /// Look for what a recipe or a driver needs.
    Find(FindOrder),
    /// Report whether a server could listen at an address.
    IsFree { address: SocketAddr },
    /// Carry an order out at a given moment; answered by [`Answer::Timed`].
    Timed {
        /// When, by CLOCK_MONOTONIC of the agent's machine, ns; at once if that is past.
        at_ns: i64,
        /// Any order but this one, a load and a driver's run.
        of: Box<Order>,
    },
    /// Start sampling the servers of this agent, while a load is made elsewhere.
    StartSampling {
        /// The servers to sample; `None` for all.
        servers: Option<BTreeSet<String>>,
        /// Whether to sample scheduling as well.
        #[serde(default)]
        scheduling: bool,
    },
    /// Stop sampling, and send what was measured.
    StopSampling {
        /// When each reading was measured, by this machine's clock.
        readings: Vec<Spans>,
    },
    /// Report which instructions of servers are counted on this machine.
    InstructionScope,
    /// Open counters of instructions on servers. [`Order::StopCounting`] closes them.
    StartCounting {
        /// Servers of this agent.
        servers: Vec<String>,
        /// Servers of other agents on this machine.
        #[serde(default)]
        others: Vec<OtherServer>,
        scope: InstructionScope,
    },
    /// Close the counters, and send what they counted.
    StopCounting {
        /// When the servers were idle around each load, by this machine's clock.
        loads: Vec<IdleTimes>,
    },
    /// Cut the running load short. The only order that is read during a load or a driver's run; it
    /// has no answer.
    Cancel,
}

/// How to start a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartServer {
    pub server: String,
    /// Folders to make below its folder.
    pub dirs: Vec<String>,
    /// Files to write below its folder.
    pub files: Vec<FileToWrite>,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Variables to set.
    pub env: Vec<(String, String)>,
    /// The folder that it is started in, absolute; if absent, its own folder.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// Whether it also gets the agent's environment.
    #[serde(default)]
    pub inherit_env: bool,
    /// Whether programs that it starts may gain privileges.
    pub setuid_programs: bool,
    /// The CPUs that it may use; empty for all.
    pub cpus: Vec<u32>,
    /// Log files below its folder, besides its output.
    pub logs: Vec<String>,
}

/// A file of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileToWrite {
    /// Path below the server's folder.
    pub path: String,
    /// Content, base64.
    pub content: String,
    /// Permission bits.
    pub mode: u32,
}

/// How a server is reloaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadServer {
    pub server: String,
    /// Files to replace below its folder.
    pub files: Vec<FileToWrite>,
    /// A signal to its first process, such as `HUP`.
    pub signal: Option<String>,
    /// A command to run in its folder, as its user; empty for none.
    pub command: Vec<String>,
}

/// How a reload shows that it is in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadProbe {
    pub server: String,
    pub sign: ReloadSign,
    /// The request that [`ReloadSign::Answer`] is about.
    pub ask: AwaitServer,
}

/// What shows that a reload is in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReloadSign {
    /// A header field or the body of an answer on a new connection has this text, in any letter
    /// case.
    Answer(String),
    /// The server has printed this text since the reload began.
    Output(String),
    /// The server has a process that it did not have before.
    NewProcess,
}

/// When a server counts as ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitServer {
    /// The server that must not end meanwhile. `None` for one that ran before.
    pub server: Option<String>,
    /// Where it is asked.
    pub address: SocketAddr,
    /// The request; empty where opening a connection is enough.
    pub request: String,
    /// Whether the request is of another protocol than HTTP: then there is no status, and
    /// `contains` is searched for in all of the answer.
    pub raw: bool,
    /// The status expected; `None` takes any below 500.
    pub status: Option<u16>,
    /// What the body must contain.
    pub contains: Option<String>,
    /// How it is asked where it speaks TLS.
    pub tls: Option<tls::ClientSettings>,
    /// The version of HTTP that it is asked in.
    #[serde(default)]
    pub http: HttpVersion,
    /// Whether it expects a PROXY protocol header first.
    #[serde(default)]
    pub proxy_protocol: bool,
    /// How long it may take, ms.
    pub timeout_ms: u64,
}

/// What a recipe or a driver needs on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindOrder {
    /// Programs, and the file names that each may have.
    pub programs: Vec<(String, Vec<String>)>,
    /// Files, and the package of each where it is known.
    pub files: Vec<(String, Option<String>)>,
    /// Packages that contain all of it.
    pub packages: Vec<String>,
    /// Its project's page.
    #[serde(default)]
    pub homepage: Option<String>,
}

/// A server on this machine that the agent has not started: another one did, in another network
/// namespace, or it ran before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherServer {
    pub server: String,
    pub pid: i32,
    /// Further processes of it that are no descendants of the first.
    #[serde(default)]
    pub also: Vec<i32>,
    /// Its control group, if it has one.
    pub group: Option<String>,
}

/// One run of an outside driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveOrder {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Variables to set.
    pub env: Vec<(String, String)>,
    /// The CPUs that it may use; empty for all.
    pub cpus: Vec<u32>,
    /// How long it may take, ms; then it is killed.
    pub limit_ms: u64,
    /// Servers of this agent to sample.
    pub watch: Vec<String>,
    /// The same for servers of other agents on this machine.
    #[serde(default)]
    pub watch_others: Vec<OtherServer>,
}

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
        #[serde(default)]
        group: Option<String>,
        /// The congestion control that the kernel gives TCP connections in its network namespace.
        #[serde(default)]
        tcp_congestion: Option<String>,
    },
    /// The order was carried out.
    Done,
    /// What a server that was waited for answered; [`Self::Done`] where it is no HTTP.
    Ready(AnswerSummary),
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
    Row(Box<::load::Row>),
    /// What a server has used so far.
    Usage {
        /// CPU time since it was started, s.
        cpu_s: f64,
        /// Connections that are open at the port, including those that it has not accepted yet.
        connections: Option<u64>,
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

/// The result of one run of an outside driver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Driven {
    /// What it printed on standard output.
    pub output: String,
    /// The end of what it printed on standard error.
    pub errors: String,
    /// How it ended.
    pub end: DriveEnd,
    /// Time from its start to its end, s.
    pub wall_s: f64,
    /// CPU time of it and of all that it started, s.
    pub cpu_s: f64,
    /// The most memory that its largest process held, where that could be read.
    pub max_rss_bytes: Option<u64>,
    /// What servers and machine did meanwhile.
    pub measured: Measured,
}

/// How a driver's run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriveEnd {
    /// By itself, with this status.
    Status(i32),
    /// By a signal that was not the agent's.
    Signal(i32),
    /// Killed, since its time was over.
    TimedOut,
    /// Killed, since it printed more than any driver should.
    TooMuchOutput,
    /// Killed, since the run was stopped.
    #[default]
    Stopped,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_another_machine_are_the_same_after_the_wire() {
        let order = Order::StopSampling {
            readings: vec![Spans::default()],
        };
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(serde_json::from_str::<Order>(&text).unwrap(), order);
        let answer = Answer::Measured {
            readings: vec![Measured::default()],
            seen: None,
        };
        let text = serde_json::to_string(&answer).unwrap();
        assert_eq!(serde_json::from_str::<Answer>(&text).unwrap(), answer);
    }

    #[test]
    fn a_timed_order_contains_another() {
        let order = Order::Timed {
            at_ns: -5,
            of: Box::new(Order::Suspend {
                server: "a".into(),
                suspended: true,
            }),
        };
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(serde_json::from_str::<Order>(&text).unwrap(), order);
    }
}
