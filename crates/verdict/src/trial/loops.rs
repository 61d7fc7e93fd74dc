//! The two loops of a trial.

use readings::{LoadReading, Reading};

use crate::Metric;

/// The loop in which a metric is measured: the closed loop, which measures throughput, or the open
/// loop, which measures latency. Each has windows of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loop {
    Closed,
    Open,
}

impl Loop {
    pub(crate) fn of(metric: Metric) -> Self {
        match metric.is_of_open_loop() {
            true => Self::Open,
            false => Self::Closed,
        }
    }

    /// What was measured in it, if it was part of the trial.
    pub(crate) fn load(self, reading: &Reading) -> Option<&LoadReading> {
        match self {
            Self::Closed => reading.throughput.as_ref(),
            Self::Open => reading.latency.as_ref(),
        }
    }
}
