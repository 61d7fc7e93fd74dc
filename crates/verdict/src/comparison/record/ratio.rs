//! The ratio of a block, and a ratio of which only one end is known.

use serde::Serialize;

/// One block's evidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BlockRatio {
    /// The block's number, from 1.
    pub block: u32,
    /// Subject over baseline.
    pub ratio: f64,
    /// Subject minus baseline, in the metric's unit; only with fault injection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
}

/// Which end of a ratio is known, where the client was the bottleneck for one side.
///
/// A throughput that the client limited is a lower bound of what the server could have done, so a
/// ratio with it is censored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The ratio is at least `low`: the client was the bottleneck for the subject.
    AtLeast,
    /// The ratio is at most `high`: the client was the bottleneck for the baseline.
    AtMost,
}
