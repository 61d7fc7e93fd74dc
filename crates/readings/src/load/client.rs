//! What a load cost the machines that made it, how evenly it fell on connections, and accept queues
//! that connections found full.

use serde::{Deserialize, Serialize};

use crate::Quantiles;

/// A host that begins a measured segment more than this after the common start makes the load
/// invalid, us: the hosts' due times are interleaved, and all have the same windows.
pub const START_LATE_US: f64 = 5_000.0;

/// The part of one host in a load that several hosts made together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostReading {
    pub host: String,
    pub connections: u64,
    /// Good answers inside the measured windows.
    pub requests: u64,
    /// Failures inside the measured windows.
    pub errors: u64,
    pub response_us: Quantiles,
    /// How late its client handled each due request (open loop only).
    pub schedule_lag_us: Quantiles,
    /// Whether one of its threads was saturated.
    pub saturated: bool,
    /// How long after the common start it began a measured segment, at most, us.
    pub start_late_us: f64,
    /// Why it was lost, if it was. Rows of the load have what it had sent until then; no other figure
    /// has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// What the load cost the machine that made it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientReading {
    /// CPU time of all load threads in the measured windows.
    pub cpu_s: f64,
    /// Time in the measured windows that load threads were ready to run and had no CPU.
    pub waited_s: f64,
    /// Whether a thread wanted so much CPU time, had or waited for, that its figures are not the
    /// servers' alone.
    pub saturated: bool,
    pub threads: Vec<ThreadReading>,
    /// The event loop that ran: `io_uring` or `epoll`.
    pub io: String,
    /// The CPUs the threads were bound to; empty when they were not bound.
    pub cpus: Vec<u32>,
}

/// One load thread's use of its core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadReading {
    /// CPU time over measured time, 0 to 1.
    pub cpu: f64,
    /// The share of measured time that it was ready to run and had no CPU, 0 to 1.
    pub waited: f64,
    /// Good answers this thread counted in the measured windows.
    pub requests: u64,
}

/// How evenly answers fell on connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Good answers of the connection that had the fewest.
    pub min: u64,
    /// Good answers per connection.
    pub mean: f64,
    /// Good answers of the connection that had the most.
    pub max: u64,
    /// Their standard deviation.
    pub stdev: f64,
    /// Jain's index: 1 when all are equal, 1 / connections when one has all.
    /// Jain, Chiu, Hawe: A Quantitative Measure of Fairness, DEC-TR-301, 1984.
    pub jain: f64,
}

impl Fairness {
    /// From the answers of each connection; `None` without connections or answers.
    pub fn of(answers: &[u64]) -> Option<Self> {
        let count = answers.len() as f64;
        let sum = answers.iter().copied().fold(0, u64::saturating_add);
        let squares: f64 = answers.iter().map(|&a| (a as f64).powi(2)).sum();
        let (min, max) = (*answers.iter().min()?, *answers.iter().max()?);
        if sum == 0 {
            return None;
        }
        let mean = sum as f64 / count;
        Some(Self {
            min,
            mean,
            max,
            stdev: (squares / count - mean * mean).max(0.0).sqrt(),
            jain: (sum as f64).powi(2) / (count * squares),
        })
    }
}

/// An accept queue that was full when a connection arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptQueue {
    /// The server whose queue it is; absent where the kernel counted it for the network namespace
    /// and did not tell the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// How many connections may wait in it: the backlog of `listen(2)`, limited by
    /// `net.core.somaxconn`. Absent where the socket is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<u32>,
    /// How often it was full when a connection arrived. A SYN that is sent again counts again.
    pub full: u64,
}
