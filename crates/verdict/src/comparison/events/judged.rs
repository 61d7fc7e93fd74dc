//! The decision on an absolute difference: of shares of failures, or of times.

use crate::comparison::decide::{Decision, advice};
use crate::stats::forecast::{FORECAST_CONFIDENCE, Forecast, fewest_blocks};
use crate::stats::student::{chi_square_quantile, t_quantile};
use crate::{Note, Rules, Verdict};

/// The normal quantile of 80%: the probability with which the advised blocks settle it.
const POWER_Z: f64 = 0.84;

/// An absolute difference, subject less baseline, where less is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Judged {
    pub difference: f64,
    pub interval: (f64, f64),
    /// The interval of the two one-sided tests.
    pub narrow: (f64, f64),
    /// The smallest difference that matters.
    pub matters: f64,
    /// The standard error of the difference over these blocks.
    pub error: f64,
    pub blocks: usize,
}

impl Judged {
    /// Judges it. `p_adjusted` is Holm's over the question's `comparisons`.
    pub fn decide(&self, rules: &Rules, p_adjusted: f64, comparisons: usize) -> Decision {
        let decided = |verdict, notes| Decision { verdict, notes };
        let excludes_zero = self.interval.0 > 0.0 || self.interval.1 < 0.0;
        let beyond = self.difference.abs() > self.matters;
        if -self.matters < self.narrow.0 && self.narrow.1 < self.matters {
            let note = excludes_zero.then_some(Note::SmallerThanMatters);
            return decided(Verdict::Same, note.into_iter().collect());
        }
        if excludes_zero && beyond && p_adjusted < rules.look_alpha() {
            let verdict = match self.difference < 0.0 {
                true => Verdict::Faster,
                false => Verdict::Slower,
            };
            return decided(verdict, Vec::new());
        }
        let measurable = match (excludes_zero, beyond) {
            (true, true) => Some(Note::NotAmong { comparisons }),
            (true, false) => Some(Note::MayMatter),
            (false, _) => None,
        };
        let forecast = self.forecast(rules.look_alpha(), comparisons);
        let advice = advice(forecast, self.difference.abs(), self.matters);
        decided(
            Verdict::Inconclusive,
            measurable.into_iter().chain([advice]).collect(),
        )
    }

    /// How many blocks would likely settle it, if estimate and error stay what they are.
    fn forecast(&self, alpha: f64, comparisons: usize) -> Option<Forecast> {
        let needed = |factor: f64| self.blocks_needed(self.error * factor, alpha, comparisons);
        let total = needed(1.0)?;
        let degrees = self.blocks as f64 - 1.0;
        // The true error over the one of these blocks, at both ends of its interval.
        let factor = |p| (degrees / chi_square_quantile(p, degrees)).sqrt();
        let tail = (1.0 - FORECAST_CONFIDENCE) / 2.0;
        Some(Forecast {
            total,
            low: needed(factor(1.0 - tail)).unwrap_or(total),
            high: needed(factor(tail)),
        })
    }

    /// The blocks of a new run that settles it four times in five, were `error` the true one of as
    /// many blocks as these; nothing when it would take more than is reasonable.
    fn blocks_needed(&self, error: f64, alpha: f64, comparisons: usize) -> Option<usize> {
        let size = self.difference.abs();
        // What the interval has beyond the error between blocks, such as the resolution of a time.
        let narrow = (self.narrow.1 - self.narrow.0) / 2.0;
        let now = self.blocks as f64;
        let fixed = (narrow - t_quantile(1.0 - alpha, now - 1.0) * self.error).max(0.0);
        let settled = |blocks: usize| {
            let degrees = blocks as f64 - 1.0;
            let scaled = error * (now / blocks as f64).sqrt();
            // Without any failure the bound falls with the number of requests.
            let fixed = match self.error > 0.0 {
                true => fixed,
                false => fixed * now / blocks as f64,
            };
            if size > self.matters {
                let critical = t_quantile(1.0 - alpha / (2.0 * comparisons as f64), degrees);
                (critical + POWER_Z) * scaled + fixed < size
            } else {
                let critical = t_quantile(1.0 - alpha, degrees);
                (critical + POWER_Z) * scaled + fixed < self.matters - size
            }
        };
        fewest_blocks(self.blocks + 1, settled)
    }
}
