//! What is drawn: which rankings, in which panels.

use std::collections::HashSet;

use readings::text::condition;
use readings::{Condition, RunHeader};
use verdict::{Analysis, Bound, Metric, Ranked, Ranking};

use super::words::{self, Notes};

/// The most rows of a panel, and of all panels together.
const ROWS_MAX: usize = 60;
const ROWS_OF_ALL_MAX: usize = 360;
/// The most subjects with a colour each.
const COLOURS: usize = 8;
/// The most columns.
const COLUMNS_MAX: usize = 4;
/// Where values differ by a larger factor, the scale is logarithmic.
const LINEAR_MAX: f64 = 20.0;
/// Where the largest values of two panels differ by a larger factor, each has its own scale.
const SHARED_MAX: f64 = 5.0;
/// An interval is drawn at most so many times as long as the largest value of its scale.
const FARTHEST: f64 = 1.8;

/// The whole picture.
#[derive(Debug)]
pub(super) struct Content<'a> {
    pub title: &'a str,
    /// What all panels show, and which way is better; absent where each panel says it.
    pub lead: Option<(String, &'static str)>,
    pub notes: String,
    pub source: String,
    pub description: String,
    /// Panels in rows, from the top.
    pub bands: Vec<Band<'a>>,
    /// Whether all panels have one scale.
    pub shares_scale: bool,
}

/// Panels of one level, or of all.
#[derive(Debug)]
pub(super) struct Band<'a> {
    pub heading: String,
    pub columns: usize,
    /// In the order of the columns; absent where the condition has no ranking.
    pub panels: Vec<Option<Panel<'a>>>,
}

/// A ranking.
#[derive(Debug)]
pub(super) struct Panel<'a> {
    pub heading: String,
    /// Which way is better, where the heading is the metric.
    pub better: Option<&'static str>,
    pub metric: Metric,
    pub rows: Vec<Row<'a>>,
    pub is_logarithmic: bool,
}

/// A subject.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub subject: &'a str,
    pub place: String,
    pub value: f64,
    /// The ends of the interval that are known.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Where the other end is open.
    pub bound: Option<Bound>,
    /// Whether the client was the bottleneck, so that the value is a lower bound.
    pub is_limited: bool,
    pub figure: String,
    pub change: Option<String>,
    pub colour: usize,
}

impl<'a> Content<'a> {
    /// `None` without a ranking.
    pub fn of(header: &'a RunHeader, analysis: &'a Analysis) -> Option<Self> {
        let all = &analysis.rankings;
        let metric = match all.iter().any(|one| one.metric == Metric::RequestsPerS) {
            true => Metric::RequestsPerS,
            false => all.first()?.metric,
        };
        let of = |metric: Metric| all.iter().filter(move |one| one.metric == metric);
        let rows = Rows::of(header, analysis);
        let main: Vec<&Ranking> = of(metric).collect();
        let subjects = main.iter().map(|one| one.rows.len()).max()?.min(ROWS_MAX);
        let panels_max = (ROWS_OF_ALL_MAX / subjects.max(1)).max(1);
        let (shown, left_out) = main.split_at(main.len().min(panels_max));
        let (shared, varied) = factors(shown);
        let (lead, bands) = match shown {
            [only] => (None, of_one(&rows, only, &of)),
            several => {
                let lead = (words::heading(several[0]), words::better(metric));
                (Some(lead), bands(&rows, several, &varied))
            }
        };
        let mut content = Self {
            title: &header.title,
            lead,
            notes: String::new(),
            source: words::source(header.started_unix_s, &header.weigh_version),
            description: String::new(),
            bands,
            shares_scale: false,
        };
        content.choose_scales(shown.len() > 1);
        let most = content.panels().map(Panel::largest).fold(0.0, f64::max);
        let drawn = || content.panels().flat_map(|panel| &panel.rows);
        let has_interval = drawn().any(|row| row.low.is_some() || row.high.is_some());
        let rankings = || shown.iter().flat_map(|one| &one.rows);
        let open = rankings().map(|row| row.places).filter(|(a, b)| a != b);
        let confidence = analysis.comparisons.first().map_or(0.95, |c| c.confidence);
        let notes = Notes {
            shared,
            blocks: analysis.stage.blocks_done,
            baseline: &header.baseline,
            confidence: has_interval.then_some(confidence),
            open_places: open.min_by_key(|(best, worst)| (worst - best, *best)),
            is_bound: drawn().any(|row| row.bound.is_some() || row.is_limited),
            is_cut: content.panels().any(|panel| {
                let most = match content.shares_scale {
                    true => most,
                    false => panel.largest(),
                };
                let mut rows = panel.rows.iter();
                rows.any(|row| row.bound.is_none() && row.goes_on(most))
            }),
            own_scales: shown.len() > 1 && !content.shares_scale,
            is_logarithmic: content.panels().any(|panel| panel.is_logarithmic),
            subjects_left_out: main.iter().map(|one| one.rows.len()).max()? - subjects,
            conditions_left_out: left_out.len(),
        };
        let notes = notes.text();
        content.description = content.described();
        content.notes = notes;
        Some(content)
    }

