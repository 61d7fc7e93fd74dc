//! The result of a run in one sentence.

pub(crate) mod events;
pub(crate) mod placement;
pub(crate) mod run;

use crate::summary::ranking::words::answer;
use crate::{Analysis, Comparison, Metric, Note, Verdict};
use readings::text::{counted, grouped, listed, once};

/// The most subjects that are named one by one.
const NAMED_MAX: usize = 4;

/// The answer, in a sentence or two; where nothing can be ranked, what is better, worse and the same
/// for each subject. `None` without comparisons.
pub fn closing(analysis: &Analysis) -> Option<String> {
    answer(analysis).or_else(|| by_verdict(analysis))
}

fn by_verdict(analysis: &Analysis) -> Option<String> {
    let mut by_baseline: Vec<(&str, Vec<&Comparison>)> = Vec::new();
    for c in analysis.all_comparisons() {
        match by_baseline.iter_mut().find(|(name, _)| *name == c.baseline) {
            Some((_, all)) => all.push(c),
            None => by_baseline.push((&c.baseline, vec![c])),
        }
    }
    let is_level = |name: &str| {
        analysis
            .levels
            .iter()
            .any(|l| l.comparison.baseline == name)
    };
    let each = by_baseline.iter().map(|(name, all)| {
        let noun = if is_level(name) { "level" } else { "subject" };
        against(name, all, noun)
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| each.join(" "))
}

fn against(baseline: &str, comparisons: &[&Comparison], noun: &str) -> String {
    let subjects = once(comparisons.iter().map(|c| &c.subject));
    if subjects.len() > NAMED_MAX {
        return counts(comparisons, baseline, &counted(subjects.len(), noun));
    }
    let each: Vec<String> = subjects
        .iter()
        .map(|subject| of_subject(comparisons, subject))
        .collect();
    format!("Against {baseline}, {}.", each.join("; "))
}

/// `balanced is worse in throughput and median latency, and undecided in memory`.
fn of_subject(comparisons: &[&Comparison], subject: &str) -> String {
    let own = || comparisons.iter().copied().filter(|c| c.subject == subject);
    let metrics = Metric::ALL
        .into_iter()
        .filter(|metric| own().any(|c| c.metric == *metric));
    let metrics: Vec<(Metric, Vec<&Comparison>)> = metrics
        .map(|metric| (metric, own().filter(|c| c.metric == metric).collect()))
        .collect();
    let groups = [
        (Verdict::Faster, "better in"),
        (Verdict::Slower, "worse in"),
        (Verdict::Same, "the same in"),
        (Verdict::Inconclusive, "undecided in"),
        (Verdict::Invalid, "without a valid figure of"),
    ];
    let parts = groups.iter().filter_map(|(verdict, words)| {
        let of_metric = |(metric, all): &(Metric, Vec<&Comparison>)| {
            let count = all.iter().filter(|c| c.verdict == *verdict).count();
            match (count, all.len()) {
                (0, _) => None,
                (count, of) if count == of => Some(what(*metric, all)),
                (count, of) => Some(format!(
                    "{} under {count} of {}",
                    what(*metric, all),
                    counted(of, "condition")
                )),
            }
        };
        let named: Vec<String> = metrics.iter().filter_map(of_metric).collect();
        (!named.is_empty()).then(|| format!("{words} {}", listed(&named)))
    });
    let parts: Vec<String> = parts.collect();
    format!("{subject} is {}", parts.join(", "))
}

/// A metric in the words of a verdict on it, with the failed requests that it leaves out.
fn what(metric: Metric, comparisons: &[&Comparison]) -> String {
    let left_out = comparisons.iter().flat_map(|c| {
        let sides = c.notes.iter().flat_map(|note| match note {
            Note::LeavesOut(sides) => sides.as_slice(),
            _ => &[],
        });
        sides.filter(|side| side.subject == c.subject)
    });
    let (failed, all) = left_out.fold((0, 0), |sum, side| {
        (sum.0 + side.failed, sum.1 + side.requests)
    });
    match failed {
        0 => metric.words().to_owned(),
        failed => format!(
            "{} (without the {} of its {} requests that failed)",
            metric.words(),
            grouped(failed),
            grouped(all)
        ),
    }
}

fn counts(comparisons: &[&Comparison], baseline: &str, subjects: &str) -> String {
    let count = |verdict: Verdict| {
        let all = comparisons.iter();
        all.filter(|c| c.verdict == verdict).count()
    };
    let words = [
        (Verdict::Faster, "better"),
        (Verdict::Slower, "worse"),
        (Verdict::Same, "the same"),
        (Verdict::Inconclusive, "undecided"),
        (Verdict::Invalid, "invalid"),
    ];
    let told = words.iter().filter_map(|(verdict, word)| {
        let count = count(*verdict);
        (count > 0).then(|| format!("{count} {word}"))
    });
    format!(
        "Of {} of {subjects} with {baseline}: {}.",
        counted(comparisons.len(), "comparison"),
        listed(&told.collect::<Vec<_>>())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use testing::Text as _;
    use testing::journals::journal;

    #[test]
    fn each_subject_has_its_better_and_worse() {
        let mut analysis = analyse(&journal());
        let text = by_verdict(&analysis).unwrap();
        text.begins("Against direct, balance is worse in throughput, median latency, ");
        text.has("; lighttpd is without a valid figure of throughput");
        let more = analysis.comparisons.clone();
        for number in 0..4 {
            let mut c = more[0].clone();
            c.subject = format!("s{number}");
            analysis.comparisons.push(c);
        }
        let text = by_verdict(&analysis).unwrap();
        text.begins("Of ");
        text.has(" of 6 subjects with direct: ");
        analysis.comparisons.clear();
        analysis.rankings.clear();
        assert_eq!(closing(&analysis), None);
    }
}
