//! Conditions that differ only in what cannot change a figure.
//!
//! The rate of the open loop changes nothing that the closed loop measures. Under each level of such
//! a factor the closed loop is a repetition, and not a comparison of its own: counted as one it would
//! weaken the correction for all others.

use readings::Condition;

use crate::comparison::pairs::Pairs;
use crate::metric::of_trial::is_measured;
use crate::trial::cells::Cells;
use crate::trial::loops::Loop;
use crate::{Metric, Starts};

/// Conditions that measure the same figure of a metric.
pub(crate) struct Pool<'a> {
    /// The condition without the factors that do not affect the metric.
    pub condition: Condition,
    pub members: Vec<&'a Condition>,
}

/// A subject's trials, or those of the baseline's second copy.
pub(crate) type Who<'a> = (&'a str, bool);

/// The pools of a metric, each at the place of its first condition.
pub(crate) fn pools<'a>(cells: &'a Cells<'_>, metric: Metric) -> Vec<Pool<'a>> {
    let conditions = cells.conditions.iter();
    conditions
        .filter_map(|condition| pool_of(cells, condition, metric))
        .collect()
}

/// The pool that a condition is the first of; nothing for its others.
pub(crate) fn pool_of<'a>(
    cells: &'a Cells<'_>,
    condition: &'a Condition,
    metric: Metric,
) -> Option<Pool<'a>> {
    let acts =
        |factor: &String| !metric.is_of_closed_loop() || !cells.open_loop_factors.contains(factor);
    if condition.keys().all(acts) {
        return Some(Pool {
            condition: condition.clone(),
            members: vec![condition],
        });
    }
    let shared: Condition = condition
        .iter()
        .filter(|(factor, _)| acts(factor))
        .map(|(factor, level)| (factor.clone(), level.clone()))
        .collect();
    let is_member = |other: &&Condition| {
        let others = other.iter().filter(|(factor, _)| acts(factor));
        others.eq(shared.iter())
    };
    let members: Vec<&Condition> = cells.conditions.iter().filter(is_member).collect();
    (members.first() == Some(&condition)).then_some(Pool {
        condition: shared,
        members,
    })
}

/// Whether a run has anything to say on a metric under a condition. Throughput is what a
/// condition is about when nothing of it was measured.
///
/// With events no latency is compared: that of the remaining answers would favour a subject whose
/// other requests failed.
///
/// Drivers are compared where they differ; latency only at quantiles that the baseline's driver
/// reports.
pub(crate) fn is_declared(
    cells: &Cells<'_>,
    pool: &Pool<'_>,
    metric: Metric,
    baseline: &str,
) -> bool {
    let members = || pool.members.iter().copied();
    if metric.is_of_driver() && !members().any(|c| cells.drivers_differ(c)) {
        return false;
    }
    if metric.is_uncompared() || !cells.shows(metric) {
        return false;
    }
    if metric.is_cost() {
        let mut trials = members().flat_map(|c| cells.of_condition(c));
        return !members().any(|c| cells.drivers_differ(c))
            && trials.any(|cell| cell.trial.subject == baseline && is_measured(metric, cell));
    }
    let mut measured_nothing = true;
    for cell in members().flat_map(|c| cells.of_condition(c)) {
        let Some(reading) = cell.reading() else {
            continue;
        };
        measured_nothing = false;
        if metric.is_of_events() || reading.events.is_some() {
            let noticed = reading.events.as_ref().filter(|_| metric.is_of_events());
            if noticed.is_some_and(|noticed| metric.figure_of_events(noticed).is_some()) {
                return true;
            }
            continue;
        }
        let is_there = match (metric.quantile(), &reading.driver) {
            (Some(q), Some(driver)) => {
                cell.trial.subject == baseline && driver.latency_us(q).is_some()
            }
            (Some(_), None) => reading.latency.is_some(),
            // One request has several messages, or it has one answer.
            (None, _) => reading.throughput.as_ref().is_some_and(|load| {
                let has_messages = load.messages() > 0;
                has_messages == metric.is_of_messages()
                    && (!has_messages || metric.figure(reading, load).is_some())
            }),
        };
        if is_there {
            return true;
        }
    }
    measured_nothing && metric == Metric::RequestsPerS
}

