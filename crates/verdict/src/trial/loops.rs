//! The two loops of a trial.

use readings::{LoadReading, Reading};

/// The closed loop, which measures throughput, or the open loop, which measures latency. Each has
/// windows of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loop {
    Closed,
    Open,
}

impl Loop {
    /// What was measured in it, if it was part of the trial.
    pub(crate) fn load(self, reading: &Reading) -> Option<&LoadReading> {
        match self {
            Self::Closed => reading.throughput.as_ref(),
            Self::Open => reading.latency.as_ref(),
        }
    }
}
