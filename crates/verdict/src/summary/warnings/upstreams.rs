//! Servers of a path that were not counted, and what cannot be compared for it.

use std::collections::BTreeSet;

use crate::trial::cells::{Cell, Cells};
use crate::{Comparison, Rules, Warning};

/// Subjects whose servers' costs were not compared, since more is missing on one side.
pub(crate) fn warnings(
    rules: &Rules,
    cells: &Cells<'_>,
    comparisons: &[Comparison],
) -> Vec<Warning> {
    let baseline = &rules.baseline;
    let mut found = Vec::new();
    for condition in &cells.conditions {
        let uncounted = |subject: &str| -> BTreeSet<&String> {
            let trials = cells.of_subject(condition, subject, false).into_values();
            let readings = trials.filter_map(Cell::reading);
            // Around events no costs are compared.
            let readings = readings.filter(|reading| reading.events.is_none());
            readings.flat_map(|one| &one.uncounted_upstreams).collect()
        };
        let of_baseline = uncounted(baseline);
        for subject in cells.subjects.iter().filter(|one| *one != baseline) {
            let is_compared = comparisons
                .iter()
                .any(|c| c.metric.is_cost() && c.subject == *subject && c.condition == *condition);
            if is_compared || cells.drivers_differ(condition) {
                continue;
            }
            let of_subject = uncounted(subject);
            let beyond = |ours: &BTreeSet<&String>, theirs: &BTreeSet<&String>| -> Vec<String> {
                ours.difference(theirs).map(|one| one.to_string()).collect()
            };
            let missing = [
                (subject, beyond(&of_subject, &of_baseline)),
                (baseline, beyond(&of_baseline, &of_subject)),
            ];
            let missing = missing.into_iter().filter(|(_, all)| !all.is_empty());
            let missing: Vec<_> = missing.map(|(name, all)| (name.clone(), all)).collect();
            if missing.is_empty() {
                continue;
            }
            let warning = Warning::UncountedUpstreams {
                subject: subject.clone(),
                baseline: baseline.clone(),
                missing,
            };
            // Mostly it is so under all conditions.
            if !found.contains(&warning) {
                found.push(warning);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use readings::{Outcome, Reading, ServerReading, Trial};

    use super::*;
    use crate::fixtures::{analyse, closed, header, trial};
    use crate::{Analysis, Metric};

    /// Five blocks in which the servers of `direct` take 2 us per request and those of `balance`
    /// 8 us, with these upstreams uncounted.
    fn analysed(of_direct: &[&str], of_balance: &[&str]) -> Analysis {
        let one = |block: u32, subject: &str, us: f64, uncounted: &[&str]| {
            let load = closed(1_000.0);
            let jitter = 1.0 + 0.002 * f64::from(block % 3);
            let reading = Reading {
                servers: vec![ServerReading {
                    server: subject.to_owned(),
                    cpu_s: us * jitter * 1e-6 * load.requests as f64,
                    ..ServerReading::default()
                }],
                throughput: Some(load),
                uncounted_upstreams: uncounted.iter().map(|one| one.to_string()).collect(),
                ..Reading::default()
            };
            trial(block, subject, false, Outcome::Done(Box::new(reading)))
        };
        let trials: Vec<Trial> = (1..=5)
            .flat_map(|block| {
                let direct = one(block, "direct", 2.0, of_direct);
                [direct, one(block, "balance", 8.0, of_balance)]
            })
            .collect();
        analyse(&header(5), &trials)
    }

    fn costs(analysis: &Analysis) -> usize {
        let all = analysis.comparisons.iter();
        all.filter(|c| c.metric.is_cost()).count()
    }

    fn told(analysis: &Analysis) -> Vec<&Warning> {
        let is_it = |one: &&Warning| matches!(one, Warning::UncountedUpstreams { .. });
        analysis.warnings.iter().filter(is_it).collect()
    }

    #[test]
    fn costs_are_not_compared_where_the_upstream_of_one_side_is_not_counted() {
        let complete = analysed(&[], &[]);
        assert_eq!((costs(&complete), told(&complete).len()), (1, 0));
        let at = "192.0.2.1:9000";
        let one_sided = analysed(&[], &[at]);
        assert_eq!(costs(&one_sided), 0);
        let is_throughput = |c: &Comparison| c.metric == Metric::RequestsPerS;
        assert!(one_sided.comparisons.iter().any(is_throughput));
        let expected = Warning::UncountedUpstreams {
            subject: "balance".into(),
            baseline: "direct".into(),
            missing: vec![("balance".into(), vec![at.to_owned()])],
        };
        assert_eq!(told(&one_sided), [&expected]);
        // Two proxies of one back end differ in themselves alone.
        let same = analysed(&[at], &[at]);
        assert_eq!((costs(&same), told(&same).len()), (1, 0));
        let of_baseline = analysed(&[at], &[]);
        assert_eq!((costs(&of_baseline), told(&of_baseline).len()), (0, 1));
    }
}
