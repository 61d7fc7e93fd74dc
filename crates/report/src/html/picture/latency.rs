//! Latency against offered rate: the main picture of latency.

use readings::RunHeader;
use readings::text::fraction;
use verdict::{Analysis, CurveRow, LatencyCurves, SubjectCurve};

use crate::html::page::PICTURE_STYLE;
use crate::html::picture::axis::{Scale, Tick, rate_ticks, time_ticks};
use crate::html::picture::svg::{Anchor, Picture, figure, legend, titled};
use crate::section::run::capitalised;
use verdict::words::{curve_legend, curve_point};

const WIDTH: f64 = 880.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 730.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 300.0;
/// The height of overloaded points, above the latencies, as they have none.
const OVER: f64 = 14.0;

/// The pictures of a condition: latency over the rate, and over the share of a subject's capacity.
pub(crate) fn latency(number: usize, curves: &LatencyCurves, colours: &[String]) -> String {
    let mut out = String::new();
    for (quantile, name) in [(0.99, "99th percentile"), (0.5, "median")] {
        let rates = Panel::of_rates(number, quantile, name);
        out.push_str(&rates.drawn(curves, colours).unwrap_or_default());
        let shares = Panel {
            id: format!("shares-{number}-{name}").replace(' ', "-"),
            what: format!("{name} of latency against the share of each one's own capacity"),
            axis: "share of its own capacity",
            rows: |one| &one.shares,
            x: |row| row.share.unwrap_or(0.0),
            ticks: |most| share_ticks(most),
            ..rates
        };
        out.push_str(&shares.drawn(curves, colours).unwrap_or_default());
    }
    out
}

/// The 99th percentile over the offered rate as a separate file with the colours of the page.
/// `None` without a curve.
pub fn curve_svg(header: &RunHeader, analysis: &Analysis) -> Option<String> {
    let curves = analysis.curves.first()?;
    let panel = Panel::of_rates(0, 0.99, "99th percentile");
    let (_, picture) = panel.picture(curves, &header.subjects)?;
    let inner = picture.strip_prefix("<svg ")?;
    let (head, body) = inner.split_once('>')?;
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" {head}>\n\
         <style>\n{PICTURE_STYLE}svg {{ background: var(--card); }}\n</style>\n{body}"
    ))
}

fn share_ticks(most: f64) -> Vec<Tick> {
    let step = if most > 0.6 { 0.2 } else { 0.1 };
    let ticks = (0..16).map(|number| f64::from(number) * step);
    ticks
        .take_while(|share| *share <= most)
        .map(|share| (share, fraction(share)))
        .collect()
}

struct Panel {
    id: String,
    what: String,
    axis: &'static str,
    quantile: f64,
    rows: fn(&SubjectCurve) -> &Vec<CurveRow>,
    x: fn(&CurveRow) -> f64,
    ticks: fn(f64) -> Vec<Tick>,
}

impl Panel {
    fn of_rates(number: usize, quantile: f64, name: &str) -> Self {
        Panel {
            id: format!("rates-{number}-{name}").replace(' ', "-"),
            what: format!("{name} of latency against offered rate"),
            axis: "offered requests/s",
            quantile,
            rows: |one| &one.rates,
            x: |row| row.rate_per_s,
            ticks: |most| rate_ticks(0.0, most),
        }
    }

    fn drawn(&self, curves: &LatencyCurves, colours: &[String]) -> Option<String> {
        let (title, picture) = self.picture(curves, colours)?;
        let names = curves.subjects.iter().map(|one| {
            let place = colours.iter().position(|name| *name == one.subject);
            (one.subject.as_str(), Some(place.unwrap_or(0)))
        });
        let caption = format!(
            "{} ({}; open marks: overloaded, no latency)",
            capitalised(&title),
            curve_legend(curves)
        );
        Some(figure(&caption, &(picture + &legend(names))))
    }

