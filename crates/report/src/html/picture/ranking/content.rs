//! What is drawn: which rankings, in which panels.

use readings::RunHeader;
use verdict::{Analysis, Bound, Metric, Ranking, of_answer, primary};

use super::panels::{Rows, bands, factors, of_one};
use super::words::{self, Notes};

/// The most rows of a panel, and of all panels together.
pub(super) const ROWS_MAX: usize = 60;
const ROWS_OF_ALL_MAX: usize = 360;
/// Where values differ by a larger factor, the scale is logarithmic.
const LINEAR_MAX: f64 = 20.0;
/// Where the largest values of two panels differ by a larger factor, each has its own scale.
const SHARED_MAX: f64 = 5.0;
/// An interval is drawn at most so many times as long as the largest value of its scale.
const FARTHEST: f64 = 1.8;

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

#[derive(Debug)]
pub(super) struct Panel<'a> {
    pub heading: String,
    /// Which way is better, where the heading is the metric.
    pub better: Option<&'static str>,
    pub metric: Metric,
    pub rows: Vec<Row<'a>>,
    pub is_logarithmic: bool,
}

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
        let all = of_answer(analysis);
        let metric = primary(analysis)?;
        let of = |metric: Metric| {
            let all = all.iter().copied();
            all.filter(move |one| one.metric == metric)
        };
        let rows = Rows::of(header, analysis);
        let main: Vec<&Ranking> = of(metric).collect();
        let subjects = main.iter().map(|one| one.rows.len()).max()?.min(ROWS_MAX);
        let panels_max = (ROWS_OF_ALL_MAX / subjects.max(1)).max(1);
        let (shown, left_out) = main.split_at(main.len().min(panels_max));
        let (shared, varied) = factors(shown);
        let (lead, bands) = match shown {
            [only] => (None, of_one(&rows, only, &of)),
            several => {
                let rate_per_s = several[0].rate_per_s;
                let is_one_rate = several.iter().all(|one| one.rate_per_s == rate_per_s);
                let first = Ranking {
                    rate_per_s: rate_per_s.filter(|_| is_one_rate),
                    ..several[0].clone()
                };
                let lead = (words::heading(&first), words::better(metric));
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
            is_bound: drawn().any(|row| row.is_limited),
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
