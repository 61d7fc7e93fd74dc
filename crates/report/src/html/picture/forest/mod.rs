//! The interval plot: a row for every comparison with its blocks, the differences that do not
//! matter, and the noise floor. Names and figures are text of the page, so that none is cut off.
//!
//! What is drawn on the axis is a ratio or, of figures of events, an absolute difference: what the
//! verdict rests on.

mod differences;
mod ratios;

use readings::text::condition;
use verdict::{Analysis, Comparison, Metric, NoiseFloor, Verdict};

use crate::html::picture::axis::{Scale, Tick};
use crate::html::picture::fluid_svg::FluidSvg;
use crate::html::picture::svg::{Anchor, escaped};
use verdict::words::verdict_word;

const HEIGHT: f64 = 38.0;
/// The most blocks that are drawn as dots; more could not be told apart.
const DOTS_MAX: usize = 60;
/// An interval reaches at most so many times as far as the farthest estimate. A wider one would
/// shrink everything else to a dot, and goes on beyond the edge.
const FARTHEST: f64 = 3.0;
/// A letter of a tick's label in per cent of the width of an axis, in a window of 390 px.
const LETTER: f64 = 2.7;

/// One interval plot for each metric with a comparison.
pub(crate) fn forests(analysis: &Analysis, matters: f64) -> String {
    let each = Metric::ALL.into_iter().map(|metric| {
        let plot = match metric.is_of_events() {
            true => differences::plot(analysis, metric),
            false => ratios::plot(analysis, metric, matters),
        };
        plot.map_or_else(String::new, |plot| plot.html(metric))
    });
    each.collect()
}

/// An interval plot. Values are those of its axis: log ratios, or differences in a unit.
struct Plot<'a> {
    rows: Vec<Row<'a>>,
    /// The first words of the caption: the quantity on the axis.
    what: String,
    shaded: String,
    /// The confidence level of the intervals, as text.
    confidence: String,
    /// The axis extends at least this far on both sides of zero.
    half_range_min: f64,
    ticks: fn(f64, f64) -> Vec<Tick>,
}

#[derive(Default)]
struct Row<'a> {
    name: &'a str,
    /// The link to the figures behind it.
    proof: Option<String>,
    place: String,
    class: &'static str,
    series: usize,
    estimate: Option<f64>,
    /// Infinite where one end is not known: then the other is a bound.
    interval: Option<(f64, f64)>,
    /// Whether the lower and the upper end are censored: the true end may lie farther out.
    is_censored: (bool, bool),
    /// The smallest difference that matters.
    matters: Option<f64>,
    blocks: Vec<f64>,
    figure: Option<String>,
    tone: &'static str,
    word: String,
}

impl<'a> Row<'a> {
    /// The row of a comparison without its figures.
    fn of_comparison(number: usize, c: &'a Comparison) -> Self {
        Self {
            name: &c.subject,
            proof: Some(crate::html::table::proof::id(number)),
            place: condition(&c.condition),
            class: match c.verdict {
                Verdict::Faster => "v-faster",
                Verdict::Slower => "v-slower",
                Verdict::Same => "v-same",
                Verdict::Inconclusive => "v-inconclusive",
                Verdict::Invalid => "v-invalid",
            },
            series: 1,
            tone: c.verdict.word(),
            word: verdict_word(c),
            ..Self::default()
        }
    }

    /// The row of a noise floor without its figures.
    fn of_noise(floor: &'a NoiseFloor) -> Self {
        Self {
            name: "noise floor",
            place: condition(&floor.condition),
            class: "v-noise",
            series: 3,
            tone: "noise",
            word: "baseline against itself".to_owned(),
            ..Self::default()
        }
    }

    fn has_unknown_end(&self) -> bool {
        let is_bound = |(low, high): (f64, f64)| low.is_infinite() || high.is_infinite();
        self.interval
            .is_some_and(|ends| is_bound(ends) || self.is_censored != (false, false))
    }

    /// `balance connections=96: -31% [-33%, -29%], slower`.
    fn described(&self) -> String {
        let figure = self.figure.as_ref().map(|f| format!("{f}, "));
        format!(
            "{} {}: {}{}",
            self.name,
            self.place,
            figure.unwrap_or_default(),
            self.word
        )
    }

    fn draw(&self, x: Scale, ticks: &[Tick]) -> String {
        let middle = HEIGHT / 2.0;
        let mut svg = FluidSvg::new(HEIGHT);
        if let Some(matters) = self.matters {
            svg.band(x.place(-matters), x.place(matters));
        }
        for (value, _) in ticks {
            svg.column("grid", x.place(*value));
        }
        svg.column("zero", x.place(0.0));
        if self.blocks.len() <= DOTS_MAX {
            for value in self.blocks.iter().filter(|value| x.holds(**value)) {
                svg.dot(self.class, (x.place(*value), middle - 10.0));
            }
        }
        if let Some((low, high)) = self.interval {
            let (a, b) = (x.place(low), x.place(high));
            let class = format!("whisker {}", self.class);
            svg.line(&class, (a, middle), (b, middle));
            let ends = [
                (low, a, self.is_censored.0, true),
                (high, b, self.is_censored.1, false),
            ];
            for (value, at, is_censored, left) in ends {
                match x.holds(value) && !is_censored {
                    true => svg.line(&class, (at, middle - 5.0), (at, middle + 5.0)),
                    false => svg.arrow(&class, (at, middle), left),
                }
            }
        }
        if let Some(estimate) = self.estimate {
            let class = format!("mark {}", self.class);
            let at = (x.place(estimate), middle);
            svg.mark(self.series, &class, at, &self.described());
        }
        svg.finish("", &self.described())
    }
}

