//! Ratios of which only one end is known.

use serde::Serialize;

/// Which end of a ratio stands where one side's figure is itself only 'at least'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The ratio is at least the interval's `low`.
    AtLeast,
    /// The ratio is at most the interval's `high`.
    AtMost,
}
