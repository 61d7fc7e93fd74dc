//! Which panels there are, and in what order.

use std::collections::HashSet;

use readings::text::condition;
use readings::{Condition, RunHeader};
use verdict::{Analysis, Bound, Metric, Ranked, Ranking};

use super::content::{Band, Panel, ROWS_MAX, Row};
use super::words;

/// The most subjects with a colour each.
const COLOURS: usize = 8;
const COLUMNS_MAX: usize = 4;
/// What rows need besides their ranking.
pub(super) struct Rows<'a> {
    subjects: &'a [String],
    /// Subjects under conditions whose throughput the client limited.
    limited: HashSet<(&'a Condition, &'a str)>,
}

impl<'a> Rows<'a> {
    pub fn of(header: &'a RunHeader, analysis: &'a Analysis) -> Self {
        let limited = analysis.table.iter().filter(|row| row.at_least);
        Self {
            subjects: &header.subjects,
            limited: limited
                .map(|row| (&row.condition, row.subject.as_str()))
                .collect(),
        }
    }

    fn panel(&self, ranking: &'a Ranking, heading: String) -> Panel<'a> {
        let rows = ranking.rows.iter().take(ROWS_MAX);
        Panel {
            heading,
            better: None,
            metric: ranking.metric,
            rows: rows.map(|row| self.row(ranking, row)).collect(),
            is_logarithmic: false,
        }
    }

    fn row(&self, ranking: &'a Ranking, row: &'a Ranked) -> Row<'a> {
        let is_of_quantile = ranking.metric.quantile().is_some();
        let is_limited = row.bound == Some(Bound::AtLeast) && !is_of_quantile
            || ranking.metric == Metric::RequestsPerS
                && self
                    .limited
                    .contains(&(&ranking.condition, row.subject.as_str()));
        // The baseline has no ratio to be a bound of.
        let bound = match row.is_baseline && is_limited {
            true => Some(Bound::AtLeast),
            false => row.bound,
        };
        let colour = self.subjects.iter().position(|name| *name == row.subject);
        Row {
            subject: &row.subject,
            place: words::places(row.places),
            value: row.value,
            low: row.low,
            high: row.high,
            bound,
            is_limited,
            figure: words::figure(ranking.metric, row, is_limited),
            change: words::change(row),
            colour: match (self.subjects.len() <= COLOURS, row.is_baseline) {
                (true, _) => colour.unwrap_or(0),
                (false, true) => COLOURS - 1,
                (false, false) => 0,
            },
        }
    }
}

/// The levels that all rankings share, and the factors with several, each with its levels in the
/// order of the rankings.
pub(super) fn factors<'a>(rankings: &[&'a Ranking]) -> (Condition, Vec<(&'a str, Vec<&'a str>)>) {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, level) in rankings.iter().flat_map(|one| &one.condition) {
        match found.iter_mut().find(|(other, _)| other == name) {
            Some((_, levels)) if levels.contains(&level.as_str()) => {}
            Some((_, levels)) => levels.push(level),
            None => found.push((name, vec![level])),
        }
    }
    let is_shared = |(name, levels): &(&str, Vec<&str>)| {
        let has = |one: &&Ranking| one.condition.contains_key(*name);
        levels.len() == 1 && rankings.iter().all(has)
    };
    let (shared, varied): (Vec<_>, Vec<_>) = found.into_iter().partition(is_shared);
    let shared = shared.into_iter();
    let shared = shared.map(|(name, levels)| (name.to_owned(), levels[0].to_owned()));
    (shared.collect(), varied)
}

/// The only condition: its main ranking, and below it those of latency and of CPU time.
pub(super) fn of_one<'a, I: Iterator<Item = &'a Ranking>>(
    rows: &Rows<'a>,
    only: &'a Ranking,
    of: &impl Fn(Metric) -> I,
) -> Vec<Band<'a>> {
    let cpu = match of(Metric::ServerCpuUsPerRequestAtRate).next() {
        Some(_) => Metric::ServerCpuUsPerRequestAtRate,
        None => Metric::ServerCpuUsPerRequest,
    };
    let others = [Metric::LatencyUsP50, Metric::LatencyUsP99, cpu];
    let others = others.into_iter().filter(|metric| *metric != only.metric);
    let others = others.filter_map(|metric| {
        let mut all = of(metric);
        let (first, second) = (all.next()?, all.next());
        second.is_none().then_some(first)
    });
    let band = |rankings: Vec<&'a Ranking>| Band {
        heading: String::new(),
        columns: rankings.len(),
        panels: rankings
            .into_iter()
            .map(|one| {
                Some(Panel {
                    better: Some(words::better(one.metric)),
                    ..rows.panel(one, words::heading(one))
                })
            })
            .collect(),
    };
    let all = [vec![only], others.collect()];
    let all = all.into_iter().filter(|rankings| !rankings.is_empty());
    all.map(band).collect()
}

/// A panel for each condition: in a grid where two factors or more vary.
pub(super) fn bands<'a>(
    rows: &Rows<'a>,
    rankings: &[&'a Ranking],
    varied: &[(&str, Vec<&str>)],
) -> Vec<Band<'a>> {
    let headed = |one: &'a Ranking, names: &dyn Fn(&str) -> bool| {
        let its = one.condition.iter().filter(|(name, _)| names(name));
        condition(&its.map(|(a, b)| (a.clone(), b.clone())).collect())
    };
    let is_varied = |name: &str| varied.iter().any(|(other, _)| *other == name);
    let fits = |levels: &[&str]| levels.len() <= COLUMNS_MAX;
    let column = varied.iter().max_by_key(|(_, levels)| match fits(levels) {
        true => levels.len() as isize,
        false => -(levels.len() as isize),
    });
    let (Some((column, levels)), true) = (column, varied.len() > 1) else {
        let panels = rankings.iter();
        let panels = panels.map(|one| Some(rows.panel(one, headed(one, &is_varied))));
        return vec![Band {
            heading: String::new(),
            columns: match rankings.len() {
                2 | 4 => 2,
                _ => 3,
            },
            panels: panels.collect(),
        }];
    };
    let mut bands: Vec<Band<'a>> = Vec::new();
    for one in rankings {
        let heading = headed(one, &|name| is_varied(name) && name != *column);
        let at = bands.iter().position(|band| band.heading == heading);
        let at = at.unwrap_or_else(|| {
            bands.push(Band {
                heading: heading.clone(),
                columns: levels.len().min(COLUMNS_MAX),
                panels: levels.iter().map(|_| None).collect(),
            });
            bands.len() - 1
        });
        let level = one.condition.get(*column);
        let place = level.and_then(|level| levels.iter().position(|other| other == level));
        let panel = rows.panel(one, headed(one, &|name| name == *column));
        match place.map(|place| &mut bands[at].panels[place]) {
            Some(free @ None) => *free = Some(panel),
            _ => bands[at].panels.push(Some(panel)),
        }
    }
    bands
}
