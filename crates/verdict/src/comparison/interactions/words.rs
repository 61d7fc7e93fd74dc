//! Interactions, in sentences.

use crate::{Dependence, Interaction, Level, Metric};
use readings::text::{counted, fraction, number, rate};

use crate::metric::words::{absolute, shown_change, size_of_end};
use readings::at_condition as at;

/// The sentences on interactions: those that differ, then what the others came to.
pub fn interactions(all: &[Interaction]) -> Vec<String> {
    let differ = all.iter().filter(|i| i.dependence == Dependence::Differs);
    differ
        .map(interaction)
        .chain(interactions_rest(all))
        .collect()
}

/// Whether what a subject costs depends on a factor.
pub fn interaction(i: &Interaction) -> String {
    let (factor, level, reference) = (&i.factor, &i.level.level, &i.reference.level);
    let changed = shown_change(i.ratio, i.interval());
    let over = format!("{}, over {}", at(&i.condition), counted(i.blocks, "block"));
    let about = format!(
        "{} against {}, {}, at {factor}={level} and at {reference}",
        i.subject,
        i.baseline,
        i.metric.words()
    );
    match i.dependence {
        Dependence::Differs => format!(
            "{} ({}one ratio over the other: {changed}){over}.",
            differs(i),
            throughputs(i)
        ),
        Dependence::Same => format!(
            "{about}: no difference that matters (within {}) between the two ratios: {changed}{over}.",
            fraction(i.matters)
        ),
        Dependence::Inconclusive => {
            format!("inconclusive: {about}: one ratio over the other: {changed}{over}.")
        }
        Dependence::ClientLimited => {
            format!("not compared: {about}: the client was the bottleneck{over}.")
        }
    }
}

fn differs(i: &Interaction) -> String {
    let subject = &i.subject;
    let places = format!(
        "at {}={} than at {}",
        i.factor, i.level.level, i.reference.level
    );
    let (here, there) = (i.level.ratio, i.reference.ratio);
    if i.metric != Metric::RequestsPerS {
        // A larger factor may be the smaller difference: both are given.
        return format!(
            "{subject} changes the {} by another factor {places}: {} against {}",
            i.metric.words(),
            values(i.metric, &i.level),
            values(i.metric, &i.reference)
        );
    }
    let more = |is: bool| if is { "more" } else { "less" };
    match (here < 1.0, there < 1.0) {
        (true, true) => format!(
            "{subject} costs {} {places}: {} against {} of the throughput",
            more(here < there),
            size_of_end(here),
            size_of_end(there)
        ),
        (false, false) => format!(
            "{subject} brings {} throughput {places}: {} against {} times that of {}",
            more(here > there),
            number(here, 2, false),
            number(there, 2, false),
            i.baseline
        ),
        (costs, _) => {
            let (loss, gain) = if costs {
                (&i.level, &i.reference)
            } else {
                (&i.reference, &i.level)
            };
            format!(
                "{subject} costs {} of the throughput at {}={}, and has {} times that of {} at {}",
                size_of_end(loss.ratio),
                i.factor,
                loss.level,
                number(gain.ratio, 2, false),
                i.baseline,
                gain.level
            )
        }
    }
}

/// The throughputs at both levels, the subject's beside the baseline's: where the baseline has less
/// as well, as from far away, something else than the subject is the limit.
fn throughputs(i: &Interaction) -> String {
    if i.metric != Metric::RequestsPerS {
        return String::new();
    }
    let both = |level: &Level| {
        format!(
            "{} against {} requests/s at {}",
            rate(level.subject_value),
            rate(level.baseline_value),
            level.level
        )
    };
    format!("{}, {}; ", both(&i.level), both(&i.reference))
}

/// `0.15 to 0.43 ms (2.8 times)`.
fn values(metric: Metric, level: &Level) -> String {
    let relative = shown_change(level.ratio, None);
    match absolute(metric, level.baseline_value, level.subject_value) {
        Some(both) => format!(
            "{} to {} {} ({relative})",
            both.baseline, both.subject, both.unit
        ),
        None => relative,
    }
}

/// The results of interactions without a sentence of their own; nothing if all have one.
pub fn interactions_rest(all: &[Interaction]) -> Option<String> {
    let count = |of: Dependence| all.iter().filter(|i| i.dependence == of).count();
    let parts: Vec<String> = [
        (count(Dependence::Differs), "with a difference".to_owned()),
        (
            count(Dependence::Same),
            format!("the same within {}", fraction(all.first()?.matters)),
        ),
        (count(Dependence::Inconclusive), "not settled".to_owned()),
        (
            count(Dependence::ClientLimited),
            "not compared, since the client was the bottleneck".to_owned(),
        ),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, words)| format!("{count} {words}"))
    .collect();
    (count(Dependence::Differs) < all.len()).then(|| {
        format!(
            "of {} (a subject's ratio at a level of a factor over that at the first level, all else \
             equal): {}.",
            counted(all.len(), "interaction"),
            parts.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::Condition;
    use testing::Text as _;

    fn found(metric: Metric, here: (f64, f64, f64), there: (f64, f64, f64)) -> Interaction {
        let level = |level: &str, (ratio, baseline_value, subject_value)| Level {
            level: level.to_owned(),
            ratio,
            baseline_value,
            subject_value,
        };
        let ratio = here.0 / there.0;
        Interaction {
            condition: Condition::new(),
            metric,
            subject: "balance".into(),
            baseline: "direct".into(),
            factor: "connections".into(),
            level: level("128", here),
            reference: level("16", there),
            ratio,
            low: Some(ratio * 0.95),
            high: Some(ratio * 1.05),
            confidence: 0.95,
            blocks: 10,
            p_value: None,
            p_adjusted: None,
            matters: 0.03,
            dependence: Dependence::Differs,
        }
    }

    #[test]
    fn a_cost_that_depends_on_a_factor() {
        let rps = |here: f64, there: f64| {
            let of = |ratio, baseline| (ratio, baseline, baseline * ratio);
            interaction(&found(Metric::RequestsPerS, of(here, 2e4), of(there, 1e4)))
        };
        assert_eq!(
            rps(0.69, 0.88),
            "balance costs more at connections=128 than at 16: 31% against 12% of the throughput \
             (13,800 against 20,000 requests/s at 128, 8,800 against 10,000 requests/s at 16; one \
             ratio over the other: -22% [-26%, -18%]), over 10 blocks."
        );
        assert!(rps(0.88, 0.69).starts_with("balance costs less at connections=128 than at 16: "));
        rps(0.69, 1.2).has("costs 31% of the throughput at connections=128, and has 1.20");
    }

    #[test]
    fn latency_tells_both_pairs_of_values() {
        let far = (1.02, 90_000.0, 91_800.0);
        let near = (1.54, 150.0, 231.0);
        let text = interaction(&found(Metric::LatencyUsP50, far, near));
        let expected = "balance changes the median latency by another factor at connections=128 than \
                        at 16: 90.0 to 91.8 ms (+2.0%) against 0.150 to 0.231 ms (+54.0%)";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn what_has_no_sentence_is_counted() {
        let mut all = vec![found(Metric::RequestsPerS, (0.7, 1.0, 1.0), (0.9, 1.0, 1.0)); 3];
        assert_eq!(interactions_rest(&all), None);
        all[1].dependence = Dependence::Same;
        all[2].dependence = Dependence::Inconclusive;
        let text = interactions_rest(&all).unwrap();
        text.ends(": 1 with a difference, 1 the same within 3%, 1 not settled.");
        assert_eq!(interactions_rest(&[]), None);
    }
}
