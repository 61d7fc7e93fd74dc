//! One trial with its flaws, and which row counts of several on the same one.

use std::collections::BTreeMap;

use readings::{
    Condition, FailureCause, LOAD_KEY, LoadReading, Outcome, Reading, RunHeader, Slice,
    SystemMetrics, Trial,
};

use crate::trial::loops::Loop;
use crate::trial::others;
use crate::trial::validity::machine::machine_flaws;
use crate::trial::validity::{flaws, flaws_beside_failures, flaws_of_beside, path};
use crate::{Flaw, TrialFlaw};

/// The rows that count, in the order in which they were first seen.
///
/// A trial that cannot be used is made again, also by a resumed run. Of its rows the last valid one
/// counts; where none is valid, the last that was measured; otherwise the last. So the choice never
/// depends on how fast a row was.
pub fn latest<'a>(
    header: &RunHeader,
    trials: impl IntoIterator<Item = &'a Trial>,
) -> Vec<&'a Trial> {
    let mut place: BTreeMap<(u32, &Condition, &str, bool), usize> = BTreeMap::new();
    let mut rows: Vec<&Trial> = Vec::new();
    for trial in trials {
        let key = (
            trial.block,
            &trial.condition,
            trial.subject.as_str(),
            trial.baseline_copy,
        );
        match place.get(&key) {
            Some(&at) => {
                if worth(header, trial) >= worth(header, rows[at]) {
                    rows[at] = trial;
                }
            }
            None => {
                place.insert(key, rows.len());
                rows.push(trial);
            }
        }
    }
    rows
}

/// Ranks valid above measured above failed.
fn worth(header: &RunHeader, trial: &Trial) -> u8 {
    Cell::judge(trial, header.max_error).worth()
}

/// Why a trial that was measured cannot be used or only in part; empty for a valid trial, and for
/// one that failed.
pub fn trial_flaws(header: &RunHeader, trial: &Trial) -> Vec<TrialFlaw> {
    let Some(by_load) = header.by_load() else {
        return Cell::judge(trial, header.max_error).reasons;
    };
    let mut reasons = Vec::new();
    for row in trial.by_load(header) {
        if by_load.is_background(&row.condition) {
            continue;
        }
        let load = &row.condition[LOAD_KEY];
        for reason in Cell::judge(&row, header.max_error).reasons {
            // A load's reasons include the flaws of the other loads, which are named already.
            let named = TrialFlaw {
                load: reason.load.or_else(|| Some(load.clone())),
                ..reason
            };
            if !reasons.contains(&named) {
                reasons.push(named);
            }
        }
    }
    reasons
}

pub(crate) struct Cell<'a> {
    pub trial: &'a Trial,
    /// Why its closed loop cannot be used; empty when it can.
    pub throughput_flaws: Vec<TrialFlaw>,
    /// Why its open loop cannot be used; empty when it can.
    pub latency_flaws: Vec<TrialFlaw>,
    /// All reasons, each with the load that it is about.
    pub reasons: Vec<TrialFlaw>,
    /// Whether its slices and those of the trials that it is compared with were taken in turns.
    pub in_turns: bool,
}

impl<'a> Cell<'a> {
    pub fn judge(trial: &'a Trial, max_error: f64) -> Self {
        let mut cell = Cell {
            trial,
            throughput_flaws: Vec::new(),
            latency_flaws: Vec::new(),
            reasons: Vec::new(),
            in_turns: true,
        };
        let Outcome::Done(reading) = &trial.outcome else {
            return cell;
        };
        let others = others::of_reading(reading);
        let judged = |load: &Option<LoadReading>, probed: &Option<SystemMetrics>| {
            let Some(load) = load else { return Vec::new() };
            let mut found = match &reading.events {
                Some(events) => flaws_beside_failures(load, events),
                None => flaws(load, max_error, others),
            };
            found.extend(load.used_up.clone().map(|feed| Flaw::UsedUp { feed }));
            path::name_the_queue(&mut found, reading, load, probed.as_ref());
            let probed = probed.as_ref();
            found.extend(probed.map_or_else(Vec::new, |seen| machine_flaws(load, seen)));
            if reading.events.is_none() {
                found.extend(path::unasked(reading, probed));
            }
            found
        };
        let throughput = judged(&reading.throughput, &reading.probed);
        let latency = judged(&reading.latency, &reading.latency_probed);
        for (of, flaws) in [(Loop::Closed, &throughput), (Loop::Open, &latency)] {
            let named = flaws.iter().map(|flaw| TrialFlaw::of(of, flaw));
            cell.reasons.extend(named);
        }
        // Wrong answers and failed requests spoil both loads of the trial.
        let spoil = |flaws: &[Flaw], own: &mut Vec<TrialFlaw>, other: &mut Vec<TrialFlaw>| {
            for flaw in flaws {
                own.push(flaw.clone().into());
                if flaw.spoils_trial() {
                    other.push(flaw.clone().into());
                }
            }
        };
        let (of_closed, of_open) = (&mut cell.throughput_flaws, &mut cell.latency_flaws);
        spoil(&throughput, of_closed, of_open);
        spoil(&latency, of_open, of_closed);
        cell.add_flaws_beside(reading, max_error);
        cell
    }

    /// A load that failed makes the trial invalid for the others as well: the load beside them was
    /// less than declared.
    fn add_flaws_beside(&mut self, reading: &Reading, max_error: f64) {
        for (name, beside) in &reading.beside {
            for load in [&beside.throughput, &beside.latency].into_iter().flatten() {
                for flaw in flaws_of_beside(load, max_error) {
                    let reason = TrialFlaw::of_load(name, flaw);
                    if !self.reasons.contains(&reason) {
                        self.throughput_flaws.push(reason.clone());
                        self.latency_flaws.push(reason.clone());
                        self.reasons.push(reason);
                    }
                }
            }
        }
    }

    /// The first flaw that the subject itself caused.
    pub fn caused_by_subject(&self) -> Option<&Flaw> {
        let own = self.reasons.iter().filter(|one| one.load.is_none());
        let mut own = own.map(|one| &one.flaw);
        own.find(|flaw| flaw.cause() == FailureCause::Subject)
    }

    /// Ranks valid above measured above failed.
    pub(super) fn worth(&self) -> u8 {
        match self.trial.outcome {
            Outcome::Failed { .. } => 0,
            Outcome::Done(_) if self.reasons.is_empty() => 2,
            Outcome::Done(_) => 1,
        }
    }

    /// What was measured, whether or not it can be used.
    pub fn reading(&self) -> Option<&'a Reading> {
        self.trial.reading()
    }

    /// The closed loop, if it can be used.
    pub fn throughput(&self) -> Option<&'a LoadReading> {
        let load = self.reading()?.throughput.as_ref()?;
        self.throughput_flaws.is_empty().then_some(load)
    }

    /// The slices of its closed loop that were taken in turns with those of others; none if it cannot
    /// be used.
    pub fn slices_in_turns(&self) -> &'a [Slice] {
        let load = self.throughput().filter(|_| self.in_turns);
        load.map_or(&[], |load| &load.slices)
    }

    /// Whether a load can be used.
    pub(super) fn is_usable(&self, of: Loop) -> bool {
        match of {
            Loop::Closed => self.throughput().is_some(),
            Loop::Open => self.latency().is_some(),
        }
    }

    /// The open loop, if it can be used.
    pub fn latency(&self) -> Option<&'a LoadReading> {
        let load = self.reading()?.latency.as_ref()?;
        self.latency_flaws.is_empty().then_some(load)
    }
}
