//! The interval plot: the ratio of every comparison with its blocks, the differences that do not
//! matter, and the noise floor. Names and figures are text of the page, so that none is cut off.

use verdict::text::{condition, fraction};
use verdict::{Analysis, BlockRatio, Comparison, Metric, NoiseFloor};

use super::axis::{Scale, ratio_ticks};
use super::fluid_svg::FluidSvg;
use super::svg::{Anchor, escaped};
use crate::sentence::{self, change_of, shown_change, verdict_word};

const HEIGHT: f64 = 38.0;
/// The most blocks that are drawn as dots; more could not be told apart.
const DOTS_MAX: usize = 60;

struct Estimate<'a> {
    name: &'a str,
    /// The link to the figures behind it.
    proof: Option<String>,
    place: String,
    class: &'static str,
    series: usize,
    ratio: Option<f64>,
    interval: Option<(f64, f64)>,
    by_block: &'a [BlockRatio],
    figure: Option<String>,
    tone: &'static str,
    word: String,
}

/// One interval plot for each metric with a comparison.
pub(crate) fn forests(analysis: &Analysis, matters: f64) -> String {
    Metric::ALL
        .into_iter()
        .filter_map(|metric| forest(analysis, metric, matters))
        .collect()
}

fn forest(analysis: &Analysis, metric: Metric, matters: f64) -> Option<String> {
    let comparisons = analysis.comparisons.iter().enumerate();
    let comparisons = comparisons.filter(|(_, c)| c.metric == metric);
    let mut rows: Vec<Estimate<'_>> = comparisons.map(|(i, c)| compared(i, c)).collect();
    if rows.is_empty() {
        return None;
    }
    let floors = analysis.noise_floor.iter().filter(|f| f.metric == metric);
    rows.extend(floors.map(noise));

    let delta = matters.max(0.0).ln_1p();
    let (low, high) = range(&rows, delta);
    let x = Scale::new(low, high, 0.0, 100.0);
    let better = if metric.higher_is_better() {
        "more is better"
    } else {
        "less is better"
    };
    let mut caption = format!("Change of {}, {better}", metric.words());
    let has_picture = rows.iter().any(|row| row.ratio.is_some());
    if has_picture {
        caption.push_str(&format!(
            " (dots: blocks; lines: {} intervals; shaded: differences within {} do not matter)",
            fraction(analysis.comparisons.first().map_or(0.95, |c| c.confidence)),
            fraction(matters)
        ));
    }
    let ticks = ratio_ticks(low, high);
    let drawn: String = rows
        .iter()
        .map(|row| drawn(row, x, delta, &ticks, has_picture))
        .collect();
    let axis = match has_picture {
        true => axis(x, &ticks),
        false => String::new(),
    };
    Some(format!(
        "<figure id=\"forest-{}\"><figcaption>{}</figcaption>\n<div class=\"rows\">\n{drawn}{axis}\
         </div>\n</figure>\n",
        metric.name(),
        escaped(&caption)
    ))
}

fn compared(number: usize, c: &Comparison) -> Estimate<'_> {
    Estimate {
        name: &c.subject,
        proof: Some(super::proof::id(number)),
        place: condition(&c.condition),
        class: match c.verdict {
            verdict::Verdict::Faster => "v-faster",
            verdict::Verdict::Slower => "v-slower",
            verdict::Verdict::Same => "v-same",
            verdict::Verdict::Inconclusive => "v-inconclusive",
            verdict::Verdict::Invalid => "v-invalid",
        },
        series: 1,
        ratio: c.ratio.filter(|ratio| *ratio > 0.0),
        interval: c.interval().filter(|(low, _)| *low > 0.0),
        by_block: &c.by_block,
        figure: sentence::difference(c).or_else(|| c.ratio.map(|_| change_of(c))),
        tone: c.verdict.word(),
        word: verdict_word(c),
    }
}

fn noise(f: &NoiseFloor) -> Estimate<'_> {
    let interval = f.low.zip(f.high);
    Estimate {
        name: "noise floor",
        proof: None,
        place: condition(&f.condition),
        class: "v-noise",
        series: 3,
        ratio: Some(f.ratio).filter(|ratio| *ratio > 0.0),
        interval: interval.filter(|(low, _)| *low > 0.0),
        by_block: &f.by_block,
        figure: sentence::floor_difference(f).or_else(|| Some(shown_change(f.ratio, interval))),
        tone: "noise",
        word: "baseline against itself".to_owned(),
    }
}

