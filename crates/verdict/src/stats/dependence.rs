//! How much evidence correlated blocks hold.
//!
//! Blocks are meant to be independent, and a run of a few blocks cannot show that they are. So each
//! interval allows for a lag-1 correlation: that of the run's own blocks, shrunk towards a moderate
//! one as long as the blocks are few. A first-order autoregressive model says how much
//! wider the interval is and how many degrees of freedom are left.
//!
//! [`PRIOR`] and [`PRIOR_BLOCKS`] come from simulation: with 3 to 40 blocks, correlations of 0.3 and
//! 0.5 give at most 8% false differences.
//!
//! Sources: F. H. C. Marriott, J. A. Pope, Bias in the estimation of autocorrelations, Biometrika 41
//! (1954); M. G. Kendall, Note on bias in the estimation of autocorrelation, the same volume; F. W.
//! Zwiers, H. von Storch, Taking serial correlation into account in tests of the mean, Journal of
//! Climate 8 (1995).

use crate::stats::steady::lag1;

/// The correlation that is assumed before any block was seen.
const PRIOR: f64 = 0.4;
/// The weight of that assumption, in blocks, and where blocks of several comparisons speak.
const PRIOR_BLOCKS: f64 = 8.0;
const PRIOR_BLOCKS_SHARED: f64 = 16.0;
/// Fewer blocks say nothing on how they follow each other, and neither do blocks that differ by less
/// than this.
const FEWEST: usize = 5;
const FINEST: f64 = 1e-6;
const MOST: f64 = 0.9;

/// The correlation of neighbouring blocks that an interval over these log ratios, in the order of
/// their blocks, allows for: 0 to 0.9.
pub(crate) fn correlation(log_ratios: &[f64]) -> f64 {
    drawn_to(PRIOR, log_ratios)
}

/// The same beside comparisons whose blocks are correlated by `shared`: no less than a share of that.
pub(crate) fn correlation_beside(log_ratios: &[f64], shared: f64, least_share: f64) -> f64 {
    drawn_to(shared, log_ratios).max(least_share * shared)
}

fn drawn_to(prior: f64, log_ratios: &[f64]) -> f64 {
    let n = log_ratios.len() as f64;
    let unbiased = seen(log_ratios).map_or(0.0, |r| without_bias(r, n));
    let drawn = (n * unbiased + PRIOR_BLOCKS * prior) / (n + PRIOR_BLOCKS);
    drawn.clamp(0.0, MOST)
}

/// The correlation that blocks show; nothing where they are too few or all alike.
fn seen(log_ratios: &[f64]) -> Option<f64> {
    let mut all = log_ratios.iter();
    let differ = all.any(|x| (x - log_ratios[0]).abs() > FINEST);
    lag1(log_ratios).filter(|_| log_ratios.len() >= FEWEST && differ)
}

/// The expectation of r is rho - (1 + 4 rho) / n.
fn without_bias(r: f64, n: f64) -> f64 {
    ((n * r + 1.0) / (n - 4.0)).clamp(-MOST, MOST)
}

/// The correlation of neighbouring blocks over several comparisons, which are worth so many that are
/// independent. Few blocks hardly tell correlations apart: of `n` blocks `r` moves by 1 - 4/n where
/// the truth moves by 1, and its evidence weighs by the square of that.
pub(crate) fn shared_correlation<'s>(
    comparisons: impl Iterator<Item = &'s [f64]>,
    worth: f64,
) -> f64 {
    let (mut sum, mut blocks, mut count) = (0.0, 0.0, 0.0);
    for log_ratios in comparisons {
        if let Some(r) = seen(log_ratios) {
            sum += r;
            blocks += log_ratios.len() as f64;
            count += 1.0;
        }
    }
    if count == 0.0 {
        return PRIOR;
    }
    let n = blocks / count;
    let weight = worth * n * (1.0 - 4.0 / n).powi(2);
    let unbiased = without_bias(sum / count, n);
    let drawn = weight * unbiased + PRIOR_BLOCKS_SHARED * PRIOR;
    (drawn / (weight + PRIOR_BLOCKS_SHARED)).clamp(0.0, MOST)
}

/// The correlation that an interval over so many blocks allows for on average where there is none.
pub(crate) fn correlation_of_independent(blocks: usize) -> f64 {
    PRIOR_BLOCKS * PRIOR / (blocks as f64 + PRIOR_BLOCKS)
}

/// What a correlation does to the mean of some blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Widening {
    /// The variance of the mean over what the sample's variance says it is.
    pub variance: f64,
    inflation: f64,
}

impl Widening {
    pub fn of(blocks: usize, correlation: f64) -> Self {
        let (n, rho) = (blocks as f64, correlation);
        // 1 + 2 sum (1 - k/n) rho^k over the lags k: n independent blocks over as many as these are
        // worth.
        let lags = rho / (1.0 - rho);
        let ends = rho * (1.0 - rho.powf(n)) / (n * (1.0 - rho).powi(2));
        let inflation = 1.0 + 2.0 * (lags - ends);
        Self {
            // Blocks that are alike also differ less than blocks at large do.
            variance: inflation * (n - 1.0) / (n - inflation),
            inflation,
        }
    }

    /// What is left of so many degrees of freedom.
    pub fn degrees(&self, of: f64) -> f64 {
        (of / self.inflation).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Normal;

    #[test]
    fn a_few_blocks_are_held_for_moderately_alike_and_many_for_what_they_show() {
        let mut normal = Normal::with_seed(3);
        let mut mean_of = |blocks: usize, rho: f64| {
            let runs = 400;
            let sum: f64 = (0..runs)
                .map(|_| {
                    let mut last = normal.next();
                    let logs: Vec<f64> = (0..blocks)
                        .map(|_| {
                            last = rho * last + (1.0 - rho * rho).sqrt() * normal.next();
                            last
                        })
                        .collect();
                    correlation(&logs)
                })
                .sum();
            sum / f64::from(runs)
        };
        assert!((correlation(&[0.1, 0.2, 0.3]) - 0.29).abs() < 0.01);
        for (blocks, rho, low, high) in [
            (5, 0.0, 0.15, 0.4),
            (200, 0.0, 0.0, 0.08),
            (200, 0.5, 0.45, 0.55),
            (30, 0.5, 0.38, 0.55),
        ] {
            let mean = mean_of(blocks, rho);
            assert!((low..high).contains(&mean), "{mean} of {blocks} at {rho}");
        }
    }

    #[test]
    fn a_worked_example_of_the_widening() {
        let free = Widening::of(10, 0.0);
        assert_eq!((free.variance, free.degrees(9.0)), (1.0, 9.0));
        // Three blocks at 0.5: 1 + 2 (2/3 * 0.5 + 1/3 * 0.25) = 1.8333; 1.8333 * 2 / 1.1667.
        let three = Widening::of(3, 0.5);
        assert!((three.variance - 3.142_857).abs() < 1e-5, "{three:?}");
        assert!((three.degrees(2.0) - 1.090_909).abs() < 1e-5, "{three:?}");
    }
}
