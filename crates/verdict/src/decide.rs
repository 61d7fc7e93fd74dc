//! The decision: faster, slower, same or inconclusive.

use serde::Serialize;

use crate::sample::Sample;
use crate::student::{t_quantile, t_two_sided_p};
use crate::{Note, Rules};

/// What a comparison came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The subject is better than the baseline by more than what matters.
    Faster,
    /// The subject is worse than the baseline by more than what matters.
    Slower,
    /// There is no difference that matters.
    Same,
    /// The blocks measured do not settle it.
    Inconclusive,
    /// What was measured cannot be compared.
    Invalid,
}

impl Verdict {
    /// The word, as in the JSON document.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Same => "same",
            Verdict::Inconclusive => "inconclusive",
            Verdict::Invalid => "invalid",
        }
    }
}

/// The fewest blocks that a decision is made from.
pub const FEWEST_BLOCKS: usize = 3;

/// Beyond so many more blocks, more blocks are no advice.
pub const MOST_BLOCKS_ADVISED: usize = 1000;

/// How sure the advice on further blocks is to settle the matter.
const POWER: f64 = 0.8;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    pub verdict: Verdict,
    pub notes: Vec<Note>,
}

/// Decides one comparison of at least [`FEWEST_BLOCKS`] blocks.
///
/// `p_adjusted` is Holm's over the run's `comparisons`; `higher_is_better` tells throughput from
/// latency. Every error rate is that of one look.
pub(crate) fn decide(
    sample: &Sample,
    rules: &Rules,
    p_adjusted: f64,
    comparisons: usize,
    higher_is_better: bool,
) -> Decision {
    let (delta, alpha) = (rules.delta(), rules.look_alpha());
    // Two one-sided tests at alpha each are the interval at 1 - 2 alpha (Schuirmann 1987).
    let inside = sample
        .interval(1.0 - 2.0 * alpha)
        .is_some_and(|(low, high)| -delta < low && high < delta);
    let excludes_zero = sample
        .interval(rules.look_confidence())
        .is_some_and(|(low, high)| low > 0.0 || high < 0.0);
    let beyond = sample.mean.abs() > delta;
    let decided = |verdict, notes| Decision { verdict, notes };

    if inside {
        let note = excludes_zero.then_some(Note::SmallerThanMatters);
        return decided(Verdict::Same, note.into_iter().collect());
    }
    if excludes_zero && beyond && p_adjusted < alpha {
        let better = (sample.mean > 0.0) == higher_is_better;
        let verdict = if better {
            Verdict::Faster
        } else {
            Verdict::Slower
        };
        return decided(verdict, Vec::new());
    }
    let advice = advice(sample, delta, alpha, comparisons);
    let measurable = match (excludes_zero, beyond) {
        (true, true) => Some(Note::NotAmong { comparisons }),
        (true, false) => Some(Note::MayMatter),
        (false, _) => None,
    };
    let notes = measurable.into_iter().chain([advice]).collect();
    decided(Verdict::Inconclusive, notes)
}

/// What would settle a comparison that is not settled.
fn advice(sample: &Sample, delta: f64, alpha: f64, comparisons: usize) -> Note {
    match more_blocks(sample, delta, alpha, comparisons) {
        Some(more) => Note::MoreBlocks(more),
        None if (sample.mean.abs() - delta).abs() < delta / 4.0 => Note::AsLargeAsMatters,
        None => Note::TooNoisy,
    }
}