    pub fn panels(&self) -> impl Iterator<Item = &Panel<'a>> {
        self.bands
            .iter()
            .flat_map(|band| band.panels.iter().flatten())
    }

    /// One scale where the panels show one metric and the largest bars are of one order.
    fn choose_scales(&mut self, is_of_one_metric: bool) {
        let largest: Vec<f64> = self.panels().map(Panel::largest).collect();
        let (most, least) = range(largest.iter().copied());
        self.shares_scale = is_of_one_metric && most <= SHARED_MAX * least;
        let values = self
            .panels()
            .flat_map(|panel| &panel.rows)
            .map(|row| row.value);
        let (most, least) = range(values);
        let all = most > LINEAR_MAX * least;
        let shares_scale = self.shares_scale;
        for panel in self
            .bands
            .iter_mut()
            .flat_map(|band| band.panels.iter_mut().flatten())
        {
            let (most, least) = range(panel.rows.iter().map(|row| row.value));
            panel.is_logarithmic = match shares_scale {
                true => all,
                false => most > LINEAR_MAX * least,
            };
        }
    }

    /// The rows as text, as far as one can listen to them.
    fn described(&self) -> String {
        const ROWS_TOLD: usize = 60;
        let mut left = ROWS_TOLD;
        let mut parts = Vec::new();
        if let Some((what, better)) = &self.lead {
            parts.push(format!("{what}, {better}"));
        }
        for band in &self.bands {
            for panel in band.panels.iter().flatten() {
                let told = panel.rows.len().min(left);
                left -= told;
                let rows = panel.rows[..told].iter();
                let rows = rows.map(|row| {
                    words::row(&row.place, row.subject, &row.figure, row.change.as_deref())
                });
                let rows: Vec<String> = rows.collect();
                let headings = [band.heading.as_str(), panel.heading.as_str(), ""];
                let headings: Vec<&str> = headings.into_iter().filter(|h| !h.is_empty()).collect();
                if told > 0 {
                    let separator = if headings.is_empty() { "" } else { ": " };
                    parts.push(format!(
                        "{}{separator}{}",
                        headings.join(", "),
                        rows.join("; ")
                    ));
                }
            }
        }
        parts.join(". ")
    }
}

impl Panel<'_> {
    fn largest(&self) -> f64 {
        range(self.rows.iter().map(|row| row.value)).0
    }
}

impl Row<'_> {
    pub fn is_at_least(&self) -> bool {
        self.bound == Some(Bound::AtLeast)
    }

    /// The interval's ends, none of them too far to see anything else. `most` is the largest value of
    /// the scale.
    pub fn ends(&self, most: f64) -> (Option<f64>, Option<f64>) {
        (self.low, self.high.map(|high| high.min(most * FARTHEST)))
    }

    /// Whether the interval goes on beyond what is drawn.
    pub fn goes_on(&self, most: f64) -> bool {
        self.high.is_some_and(|high| high > most * FARTHEST)
    }
}

/// The largest and the smallest.
pub(super) fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((0.0, f64::INFINITY), |(most, least), value| {
        (f64::max(most, value), f64::min(least, value))
    })
}

/// What rows need besides their ranking.
struct Rows<'a> {
    subjects: &'a [String],
    /// Subjects under conditions whose throughput the client limited.
    limited: HashSet<(&'a Condition, &'a str)>,
}

impl<'a> Rows<'a> {
    fn of(header: &'a RunHeader, analysis: &'a Analysis) -> Self {
        let limited = analysis.table.iter().filter(|row| row.at_least);
        Self {
            subjects: &header.subjects,
            limited: limited
                .map(|row| (&row.condition, row.subject.as_str()))
                .collect(),
        }
    }

    fn panel(&self, ranking: &'a Ranking, heading: String) -> Panel<'a> {
        let baseline = ranking.rows.iter().find(|row| row.is_baseline);
        let baseline = baseline.map(|row| row.value);
        let rows = ranking.rows.iter().take(ROWS_MAX);
        Panel {
            heading,
            better: None,
            metric: ranking.metric,
            rows: rows.map(|row| self.row(ranking, row, baseline)).collect(),
            is_logarithmic: false,
        }
    }

    fn row(&self, ranking: &'a Ranking, row: &'a Ranked, baseline: Option<f64>) -> Row<'a> {
        let is_limited = row.bound == Some(Bound::AtLeast)
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
            change: words::change(row, baseline),
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
fn factors<'a>(rankings: &[&'a Ranking]) -> (Condition, Vec<(&'a str, Vec<&'a str>)>) {
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
fn of_one<'a, I: Iterator<Item = &'a Ranking>>(
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
fn bands<'a>(
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
