//! Several loads that are made at the same time.
//!
//! A trial's row in a journal has the first compared load in its own fields, and the others in
//! [`Reading::beside`]. Analyses and reports use the journal by load ([`Journal::by_load`]): it has
//! a row for each load, and the load is one more key of the condition.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Journal;
use super::rows::{BesideReading, DeclaredLoad, JournalRow, Outcome, Reading, RunHeader, Trial};
use crate::Condition;

/// The key of a condition that names the load that a row is about.
pub const LOAD_KEY: &str = "load";

/// The condition with the name of a load under [`LOAD_KEY`].
pub fn condition_of_load(condition: &Condition, load: &str) -> Condition {
    let mut condition = condition.clone();
    condition.insert(LOAD_KEY.to_owned(), load.to_owned());
    condition
}

impl RunHeader {
    /// The load in a trial's own fields; `None` if there is only one load.
    pub fn main_load(&self) -> Option<&str> {
        let mut compared = self.loads.iter().filter(|load| !load.background);
        compared.next().map(|load| load.name.as_str())
    }

    /// Whether a row with this condition, in a journal by load, is about a background load.
    pub fn is_background(&self, condition: &Condition) -> bool {
        let mut background = self.loads.iter().filter(|load| load.background);
        let name = condition.get(LOAD_KEY);
        name.is_some_and(|name| background.any(|load| load.name == *name))
    }

    /// The header of the journal by load; `None` if there is only one load, or the journal is by
    /// load already.
    pub fn by_load(&self) -> Option<RunHeader> {
        let main = self.main_load()?;
        let has_load = |condition: &Condition| condition.get(LOAD_KEY).is_some_and(|it| it == main);
        if self.conditions.iter().any(has_load) {
            return None;
        }
        let compared = self.loads.iter().filter(|load| !load.background);
        let of_each = |condition: &Condition| {
            let of_load = |load: &DeclaredLoad| condition_of_load(condition, &load.name);
            compared.clone().map(of_load).collect::<Vec<_>>()
        };
        Some(RunHeader {
            conditions: self.conditions.iter().flat_map(of_each).collect(),
            ..self.clone()
        })
    }
}

impl Trial {
    /// A row for each load that was made. A failed trial has one for each compared load. `header`
    /// is that of the journal as it was written.
    pub fn by_load(&self, header: &RunHeader) -> Vec<Trial> {
        let main = header.main_load();
        let rows = header.loads.iter().filter_map(|load| {
            let outcome = match &self.outcome {
                Outcome::Failed { .. } if load.background => return None,
                Outcome::Failed { .. } => self.outcome.clone(),
                Outcome::Done(reading) => {
                    let is_main = main == Some(load.name.as_str());
                    Outcome::Done(Box::new(match is_main {
                        true => (**reading).clone(),
                        false => reading_of(reading, main?, load)?,
                    }))
                }
            };
            Some(Trial {
                condition: condition_of_load(&self.condition, &load.name),
                outcome,
                ..self.clone()
            })
        });
        rows.collect()
    }
}

/// The reading of a load other than the first one; `None` if that load was not made.
fn reading_of(reading: &Reading, main: &str, load: &DeclaredLoad) -> Option<Reading> {
    let own = reading.beside.get(&load.name)?;
    let mut beside = BTreeMap::new();
    if !load.background {
        beside.clone_from(&reading.beside);
        beside.remove(&load.name);
        let first = BesideReading {
            throughput: reading.throughput.clone(),
            latency: reading.latency.clone(),
        };
        beside.insert(main.to_owned(), first);
    }
    Some(Reading {
        throughput: own.throughput.clone(),
        latency: own.latency.clone(),
        separate_copy: reading.separate_copy,
        beside,
        ..Reading::default()
    })
}

/// A journal's header and trials by load; `None` where [`RunHeader::by_load`] is.
pub fn trials_by_load(header: &RunHeader, trials: &[Trial]) -> Option<(RunHeader, Vec<Trial>)> {
    let split = header.by_load()?;
    let trials = trials.iter().flat_map(|trial| trial.by_load(header));
    Some((split, trials.collect()))
}

