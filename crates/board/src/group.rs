//! The runs by experiment, each analysed once.

use std::collections::BTreeMap;

use history::{Filters, History, JournalStamp, RunEntry};
use readings::{RunHeader, Utc};
use verdict::Analysis;

use crate::Run;
use crate::html::Slugs;

/// A run with what it says.
pub(crate) struct Analysed {
    /// `proxy-cost-20260301-101500`: the same wherever its folder is.
    pub id: String,
    pub run: Run,
    pub analysis: Analysis,
}

/// The runs of one experiment.
pub(crate) struct Group {
    /// The name of its page, without the end.
    pub page: String,
    /// The earliest first.
    pub runs: Vec<Analysed>,
    /// The place of the run that is shown.
    shown: usize,
    pub history: History,
}

impl Group {
    /// The newest run that compares anything, or else that measured anything.
    pub fn shown(&self) -> &Analysed {
        &self.runs[self.shown]
    }

    pub fn header(&self) -> &RunHeader {
        &self.shown().run.journal.header
    }
}

/// The experiments by name and title.
pub(crate) fn groups(runs: Vec<Run>) -> Vec<Group> {
    let mut by_experiment: BTreeMap<(String, String), Vec<Run>> = BTreeMap::new();
    for run in runs {
        let header = &run.journal.header;
        let key = (header.experiment.clone(), header.title.clone());
        by_experiment.entry(key).or_default().push(run);
    }
    let mut slugs = Slugs::default();
    let each = by_experiment.into_iter();
    each.map(|((name, _), runs)| group(slugs.of("experiment", &name), runs))
        .collect()
}

fn group(page: String, mut runs: Vec<Run>) -> Group {
    runs.sort_by(|a, b| order(&a.journal.header, &b.journal.header));
    // Of copies of one run the one that goes furthest counts.
    runs.dedup_by(|later, kept| {
        let is_same = later.journal.header == kept.journal.header;
        if is_same && later.journal.rows.len() > kept.journal.rows.len() {
            std::mem::swap(later, kept);
        }
        is_same
    });
    let mut slugs = Slugs::default();
    let runs: Vec<Analysed> = runs
        .into_iter()
        .map(|run| {
            let header = &run.journal.header;
            let id = slugs.of(&header.experiment, &compact(header.started_unix_s));
            let analysis = verdict::analyse(&run.journal);
            Analysed { id, run, analysis }
        })
        .collect();
    let newest = |is: fn(&Analysis) -> bool| runs.iter().rposition(|one| is(&one.analysis));
    let shown = newest(|one| !one.rankings.is_empty());
    let shown = shown.or_else(|| newest(|one| !one.table.is_empty()));
    let entries: Vec<RunEntry> = runs.iter().map(entry).collect();
    Group {
        page,
        shown: shown.unwrap_or(runs.len() - 1),
        history: history::history(&entries, &Filters::default()),
        runs,
    }
}

/// By time; what else differs makes the order the same wherever the folders are.
fn order(a: &RunHeader, b: &RunHeader) -> std::cmp::Ordering {
    let key = |one: &RunHeader| (one.started_unix_s, one.seed, one.label.clone());
    let text = |one: &RunHeader| serde_json::to_string(one).unwrap_or_default();
    key(a).cmp(&key(b)).then_with(|| text(a).cmp(&text(b)))
}

/// `20260301-101500`.
fn compact(unix_s: u64) -> String {
    let at = Utc::of(unix_s);
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}",
        at.year, at.month, at.day, at.hour, at.minute, at.second
    )
}

fn entry(one: &Analysed) -> RunEntry {
    RunEntry::analysed(
        &one.id,
        JournalStamp {
            bytes: 0,
            modified_unix_ns: 0,
        },
        &one.run.journal,
        &one.analysis,
        one.run.experiment.as_deref(),
        one.run.hosts.as_ref(),
    )
}
