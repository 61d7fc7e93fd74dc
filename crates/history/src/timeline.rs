//! The series of a history, their breaks, and the changes between them.

use std::collections::BTreeMap;

use readings::Condition;
use readings::text::{change, condition};

use crate::change::{self, Change, LEVEL, Point};
use crate::entry::{Comparable, Figure, RunEntry, metric};
use crate::facts::differences;

/// Selects what of a history is shown. The analysis always uses all runs of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    pub experiment: Option<String>,
    pub metric: Option<String>,
    pub subject: Option<String>,
    /// Only so many of the newest runs.
    pub last: Option<usize>,
}

/// Many runs over time.
#[derive(Clone, Debug)]
pub struct History {
    /// The runs, earliest first, with their numbers within their experiment, from 1.
    pub runs: Vec<NumberedRun>,
    pub series: Vec<Series>,
}

#[derive(Clone, Debug)]
pub struct NumberedRun {
    pub number: usize,
    pub entry: RunEntry,
}

/// What a series is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeriesKey {
    pub experiment: String,
    pub condition: Condition,
    pub subject: String,
    pub baseline: String,
    pub metric: String,
}

impl SeriesKey {
    /// `throughput, nginx against direct, at connections=64`.
    pub fn words(&self) -> String {
        let at = match condition(&self.condition) {
            text if text.is_empty() => text,
            text => format!(", at {text}"),
        };
        let metric = metric(&self.metric).map_or(self.metric.as_str(), |m| m.words());
        format!("{metric}, {} against {}{at}", self.subject, self.baseline)
    }

    /// Whether more is better.
    pub fn higher_is_better(&self) -> bool {
        metric(&self.metric).is_some_and(|m| m.higher_is_better())
    }
}

/// One metric of one subject under one condition, over the runs of an experiment.
#[derive(Clone, Debug)]
pub struct Series {
    pub key: SeriesKey,
    /// The smallest difference that matters in the newest run, as a fraction.
    pub matters: f64,
    /// The p value below which a change of this series is reported.
    pub level: f64,
    pub runs: Vec<SeriesRun>,
    /// Where the line breaks, by time.
    pub breaks: Vec<Break>,
    pub changes: Vec<SeriesChange>,
    /// The levels between the changes of every line.
    pub levels: Vec<LevelLine>,
}

/// A run of a series.
#[derive(Clone, Debug)]
pub struct SeriesRun {
    /// The run's number within its experiment.
    pub number: usize,
    pub folder: String,
    pub started_unix_s: u64,
    /// Label and commit, or else the run's revision.
    pub version: Option<String>,
    pub figure: Figure,
    /// The number of the line, from 0: runs of one line can be compared.
    pub line: usize,
    pub host: String,
    pub machine: String,
}

/// Where a run cannot be compared with the run before.
#[derive(Clone, Debug)]
pub struct Break {
    /// The first run after the break, as an index into `runs`.
    pub at: usize,
    pub what: Vec<String>,
}

/// A change of a series.
#[derive(Clone, Debug)]
pub struct SeriesChange {
    /// The first run of the new level, as an index into `runs`.
    pub at: usize,
    /// The number of the last run before it, on the same line.
    pub before_number: usize,
    /// The commits of that run and of the first run of the new level, if the subject was built from
    /// a revision in both.
    pub commits: Option<[String; 2]>,
    /// The change as the search found it; its `at` counts the line's runs.
    pub change: Change,
    pub worse: bool,
}

impl SeriesChange {
    /// The ratio of the new level to the old one, with the ends of its interval.
    pub fn ratio(&self) -> (f64, f64, f64) {
        let c = &self.change;
        (c.log_ratio.exp(), c.low.exp(), c.high.exp())
    }

    /// `-5.2% [-6.1%, -4.3%]`.
    pub fn words(&self) -> String {
        let (ratio, low, high) = self.ratio();
        change(ratio, Some((low, high)))
    }

    /// `between 4375c959788c and 4b9c11848519`, or `4b9c11848519 on both sides`.
    pub fn commit_words(&self) -> Option<String> {
        let [before, after] = self.commits.as_ref()?;
        Some(match before == after {
            true => format!("{after} on both sides"),
            false => format!("between {before} and {after}"),
        })
    }

