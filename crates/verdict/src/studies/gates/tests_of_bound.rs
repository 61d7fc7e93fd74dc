//! The two one-sided tests of a mean against a bound.

use super::at_least;
use super::outcome::{GateOutcome, GateReason};
use crate::stats::sample::Sample;
use crate::studies::plan::{MOST_BLOCKS, Needed, Spread, one_sided_needed};

/// Why an outcome does not stand, and what stands instead.
pub(super) type Withheld = Option<(GateOutcome, GateReason)>;

/// The tests of a figure against its bound.
pub(super) struct BoundTest {
    pub value: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub p_breach: f64,
    pub p_pass: f64,
    pub not_breached: Withheld,
    pub not_passed: Withheld,
    pub spread: BoundSpread,
}

/// What a forecast of blocks needs.
pub(super) struct BoundSpread {
    /// The figure less the bound, positive if better.
    pub distance: f64,
    /// The standard deviation between blocks, and its degrees of freedom.
    pub sd: f64,
    pub degrees: f64,
    /// How many blocks did not settle the gate.
    pub blocks: usize,
    /// Of failures, where none was seen: the blocks that settle the gate if none fails in them.
    pub clean_blocks: Option<u32>,
}

impl BoundSpread {
    /// The blocks that settle the gate nine times in ten if the measured distance is the true one.
    pub fn needed(&self, alpha: f64, block_s: Option<f64>) -> Option<Needed> {
        if let Some(blocks) = self.clean_blocks {
            return (blocks <= MOST_BLOCKS).then(|| at_least(blocks, block_s));
        }
        if self.sd.is_nan() || self.degrees < 1.0 {
            return None;
        }
        let spread = Spread::new(self.sd, self.degrees);
        let mut needed = one_sided_needed(&spread, self.distance.abs(), alpha, block_s)?;
        let more = u32::try_from(self.blocks + 1).unwrap_or(u32::MAX);
        if needed.blocks < more {
            needed.blocks = more;
            needed.time_s = block_s.map(|block_s| block_s * f64::from(more));
        }
        needed.high = needed.high.map(|high| high.max(needed.blocks));
        Some(needed)
    }
}

/// A sample of log figures against the logarithm of its bound; positive is better.
pub(super) struct MarginOverBound {
    pub sample: Sample,
}

impl MarginOverBound {
    pub fn of(sample: &Sample, log_bound: f64, higher_is_better: bool) -> Self {
        let sign = if higher_is_better { 1.0 } else { -1.0 };
        Self {
            sample: sample.seen_from(log_bound, sign),
        }
    }

    pub fn p_pass(&self) -> Option<f64> {
        self.sample.p_above_zero()
    }

    pub fn p_breach(&self) -> Option<f64> {
        self.sample.mirrored().p_above_zero()
    }

    /// What withholds a breach or a pass that the t test gives at the level `alpha`: the robust
    /// interval disagrees, or the blocks are too skewed.
    pub fn withheld(&self, outcome: GateOutcome, alpha: f64) -> Withheld {
        let better = match outcome {
            GateOutcome::Breached => self.sample.mirrored(),
            _ => self.sample.clone(),
        };
        let (_, interval) = better.robust(1.0 - 2.0 * alpha);
        let unsettled = |reason| Some((GateOutcome::Unsettled, reason));
        if interval.is_some_and(|(low, _)| low <= 0.0) {
            return unsettled(GateReason::FewBlocksDecide);
        }
        match better.differs_in_spite_of_skewness(2.0 * alpha) {
            true => None,
            false => unsettled(GateReason::Skewed),
        }
    }
}
