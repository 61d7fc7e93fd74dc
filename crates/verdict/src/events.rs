//! Failures and recovery around events.

use readings::{EventReading, EventsReading};
use serde::Serialize;

use crate::cells::Cell;
use crate::pairs::Pairs;
use crate::{FailuresOf, FullRateOf, Metric, Note};

/// A rate that was full all the time counts as back after this time, s: rows are no shorter.
const ROW_S: f64 = 0.1;
/// With no failure in n, at most 3 in n are to be expected, with 95% confidence: the rule of three
/// (Hanley, Lippman-Hand: If Nothing Goes Wrong, Is Everything All Right?, JAMA 1983).
const RULE_OF_THREE: f64 = 3.0;

/// A trial's value in a ratio: never zero, so that it has a logarithm.
pub(crate) fn value(metric: Metric, noticed: &EventsReading) -> f64 {
    match metric {
        // Half a request is added to each count (Haldane: The estimation and significance of the
        // logarithm of a ratio of frequencies, Annals of Human Genetics 1956).
        Metric::FailedShare => (noticed.failed as f64 + 0.5) / (noticed.requests as f64 + 1.0),
        _ => noticed
            .full_rate_after_s
            .unwrap_or(noticed.observed_s)
            .max(ROW_S),
    }
}

/// One side of a comparison, over blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Noticed {
    requests: u64,
    failed: u64,
    /// Trials whose rate was full all the time, and those whose rate was not full at the end.
    always_full: usize,
    never_full: usize,
}

impl Noticed {
    pub fn add(&mut self, cell: &Cell<'_>) {
        let Some(noticed) = cell.reading().and_then(|reading| reading.events.as_ref()) else {
            return;
        };
        self.requests += noticed.requests;
        self.failed += noticed.failed;
        self.always_full += usize::from(noticed.full_rate_after_s == Some(0.0));
        self.never_full += usize::from(noticed.full_rate_after_s.is_none());
    }
}

/// The upper bound of the share of failures when there were none, as a fraction.
fn at_most(requests: u64) -> f64 {
    (RULE_OF_THREE / requests.max(1) as f64).min(1.0)
}

/// The counts behind a ratio.
pub(crate) fn note(metric: Metric, pairs: &Pairs, subject: &str, baseline: &str) -> Option<Note> {
    let sides = [(subject, &pairs.noticed.0), (baseline, &pairs.noticed.1)].into_iter();
    match metric {
        Metric::FailedShare => {
            let sides = sides.filter(|(_, side)| side.requests > 0);
            let sides = sides.map(|(subject, side)| FailuresOf {
                subject: subject.to_owned(),
                requests: side.requests,
                failed: side.failed,
                share_at_most: at_most(side.requests),
            });
            some(sides.collect()).map(Note::Failures)
        }
        Metric::FullRateAfterS => {
            let sides = sides.filter(|(_, side)| (side.always_full, side.never_full) != (0, 0));
            let sides = sides.map(|(subject, side)| FullRateOf {
                subject: subject.to_owned(),
                always: side.always_full,
                never: side.never_full,
            });
            some(sides.collect()).map(Note::FullRate)
        }
        _ => None,
    }
}

fn some<T>(items: Vec<T>) -> Option<Vec<T>> {
    (!items.is_empty()).then_some(items)
}

/// Failures and recovery of a subject under a condition, over its valid trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EventsRow {
    /// Valid trials.
    pub trials: usize,
    /// Requests of all of them.
    pub requests: u64,
    pub failed: u64,
    /// Those that failed over all.
    pub failed_share: f64,
    /// With no failure: the share that they can have at most, by the rule of three, with 95%
    /// confidence.
    pub failed_share_at_most: Option<f64>,
    /// Failures of the trial that had the fewest.
    pub failed_min: u64,
    /// Failures of the trial that had the most.
    pub failed_max: u64,
    /// Mean time until the rate was full again, of the trials in which it was.
    pub full_rate_after_s: Option<f64>,
    /// Trials in which the rate was not full at the window's end.
    pub not_full_at_end: usize,
    /// Mean time until a server that was back had its share of the load again, where it had.
    pub in_rotation_after_s: Option<f64>,
    /// How often a server that came back did not get its share within the window.
    pub not_in_rotation: usize,
    /// How often a server came back.
    pub were_back: usize,
    /// The most connections that were open at a stopped server in any trial.
    pub connections_max: Option<u64>,
}