    /// `confirmed` or `possible`.
    pub fn state(&self) -> &'static str {
        match self.change.confirmed {
            true => "confirmed",
            false => "possible",
        }
    }
}

/// A level that held for a while.
#[derive(Clone, Debug)]
pub struct LevelLine {
    /// Its first and last run, as indices into `runs`.
    pub from: usize,
    pub to: usize,
    pub log_ratio: f64,
}

/// Sorts the runs by time, makes the series, and finds their changes.
pub fn history<'a>(entries: impl IntoIterator<Item = &'a RunEntry>, filters: &Filters) -> History {
    let mut entries: Vec<&RunEntry> = entries.into_iter().collect();
    entries.sort_by_key(|run| (run.started_unix_s, &run.folder));
    let wanted = |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|w| w == name);
    entries.retain(|run| wanted(&filters.experiment, &run.experiment));
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut runs = Vec::new();
    let mut by_key: BTreeMap<SeriesKey, Vec<(usize, &RunEntry, &Figure)>> = BTreeMap::new();
    for &entry in &entries {
        let number = numbers.entry(&entry.experiment).or_default();
        *number += 1;
        runs.push(NumberedRun {
            number: *number,
            entry: entry.clone(),
        });
        for figure in &entry.figures {
            let key = SeriesKey {
                experiment: entry.experiment.clone(),
                condition: figure.condition.clone(),
                subject: figure.subject.clone(),
                baseline: entry.baseline.clone(),
                metric: figure.metric.clone(),
            };
            by_key
                .entry(key)
                .or_default()
                .push((*number, entry, figure));
        }
    }
    let mut family: BTreeMap<&str, usize> = BTreeMap::new();
    for key in by_key.keys() {
        *family.entry(&key.experiment).or_default() += 1;
    }
    let series = by_key.iter().map(|(key, runs)| {
        // Bonferroni's correction over all series of the experiment, shown or not.
        let size = family.get(key.experiment.as_str()).copied().unwrap_or(1);
        one_series(key, runs, LEVEL / size as f64)
    });
    let is_shown = |series: &Series| {
        wanted(&filters.metric, &series.key.metric) && wanted(&filters.subject, &series.key.subject)
    };
    let mut series: Vec<Series> = series.filter(is_shown).collect();
    // Metrics are in the order of reports.
    let place = |key: &SeriesKey| metric(&key.metric);
    series.sort_by(|a, b| {
        let start = |s: &Series| (s.key.experiment.clone(), s.key.condition.clone());
        (start(a), place(&a.key), &a.key.subject).cmp(&(start(b), place(&b.key), &b.key.subject))
    });
    if let Some(last) = filters.last {
        for one in &mut series {
            one.keep_last(last);
        }
        runs.drain(..runs.len().saturating_sub(last));
    }
    History { runs, series }
}

fn one_series(key: &SeriesKey, found: &[(usize, &RunEntry, &Figure)], level: f64) -> Series {
    let mut lines: Vec<(&Comparable, Option<&str>)> = Vec::new();
    let mut runs = Vec::new();
    let mut breaks = Vec::new();
    for (at, (number, entry, figure)) in found.iter().enumerate() {
        let own = identity(entry, figure);
        let known = lines.iter().position(|line| *line == own);
        let line = known.unwrap_or_else(|| {
            lines.push(own);
            lines.len() - 1
        });
        if let Some((_, before, old)) = at.checked_sub(1).map(|before| &found[before])
            && identity(before, old) != own
        {
            breaks.push(Break {
                at,
                what: what_differs((before, old), (entry, figure)),
            });
        }
        runs.push(SeriesRun {
            number: *number,
            folder: entry.folder.clone(),
            started_unix_s: entry.started_unix_s,
            version: entry.version_of(figure),
            figure: (*figure).clone(),
            line,
            host: entry.host.clone(),
            machine: entry.machine.clone(),
        });
    }
    let newest = runs.last().map(|run: &SeriesRun| run.line);
    let mut changes = Vec::new();
    let mut levels = Vec::new();
    for line in 0..lines.len() {
        let used: Vec<usize> = (0..runs.len())
            .filter(|&at| runs[at].line == line && runs[at].figure.unused.is_none())
            .collect();
        let points: Vec<Point> = used.iter().map(|&at| runs[at].figure.point()).collect();
        let found = change::changes(&points, level, newest == Some(line));
        let ends = found.iter().map(|c| c.at).chain([points.len()]);
        let mut from = 0;
        for to in ends {
            if let Some(log_ratio) = change::level(&points[from..to]) {
                levels.push(LevelLine {
                    from: used[from],
                    to: used[to - 1],
                    log_ratio,
                });
            }
            from = to;
        }
        for change in found {
            let (before, after) = (&runs[used[change.at - 1]], &runs[used[change.at]]);
            let commits = before
                .figure
                .commit
                .clone()
                .zip(after.figure.commit.clone());
            changes.push(SeriesChange {
                at: used[change.at],
                before_number: before.number,
                commits: commits.map(<[String; 2]>::from),
                worse: (change.log_ratio < 0.0) == key.higher_is_better(),
                change,
            });
        }
    }
    changes.sort_by_key(|c| c.at);
    Series {
        key: key.clone(),
        matters: found.last().map_or(0.0, |(_, entry, _)| entry.matters),
        level,
        runs,
        breaks,
        changes,
        levels,
    }
}

