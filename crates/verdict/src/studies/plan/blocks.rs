//! How many blocks settle a difference.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::MOST_BLOCKS;
use crate::FEWEST_BLOCKS;
use crate::stats::dependence::{Widening, correlation_of_independent};
use crate::stats::looks::Looks;
use crate::stats::student::{t_quantile, t_two_sided_p};

/// The probability with which the blocks have to settle it.
const POWER: f64 = 0.9;
/// The interval of the standard deviation leaves this share out at either end.
const BEYOND: f64 = 0.1;
/// Equally likely values that stand for the true standard deviation.
const VALUES: u32 = 20;

/// What a pilot says of a standard deviation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spread {
    pub sd: f64,
    /// The ends of the 80% interval of the true one.
    pub range: (f64, f64),
    /// Equally likely values of the true one over the pilot's.
    factors: Vec<f64>,
}

impl Spread {
    pub fn new(sd: f64, degrees: f64) -> Self {
        let chi = ChiSquared::new(degrees).ok();
        // The true one over the pilot's, of which a share `p` of the possible ones lies below.
        let factor = |p: f64| {
            let quantile = chi.map(|chi| chi.inverse_cdf(1.0 - p));
            quantile.map_or(1.0, |quantile| (degrees / quantile).sqrt())
        };
        let values = (0..VALUES).map(|at| (f64::from(at) + 0.5) / f64::from(VALUES));
        Self {
            sd,
            range: (sd * factor(BEYOND), sd * factor(1.0 - BEYOND)),
            factors: values.map(factor).collect(),
        }
    }

    /// Another standard deviation, with the same relative uncertainty.
    pub fn with_sd(&self, sd: f64) -> Self {
        let (low, high) = self.range;
        Self {
            sd,
            range: (low * sd / self.sd, high * sd / self.sd),
            factors: self.factors.clone(),
        }
    }

    /// The chance, averaged over what the true standard deviation may be.
    pub fn expected(&self, chance: &dyn Fn(f64) -> f64) -> f64 {
        let chances = self.factors.iter().map(|factor| chance(factor * self.sd));
        chances.sum::<f64>() / f64::from(VALUES)
    }
}

/// A difference that is to be settled, as a log ratio, and the error rate of a run that looks once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Goal {
    pub delta: f64,
    pub alpha: f64,
    pub comparisons: usize,
}

impl Goal {
    /// The fewest blocks whose chance is enough. `judged` gets the chance at a standard deviation.
    /// Nothing beyond [`MOST_BLOCKS`].
    pub fn blocks(self, judged: impl Fn(&dyn Fn(f64) -> f64) -> f64) -> Option<u32> {
        fewest(|blocks| {
            let at = self.with(blocks);
            judged(&|sd| at.chance(sd)) >= POWER
        })
    }

    fn with(self, blocks: u32) -> Try {
        let count = f64::from(blocks);
        // Intervals allow for a correlation, also where there is none.
        let widening = Widening::of(blocks as usize, correlation_of_independent(blocks as usize));
        let degrees = widening.degrees(count - 1.0);
        Try {
            delta: self.delta,
            root: (count / widening.variance).sqrt(),
            stretch: widening.variance.sqrt(),
            degrees: count - 1.0,
            inside: t_quantile(1.0 - self.alpha, degrees),
            // No correction asks for a smaller p value (Bonferroni).
            beyond: t_quantile(
                1.0 - self.alpha / (2.0 * self.comparisons.max(1) as f64),
                degrees,
            ),
        }
    }
}

/// The fewest blocks that are enough; nothing beyond [`MOST_BLOCKS`].
fn fewest(enough: impl Fn(u32) -> bool) -> Option<u32> {
    let fewest = FEWEST_BLOCKS as u32;
    if enough(fewest) {
        return Some(fewest);
    }
    if !enough(MOST_BLOCKS) {
        return None;
    }
    let (mut low, mut high) = (fewest, MOST_BLOCKS);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match enough(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    // So many blocks would be judged at several looks, each with less of the error budget.
    Some(if Looks::of(high).is_fixed() {
        high
    } else {
        high + 1
    })
}

/// A figure at a distance from a bound, as a log ratio, that is to be found beyond it, and the
/// one-sided error rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OneSided {
    pub distance: f64,
    pub alpha: f64,
}

impl OneSided {
    /// The fewest blocks whose chance is enough, as [`Goal::blocks`] has them.
    pub fn blocks(self, judged: impl Fn(&dyn Fn(f64) -> f64) -> f64) -> Option<u32> {
        fewest(|blocks| {
            let goal = Goal {
                delta: self.distance,
                alpha: self.alpha,
                comparisons: 1,
            };
            let at = goal.with(blocks);
            let chance = |sd: f64| at.below(self.distance * at.root / sd - at.inside);
            judged(&chance) >= POWER
        })
    }
}

struct Try {
    delta: f64,
    /// The standard deviation over the standard error that an interval has.
    root: f64,
    /// That standard error over the one of independent blocks.
    stretch: f64,
    degrees: f64,
    /// Critical values of t: of the two one-sided tests, and of the difference.
    inside: f64,
    beyond: f64,
}

impl Try {
    /// The smaller of two probabilities: that equal subjects are found the same within the
    /// difference, and that a true difference of that size is detected. The noncentral t is
    /// approximated by a shifted central one.
    fn chance(&self, sd: f64) -> f64 {
        let size = self.delta * self.root / sd;
        let same = 2.0 * self.below(size - self.inside) - 1.0;
        let different = self.below(size - self.beyond);
        same.min(different).max(0.0)
    }

    fn below(&self, t: f64) -> f64 {
        let tail = t_two_sided_p(t * self.stretch, self.degrees) / 2.0;
        match t < 0.0 {
            true => tail,
            false => 1.0 - tail,
        }
    }
}
