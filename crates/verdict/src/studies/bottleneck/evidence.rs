//! What speaks for a bottleneck, in figures. The words for it stand in `words`.
//!
//! CPU time is a share of one CPU, or a number of CPUs where there are several.

use readings::{Change, Probe};

/// What speaks for a bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    Client(ClientEvidence),
    Server(ServerEvidence),
    /// The number of connections and the time of an answer set the throughput.
    Concurrency {
        connections: u32,
        /// The median response time.
        p50_us: f64,
        /// Throughput with twice the connections, changed over unchanged, if that raised it.
        gain: Option<f64>,
    },
    /// Connections found the accept queue full.
    AcceptQueue {
        found_full: u64,
        opened: u64,
        /// The longest time that one took to open.
        slowest_us: f64,
        /// What half the connections did, if fewer of them found it full.
        half: Option<Relief>,
    },
    Ports(PortsEvidence),
    /// A server opens connections to its upstream.
    UpstreamConnections {
        /// New ones per request.
        per_request: f64,
        /// Sockets in TIME_WAIT.
        time_wait: u64,
    },
    /// The link is full, loses segments, or carries more at twice its rate, or the thread that carries
    /// its packets is full.
    Network {
        bits_per_s: f64,
        link_bits_per_s: Option<f64>,
        /// Segments that were sent again, and all, if the former are many.
        resent: Option<(u64, u64)>,
        /// Throughput with twice the link's rate, changed over unchanged, if that raised it.
        gain: Option<f64>,
        /// The threads that carry the packets in user space, if one of them is full.
        threads: Option<Threads>,
    },
    /// Other programs fill the CPUs.
    OtherPrograms(MachineUse),
    /// Nothing explains the throughput: all figures.
    Unexplained {
        client_busiest: f64,
        servers: Vec<(String, f64, Threads)>,
        /// The threads that carry the packets of links in user space.
        links: Option<Threads>,
        /// The changes that were not made, and why.
        not_tried: Vec<String>,
    },
    /// It could not be measured, for this reason.
    NotMeasured(String),
}

/// A client whose threads are full or that shares a CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientEvidence {
    pub busiest: f64,
    pub wanted: f64,
    /// CPUs that servers use too, and how busy the busiest of them was, if it was full.
    pub shared: Option<(Vec<u32>, f64)>,
    /// Throughput on a CPU of its own, changed over unchanged, if that raised it.
    pub apart: Option<f64>,
    /// What a thread and a CPU more did, if that was tried and nothing else shows it.
    pub thread: Option<ThreadMore>,
}

/// Throughput with a thread and a CPU more, changed over unchanged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ThreadMore {
    /// It rose enough.
    Raised(f64),
    NotRaised(f64),
}

/// Servers that use CPU time.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerEvidence {
    /// CPUs that the servers may use.
    pub cpus: CpuUse,
    /// What is full; `None` if no CPU or thread is.
    pub full: Option<Full>,
    /// The CPU time of each server: of those that share the CPUs, otherwise of the whole path.
    pub each: Vec<(String, f64)>,
    /// What half the CPU time did, if it lowered the throughput.
    pub halved: Option<HalvedCpu>,
}

/// CPUs and how much of them their servers use.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuUse {
    /// The host, if it is on another machine than the load.
    pub host: Option<String>,
    pub cpus: Vec<u32>,
    /// CPUs that were used, together.
    pub used: f64,
}

/// Which CPUs of a server are full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Full {
    /// CPUs that several servers share.
    SharedCpus,
    Cpus {
        threads: u32,
    },
    Thread(Threads),
}

/// What half the servers' CPU time did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalvedCpu {
    /// CPUs that all servers had together.
    pub quota_cpus: f64,
    /// The share of the throughput that was left.
    pub left: f64,
}

/// A server's busiest threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threads {
    /// The busiest one's share of a CPU.
    pub had: f64,
    pub wanted: f64,
    /// The share of the next.
    pub second_had: f64,
    pub count: u32,
}

/// Connections that found no port.
#[derive(Clone, Debug, PartialEq)]
pub struct PortsEvidence {
    pub refused: u64,
    /// The ports that are taken, if they are many.
    pub taken: Option<TakenPorts>,
    /// The changes with which fewer connections found none.
    pub reliefs: Vec<Relief>,
    /// Why the load failed, if it did.
    pub failed: Option<String>,
}

/// Ports that are taken in a network namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenPorts {
    /// A server that is there; nothing for the load.
    pub server: Option<String>,
    /// Ports in TIME_WAIT.
    pub waiting: u64,
    pub range: u32,
}

impl TakenPorts {
    pub(super) fn share(&self) -> f64 {
        self.waiting as f64 / f64::from(self.range)
    }
}

/// A change with which fewer connections were refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Relief {
    pub change: Change,
    pub left: Refused,
    pub before: Refused,
    /// Throughput, changed over unchanged.
    pub ratio: f64,
}

/// Connections that were refused, and all that were to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub refused: u64,
    pub all: u64,
}

impl Refused {
    pub(super) fn of(probes: &[&Probe], refused: impl Fn(&Probe) -> u64) -> Self {
        let refused = probes.iter().map(|probe| refused(probe)).sum();
        let opened: u64 = probes.iter().map(|probe| probe.connects).sum();
        Self {
            refused,
            all: opened + refused,
        }
    }

    /// Whether less than a part of what another share is.
    pub(super) fn is_less(self, than: Self, part: f64) -> bool {
        let share = |one: Self| one.refused as f64 / one.all.max(1) as f64;
        self.all > 0 && share(self) < part * share(than)
    }
}

/// How busy the CPUs of client and servers on a machine were, each from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineUse {
    /// The host, if it is not the load's machine.
    pub host: Option<String>,
    pub busy: f64,
    /// What of that was the client's and the servers'.
    pub own: f64,
}
