//! The robust companion of the t interval: the Hodges-Lehmann estimate, and the interval that
//! Wilcoxon's signed-rank test leaves.
//!
//! An outlier among ten blocks moves it little, but moves the mean and widens the t interval. It
//! answers a slightly different question, the centre of most blocks instead of their mean; where
//! the two differ, a verdict would rest on a few blocks.
//!
//! Sources: F. Wilcoxon, Individual comparisons by ranking methods, Biometrics Bulletin 1 (1945);
//! J. L. Hodges, E. L. Lehmann, Estimates of location based on rank tests, Annals of Mathematical
//! Statistics 34 (1963).

use serde::Serialize;

use crate::stats::student::t_quantile;

/// Up to this many blocks the test's distribution is exact; beyond, it is taken for normal.
const COUNTED: usize = 40;

/// The robust estimate of a ratio, beside the mean and its t interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Robust {
    /// The Hodges-Lehmann estimate.
    pub ratio: f64,
    /// Lower end of its interval; absent where so few blocks allow none of that confidence.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
}

impl Robust {
    /// Both ends of the interval, where there is one.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }
}

/// The means of all pairs of values, each value with itself too, ascending.
pub(crate) struct Walsh {
    means: Vec<f64>,
    values: usize,
}

impl Walsh {
    pub fn of(values: &[f64]) -> Self {
        let mut means = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
        for (i, a) in values.iter().enumerate() {
            means.extend(values[i..].iter().map(|b| 0.5 * (a + b)));
        }
        means.sort_by(f64::total_cmp);
        Self {
            means,
            values: values.len(),
        }
    }

    /// The Hodges-Lehmann estimate; nothing without values.
    pub fn estimate(&self) -> Option<f64> {
        let last = self.means.len().checked_sub(1)?;
        Some(0.5 * (self.means[last / 2] + self.means[last.div_ceil(2)]))
    }

    /// The interval of at least this confidence; nothing where there are too few blocks for it.
    pub fn interval(&self, confidence: f64) -> Option<(f64, f64)> {
        let rank = rank(self.values, 0.5 - confidence / 2.0);
        let low = *self.means.get(rank.checked_sub(1)?)?;
        let high = *self.means.get(self.means.len().checked_sub(rank)?)?;
        Some((low, high))
    }
}

/// The largest k so that a signed-rank sum below k has at most the probability `tail`.
fn rank(values: usize, tail: f64) -> usize {
    let n = values as f64;
    if values > COUNTED {
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        let k = n * (n + 1.0) / 4.0 + 0.5 - t_quantile(1.0 - tail, 1e6) * deviation;
        return k.max(0.0) as usize;
    }
    // The probability of each sum: every rank is in it or not.
    let mut sums = vec![0.0; values * (values + 1) / 2 + 1];
    sums[0] = 1.0;
    for rank in 1..=values {
        for sum in (0..sums.len()).rev() {
            let with = sum.checked_sub(rank).map_or(0.0, |rest| sums[rest]);
            sums[sum] = 0.5 * (sums[sum] + with);
        }
    }
    let mut below = 0.0;
    // A small tolerance: 2/64 is 3.125% whatever the confidence was rounded to.
    sums.iter()
        .take_while(|p| {
            below += *p;
            below <= tail * (1.0 + 1e-9)
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Normal;

    #[test]
    fn ranks_are_those_of_the_printed_tables() {
        // Critical values of the signed-rank test, two-sided 5%: the interval's rank is one more.
        for (n, critical) in [
            (6, 0),
            (7, 2),
            (8, 3),
            (10, 8),
            (15, 25),
            (20, 52),
            (25, 89),
        ] {
            assert_eq!(rank(n, 0.025), critical + 1, "{n}");
        }
        // Five blocks reach 93.75% at most, ten 99.8%.
        assert_eq!(rank(5, 0.025), 0);
        assert_eq!(rank(10, 0.0005), 0);
        assert!(rank(50, 0.025).abs_diff(435) <= 1, "{}", rank(50, 0.025));
    }

    #[test]
    fn estimate_and_interval_of_a_worked_example() {
        // Walsh averages of 1, 2, 6: 1, 1.5, 2, 3.5, 4, 6.
        let walsh = Walsh::of(&[6.0, 1.0, 2.0]);
        assert_eq!(walsh.estimate(), Some(2.75));
        assert_eq!(walsh.interval(0.7), Some((1.0, 6.0)));
        assert_eq!(walsh.interval(0.95), None);
        assert_eq!(Walsh::of(&[]).estimate(), None);
        assert_eq!(Walsh::of(&[]).interval(0.95), None);
    }

    #[test]
    fn the_interval_holds_the_centre_as_often_as_it_says_and_one_wild_block_hardly_moves_it() {
        let mut normal = Normal::with_seed(11);
        let runs = 2000;
        let held = (0..runs)
            .filter(|_| {
                let values: Vec<f64> = (0..10).map(|_| normal.next()).collect();
                let (low, high) = Walsh::of(&values).interval(0.95).unwrap();
                low <= 0.0 && 0.0 <= high
            })
            .count();
        let share = held as f64 / f64::from(runs);
        assert!((0.935..0.965).contains(&share), "{share}");

        let mut values: Vec<f64> = (0..10).map(|i| 0.01 * f64::from(i % 3 - 1)).collect();
        values[4] = -0.5;
        let estimate = Walsh::of(&values).estimate().unwrap();
        assert!(estimate.abs() < 0.01, "{estimate}");
    }
}
