//! What to do: targets, connections, stints.

use std::net::SocketAddr;
use std::time::Duration;

use net::IoKind;
use readings::Pacing;

use crate::check::Expect;

/// Where requests go and what they say.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The address to connect to.
    pub address: SocketAddr,
    /// The bytes of a request, sent as they are.
    pub request: Vec<u8>,
    /// The answers that count as good.
    pub expect: Expect,
}

impl Target {
    /// Whether answers have no body because the request is HEAD.
    pub fn is_head(&self) -> bool {
        self.request.starts_with(b"HEAD ")
    }
}

/// Connections to one target, held by the threads in near equal shares.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// The target.
    pub target: Target,
    /// Connections, exactly, over all threads.
    pub connections: u32,
}

/// When a stint ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// After a time.
    After(Duration),
    /// When so many requests were answered or failed, over all threads.
    Requests(u64),
}

/// A stretch of load on one lane. Between stints every answer that is under way is awaited.
#[derive(Clone, Debug, PartialEq)]
pub struct Stint {
    /// Number of the lane.
    pub lane: usize,
    /// How requests are timed.
    pub pacing: Pacing,
    /// What is cut off at the start, before the measured window.
    pub cut: Duration,
    /// The measured window.
    pub stop: Stop,
    /// Number of the reading that it is recorded to; `None` for a warm-up.
    pub reading: Option<usize>,
}

/// When the requests of an open loop are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At equal distances.
    Even,
    /// With exponentially distributed distances, as from many independent users.
    Poisson,
}

/// How a thread waits for what is due or comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It sleeps until the kernel wakes it: tens of microseconds late, and no CPU time wasted.
    Sleep,
    /// In open-loop stints it polls without sleeping: late by a microsecond, and a CPU is taken
    /// whole. Only where the servers do not need that CPU.
    Spin,
}

/// A whole load.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Targets and their connections.
    pub lanes: Vec<Lane>,
    /// What to do, in order.
    pub stints: Vec<Stint>,
    /// Number of threads.
    pub threads: usize,
    /// Requests after which a connection is closed and opened anew; `None` keeps it.
    pub requests_per_connection: Option<u64>,
    /// Longest wait for a connection to open.
    pub connect_timeout: Duration,
    /// Longest wait for a complete answer once its request was sent.
    pub timeout: Duration,
    /// When the requests of open-loop stints are due.
    pub arrivals: Arrivals,
    /// CPUs that the threads are bound to, in turn; empty leaves them free.
    pub cpus: Vec<u32>,
    /// Addresses that connections come from, in turn; empty lets the kernel choose.
    pub sources: Vec<SocketAddr>,
    /// The event loop.
    pub io: IoKind,
    /// How threads wait in open-loop stints; in a closed loop they always sleep.
    pub wait: Wait,
    /// Seed of random arrivals.
    pub seed: u64,
}

/// A job that makes no sense.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum JobError {
    /// No lane or no stint.
    #[error("expected at least one target and one stint of load, found none")]
    Empty,
    /// A number that must be at least one is zero.
    #[error("expected at least one {0}, found 0")]
    Zero(&'static str),
    /// A stint on a lane that is not there.
    #[error("stint {stint} is on lane {lane}, but there are {lanes} lanes")]
    Lane {
        /// The stint's number.
        stint: usize,
        /// The lane it names.
        lane: usize,
        /// How many there are.
        lanes: usize,
    },
    /// A rate that is not above zero.
    #[error("expected a rate above 0 requests per second, found {0}")]
    Rate(String),
}

impl Job {
    /// Looks whether the job makes sense.
    ///
    /// # Errors
    /// When it does not.
    pub fn validate(&self) -> Result<(), JobError> {
        if self.lanes.is_empty() || self.stints.is_empty() {
            return Err(JobError::Empty);
        }
        if self.threads == 0 {
            return Err(JobError::Zero("thread"));
        }
        if self.lanes.iter().any(|lane| lane.connections == 0) {
            return Err(JobError::Zero("connection"));
        }
        if self.requests_per_connection == Some(0) {
            return Err(JobError::Zero("request per connection"));
        }
        for (stint, it) in self.stints.iter().enumerate() {
            if it.lane >= self.lanes.len() {
                return Err(JobError::Lane {
                    stint,
                    lane: it.lane,
                    lanes: self.lanes.len(),
                });
            }
            if it.stop == Stop::Requests(0) {
                return Err(JobError::Zero("request"));
            }
            if let Pacing::Open { rate_per_s } = it.pacing
                && !(rate_per_s.is_finite() && rate_per_s > 0.0)
            {
                return Err(JobError::Rate(rate_per_s.to_string()));
            }
        }
        Ok(())
    }

    /// Number of readings that the stints record to.
    pub fn readings(&self) -> usize {
        self.stints
            .iter()
            .filter_map(|stint| stint.reading)
            .max()
            .map_or(0, |most| most + 1)
    }

    /// How many of a lane's connections a thread holds.
    pub(crate) fn share(&self, total: u64, thread: usize) -> u64 {
        let threads = self.threads as u64;
        total / threads + u64::from((thread as u64) < total % threads)
    }
}
