//! Failures as counts: their share of the requests, or how many there are for each event.
//!
//! Two things vary: which of a block's requests fail, and how many do from block to block, since
//! failures come together. Both tests have to agree that there is a difference, so that neither
//! few failures nor many blocks that happen to be alike make one:
//!
//! - the exact conditional test: given the number of failures on both sides, those of the subject
//!   are binomial (Przyborowski, Wilenski: Homogeneity of Results in Testing Samples from Poisson
//!   Series, Biometrika 1940);
//! - Student's t over the blocks' differences, whose variance is what the blocks show, and no less
//!   than that of independent failures: the overdispersion is estimated and never below 1.
//!
//! The interval likewise holds both intervals: of the counts, from the exact limits of both shares
//! (Newcombe: Interval Estimation for the Difference between Independent Proportions, Statistics in
//! Medicine 1998), and of the blocks.

use statrs::function::erf::erfc;
use statrs::function::factorial::ln_binomial;

use super::judged::Judged;
use crate::Rules;
use crate::stats::student::{t_quantile, t_two_sided_p};

/// Up to the first number of failures tails are exact, and up to the second one limits are; beyond,
/// both come from the normal distribution.
const EXACT_TAILS_MAX: u64 = 1000;
const EXACT_LIMITS_MAX: u64 = 100;

/// The smallest difference that matters between failures for each event: one in ten of them loses a
/// request.
pub(crate) const FAILURES_PER_EVENT_MATTER: f64 = 0.1;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Per {
    /// A request: their share, at most 1.
    #[default]
    Request,
    /// An event, during which any number may fail.
    Event,
}

/// Failures and requests of both sides in a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub subject: Side,
    pub baseline: Side,
}

/// Failures and requests, or events where failures are counted for each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Side {
    pub failed: u64,
    pub requests: u64,
}

impl Side {
    pub fn share(self) -> f64 {
        self.failed as f64 / self.requests.max(1) as f64
    }

    pub fn add(&mut self, other: Side) {
        self.failed += other.failed;
        self.requests += other.requests;
    }

    /// The variance of the share, were failures independent.
    pub fn variance(self) -> f64 {
        let share = self.share();
        share * (1.0 - share) / self.requests.max(1) as f64
    }

    /// The interval of the share, were failures independent.
    pub fn limits(self, confidence: f64) -> (f64, f64) {
        if self.failed > EXACT_LIMITS_MAX || self.failed * 10 > self.requests {
            return self.score_limits(-normal_quantile((1.0 - confidence) / 2.0));
        }
        // As a Poisson count, which is a little wider than the binomial.
        let (low, high) = self.limits_of_mean(confidence);
        (low.min(1.0), high.min(1.0))
    }

    /// The interval of the mean number of failures for each request or event, were failures
    /// independent: exact (Garwood: Fiducial Limits for the Poisson Distribution, Biometrika 1936),
    /// for many failures by the square root, whose variance is a quarter.
    pub fn limits_of_mean(self, confidence: f64) -> (f64, f64) {
        let tail = (1.0 - confidence) / 2.0;
        let (failed, requests) = (self.failed, self.requests.max(1) as f64);
        if failed > EXACT_LIMITS_MAX {
            let (root, half) = ((failed as f64).sqrt(), -normal_quantile(tail) / 2.0);
            let at = |root: f64| root.powi(2) / requests;
            return (at(root - half), at(root + half));
        }
        let most = failed as f64 + 50.0 + 10.0 * (failed as f64 + 1.0).sqrt();
        let low = match failed {
            0 => 0.0,
            _ => root(0.0, most, |mean| {
                1.0 - poisson_at_most(failed - 1, mean) - tail
            }),
        };
        let high = root(0.0, most, |mean| tail - poisson_at_most(failed, mean));
        (low / requests, high / requests)
    }

    /// Wilson's score interval.
    fn score_limits(self, z: f64) -> (f64, f64) {
        let (n, share) = (self.requests.max(1) as f64, self.share());
        let scale = 1.0 + z * z / n;
        let middle = share + z * z / (2.0 * n);
        let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
        (
            ((middle - half) / scale).max(0.0),
            ((middle + half) / scale).min(1.0),
        )
    }
}

/// The failures of two subjects, by block.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub blocks: Vec<Block>,
    pub per: Per,
}

