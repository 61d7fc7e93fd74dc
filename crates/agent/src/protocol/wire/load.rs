//! A load that an agent makes.

use std::collections::BTreeSet;

use readings::{BottleneckSample, LoadReading};
use serde::{Deserialize, Serialize};

use super::measured::Measured;
use super::server::OtherServer;
use super::{ProfileOrder, ServerProfile};

/// A load, and what is sampled meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadOrder {
    pub job: load::Job,
    /// Servers of this agent to sample.
    pub watch: Vec<String>,
    /// The same for servers of other agents on this machine.
    pub watch_others: Vec<OtherServer>,
    /// Servers whose counts are read although they are not sampled: an event takes their processes away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub count_others: Vec<OtherServer>,
    /// Whether to sample scheduling in the last segment.
    pub sample_scheduling: bool,
    /// A limit on sampled servers meanwhile.
    pub quota: Option<QuotaOrder>,
    /// First and last port of outgoing connections meanwhile; only for an agent in a network
    /// namespace that is a host of its own.
    pub ports: Option<(u16, u16)>,
    /// Whether to report when a measured window opens and closes.
    pub report_windows: bool,
    /// Whether to send each row as soon as it is over.
    pub report_rows: bool,
    /// Whether to report which answers of the first target count as good, once that was fetched.
    pub report_expectations: bool,
    /// Servers to profile during the load.
    pub profile: Option<ProfileOrder>,
}

impl LoadOrder {
    /// The order for a load during which nothing is sampled.
    pub fn of(job: load::Job) -> Self {
        Self {
            job,
            watch: Vec::new(),
            watch_others: Vec::new(),
            count_others: Vec::new(),
            sample_scheduling: false,
            quota: None,
            ports: None,
            report_windows: false,
            report_rows: false,
            report_expectations: false,
            profile: None,
        }
    }
}

/// A limit on the CPU time of servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuotaOrder {
    pub servers: BTreeSet<String>,
    /// CPUs for all of them together.
    pub cpus: f64,
}

/// What a load measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    pub readings: Vec<LoadReading>,
    /// What servers and machine did during each of them.
    pub measured: Vec<Measured>,
    /// Targets whose answers differ from time to time, so that content is not compared.
    pub varying: Vec<usize>,
    /// Which answers of the first target count as good, by request, where that was asked for.
    pub expectations: Vec<load::Expect>,
    /// Scheduling in the last segment's window, where that was asked for.
    pub seen: Option<BottleneckSample>,
    /// Profiles of the servers in [`LoadOrder::profile`].
    pub profiles: Vec<ServerProfile>,
    /// The most by which a recorded segment began late, if its start was given, ns.
    pub late_ns: u64,
    /// Time from the order until the first segment could begin, ns.
    pub ready_ns: u64,
    /// The longest time from the end of a window until its last answer, ns.
    pub drain_ns: u64,
}
