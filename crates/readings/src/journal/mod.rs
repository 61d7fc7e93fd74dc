//! A run's journal.

mod counts;
mod curve;
mod events;
mod loads;
mod rows;
mod settings;
mod text;

pub use counts::first_number_above_limit;
pub use curve::{CurveChoice, CurvePoint};
pub use events::{DuringEvent, EVENT_ROW_MS, EventReading, EventsReading};
pub use loads::{LOAD_KEY, condition_of_load, trials_by_load};
pub use rows::{
    BesideReading, DeclaredLoad, FailureCause, JournalRow, Outcome, Placement, Published,
    RateChoice, Reading, RunHeader, ServerReading, ServerStart, Trial, WarmUpChoice,
};
pub use settings::{ServerSettings, SettingsReading, SubjectSettings};
pub use text::{JOURNAL_LINE_BYTES_MAX, JournalTextError, Salvaged, UnwritableRow};

use std::collections::{BTreeMap, BTreeSet};

use crate::BottleneckReading;

/// A run's journal: all that is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Journal {
    pub header: RunHeader,
    /// The rows after the header, in the order in which they were written.
    pub rows: Vec<JournalRow>,
    /// Bytes up to the end of the last whole line.
    pub whole_bytes: u64,
}

impl Journal {
    /// A journal that holds these rows after its header.
    pub fn new(header: RunHeader, rows: Vec<JournalRow>) -> Self {
        Self {
            header,
            rows,
            whole_bytes: 0,
        }
    }

    /// A journal of these trials.
    pub fn of_trials(header: RunHeader, trials: impl IntoIterator<Item = Trial>) -> Self {
        let rows = trials.into_iter().map(JournalRow::from);
        Self::new(header, rows.collect())
    }

    /// The trials, in the order in which they were written.
    pub fn trials(&self) -> impl Iterator<Item = &Trial> + Clone {
        self.rows.iter().filter_map(|row| match row {
            JournalRow::Trial(trial) => Some(&**trial),
            _ => None,
        })
    }

    /// What was measured to find each subject's bottleneck; of two rows on the same subject and
    /// condition the later.
    pub fn bottlenecks(&self) -> Vec<&BottleneckReading> {
        last_of_each(&self.rows, |row| match row {
            JournalRow::Bottleneck(reading) => {
                Some(((&reading.condition, &reading.subject), &**reading))
            }
            _ => None,
        })
    }

    /// The rates at which latency is compared; of two rows on a condition the later.
    pub fn rates(&self) -> Vec<&RateChoice> {
        last_of_each(&self.rows, |row| match row {
            JournalRow::Rate(choice) => Some((&choice.condition, choice)),
            _ => None,
        })
    }

    /// The rates of the curves; of two rows on a condition the later.
    pub fn curves(&self) -> Vec<&CurveChoice> {
        last_of_each(&self.rows, |row| match row {
            JournalRow::Curve(choice) => Some((&choice.condition, choice)),
            _ => None,
        })
    }

    /// The warm-ups that are longer than declared; of two rows on a condition the later.
    pub fn warm_ups(&self) -> Vec<&WarmUpChoice> {
        last_of_each(&self.rows, |row| match row {
            JournalRow::WarmUp(choice) => Some((&choice.condition, choice)),
            _ => None,
        })
    }

    /// How servers were set, under each condition.
    pub fn settings(&self) -> Vec<&SettingsReading> {
        let rows = self.rows.iter().filter_map(|row| match row {
            JournalRow::Settings(settings) => Some(settings),
            _ => None,
        });
        rows.collect()
    }

    /// The CPUs of load and servers, each placement once.
    pub fn placements(&self) -> Vec<&Placement> {
        let mut seen = BTreeSet::new();
        let rows = self.rows.iter().filter_map(|row| match row {
            JournalRow::Placement(placement) => Some(placement),
            _ => None,
        });
        rows.filter(|placement| seen.insert(*placement)).collect()
    }

    /// The warnings, each once.
    pub fn warnings(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let texts = self.rows.iter().filter_map(|row| match row {
            JournalRow::Warning { text } => Some(text.as_str()),
            _ => None,
        });
        texts.filter(|text| seen.insert(*text)).collect()
    }

    /// Whether the run came to its end.
    pub fn is_complete(&self) -> bool {
        matches!(self.rows.last(), Some(JournalRow::End { complete: true }))
    }
}

/// Of the rows with the same key the last, in the order in which these stand.
fn last_of_each<'a, K: Ord, V>(
    rows: &'a [JournalRow],
    pick: impl Fn(&'a JournalRow) -> Option<(K, V)>,
) -> Vec<V> {
    let picked = rows.iter().enumerate();
    let picked = picked.filter_map(|(at, row)| pick(row).map(|(key, value)| (key, (at, value))));
    let mut found: Vec<(usize, V)> = picked
        .collect::<BTreeMap<K, (usize, V)>>()
        .into_values()
        .collect();
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, value)| value).collect()
}