impl Counts {
    /// Over all blocks: subject, baseline.
    fn sums(&self) -> (Side, Side) {
        let (mut subject, mut baseline) = (Side::default(), Side::default());
        for block in &self.blocks {
            subject.add(block.subject);
            baseline.add(block.baseline);
        }
        (subject, baseline)
    }

    /// The shares over all blocks: subject, baseline.
    pub fn shares(&self) -> (f64, f64) {
        let (subject, baseline) = self.sums();
        (subject.share(), baseline.share())
    }

    /// The variance of the difference of both shares over all blocks: were failures independent,
    /// and as the blocks show it.
    fn variances(&self) -> (f64, f64) {
        let (subject, baseline) = self.sums();
        let count = self.blocks.len() as f64;
        let each = self.blocks.iter();
        let each: Vec<f64> = each
            .map(|block| block.subject.share() - block.baseline.share())
            .collect();
        let mean = each.iter().sum::<f64>() / count;
        let squares: f64 = each.iter().map(|d| (d - mean).powi(2)).sum();
        let between = match each.len() {
            0 | 1 => 0.0,
            _ => squares / (count - 1.0) / count,
        };
        let variance = |side: Side| match self.per {
            Per::Request => side.variance(),
            Per::Event => side.share() / side.requests.max(1) as f64,
        };
        (variance(subject) + variance(baseline), between)
    }

    /// The standard error of the difference.
    fn error(&self) -> f64 {
        let (independent, between) = self.variances();
        independent.max(between).sqrt()
    }

    /// The two-sided p value of equal shares; nothing with fewer than two blocks.
    pub fn p_value(&self) -> Option<f64> {
        if self.blocks.len() < 2 {
            return None;
        }
        let (subject, baseline) = self.sums();
        let difference = subject.share() - baseline.share();
        let error = self.error();
        let by_block = match error > 0.0 {
            true => t_two_sided_p(difference / error, self.blocks.len() as f64 - 1.0),
            false => 1.0,
        };
        Some(by_block.max(conditional_p(subject, baseline)))
    }

    /// The interval of the difference of both shares; nothing with fewer than two blocks.
    fn interval(&self, confidence: f64) -> Option<(f64, f64)> {
        if self.blocks.len() < 2 {
            return None;
        }
        let (subject, baseline) = self.sums();
        let (ours, theirs) = (subject.share(), baseline.share());
        let difference = ours - theirs;
        let limits = |side: Side| match self.per {
            Per::Request => side.limits(confidence),
            Per::Event => side.limits_of_mean(confidence),
        };
        let (ours_low, ours_high) = limits(subject);
        let (theirs_low, theirs_high) = limits(baseline);
        let below = (ours - ours_low).hypot(theirs_high - theirs);
        let above = (ours_high - ours).hypot(theirs - theirs_low);
        let degrees = self.blocks.len() as f64 - 1.0;
        let half = t_quantile(0.5 + confidence / 2.0, degrees) * self.error();
        let most = match self.per {
            Per::Request => 1.0,
            Per::Event => f64::INFINITY,
        };
        Some((
            (difference - below.max(half)).max(-most),
            (difference + above.max(half)).min(most),
        ))
    }

    pub fn judged(&self, rules: &Rules) -> Option<Judged> {
        let (ours, theirs) = self.shares();
        Some(Judged {
            difference: ours - theirs,
            interval: self.interval(rules.look_confidence())?,
            narrow: self.interval(1.0 - 2.0 * rules.look_alpha())?,
            matters: match self.per {
                Per::Request => rules.matters_failures,
                Per::Event => FAILURES_PER_EVENT_MATTER,
            },
            error: self.error(),
            blocks: self.blocks.len(),
        })
    }

