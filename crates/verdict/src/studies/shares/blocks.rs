//! Means over blocks.

use serde::Serialize;

use crate::FEWEST_BLOCKS;
use crate::stats::student::t_quantile;

/// A mean over blocks, with Student's interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BlockMean {
    pub value: f64,
    /// Lower end of its interval; absent with fewer than [`FEWEST_BLOCKS`] blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    pub blocks: usize,
}

impl BlockMean {
    /// `None` without blocks.
    pub(super) fn of(values: &[f64], confidence: f64) -> Option<Self> {
        let blocks = values.len();
        let count = blocks as f64;
        let value = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|one| (one - value).powi(2)).sum();
        let half = (blocks >= FEWEST_BLOCKS).then(|| {
            let error = (squares / (count - 1.0) / count).sqrt();
            t_quantile(0.5 + confidence / 2.0, count - 1.0) * error
        });
        (blocks > 0).then(|| Self {
            value,
            low: half.map(|half| value - half),
            high: half.map(|half| value + half),
            blocks,
        })
    }

    /// Both ends of the interval.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }
}
