//! The interval plot: every comparison's ratio, what does not matter, and the noise floor.

use verdict::text::{condition, fraction};
use verdict::{Analysis, Comparison, Metric, NoiseFloor};

use super::axis::{Scale, ratio_ticks};
use super::svg::{Anchor, Picture};
use crate::sentence::{self, change_of, shown_change};
use crate::units::shortened;

const WIDTH: f64 = 880.0;
const LEFT: f64 = 290.0;
const RIGHT: f64 = 690.0;
const ROW: f64 = 34.0;
const TOP: f64 = 14.0;

struct Estimate<'a> {
    name: &'a str,
    place: String,
    class: &'static str,
    series: usize,
    ratio: Option<f64>,
    interval: Option<(f64, f64)>,
    figure: Option<String>,
    word: &'static str,
}

/// One interval plot for each metric that anything is known of.
pub(crate) fn forests(analysis: &Analysis, matters: f64) -> String {
    Metric::ALL
        .into_iter()
        .filter_map(|metric| forest(analysis, metric, matters))
        .collect()
}

fn forest(analysis: &Analysis, metric: Metric, matters: f64) -> Option<String> {
    let comparisons = analysis.comparisons.iter().filter(|c| c.metric == metric);
    let mut rows: Vec<Estimate<'_>> = comparisons.map(compared).collect();
    if rows.is_empty() {
        return None;
    }
    let floors = analysis.noise_floor.iter().filter(|f| f.metric == metric);
    rows.extend(floors.map(noise));

    let delta = matters.max(0.0).ln_1p();
    let (low, high) = range(&rows, delta);
    let x = Scale::new(low, high, LEFT, RIGHT);
    let bottom = TOP + ROW * rows.len() as f64;
    let better = if metric.higher_is_better() {
        "more is better"
    } else {
        "less is better"
    };
    let title = format!("Change of {}, {better}", metric.words());
    let described: Vec<String> = rows.iter().map(Estimate::described).collect();
    let mut picture = Picture::new(
        &format!("forest-{}", metric.name()),
        WIDTH,
        &title,
        &described.join("; "),
    );

    let band = (x.place(-delta), x.place(delta));
    picture.rect("band", (band.0, TOP), (band.1 - band.0, bottom - TOP));
    for (value, label) in ratio_ticks(low, high) {
        let at = x.place(value);
        picture.line("grid", (at, TOP), (at, bottom));
        picture.text("tick", (at, bottom + 16.0), Anchor::Middle, &label);
    }
    picture.line("zero", (x.place(0.0), TOP), (x.place(0.0), bottom));
    for (i, row) in rows.iter().enumerate() {
        draw(&mut picture, row, TOP + ROW * (i as f64 + 0.5), x);
    }
    let legend = format!(
        "shaded: differences within {} do not matter; lines: {} intervals",
        fraction(matters),
        fraction(analysis.comparisons.first().map_or(0.95, |c| c.confidence))
    );
    picture.text("tick", (LEFT, bottom + 36.0), Anchor::Start, &legend);
    Some(format!(
        "<figure><figcaption>{title}</figcaption>\n{}</figure>\n",
        picture.finish(bottom + 46.0)
    ))
}

fn compared(c: &Comparison) -> Estimate<'_> {
    Estimate {
        name: &c.subject,
        place: condition(&c.condition),
        class: match c.verdict {
            verdict::Verdict::Faster => "v-faster",
            verdict::Verdict::Slower => "v-slower",
            verdict::Verdict::Same => "v-same",
            verdict::Verdict::Inconclusive => "v-inconclusive",
            verdict::Verdict::Invalid => "v-invalid",
        },
        series: 1,
        ratio: c.ratio,
        interval: c.interval(),
        figure: sentence::difference(c).or_else(|| c.ratio.map(|_| change_of(c))),
        word: c.verdict.word(),
    }
}

fn noise(f: &NoiseFloor) -> Estimate<'_> {
    let interval = f.low.zip(f.high);
    Estimate {
        name: "noise floor",
        place: condition(&f.condition),
        class: "v-noise",
        series: 3,
        ratio: Some(f.ratio),
        interval,
        figure: sentence::floor_difference(f).or_else(|| Some(shown_change(f.ratio, interval))),
        word: "baseline against itself",
    }
}

/// The range of log ratios shown: all estimates and intervals, but no interval that is so wide
/// that everything else would be a dot.
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

fn draw(picture: &mut Picture, row: &Estimate<'_>, y: f64, x: Scale) {
    let name = shortened(row.name, 34);
    if row.place.is_empty() {
        picture.text("label", (LEFT - 14.0, y + 4.0), Anchor::End, &name);
    } else {
        let place = shortened(&row.place, 44);
        picture.text("label", (LEFT - 14.0, y - 2.0), Anchor::End, &name);
        picture.text("tick", (LEFT - 14.0, y + 12.0), Anchor::End, &place);
    }
    if let Some((low, high)) = row.interval {
        let (low, high) = (low.ln(), high.ln());
        let (a, b) = (x.place(low), x.place(high));
        let class = format!("whisker {}", row.class);
        picture.line(&class, (a, y), (b, y));
        for (value, at, inward) in [(low, a, 6.0), (high, b, -6.0)] {
            if x.holds(value) {
                picture.line(&class, (at, y - 5.0), (at, y + 5.0));
            } else {
                // An arrow: the interval goes on beyond the picture.
                let head = [(at + inward, y - 5.0), (at, y), (at + inward, y + 5.0)];
                picture.polyline(&class, &head);
            }
        }
    }
    if let Some(ratio) = row.ratio {
        let class = format!("mark {}", row.class);
        picture.mark(
            row.series,
            &class,
            (x.place(ratio.ln()), y),
            &row.described(),
        );
    }
    let at = RIGHT + 14.0;
    match &row.figure {
        Some(figure) => {
            picture.text("figure", (at, y - 2.0), Anchor::Start, figure);
            picture.text("tick", (at, y + 12.0), Anchor::Start, row.word);
        }
        None => picture.text("figure", (at, y + 4.0), Anchor::Start, row.word),
    }
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
