//! When something was measured, and what.

use std::collections::{BTreeMap, BTreeSet};

use readings::{AcceptQueue, Arrivals, Received, SystemMetrics};
use serde::{Deserialize, Serialize};

/// A window of time by a machine's CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// When it begins.
    pub from_ns: i64,
    /// When it ends.
    pub to_ns: i64,
}

impl Window {
    /// The same by a clock that is ahead by `by_ns`.
    pub fn shifted(self, by_ns: i64) -> Self {
        Self {
            from_ns: self.from_ns.saturating_add(by_ns),
            to_ns: self.to_ns.saturating_add(by_ns),
        }
    }
}

/// When a reading was measured, by CLOCK_MONOTONIC of one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spans {
    /// Its segments, ramp-up included. Accepted connections are counted in them.
    pub segments: Vec<Window>,
    /// The measured window of each segment. CPU time is counted in them.
    pub windows: Vec<Window>,
    /// Those of the windows that were sampled in full.
    pub sampled: Vec<Window>,
}

impl Spans {
    /// A single segment without ramp-up.
    pub(crate) fn of_one(window: Window, is_sampled: bool) -> Self {
        Self {
            segments: vec![window],
            windows: vec![window],
            sampled: is_sampled.then_some(window).into_iter().collect(),
        }
    }

    /// The same by a clock that is ahead by `by_ns`.
    pub fn shifted(&self, by_ns: i64) -> Self {
        let shifted = |windows: &[Window]| windows.iter().map(|one| one.shifted(by_ns)).collect();
        Self {
            segments: shifted(&self.segments),
            windows: shifted(&self.windows),
            sampled: shifted(&self.sampled),
        }
    }
}

/// What servers and machine did during one reading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// When.
    pub spans: Spans,
    /// CPU time of each watched server, s.
    pub cpu_s: BTreeMap<String, f64>,
    /// The servers of these whose CPU time was counted in ticks.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub cpu_in_ticks: BTreeSet<String>,
    /// Connections that the sampled machines accepted; `None` where that cannot be read.
    pub accepted: Option<u64>,
    /// What each watched server that counts has received in the segments; empty where the load is
    /// made on another machine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub received: BTreeMap<String, Received>,
    /// When, where there is one window and the servers tell.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arrivals: BTreeMap<String, Arrivals>,
    /// `None` where sampling would have cost too much.
    pub metrics: Option<SystemMetrics>,
    /// Accept queues of the watched servers that were full, in the whole load.
    pub accept_queues: Vec<AcceptQueue>,
}

/// Times before and after a load in which its servers had nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleTimes {
    pub before: Window,
    pub after: Window,
}

impl IdleTimes {
    /// The same by a clock that is ahead by `by_ns`.
    pub fn shifted(self, by_ns: i64) -> Self {
        Self {
            before: self.before.shifted(by_ns),
            after: self.after.shifted(by_ns),
        }
    }
}
