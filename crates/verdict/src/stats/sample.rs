//! Mean, deviation and interval of a sample.

use crate::stats::dependence::{Widening, correlation};
use crate::stats::robust::Walsh;
use crate::stats::student::{t_below, t_quantile, t_two_sided_p};

/// The fewest blocks that an interval, and so a decision, is made from.
pub const FEWEST_BLOCKS: usize = 3;
/// Blocks that differ by less than this, as a standard deviation of log ratios, were rounded
/// somewhere: nothing here is measured to 0.05%.
pub(crate) const FINEST: f64 = 5e-4;
/// From so many blocks on their skewness can be told from chance.
const FEWEST_FOR_SKEWNESS: usize = 15;

/// The log ratios of a comparison, one per block, as far as a decision needs them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub blocks: usize,
    pub mean: f64,
    /// Their standard deviation (n - 1); 0 for a single block.
    pub sd: f64,
    /// The correlation of neighbouring blocks that every interval allows for.
    pub correlation: f64,
    /// Their skewness; 0 where they are all alike.
    pub skewness: f64,
    /// Degrees of freedom of `sd` beyond its own blocks': those of the comparisons beside it.
    pub shared_degrees: f64,
    /// Half of the step in which the figures were reported, in log units.
    resolution: f64,
    log_ratios: Vec<f64>,
}

impl Sample {
    /// Summarises log ratios, in the order of their blocks; nothing when there are none.
    pub fn of(log_ratios: &[f64]) -> Option<Self> {
        let blocks = log_ratios.len();
        if blocks == 0 {
            return None;
        }
        let n = blocks as f64;
        let mean = log_ratios.iter().sum::<f64>() / n;
        let moment = |power| {
            log_ratios
                .iter()
                .map(|x| (x - mean).powi(power))
                .sum::<f64>()
        };
        let squares = moment(2);
        let sd = if blocks > 1 {
            (squares / (n - 1.0)).sqrt()
        } else {
            0.0
        };
        let skewness = if sd > FINEST {
            moment(3) / n / (squares / n).powf(1.5)
        } else {
            0.0
        };
        Some(Self {
            blocks,
            mean,
            sd,
            correlation: correlation(log_ratios),
            skewness,
            shared_degrees: 0.0,
            resolution: 0.0,
            log_ratios: log_ratios.to_vec(),
        })
    }

    /// The same of figures that were rounded: `half_log` is half a step of both sides' figures
    /// together, in log units. Every interval reaches so much further.
    pub fn with_resolution(mut self, half_log: f64) -> Self {
        self.resolution = half_log.max(0.0);
        self
    }

    fn widening(&self) -> Widening {
        Widening::of(self.blocks, self.correlation)
    }

    /// Degrees of freedom, after what the blocks' dependence costs.
    pub fn degrees(&self) -> f64 {
        self.widening()
            .degrees(self.blocks as f64 - 1.0 + self.shared_degrees)
    }

    /// The log ratios, in the order of their blocks.
    pub fn log_ratios(&self) -> &[f64] {
        &self.log_ratios
    }

    fn standard_error(&self) -> f64 {
        error_of_mean(self.sd, self.blocks, self.correlation)
    }

    /// How far the mean lies from zero in standard errors, half a step of the figures left out.
    fn t(&self) -> f64 {
        let size = (self.mean.abs() - self.resolution).max(0.0);
        self.mean.signum() * size / self.standard_error()
    }

    /// The t interval of the mean, widened for dependent blocks and for the figures' steps; nothing
    /// for fewer than three blocks.
    pub fn interval(&self, confidence: f64) -> Option<(f64, f64)> {
        if self.blocks < FEWEST_BLOCKS {
            return None;
        }
        let t = t_quantile(0.5 + confidence / 2.0, self.degrees());
        let half = t * self.standard_error() + self.resolution;
        Some((self.mean - half, self.mean + half))
    }

    /// The two-sided p value of 'there is no difference'; nothing for fewer than three blocks.
    pub fn p_value(&self) -> Option<f64> {
        (self.blocks >= FEWEST_BLOCKS).then(|| t_two_sided_p(self.t(), self.degrees()))
    }

    /// The probability that the difference, in the direction of the mean, exceeds `delta`, read off
    /// the t distribution; nothing for fewer than three blocks.
    pub fn p_beyond(&self, delta: f64) -> Option<f64> {
        let excess = self.mean.abs() - self.resolution - delta;
        (self.blocks >= FEWEST_BLOCKS)
            .then(|| t_below(excess / self.standard_error(), self.degrees()))
    }

    /// The same as seen from a bound; with `sign` -1 mirrored, so that less is more.
    pub fn seen_from(&self, bound: f64, sign: f64) -> Self {
        let seen = |x: &f64| sign * (x - bound);
        Self {
            mean: seen(&self.mean),
            skewness: sign * self.skewness,
            log_ratios: self.log_ratios.iter().map(seen).collect(),
            ..self.clone()
        }
    }

    pub fn mirrored(&self) -> Self {
        self.seen_from(0.0, -1.0)
    }

    /// The one-sided p value of 'the mean is at most zero'; nothing for fewer than three blocks.
    pub fn p_above_zero(&self) -> Option<f64> {
        (self.blocks >= FEWEST_BLOCKS).then(|| t_below(-self.t(), self.degrees()))
    }