    /// The ratio of both shares with its interval. Half a failure is added to each count, so that
    /// there is a ratio even if nothing failed (Haldane: The estimation and significance of the
    /// logarithm of a ratio of frequencies, Annals of Human Genetics 1956). A request more goes with
    /// both, so that a share stays below 1; events, each of which may have several, stay as they are.
    pub fn ratio(&self, confidence: f64) -> (f64, Option<(f64, f64)>) {
        let (subject, baseline) = self.sums();
        let more = match self.per {
            Per::Request => 1.0,
            Per::Event => 0.0,
        };
        let half_more = |side: Side| (side.failed as f64 + 0.5, side.requests as f64 + more);
        let ((ours, our_requests), (theirs, their_requests)) =
            (half_more(subject), half_more(baseline));
        let ratio = ours / our_requests / (theirs / their_requests);
        let (independent, between) = self.variances();
        let overdispersion = match independent > 0.0 {
            true => (between / independent).max(1.0),
            false => 1.0,
        };
        let error = (overdispersion * (1.0 / ours + 1.0 / theirs)).sqrt();
        let degrees = self.blocks.len() as f64 - 1.0;
        let interval = (self.blocks.len() > 1).then(|| {
            let half = t_quantile(0.5 + confidence / 2.0, degrees) * error;
            (ratio * (-half).exp(), ratio * half.exp())
        });
        (ratio, interval)
    }
}

/// The two-sided p value of the exact conditional test of equal shares.
fn conditional_p(subject: Side, baseline: Side) -> f64 {
    let failed = subject.failed + baseline.failed;
    let requests = subject.requests + baseline.requests;
    if failed == 0 || requests == 0 {
        return 1.0;
    }
    let expected = subject.requests as f64 / requests as f64;
    if expected <= 0.0 || expected >= 1.0 {
        return 1.0;
    }
    if failed > EXACT_TAILS_MAX {
        let mean = failed as f64 * expected;
        let deviation = (mean * (1.0 - expected)).sqrt();
        let away = ((subject.failed as f64 - mean).abs() - 0.5).max(0.0);
        return erfc(away / deviation / std::f64::consts::SQRT_2);
    }
    // The probability of each count is computed from that of the count next to it.
    let odds = expected / (1.0 - expected);
    let count = subject.failed;
    let rest = (failed - count) as f64;
    let seen =
        (ln_binomial(failed, count) + count as f64 * expected.ln() + rest * (1.0 - expected).ln())
            .exp();
    let fewer = (1..=count).rev().scan(seen, |chance, k| {
        *chance *= k as f64 / ((failed - k + 1) as f64 * odds);
        Some(*chance)
    });
    let more = (count..failed).scan(seen, |chance, k| {
        *chance *= (failed - k) as f64 * odds / (k + 1) as f64;
        Some(*chance)
    });
    let (at_most, at_least) = (seen + fewer.sum::<f64>(), seen + more.sum::<f64>());
    (2.0 * at_most.min(at_least)).min(1.0)
}

/// The chance of at most so many events where `mean` are to be expected.
pub(crate) fn poisson_at_most(count: u64, mean: f64) -> f64 {
    // The terms from the largest on, in units of the last, so that none vanishes early.
    let mut term = 1.0;
    let mut sum = 1.0;
    for number in (1..=count).rev() {
        term *= number as f64 / mean.max(f64::MIN_POSITIVE);
        sum += term;
        if !sum.is_finite() {
            return 1.0;
        }
    }
    let last = count as f64 * mean.max(f64::MIN_POSITIVE).ln() - mean - ln_factorial(count);
    (last + sum.ln()).exp().min(1.0)
}

fn ln_factorial(count: u64) -> f64 {
    statrs::function::factorial::ln_factorial(count)
}