impl Journal {
    /// The journal by load: with a row for each load. With only one load it is the same.
    pub fn by_load(&self) -> Cow<'_, Journal> {
        let Some(header) = self.header.by_load() else {
            return Cow::Borrowed(self);
        };
        let mut rows = Vec::new();
        for row in &self.rows {
            match row {
                JournalRow::Trial(trial) => {
                    let trials = trial.by_load(&self.header).into_iter();
                    rows.extend(trials.map(JournalRow::from));
                }
                JournalRow::Rate(choice) if !choice.condition.contains_key(LOAD_KEY) => {
                    let mut choice = choice.clone();
                    let main = self.header.main_load().unwrap_or_default();
                    choice.condition = condition_of_load(&choice.condition, main);
                    rows.push(JournalRow::Rate(choice));
                }
                other => rows.push(other.clone()),
            }
        }
        Cow::Owned(Journal {
            header,
            rows,
            whole_bytes: self.whole_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FailureCause, LoadReading, RateChoice};

    fn header() -> RunHeader {
        let load = |name: &str, background| DeclaredLoad {
            name: name.into(),
            background,
        };
        RunHeader {
            conditions: vec![Condition::from([("size".into(), "1".into())])],
            loads: vec![
                load("download", true),
                load("quick", false),
                load("slow", false),
            ],
            baseline: "a".into(),
            subjects: vec!["a".into()],
            ..RunHeader::default()
        }
    }

    fn load(requests: u64) -> Option<LoadReading> {
        Some(LoadReading {
            requests,
            ..LoadReading::default()
        })
    }

    fn trial(outcome: Outcome) -> Trial {
        Trial {
            trial: 1,
            block: 1,
            condition: header().conditions[0].clone(),
            subject: "a".into(),
            baseline_copy: false,
            attempt: 1,
            outcome,
        }
    }

    fn requests_by_load(journal: &Journal) -> Vec<(String, u64, Vec<String>)> {
        let trials = journal.trials().map(|trial| {
            let Outcome::Done(reading) = &trial.outcome else {
                panic!("{trial:?}");
            };
            let beside = reading.beside.keys().cloned().collect();
            let requests = reading.throughput.as_ref().map_or(0, |load| load.requests);
            (trial.condition[LOAD_KEY].clone(), requests, beside)
        });
        trials.collect()
    }

    #[test]
    fn each_load_has_a_row_and_knows_what_was_made_beside_it() {
        let beside = |requests| BesideReading {
            throughput: load(requests),
            latency: None,
        };
        let reading = Reading {
            throughput: load(1_000),
            beside: [
                ("slow".to_owned(), beside(10)),
                ("download".to_owned(), beside(3)),
            ]
            .into(),
            ..Reading::default()
        };
        let rate = RateChoice {
            condition: header().conditions[0].clone(),
            rate_per_s: 500.0,
            slowest_per_s: None,
            of_users: false,
        };
        let rows = vec![
            JournalRow::Rate(rate),
            JournalRow::Trial(Box::new(trial(Outcome::Done(Box::new(reading))))),
        ];
        let journal = Journal::new(header(), rows);
        let split = journal.by_load();
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|one| (*one).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            requests_by_load(&split),
            [
                ("download".to_owned(), 3, names(&[])),
                ("quick".to_owned(), 1_000, names(&["download", "slow"])),
                ("slow".to_owned(), 10, names(&["download", "quick"])),
            ]
        );
        assert_eq!(split.rates()[0].condition[LOAD_KEY], "quick");
        let conditions = split.header.conditions.iter();
        let loads: Vec<&String> = conditions.map(|one| &one[LOAD_KEY]).collect();
        assert_eq!(loads, ["quick", "slow"]);
        assert!(
            split
                .header
                .is_background(&split.trials().next().unwrap().condition)
        );
        // A journal by load is not split again.
        assert!(matches!(split.by_load(), Cow::Borrowed(_)));
    }

    #[test]
    fn a_failed_trial_is_one_of_each_compared_load_and_one_load_stays_as_it_is() {
        let failed = Outcome::Failed {
            reason: "load `slow` was late".into(),
            cause: FailureCause::Other,
        };
        let rows = vec![JournalRow::Trial(Box::new(trial(failed)))];
        let mut journal = Journal::new(header(), rows);
        assert_eq!(journal.by_load().trials().count(), 2);
        journal.header.loads.clear();
        assert!(matches!(journal.by_load(), Cow::Borrowed(_)));
    }

    #[test]
    fn a_load_that_a_subject_does_not_have_has_no_row() {
        let reading = Reading {
            throughput: load(7),
            ..Reading::default()
        };
        let rows = vec![JournalRow::Trial(Box::new(trial(Outcome::Done(Box::new(
            reading,
        )))))];
        let journal = Journal::new(header(), rows);
        let split = journal.by_load();
        assert_eq!(requests_by_load(&split), [("quick".to_owned(), 7, vec![])]);
    }
}