impl Series {
    /// Keeps the newest runs, and the changes and breaks among them.
    fn keep_last(&mut self, last: usize) {
        let gone = self.runs.len().saturating_sub(last);
        self.runs.drain(..gone);
        self.breaks.retain(|b| b.at >= gone);
        self.breaks.iter_mut().for_each(|b| b.at -= gone);
        self.changes.retain(|c| c.at >= gone);
        for change in &mut self.changes {
            change.at -= gone;
        }
        self.levels.retain(|level| level.to >= gone);
        for level in &mut self.levels {
            level.from = level.from.saturating_sub(gone);
            level.to -= gone;
        }
    }

    /// Why runs take no part in the search, and how many for each reason, the most frequent first.
    pub fn unused(&self) -> Vec<(usize, &str)> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for reason in self.runs.iter().filter_map(|r| r.figure.unused.as_deref()) {
            *counts.entry(reason).or_default() += 1;
        }
        let mut counts: Vec<(usize, &str)> = counts.into_iter().map(|(why, n)| (n, why)).collect();
        counts.sort_by_key(|(n, _)| std::cmp::Reverse(*n));
        counts
    }
}

/// What runs of one line share. The baseline's commit is part of it, since another baseline changes
/// every ratio; the subject's is what the line follows.
fn identity<'a>(entry: &'a RunEntry, figure: &'a Figure) -> (&'a Comparable, Option<&'a str>) {
    (&entry.comparable, figure.baseline_commit.as_deref())
}

/// What keeps two runs from being compared, in words.
fn what_differs(
    (before, old): (&RunEntry, &Figure),
    (after, new): (&RunEntry, &Figure),
) -> Vec<String> {
    let (a, b) = (&before.comparable, &after.comparable);
    let mut what = Vec::new();
    if a.experiment != b.experiment {
        what.push("the experiment".to_owned());
    }
    if a.settings != b.settings {
        what.push("the servers' settings".to_owned());
    }
    if a.method != b.method {
        what.push(format!("weigh {} -> {}", a.method, b.method));
    }
    if old.baseline_commit != new.baseline_commit {
        let shown = |figure: &Figure| {
            let commit = figure.baseline_commit.clone();
            commit.unwrap_or_else(|| "none".to_owned())
        };
        let (old, new) = (shown(old), shown(new));
        what.push(format!("the baseline's commit {old} -> {new}"));
    }
    let versions = differences(&a.versions, &b.versions);
    what.extend(versions.iter().map(|d| format!("version of {}", d.words())));
    if a.machine != b.machine {
        let facts = differences(&before.machine_facts, &after.machine_facts);
        what.push(format!("the machine: {}", few(&facts)));
    }
    what
}

/// The first few differences, and how many more there are.
fn few(all: &[crate::facts::Difference]) -> String {
    const FEW: usize = 3;
    let mut words: Vec<String> = all.iter().take(FEW).map(|d| d.words()).collect();
    if all.len() > FEW {
        words.push(format!("{} more", all.len() - FEW));
    }
    words.join(", ")
}