/// The zero of a function that rises from below it.
fn root(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..45 {
        let middle = 0.5 * (low + high);
        if f(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The value that a share `p` of the normal distribution lies below: Student's with so many
/// degrees of freedom that it is the same.
fn normal_quantile(p: f64) -> f64 {
    t_quantile(p, 1e7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::header;
    use crate::{Note, Verdict};

    fn counts(failed: &[(u64, u64)], requests: u64) -> Counts {
        let side = |failed| Side { failed, requests };
        let blocks = failed.iter().map(|(ours, theirs)| Block {
            subject: side(*ours),
            baseline: side(*theirs),
        });
        Counts {
            blocks: blocks.collect(),
            per: Per::Request,
        }
    }

    fn decided(counts: &Counts) -> (Verdict, Vec<Note>) {
        let rules = Rules::of(&header(5));
        let judged = counts.judged(&rules).unwrap();
        let decision = judged.decide(&rules, counts.p_value().unwrap(), 1);
        (decision.verdict, decision.notes)
    }

    #[test]
    fn limits_are_those_of_the_tables() {
        let limits = |failed| {
            let side = Side {
                failed,
                requests: 1_000_000,
            };
            let (low, high) = side.limits(0.95);
            (low * 1e6, high * 1e6)
        };
        // Garwood's limits of a Poisson count.
        for (failed, low, high) in [
            (0, 0.0, 3.689),
            (1, 0.0253, 5.572),
            (5, 1.623, 11.668),
            (20, 12.217, 30.888),
            (100, 81.364, 121.627),
        ] {
            let got = limits(failed);
            assert!((got.0 - low).abs() < 2e-3, "{failed}: {got:?}");
            assert!((got.1 - high).abs() < 2e-3, "{failed}: {got:?}");
        }
        let many = limits(2_000);
        assert!(
            (many.0 - 1914.3).abs() < 1.0 && (many.1 - 2089.5).abs() < 1.0,
            "{many:?}"
        );
    }

    #[test]
    fn the_exact_test_of_worked_examples() {
        let p = |ours, theirs| {
            let side = |failed| Side {
                failed,
                requests: 60_000,
            };
            conditional_p(side(ours), side(theirs))
        };
        assert!((p(3, 0) - 0.25).abs() < 1e-9);
        assert!((p(10, 0) - 2.0 / 1024.0).abs() < 1e-9);
        assert!((p(9, 1) - 22.0 / 1024.0).abs() < 1e-9);
        assert_eq!(p(0, 0), 1.0);
        assert_eq!(p(7, 7), 1.0);
        // On both sides of where the normal distribution takes over.
        let (exact, normal) = (p(530, 470), p(531, 470));
        assert!((exact - normal).abs() < 0.005, "{exact} {normal}");
    }

    #[test]
    fn one_failure_against_none_in_each_block_is_no_difference() {
        let counts = counts(&[(1, 0); 3], 20_000);
        assert!((counts.p_value().unwrap() - 0.25).abs() < 1e-9);
        let (low, high) = counts.interval(0.95).unwrap();
        assert!(low < 0.0 && high > 0.0, "{low} {high}");
        // Three in 60,000 are far below one in a thousand, and so is what they may be.
        assert_eq!(decided(&counts).0, Verdict::Same);
        // Of fewer requests they may be more than that.
        let few = super::tests::counts(&[(1, 0); 3], 500);
        assert_eq!(decided(&few).0, Verdict::Inconclusive);
    }

    #[test]
    fn none_against_none_is_the_same_only_where_requests_are_many() {
        let many = counts(&[(0, 0); 3], 20_000);
        let (low, high) = many.interval(0.95).unwrap();
        assert!(low < 0.0 && 0.0 < high && high < 1e-4, "{low} {high}");
        assert_eq!(decided(&many), (Verdict::Same, Vec::new()));
        let few = counts(&[(0, 0); 3], 200);
        let (verdict, notes) = decided(&few);
        assert_eq!(verdict, Verdict::Inconclusive);
        let [Note::MoreBlocks { total, .. }] = notes[..] else {
            panic!("{notes:?}");
        };
        assert_eq!(decided(&counts(&vec![(0, 0); total], 200)).0, Verdict::Same);
        assert_ne!(
            decided(&counts(&vec![(0, 0); total - 2], 200)).0,
            Verdict::Same
        );
    }

    #[test]
    fn ten_times_the_failures_are_the_same_only_within_the_margin() {
        // 0.03% against 0.3% of the requests: beyond one in a thousand.
        let blocks = [(58, 6), (63, 7), (60, 5), (55, 6), (64, 6)];
        assert_eq!(decided(&counts(&blocks, 20_000)).0, Verdict::Slower);
        // The same counts are 0.0015% against 0.015% of a million.
        let (verdict, notes) = decided(&counts(&blocks, 400_000));
        assert_eq!(verdict, Verdict::Same);
        assert_eq!(notes, [Note::SmallerThanMatters]);
        // 0.01% against 0.1%: as large as the margin, and never the same.
        let blocks = [(20, 2), (22, 2), (18, 3), (21, 1), (19, 2)];
        assert_eq!(decided(&counts(&blocks, 20_000)).0, Verdict::Inconclusive);
    }

    #[test]
    fn failures_that_come_together_in_one_block_settle_nothing() {
        // 400 requests failed at once: by requests alone p is below 1e-100.
        let counts = counts(&[(400, 0), (0, 0), (0, 1), (1, 0), (0, 0)], 20_000);
        assert!(counts.p_value().unwrap() > 0.3);
        assert_eq!(decided(&counts).0, Verdict::Inconclusive);
    }
}
