//! Student's t distribution, and the chi-square distribution. Student's is `statrs`'; its quantile is wrong by up to a
//! thousandth where degrees of freedom are many, hence Newton's method here.

use serde::Serialize;
use statrs::distribution::{ChiSquared, Continuous, ContinuousCDF, StudentsT};

use crate::FEWEST_BLOCKS;

/// The chance of a value at least as far from zero as `t`, under Student's t distribution with
/// `degrees` degrees of freedom: the two-sided p value.
pub fn t_two_sided_p(t: f64, degrees: f64) -> f64 {
    // `statrs` panics on NaN.
    if t.is_nan() {
        return f64::NAN;
    }
    distribution(degrees).map_or(f64::NAN, |student| 2.0 * student.sf(t.abs()))
}

/// The share of Student's t distribution that lies below `t`.
pub(crate) fn t_below(t: f64, degrees: f64) -> f64 {
    let beyond = t_two_sided_p(t, degrees) / 2.0;
    if t < 0.0 { beyond } else { 1.0 - beyond }
}

/// The value that a share `p` (between 0 and 1, both exclusive) of Student's t distribution with
/// `degrees` degrees of freedom lies below.
pub fn t_quantile(p: f64, degrees: f64) -> f64 {
    if p < 0.5 {
        return -t_quantile(1.0 - p, degrees);
    }
    let Some(student) = distribution(degrees) else {
        return f64::NAN;
    };
    let tail = 2.0 * (1.0 - p);
    let (mut low, mut high) = (0.0, 1.0);
    while t_two_sided_p(high, degrees) > tail && high < 1e12 {
        low = high;
        high *= 2.0;
    }
    // Newton's steps, kept inside what is known to hold the quantile.
    let mut t = 0.5 * (low + high);
    for _ in 0..200 {
        let excess = t_two_sided_p(t, degrees) - tail;
        if excess > 0.0 {
            low = t;
        } else {
            high = t;
        }
        let step = t + excess / (2.0 * student.pdf(t));
        let next = if low < step && step < high {
            step
        } else {
            0.5 * (low + high)
        };
        if (next - t).abs() <= 1e-13 * next {
            return next;
        }
        t = next;
    }
    t
}

/// The value that a share `p` of the chi-square distribution lies below.
pub(crate) fn chi_square_quantile(p: f64, degrees: f64) -> f64 {
    ChiSquared::new(degrees).map_or(f64::NAN, |chi| chi.inverse_cdf(p))
}

/// Nothing without degrees of freedom.
fn distribution(degrees: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, degrees).ok()
}

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
    pub(crate) fn of(values: &[f64], confidence: f64) -> Option<Self> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the usual printed tables.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        let table = [
            (0.975, 1.0, 12.706_2),
            (0.975, 2.0, 4.302_65),
            (0.975, 3.0, 3.182_45),
            (0.975, 4.0, 2.776_45),
            (0.975, 9.0, 2.262_16),
            (0.95, 9.0, 1.833_11),
            (0.995, 9.0, 3.249_84),
            (0.975, 19.0, 2.093_02),
            (0.975, 29.0, 2.045_23),
            (0.95, 29.0, 1.699_13),
            (0.999_5, 5.0, 6.868_83),
            (0.975, 120.0, 1.979_93),
            (0.975, 1e6, 1.959_97),
        ];
        for (p, degrees, expected) in table {
            let got = t_quantile(p, degrees);
            assert!(
                (got / expected - 1.0).abs() < 5e-6,
                "t({p}, {degrees}) = {got}, the table says {expected}"
            );
        }
    }

    #[test]
    fn the_distribution_is_symmetric_and_the_quantile_inverts_it() {
        assert_eq!(t_two_sided_p(0.0, 9.0), 1.0);
        assert_eq!(t_two_sided_p(f64::NEG_INFINITY, 9.0), 0.0);
        assert!(t_two_sided_p(f64::NAN, 9.0).is_nan());
        assert!((t_two_sided_p(-2.262_157, 9.0) - 0.05).abs() < 1e-6);
        for degrees in [1.0, 2.0, 7.0, 31.0, 400.0] {
            for p in [0.6, 0.8, 0.95, 0.99, 0.9999] {
                let t = t_quantile(p, degrees);
                assert!((t + t_quantile(1.0 - p, degrees)).abs() < 1e-6 * t);
                assert!((t_two_sided_p(t, degrees) - 2.0 * (1.0 - p)).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn chi_square_quantiles_are_those_of_the_tables() {
        for (p, degrees, expected) in [(0.1, 9.0, 4.168), (0.9, 9.0, 14.684), (0.5, 4.0, 3.357)] {
            let got = chi_square_quantile(p, degrees);
            assert!((got - expected).abs() < 1e-3, "{got}");
        }
    }

    #[test]
    fn one_degree_of_freedom_is_cauchy() {
        let cauchy = |p: f64| (std::f64::consts::PI * (p - 0.5)).tan();
        for p in [0.55, 0.75, 0.9, 0.999] {
            assert!((t_quantile(p, 1.0) / cauchy(p) - 1.0).abs() < 1e-8);
        }
    }
}
