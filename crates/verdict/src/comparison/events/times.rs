//! Times around events, to the resolution at which they are known.

use super::judged::Judged;
use crate::Rules;
use crate::stats::student::{t_quantile, t_two_sided_p};

/// The times of two subjects, by block: subject, baseline.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Times {
    pub blocks: Vec<(f64, f64)>,
    /// The step at which each time is known, s: it is wrong by up to half of that.
    pub resolution_s: f64,
    /// Whether in some block both were not over at the window's end.
    pub both_open: bool,
}

impl Times {
    /// Means over the blocks: subject, baseline.
    pub fn means(&self) -> (f64, f64) {
        let count = self.blocks.len().max(1) as f64;
        let sum = |side: fn(&(f64, f64)) -> f64| self.blocks.iter().map(side).sum::<f64>();
        (sum(|b| b.0) / count, sum(|b| b.1) / count)
    }

    fn difference(&self) -> f64 {
        let (ours, theirs) = self.means();
        ours - theirs
    }

    /// The standard error of the difference: what the blocks show, and the rounding of both times
    /// to steps, which blocks that are all alike do not show.
    fn error(&self) -> f64 {
        let (count, mean) = (self.blocks.len() as f64, self.difference());
        let squares: f64 = self
            .blocks
            .iter()
            .map(|(ours, theirs)| (ours - theirs - mean).powi(2))
            .sum();
        let rounding = 2.0 * self.resolution_s.powi(2) / 12.0;
        ((squares / (count - 1.0) + rounding) / count).sqrt()
    }

    /// The two-sided p value of a difference that is no larger than what the steps can hide;
    /// nothing with fewer than two blocks.
    pub fn p_value(&self) -> Option<f64> {
        if self.blocks.len() < 2 {
            return None;
        }
        let beyond = (self.difference().abs() - self.resolution_s).max(0.0);
        let degrees = self.blocks.len() as f64 - 1.0;
        Some(t_two_sided_p(beyond / self.error(), degrees))
    }

    fn interval(&self, confidence: f64) -> (f64, f64) {
        let degrees = self.blocks.len() as f64 - 1.0;
        let half = t_quantile(0.5 + confidence / 2.0, degrees) * self.error();
        // Both times are rounded the same way in every block, so that blocks do not average it.
        let half = half + self.resolution_s;
        (self.difference() - half, self.difference() + half)
    }

    /// What matters is a share of the baseline's time, and no less than two steps.
    pub fn judged(&self, rules: &Rules) -> Option<Judged> {
        if self.blocks.len() < 2 {
            return None;
        }
        let matters = rules.matters * self.means().1;
        Some(Judged {
            difference: self.difference(),
            interval: self.interval(rules.look_confidence()),
            narrow: self.interval(1.0 - 2.0 * rules.look_alpha()),
            matters: matters.max(2.0 * self.resolution_s),
            error: self.error(),
            blocks: self.blocks.len(),
        })
    }

    /// The ratio of both means with its interval, from that of the difference. No time is shorter
    /// here than its resolution, so that it has a ratio.
    pub fn ratio(&self, confidence: f64) -> (f64, Option<(f64, f64)>) {
        let (ours, theirs) = self.means();
        let theirs_s = theirs.max(self.resolution_s);
        let over = |ours_s: f64| ours_s.max(self.resolution_s) / theirs_s;
        let interval = (self.blocks.len() > 1).then(|| {
            let (low, high) = self.interval(confidence);
            (over(theirs + low), over(theirs + high))
        });
        (over(ours), interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixtures::header;

    fn times(blocks: &[(f64, f64)]) -> Times {
        Times {
            blocks: blocks.to_vec(),
            resolution_s: 0.1,
            both_open: false,
        }
    }

    fn verdict(times: &Times) -> Verdict {
        let rules = Rules::of(&header(5));
        let p = times.p_value().unwrap();
        times.judged(&rules).unwrap().decide(&rules, p, 1).verdict
    }

    #[test]
    fn one_row_against_two_is_no_factor_of_two() {
        let tied = times(&[(0.2, 0.1); 5]);
        let (low, high) = tied.interval(0.95);
        assert!(low < 0.0 && high > 0.2, "{low} {high}");
        assert_eq!(tied.p_value(), Some(1.0));
        assert_eq!(verdict(&tied), Verdict::Inconclusive);
        let (ratio, interval) = tied.ratio(0.95);
        let (low, high) = interval.unwrap();
        assert!(low <= 1.0 && ratio < high, "{low} {high}");
    }

    #[test]
    fn blocks_that_are_all_alike_have_an_interval_with_a_width() {
        let same = times(&[(0.1, 0.1); 3]);
        let (low, high) = same.interval(0.95);
        assert!(low <= -0.1 && high >= 0.1, "{low} {high}");
        // Within two rows, which is the margin for so short a time.
        assert_eq!(verdict(&same), Verdict::Same);
    }

    #[test]
    fn more_than_the_rows_can_hide_is_a_difference() {
        let later = times(&[(1.1, 0.2), (1.2, 0.2), (1.1, 0.1)]);
        assert_eq!(verdict(&later), Verdict::Slower);
        let sooner = times(&[(0.2, 1.1), (0.2, 1.2), (0.1, 1.1)]);
        assert_eq!(verdict(&sooner), Verdict::Faster);
        let p = later.p_value().unwrap();
        assert!(p > 0.0 && p < 0.05, "{p}");
    }
}