impl Pool<'_> {
    /// A subject's starts under all of the conditions.
    pub fn starts(&self, cells: &Cells<'_>, subject: &str) -> Starts {
        let of_member =
            |c: &&Condition| Starts::of(&cells.attempts(Loop::Closed, c, subject, false));
        self.members
            .iter()
            .map(of_member)
            .fold(Starts::default(), Starts::plus)
    }

    /// The pairs of two subjects, those of the members put together.
    pub fn pairs(
        &self,
        cells: &Cells<'_>,
        metric: Metric,
        ours: Who<'_>,
        theirs: Who<'_>,
    ) -> Pairs {
        let of_member = |condition: &&Condition| {
            let of = metric.load_loop();
            let ours = cells.attempts(of, condition, ours.0, ours.1);
            let theirs = cells.attempts(of, condition, theirs.0, theirs.1);
            Pairs::of(metric, &ours, &theirs)
        };
        let mut each: Vec<Pairs> = self.members.iter().map(of_member).collect();
        match each.len() {
            1 => each.remove(0),
            _ => Pairs::pooled(each),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{analyse, closed, done, header, open};
    use crate::{Analysis, Verdict};
    use readings::{RunHeader, Trial};

    const RATES: [&str; 4] = ["500/s", "1000/s", "2000/s", "4000/s"];

    fn at_rate(rate: &str) -> Condition {
        Condition::from([
            ("connections".to_owned(), "96".to_owned()),
            ("rate".to_owned(), rate.to_owned()),
        ])
    }

    /// Balance keeps 96% of the throughput, 3.5% more or less from block to block.
    fn journal(open_loop_factors: &[&str]) -> (RunHeader, Vec<Trial>) {
        let mut header = header(6);
        header.conditions = RATES.iter().map(|rate| at_rate(rate)).collect();
        header.open_loop_factors = open_loop_factors.iter().map(|f| (*f).to_owned()).collect();
        let mut trials = Vec::new();
        for block in 1..=6u32 {
            let wobble = [0.965, 1.035, 1.0][block as usize % 3];
            for rate in RATES {
                let mut add = |subject: &str, copy: bool, per_s: f64| {
                    let median_us = if subject == "direct" { 400.0 } else { 800.0 };
                    let outcome = done(Some(closed(per_s)), Some(open(1_000.0, median_us)));
                    let mut trial = crate::fixtures::trial(block, subject, copy, outcome);
                    trial.condition = at_rate(rate);
                    trials.push(trial);
                };
                add("direct", false, 20_000.0);
                add("direct", true, 20_000.0);
                add("balance", false, 20_000.0 * 0.96 * wobble);
            }
        }
        (header, trials)
    }

    fn throughput(analysis: &Analysis) -> Vec<&crate::Comparison> {
        let all = analysis.comparisons.iter();
        all.filter(|c| c.metric == Metric::RequestsPerS).collect()
    }

    #[test]
    fn the_rate_of_the_open_loop_adds_no_comparison_of_throughput() {
        let (header, trials) = journal(&["rate"]);
        let analysis = analyse(&header, &trials);
        let pooled = throughput(&analysis);
        assert_eq!(pooled.len(), 1);
        assert_eq!(pooled[0].condition, crate::fixtures::condition(96));
        assert_eq!((pooled[0].blocks, pooled[0].by_block.len()), (6, 6));
        assert_eq!(pooled[0].verdict, Verdict::Slower);
        let subject = pooled[0].subject_value.unwrap();
        assert!((subject / 19_200.0 - 1.0).abs() < 0.01, "{subject}");
        let floors = analysis.noise_floor.iter();
        let floors = floors.filter(|f| f.metric == Metric::RequestsPerS);
        assert_eq!(floors.count(), 1);
        // Latency is measured at each rate.
        let median = analysis.comparisons.iter();
        let median = median.filter(|c| c.metric == Metric::LatencyUsP50);
        assert_eq!(median.count(), 4);

        // Where the factor may act on it, each level is a question.
        let (header, trials) = journal(&[]);
        let analysis = analyse(&header, &trials);
        let repeated = throughput(&analysis);
        assert_eq!(repeated.len(), 4);
    }

    #[test]
    fn a_block_that_failed_under_one_rate_still_counts() {
        let (header, mut trials) = journal(&["rate"]);
        for trial in &mut trials {
            let failed = trial.block == 2 && trial.condition == at_rate("500/s");
            let gone = trial.block == 3;
            if (failed || gone) && trial.subject == "balance" {
                trial.outcome = readings::Outcome::failed("no port", readings::FailureCause::Other);
            }
        }
        let analysis = analyse(&header, &trials);
        assert_eq!(throughput(&analysis)[0].blocks, 5);
    }
}