    /// Whether a difference from zero at the level `alpha` is still one after Hall's transformation
    /// of the t statistic, which takes its skewness away. Always with fewer blocks than show any.
    ///
    /// Source: P. Hall, On the removal of skewness by transformation, Journal of the Royal
    /// Statistical Society B 54 (1992).
    pub fn differs_in_spite_of_skewness(&self, alpha: f64) -> bool {
        if self.blocks < FEWEST_FOR_SKEWNESS {
            return true;
        }
        let (t, a) = (self.t(), self.skewness / 3.0 / (self.blocks as f64).sqrt());
        let corrected = t + a * t * t + a * a * t * t * t / 3.0 + a / 2.0;
        corrected * t > 0.0 && t_two_sided_p(corrected, self.degrees()) < alpha
    }

    /// The Hodges-Lehmann estimate and its interval, where so few blocks allow one.
    pub fn robust(&self, confidence: f64) -> (f64, Option<(f64, f64)>) {
        let walsh = Walsh::of(&self.log_ratios);
        let room = self.resolution.max(FINEST / (self.blocks as f64).sqrt());
        let interval = walsh.interval(confidence);
        (
            walsh.estimate().unwrap_or(self.mean),
            interval.map(|(low, high)| (low - room, high + room)),
        )
    }
}

/// The standard error of the mean of so many blocks.
pub(crate) fn error_of_mean(sd: f64, blocks: usize, correlation: f64) -> f64 {
    let variance = Widening::of(blocks, correlation).variance;
    sd.max(FINEST) * (variance / blocks as f64).sqrt()
}

#[cfg(test)]
impl Sample {
    /// A sample of the given mean and standard deviation without skewness. Its blocks go up and down
    /// in turns, so that nothing is widened; their number is even.
    pub fn made_of(blocks: usize, mean: f64, sd: f64) -> Self {
        let step = sd * ((blocks as f64 - 1.0) / blocks as f64).sqrt();
        let logs: Vec<f64> = (0..blocks)
            .map(|i| if i % 2 == 0 { mean + step } else { mean - step })
            .collect();
        Self::of(&logs).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Normal;

    #[test]
    fn interval_of_a_worked_example() {
        // Mean 3, standard deviation sqrt(2.5), and t(0.975, 4) = 2.776445 of independent blocks.
        let mut s = Sample::of(&[1.0, 4.0, 3.0, 2.0, 5.0]).unwrap();
        s.correlation = 0.0;
        let (low, high) = s.interval(0.95).unwrap();
        assert!((low - 1.036_757).abs() < 1e-5, "{low}");
        assert!((high - 4.963_243).abs() < 1e-5, "{high}");
        assert!((s.p_value().unwrap() - 0.013_238).abs() < 1e-5);
        // Half of the mean is beyond a delta of 3, and 2.5% of it at the interval's lower end.
        assert!((s.p_beyond(3.0).unwrap() - 0.5).abs() < 1e-9);
        assert!((s.p_beyond(low).unwrap() - 0.975).abs() < 1e-5);
        s.correlation = 0.4;
        let (wide, _) = s.interval(0.95).unwrap();
        assert!(wide < low - 1.0, "{wide}");
    }

    #[test]
    fn no_interval_comes_from_two_blocks_and_none_has_no_width() {
        assert_eq!(Sample::of(&[]), None);
        for few in [&[0.1][..], &[0.1, 0.1], &[0.1, 0.2]] {
            let few = Sample::of(few).unwrap();
            assert_eq!((few.interval(0.95), few.p_value()), (None, None));
            assert_eq!(few.p_beyond(0.03), None);
        }
        let flat = Sample::of(&[0.5; 3]).unwrap();
        let (low, high) = flat.interval(0.95).unwrap();
        assert!(low < 0.499 && high > 0.501, "{low} {high}");
        let p = flat.p_value().unwrap();
        assert!(p > 0.0 && p < 0.05, "{p}");
        assert_eq!(Sample::of(&[0.0; 10]).unwrap().p_value(), Some(1.0));
        let (_, interval) = Sample::of(&[0.5; 10]).unwrap().robust(0.95);
        let (low, high) = interval.unwrap();
        assert!(low < 0.5 && 0.5 < high);
    }

    #[test]
    fn figures_in_steps_are_known_to_half_a_step() {
        // 10 and 11 ms, of 10.4 and 10.6: 0.095 measured, 0.019 true.
        let half = 0.5 * (1.0 / 10.0 + 1.0 / 11.0);
        let s = Sample::of(&[1.1_f64.ln(); 10]).unwrap();
        assert!(s.p_value().unwrap() < 1e-6);
        let s = s.with_resolution(half);
        let (low, high) = s.interval(0.95).unwrap();
        assert!(low < 0.019 && 0.019 < high, "{low} {high}");
        assert!(s.p_value().unwrap() > 0.5, "{:?}", s.p_value());
    }

    #[test]
    fn a_long_tail_that_lies_the_other_way_is_no_difference() {
        // The mean of an exponential distribution less one is zero; where its long tail was not hit,
        // the sample lies below it, and its t says so too often.
        let mut normal = Normal::with_seed(4);
        let (mut by_t, mut corrected) = (0, 0);
        let runs = 1000;
        for _ in 0..runs {
            let logs: Vec<f64> = (0..20)
                .map(|_| 0.5 * (normal.next().powi(2) + normal.next().powi(2)) - 1.0)
                .collect();
            let mut sample = Sample::of(&logs).unwrap();
            sample.correlation = 0.0;
            let differs = sample.p_value().unwrap() < 0.05;
            by_t += u32::from(differs);
            corrected += u32::from(differs && sample.differs_in_spite_of_skewness(0.05));
        }
        assert!(corrected < runs * 7 / 100, "{corrected}");
        assert!(by_t > corrected + runs / 100, "{by_t} {corrected}");
    }
}
