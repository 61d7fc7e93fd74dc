//! The decision: faster, slower, same or inconclusive.

use crate::stats::forecast::{Aim, Forecast, forecast};
use crate::stats::sample::Sample;
use crate::{Note, Rules, Verdict};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    pub verdict: Verdict,
    pub notes: Vec<Note>,
}

/// Decides one comparison of at least [`FEWEST_BLOCKS`](crate::FEWEST_BLOCKS) blocks.
///
/// `p_adjusted` is corrected over the question's `comparisons`; `higher_is_better` tells throughput from
/// latency. Every error rate is that of one look.
///
/// The t interval decides. Where the robust companion says otherwise, or where the blocks' skewness
/// makes the t interval unreliable, the verdict is withheld.
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
        .is_some_and(|interval| is_inside(interval, delta));
    let excludes_zero = sample
        .interval(rules.look_confidence())
        .is_some_and(|(low, high)| low > 0.0 || high < 0.0);
    let beyond = sample.mean.abs() > delta;
    let decided = |verdict, notes| Decision { verdict, notes };

    if inside {
        let note = withheld_same(sample, delta, 1.0 - 2.0 * alpha);
        if let Some(note) = note {
            return decided(Verdict::Inconclusive, vec![note]);
        }
        let note = excludes_zero.then_some(Note::SmallerThanMatters);
        return decided(Verdict::Same, note.into_iter().collect());
    }
    if excludes_zero && beyond && p_adjusted < alpha {
        let verdict = match (sample.mean > 0.0) == higher_is_better {
            true => Verdict::Faster,
            false => Verdict::Slower,
        };
        return match withheld_difference(sample, rules, verdict) {
            Some(note) => decided(Verdict::Inconclusive, vec![note]),
            None => decided(verdict, Vec::new()),
        };
    }
    let aim = Aim {
        delta,
        alpha,
        comparisons,
    };
    let measurable = match (excludes_zero, beyond) {
        (true, true) => Some(Note::NotAmong { comparisons }),
        (true, false) => Some(Note::MayMatter),
        (false, _) => None,
    };
    let advice = advice(forecast(sample, aim), sample.mean.abs(), delta);
    let notes = measurable.into_iter().chain([advice]);
    decided(Verdict::Inconclusive, notes.collect())
}

/// What would settle a difference of this size: so many blocks, or no number of them. It may lie too
/// near the margin, or the blocks differ too much.
pub(crate) fn advice(forecast: Option<Forecast>, size: f64, margin: f64) -> Note {
    match forecast {
        Some(Forecast { total, low, high }) => Note::MoreBlocks { total, low, high },
        None if (size - margin).abs() < margin / 4.0 => Note::AsLargeAsMatters,
        None => Note::TooNoisy,
    }
}

fn is_inside((low, high): (f64, f64), delta: f64) -> bool {
    -delta < low && high < delta
}

/// Why 'the same' is withheld: the robust companion at the same confidence leaves what does not
/// matter.
fn withheld_same(sample: &Sample, delta: f64, confidence: f64) -> Option<Note> {
    let (estimate, interval) = sample.robust(confidence);
    let interval = interval?;
    (!is_inside(interval, delta)).then(|| companion_differs(Verdict::Same, estimate, interval))
}

/// Why a difference is withheld: the robust companion holds zero, has the other sign or an estimate
/// that does not matter; or the blocks are too skewed for the t interval.
fn withheld_difference(sample: &Sample, rules: &Rules, verdict: Verdict) -> Option<Note> {
    let (estimate, interval) = sample.robust(rules.look_confidence());
    if let Some((low, high)) = interval {
        let sign = sample.mean.signum();
        let least = if sign > 0.0 { low } else { -high };
        if least <= 0.0 || sign * estimate <= rules.delta() {
            return Some(companion_differs(verdict, estimate, (low, high)));
        }
    }
    let holds = sample.differs_in_spite_of_skewness(rules.look_alpha());
    (!holds).then_some(Note::Skewed { verdict })
}

