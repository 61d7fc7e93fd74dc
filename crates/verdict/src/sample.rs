//! Mean, deviation and interval of a sample.

use crate::student::{t_quantile, t_two_sided_p};

/// The log ratios of a comparison, one per block, as far as a decision needs them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// How many blocks.
    pub blocks: usize,
    pub mean: f64,
    /// Their standard deviation (n - 1); 0 for a single block.
    pub sd: f64,
    /// By how much the steps of the figures can shift the mean: intervals are wider by it on each
    /// side.
    pub half_step: f64,
}

impl Sample {
    /// Summarises log ratios; nothing when there are none.
    pub fn of(log_ratios: &[f64]) -> Option<Self> {
        let blocks = log_ratios.len();
        if blocks == 0 {
            return None;
        }
        let mean = log_ratios.iter().sum::<f64>() / blocks as f64;
        let squares: f64 = log_ratios.iter().map(|x| (x - mean).powi(2)).sum();
        let sd = if blocks > 1 {
            (squares / (blocks - 1) as f64).sqrt()
        } else {
            0.0
        };
        Some(Self {
            blocks,
            mean,
            sd,
            half_step: 0.0,
        })
    }

    /// The same for figures that are told in steps, of which half shifts a log ratio by so much.
    pub fn with_resolution(mut self, half_step: f64) -> Self {
        self.half_step = half_step;
        self
    }

    fn degrees(&self) -> f64 {
        self.blocks as f64 - 1.0
    }

    fn standard_error(&self) -> f64 {
        self.sd / (self.blocks as f64).sqrt()
    }

    /// The t interval of the mean; nothing for a single block.
    pub fn interval(&self, confidence: f64) -> Option<(f64, f64)> {
        if self.blocks < 2 {
            return None;
        }
        let half = t_quantile(0.5 + confidence / 2.0, self.degrees()) * self.standard_error()
            + self.half_step;
        Some((self.mean - half, self.mean + half))
    }

    /// The two-sided p value of 'there is no difference'; nothing for a single block.
    pub fn p_value(&self) -> Option<f64> {
        if self.blocks < 2 {
            return None;
        }
        if self.mean == 0.0 {
            return Some(1.0);
        }
        // Without any spread this divides by zero, and the infinite t has p = 0.
        let beyond = (self.mean.abs() - self.half_step).max(0.0);
        if beyond == 0.0 {
            return Some(1.0);
        }
        Some(t_two_sided_p(
            beyond / self.standard_error(),
            self.degrees(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_a_worked_example() {
        // Mean 3, standard deviation sqrt(2.5), t(0.975, 4) = 2.776445.
        let s = Sample::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let (low, high) = s.interval(0.95).unwrap();
        assert!((low - 1.036_757).abs() < 1e-5, "{low}");
        assert!((high - 4.963_243).abs() < 1e-5, "{high}");
        assert!((s.p_value().unwrap() - 0.013_238).abs() < 1e-5);
    }

    #[test]
    fn one_block_has_no_interval_and_equal_blocks_have_a_point() {
        assert_eq!(Sample::of(&[]), None);
        let one = Sample::of(&[0.1]).unwrap();
        assert_eq!((one.interval(0.95), one.p_value()), (None, None));
        let flat = Sample::of(&[0.5, 0.5, 0.5]).unwrap();
        assert_eq!(flat.interval(0.95), Some((0.5, 0.5)));
        assert_eq!(flat.p_value(), Some(0.0));
        assert_eq!(Sample::of(&[0.0, 0.0]).unwrap().p_value(), Some(1.0));
    }
}