    /// The title and the picture as an SVG element.
    fn picture(&self, curves: &LatencyCurves, colours: &[String]) -> Option<(String, String)> {
        let subjects = || {
            let all = curves.subjects.iter();
            all.map(|one| (one, (self.rows)(one)))
                .filter(|(_, rows)| !rows.is_empty())
        };
        let values = || {
            let rows = subjects().flat_map(|(_, rows)| rows.iter());
            rows.filter_map(|row| row.latency(self.quantile))
        };
        let ends = values().flat_map(|one| {
            // The points decide the height; a band may leave the picture.
            let (low, high) = (one.value / 4.0, one.value * 4.0);
            [
                one.low.unwrap_or(one.value).max(low).log10(),
                one.high.unwrap_or(one.value).min(high).log10(),
            ]
        });
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |range, end| {
            (range.0.min(end), range.1.max(end))
        });
        if !low.is_finite() || !high.is_finite() {
            return None;
        }
        let most = subjects().flat_map(|(_, rows)| rows.iter().map(self.x));
        let most = most.fold(0.0, f64::max) * 1.02;
        let x = Scale::new(0.0, most, LEFT, RIGHT);
        let y = Scale::new(low - 0.05, high + 0.05, BOTTOM, TOP);
        let title = titled(&self.what, &curves.condition);
        let hints = subjects()
            .flat_map(|(one, rows)| rows.iter().map(|row| curve_point(&one.subject, row)));
        let hints: Vec<String> = hints.collect();
        let mut picture = Picture::new(&self.id, WIDTH, &title, &hints.join("; "));
        picture.rows(&y, &time_ticks(low - 0.05, high + 0.05), (LEFT, RIGHT));
        picture.columns(&x, &(self.ticks)(most), (TOP, BOTTOM));
        let middle = (LEFT + RIGHT) / 2.0;
        picture.text("tick", (middle, BOTTOM + 32.0), Anchor::Middle, self.axis);
        let is_over = |row: &CurveRow| row.overloaded > 0;
        if subjects().any(|(_, rows)| rows.iter().any(is_over)) {
            picture.text("tick", (LEFT - 6.0, OVER + 4.0), Anchor::End, "overload");
        }
        let mut names = Vec::new();
        for (one, rows) in subjects() {
            let colour = colours.iter().position(|name| *name == one.subject);
            let colour = colour.unwrap_or(0);
            let end = self.curve(&mut picture, (&x, &y), (one, rows), colour);
            names.push((end, colour, one.subject.as_str(), one.subject.as_str()));
        }
        let free = picture.names(RIGHT + 18.0, names);
        let height = (BOTTOM + 40.0).max(free + 10.0);
        Some((title, picture.finish(height)))
    }

    /// Draws band, line and marks; returns the height at which the line ends.
    fn curve(
        &self,
        picture: &mut Picture,
        (x, y): (&Scale, &Scale),
        (one, rows): (&SubjectCurve, &[CurveRow]),
        colour: usize,
    ) -> f64 {
        let at = |row: &CurveRow| x.place((self.x)(row));
        let shown = rows
            .iter()
            .filter_map(|row| Some((row, row.latency(self.quantile)?)));
        let shown: Vec<_> = shown.collect();
        let band = shown
            .iter()
            .filter_map(|(row, us)| Some((row, us.low?, us.high?)));
        let band: Vec<_> = band.collect();
        let upper = band
            .iter()
            .map(|(row, _, high)| (at(row), y.place(high.log10())));
        let lower = band.iter().rev();
        let lower = lower.map(|(row, low, _)| (at(row), y.place(low.log10())));
        let outline: Vec<(f64, f64)> = upper.chain(lower).collect();
        if outline.len() > 2 {
            picture.polyline(&format!("spread l{}", colour % 8), &outline);
        }
        let line = shown
            .iter()
            .map(|(row, us)| (at(row), y.place(us.value.log10())));
        let line: Vec<(f64, f64)> = line.collect();
        picture.polyline(&format!("curve l{} d{}", colour % 8, colour % 4), &line);
        for ((row, _), place) in shown.iter().zip(&line) {
            let class = format!("mark c{}", colour % 8);
            picture.mark(colour, &class, *place, &curve_point(&one.subject, row));
        }
        for row in rows.iter().filter(|row| row.overloaded > 0) {
            let class = format!("mark open c{}", colour % 8);
            let place = (at(row), OVER);
            picture.mark(colour, &class, place, &curve_point(&one.subject, row));
        }
        line.last().map_or(TOP, |(_, height)| *height)
    }
}