/// How many more blocks would settle the comparison four times in five, if the mean and the
/// spread stay what they are; nothing when it would take more than is reasonable.
fn more_blocks(sample: &Sample, delta: f64, alpha: f64, comparisons: usize) -> Option<usize> {
    let settled = |blocks| chance(sample, blocks, delta, alpha, comparisons) >= POWER;
    let (mut low, mut high) = (sample.blocks, sample.blocks + MOST_BLOCKS_ADVISED);
    if !settled(high) {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if settled(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high - sample.blocks)
}

/// The chance that so many blocks give the verdict that the sample's mean calls for, were that
/// the true mean and the sample's the true spread: a difference when it is beyond `delta`, the
/// same when it is not. The noncentral t is taken for a shifted central one.
fn chance(sample: &Sample, blocks: usize, delta: f64, alpha: f64, comparisons: usize) -> f64 {
    let degrees = blocks as f64 - 1.0;
    let error = sample.sd / (blocks as f64).sqrt();
    let size = sample.mean.abs();
    if size > delta {
        // The strictest p value that Holm's procedure may ask for.
        let critical = t_quantile(1.0 - alpha / (2.0 * comparisons as f64), degrees);
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

/// The share of Student's t distribution that lies below `t`.
fn t_below(t: f64, degrees: f64) -> f64 {
    let beyond = t_two_sided_p(t, degrees) / 2.0;
    if t < 0.0 { beyond } else { 1.0 - beyond }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Normal;

    fn rules() -> Rules {
        Rules {
            baseline: "direct".into(),
            matters: 0.03,
            matters_failures: 0.001,
            confidence: 0.95,
            looks: crate::Looks::of(10),
        }
    }

    fn experiment(random: &mut Normal, effect: f64, noise: f64, blocks: usize) -> Sample {
        let ratios: Vec<f64> = (0..blocks)
            .map(|_| effect + noise * (random.next() - random.next()))
            .collect();
        Sample::of(&ratios).unwrap()
    }

    fn verdict_of(sample: &Sample) -> Verdict {
        let p = sample.p_value().unwrap();
        decide(sample, &rules(), p, 1, true).verdict
    }

    fn share(effect: f64, noise: f64, blocks: usize, wanted: &[Verdict]) -> f64 {
        let mut random = Normal::with_seed(20_240_229);
        let runs = 2000;
        let hits = (0..runs)
            .filter(|_| {
                wanted.contains(&verdict_of(&experiment(&mut random, effect, noise, blocks)))
            })
            .count();
        hits as f64 / f64::from(runs)
    }

    const DIFFERENT: &[Verdict] = &[Verdict::Faster, Verdict::Slower];

    #[test]
    fn a_subject_against_itself_is_rarely_called_different() {
        let false_calls = share(0.0, 0.03, 10, DIFFERENT);
        assert!(false_calls <= 0.055, "{false_calls}");
        // With less noise than what matters it is called the same, most of the time.
        let same = share(0.0, 0.01, 10, &[Verdict::Same]);
        assert!(same > 0.99, "{same}");
    }

    #[test]
    fn a_true_difference_of_ten_percent_is_found_with_its_direction() {
        let found = share(1.1_f64.ln(), 0.03, 10, &[Verdict::Faster]);
        assert!(found > 0.99, "{found}");
        let found = share(-(1.1_f64.ln()), 0.03, 10, &[Verdict::Slower]);
        assert!(found > 0.99, "{found}");
    }

    #[test]
    fn ninety_five_percent_intervals_hold_the_truth_that_often() {
        let mut random = Normal::with_seed(7);
        for blocks in [3, 5, 10] {
            let truth = 0.08;
            let held = (0..4000)
                .filter(|_| {
                    let sample = experiment(&mut random, truth, 0.03, blocks);
                    let (low, high) = sample.interval(0.95).unwrap();
                    low <= truth && truth <= high
                })
                .count();
            let coverage = held as f64 / 4000.0;
            assert!(
                (0.94..0.96).contains(&coverage),
                "{coverage} with {blocks} blocks"
            );
        }
    }

    /// A sample with the given mean and standard deviation.
    fn sample(blocks: usize, mean: f64, sd: f64) -> Sample {
        Sample { blocks, mean, sd }
    }

    #[test]
    fn the_rules_one_by_one() {
        let cases = [
            // Mean, standard deviation over 10 blocks, verdict.
            (0.004, 0.01, Verdict::Same),
            (-0.10, 0.02, Verdict::Slower),
            (0.10, 0.02, Verdict::Faster),
            (0.02, 0.1, Verdict::Inconclusive),
            (0.10, 0.2, Verdict::Inconclusive),
            // The interval excludes 0, the estimate is small, and the interval reaches further.
            (0.025, 0.02, Verdict::Inconclusive),
            (-0.025, 0.02, Verdict::Inconclusive),
            // As small, and known to be.
            (0.02, 0.01, Verdict::Same),
        ];
        for (mean, sd, expected) in cases {
            let s = sample(10, mean, sd);
            assert_eq!(verdict_of(&s), expected, "mean {mean}, sd {sd}");
        }
    }

    #[test]
    fn lower_latency_is_faster() {
        let s = sample(10, 0.1, 0.02);
        let p = s.p_value().unwrap();
        assert_eq!(decide(&s, &rules(), p, 1, false).verdict, Verdict::Slower);
    }

    #[test]
    fn a_measurable_difference_that_does_not_matter_is_noted() {
        let s = sample(10, 0.01, 0.005);
        let d = decide(&s, &rules(), s.p_value().unwrap(), 1, true);
        assert_eq!(d.verdict, Verdict::Same);
        assert_eq!(d.notes, [Note::SmallerThanMatters]);
        let s = sample(10, 0.001, 0.005);
        assert!(decide(&s, &rules(), 0.5, 1, true).notes.is_empty());
    }

    #[test]
    fn a_measurable_difference_that_may_matter_is_not_the_same() {
        let s = sample(10, 0.02, 0.02);
        let (low, high) = s.interval(0.95).unwrap();
        assert!(low > 0.0 && high > rules().delta(), "{low} {high}");
        let d = decide(&s, &rules(), s.p_value().unwrap(), 1, true);
        assert_eq!(d.verdict, Verdict::Inconclusive);
        assert!(
            matches!(d.notes[..], [Note::MayMatter, Note::MoreBlocks(_)]),
            "{:?}",
            d.notes
        );
    }

    #[test]
    fn a_difference_just_beyond_what_matters_is_rarely_called_the_same() {
        // The two one-sided tests err at most once in twenty.
        let same = share(rules().delta() * 1.001, 0.02, 10, &[Verdict::Same]);
        assert!(same <= 0.055, "{same}");
    }

    #[test]
    fn many_comparisons_ask_for_more() {
        let s = sample(10, 0.05, 0.06);
        let p = s.p_value().unwrap();
        assert_eq!(decide(&s, &rules(), p, 1, true).verdict, Verdict::Faster);
        let d = decide(&s, &rules(), p * 12.0, 12, true);
        assert_eq!(d.verdict, Verdict::Inconclusive);
        assert_eq!(d.notes[0], Note::NotAmong { comparisons: 12 });
    }

    #[test]
    fn advice_on_blocks_holds_when_it_is_followed() {
        let cases = [
            // Mean, standard deviation over 10 blocks, what more blocks should bring.
            (0.05, 0.10, DIFFERENT),
            (0.04, 0.06, DIFFERENT),
            (0.0, 0.08, &[Verdict::Same][..]),
            (0.015, 0.04, &[Verdict::Same]),
        ];
        for (mean, sd, wanted) in cases {
            let s = sample(10, mean, sd);
            assert_eq!(verdict_of(&s), Verdict::Inconclusive, "mean {mean}");
            let more = more_blocks(&s, rules().delta(), 0.05, 1).unwrap();
            let settled = share(mean, sd / 2.0_f64.sqrt(), 10 + more, wanted);
            assert!(
                (0.75..0.88).contains(&settled),
                "mean {mean}: {settled} with {more} more"
            );
        }
    }

    #[test]
    fn where_blocks_do_not_help_the_advice_says_what_would() {
        let advised = |mean, sd| advice(&sample(10, mean, sd), rules().delta(), 0.05, 1);
        assert_eq!(advised(0.05, 9.0), Note::TooNoisy);
        assert_eq!(advised(0.0, 9.0), Note::TooNoisy);
        assert_eq!(
            advised(rules().delta() * 1.01, 0.05),
            Note::AsLargeAsMatters
        );
        // Blocks that are all alike and stand exactly on the margin leave nothing to divide by.
        assert_eq!(advised(rules().delta(), 0.0), Note::AsLargeAsMatters);
    }
}
