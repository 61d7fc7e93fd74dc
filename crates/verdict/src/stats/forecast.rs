//! How many blocks a new run would need.
//!
//! The number depends on the standard deviation between blocks, which a few blocks estimate within
//! a factor of two. So it comes with the range that the deviation's chi-square interval gives.

use crate::stats::dependence::Widening;
use crate::stats::sample::{FEWEST_BLOCKS, Sample, error_of_mean};
use crate::stats::student::{chi_square_quantile, t_below, t_quantile};

/// A new run of more blocks than this is not advised.
pub const MOST_BLOCKS_ADVISED: usize = 1000;

/// The probability that the range of a forecast holds the number that is needed, if the difference
/// is what was measured.
pub const FORECAST_CONFIDENCE: f64 = 0.8;

/// The probability with which the advised run settles the comparison.
pub(crate) const POWER: f64 = 0.8;

/// What a new run has to show, and how sure it has to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aim {
    /// The smallest log ratio that matters.
    pub delta: f64,
    /// The error rate of one look.
    pub alpha: f64,
    pub comparisons: usize,
}

/// The blocks of a new run that would likely settle a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Forecast {
    pub total: usize,
    /// The fewest, at the lower end of what the spread between blocks may truly be.
    pub low: usize,
    /// The most, at the upper end; absent where that is more than is advised.
    pub high: Option<usize>,
}

/// What would settle a comparison that is not settled; nothing where more blocks than are advised
/// would be needed.
pub(crate) fn forecast(sample: &Sample, aim: Aim) -> Option<Forecast> {
    let with_sd = |factor: f64| blocks_needed(sample, sample.sd * factor, aim);
    // The true deviation over the sample's, at both ends of its interval.
    let factor = |p| (sample.degrees() / chi_square_quantile(p, sample.degrees())).sqrt();
    let tail = (1.0 - FORECAST_CONFIDENCE) / 2.0;
    let total = with_sd(1.0)?;
    Some(Forecast {
        total: total.max(sample.blocks + 1),
        low: with_sd(factor(1.0 - tail)).unwrap_or(total),
        high: with_sd(factor(tail)).map(|high| high.max(sample.blocks + 1)),
    })
}

/// How many blocks would settle the comparison four times in five, were the mean the true one and
/// the standard deviation as given; nothing when it would take more than is reasonable.
fn blocks_needed(sample: &Sample, sd: f64, aim: Aim) -> Option<usize> {
    fewest_blocks(FEWEST_BLOCKS, |blocks| {
        chance(sample, sd, blocks, aim) >= POWER
    })
}

/// The smallest number of blocks from `least` to [`MOST_BLOCKS_ADVISED`] for which `enough` holds;
/// `None` if there is none. Where it holds for a number, it has to hold for all larger ones.
pub(crate) fn fewest_blocks(least: usize, enough: impl Fn(usize) -> bool) -> Option<usize> {
    let (mut low, mut high) = (least - 1, MOST_BLOCKS_ADVISED);
    if least > high || !enough(high) {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// The chance that so many blocks give the verdict that the sample's mean calls for, were that
/// the true mean: a difference when it is beyond `delta`, the same when it is not. The noncentral t
/// is approximated by a shifted central one; new blocks are taken to correlate as the sample does.
fn chance(sample: &Sample, sd: f64, blocks: usize, aim: Aim) -> f64 {
    let Aim { delta, alpha, .. } = aim;
    let degrees = blocks as f64 - 1.0 + sample.shared_degrees;
    let degrees = Widening::of(blocks, sample.correlation).degrees(degrees);
    let error = error_of_mean(sd, blocks, sample.correlation);
    let size = sample.mean.abs();
    if size > delta {
        // No correction asks for a smaller p value (Bonferroni).
        let critical = t_quantile(1.0 - alpha / (2.0 * aim.comparisons as f64), degrees);
        let least = delta.max(critical * error);
        t_below((size - least) / error, degrees)
    } else {
        // Both ends of the interval have to lie inside.
        let critical = t_quantile(1.0 - alpha, degrees);
        let upper = t_below((delta - size) / error - critical, degrees);
        let lower = t_below((delta + size) / error - critical, degrees);
        upper + lower - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Normal;

    const DELTA: f64 = 0.029_558_8;

    fn aim() -> Aim {
        Aim {
            delta: DELTA,
            alpha: 0.05,
            comparisons: 1,
        }
    }

    #[test]
    fn the_fewest_blocks_are_found_from_the_least_to_the_most() {
        const MOST: usize = MOST_BLOCKS_ADVISED;
        for least in [1, 2, 37, MOST - 1, MOST] {
            for enough in [1, 36, 37, 38, MOST - 1, MOST] {
                let expected = Some(enough.max(least));
                assert_eq!(fewest_blocks(least, |blocks| blocks >= enough), expected);
            }
            assert_eq!(fewest_blocks(least, |_| false), None);
        }
        assert_eq!(fewest_blocks(MOST + 1, |_| true), None);
    }

    #[test]
    fn a_forecast_is_the_total_of_a_new_run_and_its_range_holds_as_often_as_it_says() {
        // The truth: 5% apart, 8% between blocks.
        let (mean, sd) = (0.05, 0.08);
        let mut truth = Sample::made_of(10, mean, sd);
        truth.correlation = 0.0;
        let needed = blocks_needed(&truth, sd, aim()).unwrap();
        let mut normal = Normal::with_seed(8);
        let (mut held, mut forecasts) = (0, 0);
        for _ in 0..1000 {
            // The difference is what was measured; the spread is the sample's.
            let logs: Vec<f64> = (0..10).map(|_| sd * normal.next()).collect();
            let middle = logs.iter().sum::<f64>() / 10.0;
            let logs: Vec<f64> = logs.iter().map(|x| x - middle + mean).collect();
            let mut sample = Sample::of(&logs).unwrap();
            sample.correlation = 0.0;
            let Some(Forecast { total, low, high }) = forecast(&sample, aim()) else {
                continue;
            };
            forecasts += 1;
            assert!(low <= total && high.is_none_or(|high| total <= high));
            assert!(total > 10);
            held += u32::from(low <= needed && high.is_none_or(|high| needed <= high));
        }
        assert!(forecasts > 990, "{forecasts}");
        let share = f64::from(held) / f64::from(forecasts);
        assert!((0.75..0.87).contains(&share), "{share}");
    }
}
