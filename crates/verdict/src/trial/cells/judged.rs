//! The judgement of each trial, as all figures, tables and pictures of a run rest on it.

use std::collections::{BTreeMap, BTreeSet};

use readings::{Condition, Histogram, Journal, LoadReading, Trial};

use crate::TrialFlaw;
use crate::trial::cells::Cells;
use crate::trial::lag::late_at;
use crate::trial::loops::Loop;

/// One row of a journal, judged. [`judged_trials`] gives it with its trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Its place among the trials of the journal by load.
    pub(crate) place: usize,
    /// Of several rows for the same trial, the one that counts.
    pub counts: bool,
    pub closed: LoadJudgement,
    pub open: LoadJudgement,
}

/// What was judged of one load of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadJudgement {
    /// Whether figures of this load are taken from this row and from no other of its block.
    pub is_chosen: bool,
    /// Why it cannot be used; empty when it can.
    pub flaws: Vec<TrialFlaw>,
}

/// A trial with its judgement.
#[derive(Clone, Copy, Debug)]
pub struct JudgedTrial<'a> {
    pub trial: &'a Trial,
    pub judgement: &'a Judgement,
}

impl<'a> JudgedTrial<'a> {
    /// The closed loop, if figures rest on it.
    pub fn closed(&self) -> Option<&'a LoadReading> {
        let load = self.trial.reading()?.throughput.as_ref()?;
        self.judgement.closed.is_used().then_some(load)
    }

    /// The open loop, if figures rest on it.
    pub fn open(&self) -> Option<&'a LoadReading> {
        let load = self.trial.reading()?.latency.as_ref()?;
        self.judgement.open.is_used().then_some(load)
    }
}

impl LoadJudgement {
    /// Whether figures rest on the load.
    pub fn is_used(&self) -> bool {
        self.is_chosen && self.flaws.is_empty()
    }
}

/// The trials of a journal by load, each with its judgement: what [`analyse`](crate::analyse) found.
pub fn judged_trials<'a>(
    journal: &'a Journal,
    judgements: &'a [Judgement],
) -> impl Iterator<Item = JudgedTrial<'a>> {
    let trials: Vec<&Trial> = journal.trials().collect();
    judgements.iter().filter_map(move |judgement| {
        let trial = *trials.get(judgement.place)?;
        Some(JudgedTrial { trial, judgement })
    })
}

/// The judgements of all rows, in the order of the journal.
pub(crate) fn judgements<'a>(
    trials: impl Iterator<Item = &'a Trial>,
    all: &[&Cells<'a>],
) -> Vec<Judgement> {
    let place: BTreeMap<*const Trial, usize> = trials.map(std::ptr::from_ref).zip(0..).collect();
    let mut found: Vec<Judgement> = Vec::new();
    for cells in all {
        let chosen = |of| {
            let mut chosen: BTreeSet<*const Trial> = BTreeSet::new();
            for condition in &cells.conditions {
                for subject in &cells.subjects {
                    for copy in [false, true] {
                        let judged = cells.judged(of, condition, subject, copy);
                        chosen.extend(judged.values().map(|cell| std::ptr::from_ref(cell.trial)));
                    }
                }
            }
            chosen
        };
        let (closed, open) = (chosen(Loop::Closed), chosen(Loop::Open));
        found.extend(cells.all().filter_map(|(cell, counts)| {
            let row = std::ptr::from_ref(cell.trial);
            Some(Judgement {
                place: *place.get(&row)?,
                counts,
                closed: LoadJudgement {
                    is_chosen: closed.contains(&row),
                    flaws: cell.throughput_flaws.clone(),
                },
                open: LoadJudgement {
                    is_chosen: open.contains(&row),
                    flaws: cell.latency_flaws.clone(),
                },
            })
        }));
    }
    found.sort_by_key(|one| one.place);
    found
}

/// All answers of a subject under a condition, for its latency over the quantile.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    pub condition: Condition,
    pub subject: String,
    /// Whether the answers are of the open loop; the latency of a saturated closed loop is queueing.
    pub is_of_open_loop: bool,
    pub response: Histogram,
    /// The quantile up to which it says something about the servers: beyond it the client's own lag
    /// shows in most of the trials.
    pub up_to: f64,
}

/// The quantiles at which the client's lag is looked for, the highest first.
const LAG_QUANTILES: [f64; 3] = [0.99, 0.9, 0.5];

/// A distribution for each subject under each condition: of the open loops where the condition has
/// any that can be used, otherwise of the closed loops.
///
/// As in the table, a quantile is taken from the trials whose client was not late at it, and only
/// if these are at least half; so the trials merged are those of the highest such quantile.
pub(crate) fn distributions(cells: &Cells<'_>) -> Vec<Distribution> {
    let of_condition = |condition: &Condition, of: Loop| -> Vec<Distribution> {
        let of_subject = |subject: &String| {
            let trials = cells.judged(of, condition, subject, false);
            let loads: Vec<&LoadReading> = trials
                .values()
                .filter_map(|cell| match of {
                    Loop::Closed => cell.throughput(),
                    Loop::Open => cell.latency(),
                })
                .collect();
            distribution(condition, subject, of, &loads)
        };
        cells.subjects.iter().filter_map(of_subject).collect()
    };
    let both = |condition: &Condition| match of_condition(condition, Loop::Open) {
        open if open.is_empty() => of_condition(condition, Loop::Closed),
        open => open,
    };
    cells.conditions.iter().flat_map(both).collect()
}

fn distribution(
    condition: &Condition,
    subject: &str,
    of: Loop,
    loads: &[&LoadReading],
) -> Option<Distribution> {
    let in_time = |quantile: f64| -> Vec<&LoadReading> {
        let loads = loads.iter().copied();
        loads
            .filter(|load| late_at(load, quantile).is_none())
            .collect()
    };
    let mut of_quantiles = LAG_QUANTILES.into_iter().map(|q| (q, in_time(q)));
    let (quantile, usable) = of_quantiles.find(|(_, usable)| usable.len() * 2 >= loads.len())?;
    let mut response = Histogram::new();
    for load in &usable {
        response.merge(&load.response);
    }
    (response.count() > 0).then(|| Distribution {
        condition: condition.clone(),
        subject: subject.to_owned(),
        is_of_open_loop: of == Loop::Open,
        response,
        up_to: if quantile == LAG_QUANTILES[0] {
            1.0
        } else {
            quantile
        },
    })
}
