//! Ratios of which only a bound is known.

use serde::Serialize;

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