/// The range of log ratios shown: all estimates and intervals, except intervals so wide that
/// everything else would shrink to a dot.
fn range(rows: &[Estimate<'_>], delta: f64) -> (f64, f64) {
    let estimates = rows.iter().filter_map(|r| r.ratio).map(|r| r.ln().abs());
    let most = 3.0 * estimates.fold(delta.max(0.02), f64::max);
    let (mut low, mut high) = (-1.4 * delta, 1.4 * delta);
    for row in rows {
        let ends = row.interval.map(|(a, b)| [a, b]);
        for value in row.ratio.into_iter().chain(ends.into_iter().flatten()) {
            let value = value.ln().clamp(-most, most);
            low = low.min(value);
            high = high.max(value);
        }
    }
    let margin = 0.06 * (high - low).max(0.01);
    (low - margin, high + margin)
}

fn drawn(
    row: &Estimate<'_>,
    x: Scale,
    delta: f64,
    ticks: &[super::axis::Tick],
    has_picture: bool,
) -> String {
    let name = escaped(row.name);
    let name = match &row.proof {
        Some(id) => format!("<a href=\"#{id}\">{name}</a>"),
        None => name,
    };
    let place = match row.place.is_empty() {
        true => String::new(),
        false => format!("<small>{}</small>", escaped(&row.place)),
    };
    let figure = row.figure.as_deref().unwrap_or("no figure");
    let picture = match has_picture {
        true => bar(row, x, delta, ticks),
        false => "<span class=\"gap\"></span>\n".to_owned(),
    };
    format!(
        "<div class=\"who\">{name}{place}</div>\n{picture}<div class=\"fig\">{}\
         <small class=\"word {}\">{}</small></div>\n",
        escaped(figure),
        row.tone,
        escaped(&row.word)
    )
}

fn bar(row: &Estimate<'_>, x: Scale, delta: f64, ticks: &[super::axis::Tick]) -> String {
    let middle = HEIGHT / 2.0;
    let mut svg = FluidSvg::new(HEIGHT);
    svg.band(x.place(-delta), x.place(delta));
    for (value, _) in ticks {
        svg.column("grid", x.place(*value));
    }
    svg.column("zero", x.place(0.0));
    if row.by_block.len() <= DOTS_MAX {
        let ratios = row.by_block.iter().map(|block| block.ratio);
        for value in ratios.filter(|ratio| *ratio > 0.0).map(f64::ln) {
            if x.holds(value) {
                svg.dot(row.class, (x.place(value), middle - 10.0));
            }
        }
    }
    if let Some((low, high)) = row.interval {
        let (low, high) = (low.ln(), high.ln());
        let (a, b) = (x.place(low), x.place(high));
        let class = format!("whisker {}", row.class);
        svg.line(&class, (a, middle), (b, middle));
        for (value, at, left) in [(low, a, true), (high, b, false)] {
            match x.holds(value) {
                true => svg.line(&class, (at, middle - 5.0), (at, middle + 5.0)),
                false => svg.arrow(&class, (at, middle), left),
            }
        }
    }
    if let Some(ratio) = row.ratio {
        let class = format!("mark {}", row.class);
        let at = (x.place(ratio.ln()), middle);
        svg.mark(row.series, &class, at, &row.described());
    }
    svg.finish("", &row.described())
}

/// The labels of the ticks; those at the edges are inside.
fn axis(x: Scale, ticks: &[super::axis::Tick]) -> String {
    let mut svg = FluidSvg::new(22.0);
    for (value, label) in ticks {
        let at = x.place(*value);
        let anchor = match at {
            at if at < 5.0 => Anchor::Start,
            at if at > 95.0 => Anchor::End,
            _ => Anchor::Middle,
        };
        svg.text((at, 14.0), anchor, label);
    }
    format!(
        "<span class=\"gap\"></span>\n{}<span class=\"gap\"></span>\n",
        svg.finish("axis", "")
    )
}

impl Estimate<'_> {
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
}
