//! The noise floor: the baseline against itself.

use readings::Condition;
use serde::Serialize;

use crate::Metric;
use crate::comparison::record::ratio::BlockRatio;

/// What the baseline compared with itself shows: its second copy over its first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoiseFloor {
    pub condition: Condition,
    pub metric: Metric,
    #[serde(skip)]
    pub baseline: String,
    /// The geometric mean of the blocks' ratios.
    pub ratio: f64,
    /// Lower end of the interval; absent with fewer than three blocks.
    pub low: Option<f64>,
    /// Upper end of the interval; absent with fewer than three blocks.
    pub high: Option<f64>,
    /// Of figures of events: the second copy's less the first's, and the ends of its interval.
    pub difference: Option<f64>,
    pub difference_low: Option<f64>,
    pub difference_high: Option<f64>,
    #[serde(skip)]
    pub difference_matters: Option<f64>,
    pub blocks: usize,
    /// Whether the client was the bottleneck for a copy, so that the floor is the client's.
    pub client_limited: bool,
    /// Whether the second copy had servers of its own in every block used. Otherwise both copies
    /// were the same processes, and the floor lacks the variance of starts.
    pub separate: bool,
    pub by_block: Vec<BlockRatio>,
}

impl NoiseFloor {
    /// Whether the baseline differs from itself by more than the margin: its interval excludes
    /// zero and its estimate lies beyond `matters`. Nothing else of the run can then be trusted
    /// to be free of the same bias.
    pub fn is_biased(&self, matters: f64) -> bool {
        if let (Some(difference), Some(matters)) = (self.difference, self.difference_matters) {
            let ends = self.difference_low.zip(self.difference_high);
            let excludes_zero = ends.is_some_and(|(low, high)| low > 0.0 || high < 0.0);
            return excludes_zero && difference.abs() > matters;
        }
        let excludes_one = self
            .low
            .zip(self.high)
            .is_some_and(|(low, high)| low > 1.0 || high < 1.0);
        excludes_one && self.ratio.ln().abs() > matters.max(0.0).ln_1p()
    }
}

impl NoiseFloor {
    /// The largest log ratio, in either direction, that the interval holds.
    pub(crate) fn size(&self) -> f64 {
        let ends = [self.low, self.high].into_iter().flatten();
        ends.map(|end| end.ln().abs())
            .fold(self.ratio.ln().abs(), f64::max)
    }

    /// Whether the interval reaches further than the margin on either side of its estimate.
    pub(crate) fn is_wide(&self, matters: f64) -> bool {
        let width = self.low.zip(self.high).map(|(low, high)| (high / low).ln());
        width.is_some_and(|width| width / 2.0 > matters.max(0.0).ln_1p())
    }
}
