//! Instructions that servers retired.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Which instructions of a program are counted. Counts of different scope are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstructionScope {
    /// User-mode instructions only: all that a user may count with `kernel.perf_event_paranoid` = 2,
    /// the kernel's own default.
    User,
    /// Those of the kernel on its behalf as well.
    UserAndKernel,
}

/// Instructions that the servers of a path retired in a closed loop of its own, after the measured
/// windows: counting takes time at each context switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionsReading {
    pub scope: InstructionScope,
    /// Good answers of that load.
    pub requests: u64,
    /// Instructions of each server, all its processes together.
    pub servers: BTreeMap<String, u64>,
}

impl InstructionsReading {
    /// Instructions of all servers per good answer; `None` without any.
    pub fn per_request(&self) -> Option<f64> {
        let all: f64 = self.servers.values().map(|count| *count as f64).sum();
        (self.requests > 0 && all > 0.0).then(|| all / self.requests as f64)
    }

    /// Instructions of each server per good answer; empty without answers.
    pub fn per_request_by_server(&self) -> impl Iterator<Item = (&String, f64)> {
        let requests = self.requests as f64;
        let counted = self.servers.iter().filter(move |_| requests > 0.0);
        counted.map(move |(server, count)| (server, *count as f64 / requests))
    }
}
