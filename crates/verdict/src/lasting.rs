//! Flaws that would be found again if a trial were repeated.

use readings::{LoadReading, Pacing, RunHeader, Trial};

use crate::cells::Cell;
use crate::{Flaw, TrialFlaw};

/// Whether an overload is a trial's only flaw and repeating the trial would find it again: the trial
/// was offered more than its closed loop carried, or an overload was also the only flaw of one of the
/// `earlier` trials of the subject under this condition.
pub fn is_lasting_overload(header: &RunHeader, earlier: &[&Trial], trial: &Trial) -> bool {
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
        let Some(by_load) = header.by_load() else {
            return Self::of_cell(&Cell::judge(trial, header.max_error, 0)).unwrap_or(Self::No);
        };
        let rows = trial.by_load(header);
        let compared = rows
            .iter()
            .filter(|row| !by_load.is_background(&row.condition));
        let found = compared.filter_map(|row| {
            let cell = Cell::judge(row, header.max_error, 0);
            Self::of_cell(&cell)
        });
        let all = found.reduce(|a, b| match (a, b) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::BeyondThroughput, other) | (other, Self::BeyondThroughput) => other,
            _ => Self::WithinThroughput,
        });
        all.unwrap_or(Self::No)
    }

    /// `None` for a cell without flaws.
    fn of_cell(cell: &Cell<'_>) -> Option<Self> {
        if cell.reasons.is_empty() {
            return None;
        }
        let is_overload = |one: &TrialFlaw| matches!(one.flaw, Flaw::Overload(_));
        if !cell.reasons.iter().all(is_overload) {
            return Some(Self::No);
        }
        // With a busy client the throughput is a lower bound.
        let closed = cell.throughput().filter(|load| !load.client.saturated);
        let most = closed.map(LoadReading::requests_per_s);
        let offered = cell.reading().and_then(|reading| reading.latency.as_ref());
        match (most, offered.map(|load| load.pacing)) {
            (Some(most), Some(Pacing::Open { rate_per_s })) if rate_per_s > most => {
                Some(Self::BeyondThroughput)
            }
            _ => Some(Self::WithinThroughput),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{closed, done, header, open, trial};
    use readings::Offered;

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
        assert!(is_lasting_overload(&header, &[], &overloaded(1_000.0)));
        // It carries more in a closed loop: once may be chance.
        let within = overloaded(4_000.0);
        assert!(!is_lasting_overload(&header, &[], &within));
        assert!(is_lasting_overload(&header, &[&within], &within));
        let good = trial(1, "balance", false, done(Some(closed(4_000.0)), None));
        assert!(!is_lasting_overload(&header, &[&good], &within));
        assert!(!is_lasting_overload(&header, &[&within], &good));
    }

    #[test]
    fn a_trial_with_another_flaw_is_made_again() {
        let header = header(3);
        let mut wrong = closed(1_000.0);
        wrong.errors_all.status = 9_000;
        let mut both = overloaded(1_000.0);
        let readings::Outcome::Done(reading) = &mut both.outcome else {
            panic!("it was measured");
        };
        reading.throughput = Some(wrong);
        assert!(!is_lasting_overload(
            &header,
            &[&overloaded(1_000.0)],
            &both
        ));
        // A busy client's throughput is a lower bound.
        let mut busy = overloaded(1_000.0);
        let readings::Outcome::Done(reading) = &mut busy.outcome else {
            panic!("it was measured");
        };
        reading.throughput.as_mut().unwrap().client.saturated = true;
        assert!(!is_lasting_overload(&header, &[], &busy));
    }
}