impl EventsRow {
    pub(crate) fn of(trials: &[&Cell<'_>]) -> Option<Self> {
        let all: Vec<&EventsReading> = trials
            .iter()
            .filter(|cell| cell.latency().is_some())
            .filter_map(|cell| cell.reading()?.events.as_ref())
            .collect();
        let requests: u64 = all.iter().map(|one| one.requests).sum();
        let failed: u64 = all.iter().map(|one| one.failed).sum();
        let each = || all.iter().map(|one| one.failed);
        let back: Vec<&EventReading> = all
            .iter()
            .flat_map(|one| &one.events)
            .filter(|event| event.back_s.is_some())
            .collect();
        let in_rotation = back.iter().filter_map(|event| event.in_rotation_after_s);
        let in_rotation: Vec<f64> = in_rotation.collect();
        let full: Vec<f64> = all.iter().filter_map(|one| one.full_rate_after_s).collect();
        let events = all.iter().flat_map(|one| &one.events);
        (!all.is_empty()).then(|| Self {
            trials: all.len(),
            requests,
            failed,
            failed_share: failed as f64 / requests.max(1) as f64,
            failed_share_at_most: (failed == 0).then(|| at_most(requests)),
            failed_min: each().min().unwrap_or(0),
            failed_max: each().max().unwrap_or(0),
            full_rate_after_s: mean(&full),
            not_full_at_end: all.len() - full.len(),
            in_rotation_after_s: mean(&in_rotation),
            not_in_rotation: back.len() - in_rotation.len(),
            were_back: back.len(),
            connections_max: events.filter_map(|event| event.connections_max).max(),
        })
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixtures::{analyse, done, header, open, trial};
    use readings::{Outcome, Trial};

    /// Trials of both subjects in `blocks` blocks, of which so many of 20,000 requests failed.
    fn trials(blocks: u32, failed: impl Fn(u32, &str) -> u64) -> Vec<Trial> {
        let mut all = Vec::new();
        for block in 1..=blocks {
            for subject in ["direct", "balance"] {
                let failed = failed(block, subject);
                let mut load = open(1000.0, 400.0);
                load.errors_all.timeout = failed;
                let mut one = trial(block, subject, false, done(None, Some(load)));
                if let Outcome::Done(reading) = &mut one.outcome {
                    reading.events = Some(EventsReading {
                        requests: 20_000,
                        failed,
                        full_rate_after_s: (failed < 9_000).then_some(failed as f64 / 1000.0),
                        observed_s: 10.0,
                        events: vec![EventReading {
                            back_s: Some(6.0),
                            in_rotation_after_s: (failed > 0).then_some(1.5),
                            connections_max: Some(7),
                            ..EventReading::default()
                        }],
                    });
                }
                all.push(one);
            }
        }
        all
    }

    fn said(trials: &[Trial]) -> Vec<(Metric, Verdict, Vec<Note>)> {
        let comparisons = analyse(&header(5), trials).comparisons;
        let said = comparisons.into_iter();
        said.map(|c| (c.metric, c.verdict, c.notes)).collect()
    }

    #[test]
    fn failures_are_compared_also_where_one_side_has_none() {
        let trials = trials(5, |block, subject| match subject {
            "direct" => 4_000 + u64::from(block) * 10,
            _ => 0,
        });
        let said = said(&trials);
        let metrics: Vec<Metric> = said.iter().map(|one| one.0).collect();
        assert_eq!(metrics, [Metric::FailedShare, Metric::FullRateAfterS]);
        assert_eq!(said[0].1, Verdict::Faster);
        let failures = |subject: &str, failed| FailuresOf {
            subject: subject.to_owned(),
            requests: 100_000,
            failed,
            share_at_most: 3e-5,
        };
        let both = vec![failures("balance", 0), failures("direct", 20_150)];
        assert_eq!(said[0].2, [Note::Failures(both)]);
        assert_eq!(said[1].1, Verdict::Faster, "{:?}", said[1].2);
        let table = analyse(&header(5), &trials).table;
        let row = |name| table.iter().find(|row| row.subject == name);
        let balance = row("balance").and_then(|row| row.events.clone()).unwrap();
        assert_eq!(balance.failed_share_at_most, Some(3e-5));
        assert_eq!((balance.not_in_rotation, balance.were_back), (5, 5));
        let direct = row("direct").and_then(|row| row.events.clone()).unwrap();
        assert_eq!((direct.failed_min, direct.failed_max), (4_010, 4_050));
        assert_eq!(direct.in_rotation_after_s, Some(1.5));
        assert_eq!(direct.failed_share_at_most, None);
    }

    #[test]
    fn none_against_none_is_the_same_and_says_how_little_that_is() {
        let said = said(&trials(5, |_, _| 0));
        assert_eq!(said[0].1, Verdict::Same, "{:?}", said[0].2);
        let Some(Note::Failures(sides)) = said[0].2.last() else {
            panic!("{:?}", said[0].2);
        };
        assert_eq!((sides[1].failed, sides[1].requests), (0, 100_000));
    }

    #[test]
    fn a_handful_that_comes_and_goes_settles_nothing() {
        let counts = [0, 3, 0, 1, 0];
        let said = said(&trials(5, |block, subject| match subject {
            "direct" => counts[block as usize - 1],
            _ => counts[5 - block as usize],
        }));
        assert_eq!(said[0].1, Verdict::Inconclusive, "{:?}", said[0].2);
    }

    #[test]
    fn a_client_that_stood_still_is_to_blame_for_what_failed() {
        let mut trials = trials(5, |_, _| 10);
        for late in [400, 600] {
            if let Outcome::Done(reading) = &mut trials[0].outcome
                && let Some(load) = &mut reading.latency
            {
                load.schedule_lag = readings::Histogram::new();
                load.schedule_lag.record_many_ns(20_000, 10_000 - late);
                load.schedule_lag.record_many_ns(3_000_000_000, late);
            }
            let invalid = analyse(&header(5), &trials).invalid;
            assert_eq!(invalid.len(), usize::from(late > 500), "{invalid:?}");
        }
    }

    #[test]
    fn failures_make_no_trial_invalid_and_a_rate_that_stays_away_counts_as_long_as_was_looked() {
        let trials = trials(
            5,
            |_, subject| if subject == "direct" { 100 } else { 9_500 },
        );
        let analysis = analyse(&header(5), &trials);
        assert!(analysis.invalid.is_empty(), "{:?}", analysis.invalid);
        let full = &analysis.comparisons[1];
        assert_eq!(
            (full.metric, full.verdict),
            (Metric::FullRateAfterS, Verdict::Slower)
        );
        assert!((full.ratio.unwrap() - 100.0).abs() < 1e-6);
        let Some(Note::FullRate(sides)) = full.notes.last() else {
            panic!("{:?}", full.notes);
        };
        assert_eq!((sides[0].subject.as_str(), sides[0].never), ("balance", 5));
    }
}
