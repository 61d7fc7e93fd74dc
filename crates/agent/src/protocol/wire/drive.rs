//! Runs of outside drivers.

use serde::{Deserialize, Serialize};

use super::measured::Measured;
use super::server::OtherServer;

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
    pub watch_others: Vec<OtherServer>,
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