fn companion_differs(verdict: Verdict, estimate: f64, (low, high): (f64, f64)) -> Note {
    Note::CompanionDiffers {
        verdict,
        ratio: estimate.exp(),
        low: low.exp(),
        high: high.exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{Normal, header};

    fn rules() -> Rules {
        Rules::of(&header(10))
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
        let runs = 500;
        let hits = (0..runs).filter(|_| {
            wanted.contains(&verdict_of(&experiment(&mut random, effect, noise, blocks)))
        });
        hits.count() as f64 / f64::from(runs)
    }

    const DIFFERENT: &[Verdict] = &[Verdict::Faster, Verdict::Slower];

    #[test]
    fn a_subject_against_itself_is_rarely_called_different() {
        let false_calls = share(0.0, 0.03, 10, DIFFERENT);
        assert!(false_calls <= 0.05, "{false_calls}");
        // With less noise than the margin it is called the same, most of the time.
        let same = share(0.0, 0.01, 10, &[Verdict::Same]);
        assert!(same > 0.92, "{same}");
    }

    #[test]
    fn a_true_difference_of_ten_percent_is_found_with_its_direction() {
        let found = share(1.1_f64.ln(), 0.03, 10, &[Verdict::Faster]);
        assert!(found > 0.9, "{found}");
        let found = share(-(1.1_f64.ln()), 0.03, 10, &[Verdict::Slower]);
        assert!(found > 0.9, "{found}");
    }

    #[test]
    fn ninety_five_percent_intervals_hold_the_truth_that_often() {
        let mut random = Normal::with_seed(7);
        for blocks in [3, 5, 10] {
            let truth = 0.08;
            let held = (0..1500).filter(|_| {
                let sample = experiment(&mut random, truth, 0.03, blocks);
                let (low, high) = sample.interval(0.95).unwrap();
                low <= truth && truth <= high
            });
            let coverage = held.count() as f64 / 1500.0;
            // Wider than that of blocks that are known to be independent.
            assert!(
                (0.955..0.995).contains(&coverage),
                "{coverage} with {blocks}"
            );
        }
    }

    fn sample(mean: f64, sd: f64) -> Sample {
        Sample::made_of(10, mean, sd)
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
            (0.02, 0.009, Verdict::Same),
        ];
        for (mean, sd, expected) in cases {
            let s = sample(mean, sd);
            assert_eq!(verdict_of(&s), expected, "mean {mean}, sd {sd}");
        }
    }

    #[test]
    fn lower_latency_is_faster() {
        let s = sample(0.1, 0.02);
        let p = s.p_value().unwrap();
        assert_eq!(decide(&s, &rules(), p, 1, false).verdict, Verdict::Slower);
    }

    #[test]
    fn a_measurable_difference_that_does_not_matter_is_noted() {
        let s = sample(0.01, 0.005);
        let d = decide(&s, &rules(), s.p_value().unwrap(), 1, true);
        assert_eq!(d.verdict, Verdict::Same);
        assert_eq!(d.notes, [Note::SmallerThanMatters]);
        let s = sample(0.001, 0.005);
        assert!(decide(&s, &rules(), 0.5, 1, true).notes.is_empty());
    }

    #[test]
    fn a_measurable_difference_that_may_matter_is_not_the_same() {
        let s = sample(0.02, 0.02);
        let (low, high) = s.interval(0.95).unwrap();
        assert!(low > 0.0 && high > rules().delta(), "{low} {high}");
        let d = decide(&s, &rules(), s.p_value().unwrap(), 1, true);
        assert_eq!(d.verdict, Verdict::Inconclusive);
        assert!(
            matches!(d.notes[..], [Note::MayMatter, Note::MoreBlocks { .. }]),
            "{d:?}"
        );
    }

    #[test]
    fn a_difference_just_beyond_what_matters_is_rarely_called_the_same() {
        // The two one-sided tests err at most once in twenty.
        let same = share(rules().delta() * 1.001, 0.02, 10, &[Verdict::Same]);
        assert!(same <= 0.05, "{same}");
    }

    #[test]
    fn many_comparisons_ask_for_more() {
        let s = sample(0.05, 0.05);
        let p = s.p_value().unwrap();
        assert_eq!(decide(&s, &rules(), p, 1, true).verdict, Verdict::Faster);
        let d = decide(&s, &rules(), p * 12.0, 12, true);
        assert_eq!(d.verdict, Verdict::Inconclusive);
        assert_eq!(d.notes[0], Note::NotAmong { comparisons: 12 });
    }

    #[test]
    fn one_wild_block_withholds_what_the_mean_says() {
        let wild = |at: usize, by: f64, rest: f64| {
            let mut logs: Vec<f64> = (0..10)
                .map(|i| rest + 0.004 * if i / 2 % 2 == 0 { 1.0 } else { -1.0 })
                .collect();
            logs[at] = by;
            Sample::of(&logs).unwrap()
        };
        // The mean of -3.6% is beyond the margin, and so would be its t interval were it narrower:
        // nine blocks say -1.5%.
        let mut s = wild(4, -0.2, -0.015);
        s.correlation = 0.0;
        s.sd = 0.01;
        let d = decide(&s, &rules(), s.p_value().unwrap(), 1, true);
        assert_eq!(d.verdict, Verdict::Inconclusive);
        let [Note::CompanionDiffers { verdict, ratio, .. }] = d.notes[..] else {
            panic!("{d:?}");
        };
        assert_eq!(verdict, Verdict::Slower);
        assert!((ratio.ln() + 0.015).abs() < 0.005, "{ratio}");
    }

    #[test]
    fn the_same_is_withheld_where_most_blocks_lie_elsewhere() {
        let mut s = sample(0.0, 0.06);
        // As if the t interval were narrow: the companion's is as wide as the blocks.
        s.sd = 0.005;
        let d = decide(&s, &rules(), 0.5, 1, true);
        assert_eq!(d.verdict, Verdict::Inconclusive);
        let [Note::CompanionDiffers { verdict, .. }] = d.notes[..] else {
            panic!("{d:?}");
        };
        assert_eq!(verdict, Verdict::Same);
    }

    #[test]
    fn where_blocks_do_not_help_the_advice_says_what_would() {
        const DELTA: f64 = 0.029_558_8;
        let advised = |mean, sd| {
            let sample = sample(mean, sd);
            let aim = Aim {
                delta: DELTA,
                alpha: 0.05,
                comparisons: 1,
            };
            advice(forecast(&sample, aim), mean, DELTA)
        };
        assert_eq!(advised(0.05, 9.0), Note::TooNoisy);
        assert_eq!(advised(0.0, 9.0), Note::TooNoisy);
        assert_eq!(advised(DELTA * 1.01, 0.05), Note::AsLargeAsMatters);
        assert_eq!(advised(DELTA, 0.0), Note::AsLargeAsMatters);
    }
}
