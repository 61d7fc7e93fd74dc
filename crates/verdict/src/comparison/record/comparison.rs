//! A comparison, as reports read it.

use readings::Condition;
use serde::Serialize;

use crate::{BlockRatio, Bound, Metric, Note, Robust, Starts, Verdict};

/// A subject against the baseline, on one metric under one condition. Ratios are subject over
/// baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub condition: Condition,
    pub metric: Metric,
    pub subject: String,
    pub baseline: String,
    /// The geometric mean of the blocks' ratios; absent when no block can be used.
    pub ratio: Option<f64>,
    /// Lower end of the interval of the ratio; absent with too few blocks, and where no lower end
    /// is known.
    pub low: Option<f64>,
    /// Upper end of the interval of the ratio; absent with too few blocks, and where no upper end
    /// is known.
    pub high: Option<f64>,
    /// Which end alone is known, where the client was the bottleneck for one side.
    pub bound: Option<Bound>,
    /// Confidence of the interval, wherever the run stops: at one of several looks the interval
    /// is wider than it would be at the only one.
    pub confidence: f64,
    pub blocks: usize,
    /// Whether it is of a quantile that only the answers of all blocks together resolve: the values
    /// are then theirs, and the ratios of `by_block` are jackknife pseudo-values.
    pub pooled: bool,
    /// The smallest difference that matters, as a fraction.
    pub matters: f64,
    pub verdict: Verdict,
    #[serde(skip)]
    pub notes: Vec<Note>,
    /// Geometric mean of the baseline over the blocks used, in the metric's unit; of events the
    /// share over all of them, or the mean time.
    pub baseline_value: Option<f64>,
    pub subject_value: Option<f64>,
    /// Whether the whole interval lies beyond the margin, in the direction of a verdict 'faster' or
    /// 'slower': the difference surely matters.
    pub surely: bool,
    /// The probability that the difference, in the direction of the estimate, exceeds the margin.
    pub p_beyond_matters: Option<f64>,
    /// The Hodges-Lehmann estimate with its interval of the same confidence, which a few wild blocks
    /// move little. Both ends are absent where so few blocks allow no such interval.
    pub robust: Option<Robust>,
    /// The correlation of each block with the next that the interval allows for.
    pub block_correlation: Option<f64>,
    /// Two-sided p value of 'no difference'; absent where none can be had.
    pub p_value: Option<f64>,
    /// The p value after the correction over the comparisons of the question: the metric under the
    /// condition.
    pub p_adjusted: Option<f64>,
    /// The open loop's rate, where it was the same in all blocks.
    pub rate_per_s: Option<f64>,
    /// Whether users arrive at that rate, and not requests.
    #[serde(skip)]
    pub of_users: bool,
    /// The subject's starts under the condition.
    pub subject_starts: Starts,
    pub baseline_starts: Starts,
    pub by_block: Vec<BlockRatio>,
    /// The subject's value less the baseline's, in the metric's unit; what figures of events are
    /// judged by.
    pub difference: Option<f64>,
    /// Lower end of the interval of the difference.
    pub difference_low: Option<f64>,
    /// Upper end of the interval of the difference.
    pub difference_high: Option<f64>,
    /// The smallest difference that matters, in the metric's unit.
    pub difference_matters: Option<f64>,
    /// Blocks used in which the ratio of the closed loops still changed in the second half of the
    /// slices; 0 for latencies, and where there were fewer than 60 slices.
    pub unsettled_blocks: usize,
}

impl Comparison {
    /// Both ends of the interval of the ratio.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// Both ends of the interval of the difference.
    pub fn difference_interval(&self) -> Option<(f64, f64)> {
        self.difference_low.zip(self.difference_high)
    }
}