impl Plot<'_> {
    fn html(&self, metric: Metric) -> String {
        let (low, high) = self.range();
        let x = Scale::new(low, high, 0.0, 100.0);
        let ticks = (self.ticks)(low, high);
        let has_picture = self.rows.iter().any(|row| row.estimate.is_some());
        let better = match metric.higher_is_better() {
            true => "more is better",
            false => "less is better",
        };
        let mut caption = format!("{}, {better}", self.what);
        if has_picture {
            caption.push_str(&format!(" ({})", self.legend()));
        }
        let drawn = self.rows.iter().map(|row| {
            let picture = match has_picture {
                true => row.draw(x, &ticks),
                false => "<span class=\"gap\"></span>\n".to_owned(),
            };
            row.html(&picture)
        });
        let drawn: String = drawn.collect();
        let axis = match has_picture {
            true => axis(x, &ticks),
            false => String::new(),
        };
        format!(
            "<figure id=\"forest-{}\"><figcaption>{}</figcaption>\n<div class=\"rows\">\n\
             {drawn}{axis}</div>\n</figure>\n",
            metric.name(),
            escaped(&caption)
        )
    }

    /// The legend: only the elements that occur.
    fn legend(&self) -> String {
        let has = |is_there: fn(&Row<'_>) -> bool| self.rows.iter().any(is_there);
        let mut parts = vec!["dots: blocks".to_owned()];
        if has(|row| row.interval.is_some()) {
            parts.push(format!("lines: {} intervals", self.confidence));
        }
        if has(|row| row.has_unknown_end()) {
            parts.push("arrows: the interval goes on".to_owned());
        }
        if has(|row| row.matters.is_some()) {
            parts.push(format!("shaded: {}", self.shaded));
        }
        parts.join("; ")
    }

    /// The range shown: all estimates and intervals, except those that go too far.
    fn range(&self) -> (f64, f64) {
        let matters = self.rows.iter().filter_map(|row| row.matters);
        let matters = matters.fold(0.0, f64::max);
        let estimates = self.rows.iter().filter_map(|row| row.estimate);
        let most = FARTHEST
            * estimates
                .map(f64::abs)
                .fold(matters.max(self.half_range_min), f64::max);
        let (mut low, mut high) = (-1.4 * matters, 1.4 * matters);
        for row in &self.rows {
            let ends = row.interval.map(|(low, high)| [low, high]);
            let ends = ends.into_iter().flatten().filter(|end| end.is_finite());
            for value in row.estimate.into_iter().chain(ends) {
                let value = value.clamp(-most, most);
                low = low.min(value);
                high = high.max(value);
            }
        }
        let margin = 0.06 * (high - low).max(self.half_range_min / 2.0);
        (low - margin, high + margin)
    }
}

impl Row<'_> {
    fn html(&self, picture: &str) -> String {
        let name = escaped(self.name);
        let name = match &self.proof {
            Some(id) => format!("<a href=\"#{id}\">{name}</a>"),
            None => name,
        };
        let place = match self.place.is_empty() {
            true => String::new(),
            false => format!("<small>{}</small>", escaped(&self.place)),
        };
        let figure = self.figure.as_deref().unwrap_or("no figure");
        format!(
            "<div class=\"who\">{name}{place}</div>\n{picture}<div class=\"fig\">{}\
             <small class=\"word {}\">{}</small></div>\n",
            escaped(figure),
            self.tone,
            escaped(&self.word)
        )
    }
}

/// The labels of the ticks; those at the edges are inside. One that would overlap another on a
/// telephone is left out, the farther one from zero.
fn axis(x: Scale, ticks: &[Tick]) -> String {
    let mut nearest: Vec<&Tick> = ticks.iter().collect();
    nearest.sort_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
    let mut shown: Vec<(f64, f64)> = Vec::new();
    let mut svg = FluidSvg::new(22.0);
    for (value, label) in nearest {
        let at = x.place(*value);
        let width = label.chars().count() as f64 * LETTER;
        let (anchor, from) = match at {
            at if at < 5.0 => (Anchor::Start, at),
            at if at > 95.0 => (Anchor::End, at - width),
            _ => (Anchor::Middle, at - width / 2.0),
        };
        let to = from + width;
        if shown
            .iter()
            .all(|(a, b)| to + LETTER < *a || from - LETTER > *b)
        {
            shown.push((from, to));
            svg.text((at, 14.0), anchor, label);
        }
    }
    format!(
        "<span class=\"gap\"></span>\n{}<span class=\"gap\"></span>\n",
        svg.finish("axis", "")
    )
}

/// The comparisons of a metric with their numbers, and its noise floors.
struct OfMetric<'a> {
    comparisons: Vec<(usize, &'a Comparison)>,
    floors: Vec<&'a NoiseFloor>,
}

impl<'a> OfMetric<'a> {
    /// Nothing without a comparison.
    fn find(analysis: &'a Analysis, metric: Metric) -> Option<Self> {
        let comparisons = analysis.comparisons.iter().enumerate();
        let comparisons: Vec<_> = comparisons.filter(|(_, c)| c.metric == metric).collect();
        let floors = analysis.noise_floor.iter().filter(|f| f.metric == metric);
        (!comparisons.is_empty()).then(|| Self {
            comparisons,
            floors: floors.collect(),
        })
    }
}

#[cfg(test)]
mod tests;
