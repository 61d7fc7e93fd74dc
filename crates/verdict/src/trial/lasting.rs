//! Flaws that would be found again if a trial were repeated.

use readings::{LoadReading, Pacing, RunHeader, Trial, Wrong};

use crate::trial::cells::Cell;
use crate::{Flaw, TrialFlaw};

/// Whether repeating a trial would find its flaws again. `earlier` are the trials of the subject under
/// this condition before it.
///
/// That holds if an overload is its only flaw, and it was offered more than its closed loop carried,
/// or an overload was also the only flaw of an earlier trial. It also holds if its only flaw is that
/// answers differ from the first one, and that was the only flaw of an earlier trial too.
pub fn is_lasting(header: &RunHeader, earlier: &[&Trial], trial: &Trial) -> bool {
    let differs =
        |trial: &Trial| judged(header, trial, only_differs_from_first, |a, b| a && b) == Some(true);
    is_lasting_overload(header, earlier, trial)
        || differs(trial) && earlier.iter().any(|one| differs(one))
}

/// What `of_cell` says of each compared load that has flaws, reduced to one; `None` without flaws.
fn judged<T>(
    header: &RunHeader,
    trial: &Trial,
    of_cell: impl Fn(&Cell<'_>) -> T,
    both: impl Fn(T, T) -> T,
) -> Option<T> {
    let of = |trial: &Trial| {
        let cell = Cell::judge(trial, header.max_error);
        (!cell.reasons.is_empty()).then(|| of_cell(&cell))
    };
    let Some(by_load) = header.by_load() else {
        return of(trial);
    };
    let rows = trial.by_load(header);
    let compared = rows
        .iter()
        .filter(|row| !by_load.is_background(&row.condition));
    compared.filter_map(of).reduce(both)
}

/// Whether a cell's only flaw is that answers differ from the first one.
fn only_differs_from_first(cell: &Cell<'_>) -> bool {
    let differs = |one: &TrialFlaw| match &one.flaw {
        Flaw::WrongAnswers { first, .. } => first.as_ref().is_some_and(Wrong::differs_from_first),
        _ => false,
    };
    cell.reasons.iter().all(differs)
}

fn is_lasting_overload(header: &RunHeader, earlier: &[&Trial], trial: &Trial) -> bool {
    let found = Overloaded::of(header, trial);
    let was_overloaded = |trial: &&Trial| Overloaded::of(header, trial) != Overloaded::No;
    match found {
        Overloaded::No => false,
        Overloaded::BeyondThroughput => true,
        Overloaded::WithinThroughput => earlier.iter().any(was_overloaded),
    }
}

/// Whether an overload is the only flaw of a trial.
#[derive(Clone, Copy, PartialEq)]
enum Overloaded {
    /// It has no flaws, or others too.
    No,
    /// It was offered no more than its closed loop carried, or it is not known what that carries.
    WithinThroughput,
    /// It was offered more than its closed loop carried.
    BeyondThroughput,
}

impl Overloaded {
    /// With several compared loads, an overload must be the only flaw of each one that has flaws.
    fn of(header: &RunHeader, trial: &Trial) -> Self {
        let all = judged(header, trial, Self::of_cell, |a, b| match (a, b) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::BeyondThroughput, other) | (other, Self::BeyondThroughput) => other,
            _ => Self::WithinThroughput,
        });
        all.unwrap_or(Self::No)
    }

    fn of_cell(cell: &Cell<'_>) -> Self {
        let is_overload = |one: &TrialFlaw| matches!(one.flaw, Flaw::Overload(_));
        if !cell.reasons.iter().all(is_overload) {
            return Self::No;
        }
        // With a busy client the throughput is a lower bound.
        let closed = cell.throughput().filter(|load| !load.client.saturated);
        let most = closed.map(LoadReading::requests_per_s);
        let offered = cell.reading().and_then(|reading| reading.latency.as_ref());
        match (most, offered.map(|load| load.pacing)) {
            (Some(most), Some(Pacing::Open { rate_per_s })) if rate_per_s > most => {
                Self::BeyondThroughput
            }
            _ => Self::WithinThroughput,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{closed, done, header, in_closed, open, reading, throughput, trial};
    use readings::{Offered, WrongKind};

    /// A trial whose open loop carried half of 2,000/s, after a closed loop of this throughput.
    fn overloaded(throughput: f64) -> Trial {
        let mut load = open(2_000.0, 400.0);
        load.offered = Some(Offered {
            due: 20_000,
            answered_within: 10_000,
            backlog: [0, 2_500, 5_000, 7_500, 10_000],
        });
        let outcome = done(Some(closed(throughput)), Some(load));
        trial(1, "balance", false, outcome)
    }

    #[test]
    fn an_overload_beyond_the_throughput_is_no_chance() {
        let header = header(3);
        assert!(is_lasting(&header, &[], &overloaded(1_000.0)));
        // It carries more in a closed loop: once may be chance.
        let within = overloaded(4_000.0);
        assert!(!is_lasting(&header, &[], &within));
        assert!(is_lasting(&header, &[&within], &within));
        let good = in_closed(1, "balance", closed(4_000.0));
        assert!(!is_lasting(&header, &[&good], &within));
        assert!(!is_lasting(&header, &[&within], &good));
    }

    #[test]
    fn a_trial_with_another_flaw_is_made_again() {
        let header = header(3);
        let mut wrong = closed(1_000.0);
        wrong.errors_all.status = 9_000;
        let mut both = overloaded(1_000.0);
        reading(&mut both).throughput = Some(wrong);
        assert!(!is_lasting(&header, &[&overloaded(1_000.0)], &both));
        // A busy client's throughput is a lower bound.
        let mut busy = overloaded(1_000.0);
        throughput(&mut busy).client.saturated = true;
        assert!(!is_lasting(&header, &[], &busy));
    }
    /// A trial of which one answer in ten was wrong.
    fn wrong(expected: &str) -> Trial {
        let mut load = closed(1_000.0);
        load.errors_all.verify = 1_000;
        load.wrong = vec![Wrong {
            kind: WrongKind::Length,
            expected: expected.to_owned(),
            found: "13 bytes".to_owned(),
        }];
        in_closed(1, "balance", load)
    }

    #[test]
    fn answers_that_differ_from_the_first_one_again_are_no_chance() {
        let header = header(3);
        let changing = wrong("12 bytes, as the first answer had");
        assert!(!is_lasting(&header, &[], &changing), "once may be chance");
        assert!(is_lasting(&header, &[&changing], &changing));
        assert!(!is_lasting(&header, &[&overloaded(1_000.0)], &changing));
        let other = wrong("a body that contains `hello`");
        assert!(!is_lasting(&header, &[&other], &other));
    }
}
