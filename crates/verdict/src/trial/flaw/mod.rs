//! What makes loads and trials unusable. The words for it stand in `words`.

pub(crate) mod words;

pub(crate) mod host_fault;

use readings::{AcceptQueue, ErrorCounts, FailureCause, Wrong};

use crate::HostFault;
use crate::stats::steady::Unsteady;
use crate::trial::lag::LateClient;
use crate::trial::loops::Loop;
use crate::trial::overload::Overload;

/// Why a load's figures cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub enum Flaw {
    WrongAnswers {
        wrong: u64,
        answers: u64,
        first: Option<Wrong>,
    },
    FailedRequests {
        errors: ErrorCounts,
        requests: u64,
        /// The first failure that was kept.
        first: Option<Wrong>,
        /// Whether local ports were used up, which is the client's fault.
        no_port: bool,
        /// Accept queues that were full meanwhile.
        queues: Vec<FullQueue>,
    },
    /// No good answer came.
    NoAnswer {
        /// Accept queues that were full meanwhile.
        queues: Vec<FullQueue>,
    },
    /// A closed loop had fewer connections than it was asked for.
    MissingConnections {
        open: u64,
        asked: u64,
        /// The first failure of a connection, if there was one that no other flaw names.
        first: Option<Wrong>,
        /// Accept queues that were full meanwhile.
        queues: Vec<FullQueue>,
    },
    /// The server ended idle connections that the load was to hold.
    IdleEnded {
        ended: u64,
        connections: u64,
        /// How long the first had been idle, s.
        after_s: f64,
    },
    /// The client was too busy to offer a rate on time.
    ClientBusy {
        rate_per_s: f64,
    },
    /// In a load with events, this share of the requests was sent at least so late.
    ClientStalled {
        share: f64,
        lag_us: f64,
    },
    /// An event was begun or undone late.
    LateEvent {
        /// In the word of an experiment file.
        what: String,
        /// The server or host that it happened to.
        target: String,
        late_s: f64,
    },
    /// A host of the load was lost or began late.
    Host(HostFault),
    /// An open loop offered more than was carried.
    Overload(Overload),
    LateClient(LateClient),
    Unsteady(Unsteady),
    ServerEnded {
        server: String,
    },
    /// A server was started again, and requests failed.
    ServerRestarted {
        server: String,
        failed: u64,
    },
    /// CPU time was stolen, a share of all. In this and the next two the host is absent for the
    /// load's own machine.
    Stolen {
        host: Option<String>,
        share: f64,
    },
    /// A limit of CPU time held the machine up.
    Throttled {
        host: Option<String>,
        times: u64,
        throttled_s: f64,
        looked_s: f64,
    },
    Swapped {
        host: Option<String>,
        written_pages: u64,
        read_pages: u64,
    },
    /// The back ends received less of the requests' bodies than was sent with good answers.
    BodiesMissing {
        sent_bytes: u64,
        received_bytes: u64,
        /// Good answers.
        requests: u64,
        /// Requests that the back ends received.
        received: u64,
    },
    /// They received as many bytes as bodies of that length have, but with another checksum.
    BodiesChanged {
        body_bytes: u64,
        bodies: u64,
    },
    /// All rows of a feed were used up before the end.
    UsedUp {
        feed: String,
    },
    /// A server answered without those behind it.
    Unasked {
        front: String,
        behind: Vec<String>,
        requests: u64,
    },
}

impl Flaw {
    /// Whether it spoils the whole trial, and not this load only.
    pub(crate) fn spoils_trial(&self) -> bool {
        match self {
            Flaw::WrongAnswers { .. }
            | Flaw::FailedRequests { .. }
            | Flaw::NoAnswer { .. }
            | Flaw::ClientStalled { .. }
            | Flaw::Host(_)
            | Flaw::ServerEnded { .. }
            | Flaw::ServerRestarted { .. }
            | Flaw::BodiesMissing { .. }
            | Flaw::BodiesChanged { .. }
            | Flaw::UsedUp { .. }
            | Flaw::Unasked { .. } => true,
            Flaw::MissingConnections { .. }
            | Flaw::IdleEnded { .. }
            | Flaw::ClientBusy { .. }
            | Flaw::Overload(_)
            | Flaw::LateClient(_)
            | Flaw::LateEvent { .. }
            | Flaw::Unsteady(_)
            | Flaw::Stolen { .. }
            | Flaw::Throttled { .. }
            | Flaw::Swapped { .. } => false,
        }
    }

    pub(crate) fn cause(&self) -> FailureCause {
        match self {
            Flaw::FailedRequests { no_port: true, .. }
            | Flaw::ClientBusy { .. }
            | Flaw::ClientStalled { .. }
            | Flaw::Host(_)
            | Flaw::Overload(_)
            | Flaw::LateClient(_)
            | Flaw::LateEvent { .. }
            | Flaw::UsedUp { .. }
            | Flaw::Stolen { .. }
            | Flaw::Throttled { .. }
            | Flaw::Swapped { .. } => FailureCause::Other,
            Flaw::WrongAnswers { .. }
            | Flaw::FailedRequests { .. }
            | Flaw::NoAnswer { .. }
            | Flaw::MissingConnections { .. }
            | Flaw::IdleEnded { .. }
            | Flaw::Unsteady(_)
            | Flaw::ServerEnded { .. }
            | Flaw::ServerRestarted { .. }
            | Flaw::BodiesMissing { .. }
            | Flaw::BodiesChanged { .. }
            | Flaw::Unasked { .. } => FailureCause::Subject,
        }
    }

    /// The list of full accept queues, for flaws that one may explain.
    pub(crate) fn queues_mut(&mut self) -> Option<&mut Vec<FullQueue>> {
        match self {
            Flaw::FailedRequests { queues, .. }
            | Flaw::NoAnswer { queues }
            | Flaw::MissingConnections { queues, .. } => Some(queues),
            _ => None,
        }
    }
}

/// Accept queues that were full.
#[derive(Clone, Debug, PartialEq)]
pub enum FullQueue {
    Known(AcceptQueue),
    /// A network counted so many overflows, of the accept queue of one of these servers.
    Overflowed {
        servers: Vec<String>,
        times: u64,
    },
    /// The kernel dropped so many connections to one of these servers while they were opened.
    Dropped {
        servers: Vec<String>,
        dropped: u64,
    },
}

/// A flaw of a trial, with the load that it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialFlaw {
    /// The load, if several were made.
    pub load: Option<String>,
    /// The loop, if it is about one.
    pub load_loop: Option<Loop>,
    pub flaw: Flaw,
}

impl TrialFlaw {
    pub(crate) fn of(of: Loop, flaw: &Flaw) -> Self {
        Self {
            load_loop: Some(of),
            ..Self::from(flaw.clone())
        }
    }

    pub(crate) fn of_load(load: &str, flaw: Flaw) -> Self {
        Self {
            load: Some(load.to_owned()),
            ..Self::from(flaw)
        }
    }
}

impl From<Flaw> for TrialFlaw {
    fn from(flaw: Flaw) -> Self {
        Self {
            load: None,
            load_loop: None,
            flaw,
        }
    }
}

/// Why a trial cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// It failed; what the run recorded.
    Failed(String),
    Flaw(Box<TrialFlaw>),
    /// Nothing was measured in its windows.
    Empty,
}

impl From<TrialFlaw> for Reason {
    fn from(flaw: TrialFlaw) -> Self {
        Self::Flaw(Box::new(flaw))
    }
}
