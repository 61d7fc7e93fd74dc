//! What an agent can be ordered to do.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use readings::{InstructionScope, LinkSpec};
use serde::{Deserialize, Serialize};

use super::measured::{IdleTimes, Spans};
use super::server::{AwaitServer, OtherServer, ReloadProbe, ReloadServer, StartServer};
use super::{DriveOrder, LoadOrder};

/// How far ahead [`Order::Timed`] may be given.
pub(crate) const AHEAD_MAX: Duration = Duration::from_secs(10);

/// An order to an agent. Each gets one answer; a load reports its progress before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "order")]
pub enum Order {
    /// Greet.
    Hello {
        /// The coordinator's version; must equal the agent's.
        version: String,
        /// After this time without a heartbeat, the agent ends itself and all that it started, ms;
        /// `None` if the pipe ends with its owner.
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
        port: Option<u16>,
        /// Read its memory, which takes longer.
        memory: bool,
    },
    /// Send a server's logs.
    Logs { server: String },
    /// Ask a server for the schema of a gRPC method.
    Schema(SchemaOrder),
    /// Make load.
    Load(LoadOrder),
    /// Sample scheduling of servers of this agent for a time, without load.
    SampleScheduling {
        servers: Vec<String>,
        /// Servers of other agents on this machine.
        others: Vec<OtherServer>,
        /// How long, ms.
        duration_ms: u64,
    },
    /// Run an outside driver once; [`Answer::Started`](super::Answer::Started) comes before its result.
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
    /// Carry an order out at a given moment; answered by [`Answer::Timed`](super::Answer::Timed).
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

/// A schema that is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchemaOrder {
    /// Where, with the header fields of its first request.
    pub target: load::Target,
    /// `PACKAGE.SERVICE/METHOD`.
    pub method: String,
    /// How long each of the calls may take, ms.
    pub timeout_ms: u64,
}

/// What lies between a host and another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerLink {
    /// The other host.
    pub host: String,
    pub address: IpAddr,
    /// The links of both hosts as one. Without jitter.
    pub link: LinkSpec,
}

/// A package in the cache of `weigh install`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindPackage {
    /// Its kind, by the kind's folder in the cache.
    pub kind: String,
    pub name: String,
    pub version: String,
    /// The command that installs it.
    pub install: String,
}

/// What a recipe or a driver needs on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindOrder {
    /// Programs, and the file names that each may have.
    pub programs: Vec<(String, Vec<String>)>,
    /// Files, and the package of each where it is known.
    pub files: Vec<(String, Option<String>)>,
    /// Debian packages that contain all of it.
    pub packages: Vec<String>,
    /// The package of a fixed version, where it is not what is installed.
    pub pinned: Option<FindPackage>,
    /// Its project's page.
    pub homepage: Option<String>,
}
