//! Latency over quantile, on a quantile scale that gives each nine the same space.

use readings::Condition;
use readings::text::once;
use verdict::{Analysis, Distribution, SubjectRow};

use crate::html::picture::axis::{Scale, quantile_ticks, time_ticks};
use crate::html::picture::svg::{Picture, figure, legend, titled};
use readings::text::compact::time;

const WIDTH: f64 = 880.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 740.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 300.0;
/// How many answers must lie beyond a quantile for it to be drawn.
const RESOLVED: u64 = 100;
/// The place of the 98th percentile, where a curve ends whose 99th is not resolved.
const P98: f64 = 1.698_97;

struct Curve<'a> {
    name: &'a str,
    colour: usize,
    /// (-log10(1 - quantile), log10 us) up to where the quantiles are resolved.
    points: Vec<(f64, f64)>,
    summary: String,
}

/// One picture for each condition: the distribution of each subject's response latency.
pub(crate) fn curves(analysis: &Analysis, subjects: &[String]) -> String {
    let conditions = once(analysis.distributions.iter().map(|one| &one.condition));
    let each = conditions.into_iter().enumerate();
    each.filter_map(|(number, place)| {
        let all = analysis.distributions.iter();
        let here: Vec<&Distribution> = all.filter(|one| one.condition == *place).collect();
        let colour = |one: &Distribution| subjects.iter().position(|s| *s == one.subject);
        let has_p99 = |one: &Distribution| {
            let mut rows = analysis.table.iter();
            let is_its = |row: &&SubjectRow| row.condition == *place && row.subject == one.subject;
            rows.find(is_its)
                .is_some_and(|row| row.latency_us_p99.is_some())
        };
        let curves = here.iter().filter_map(|one| {
            // No further than the table goes, which has latencies of open loops.
            let is_short = one.is_of_open_loop && !has_p99(one);
            let last = if is_short { P98 } else { f64::INFINITY };
            curve(one, colour(one)?, last)
        });
        let curves: Vec<Curve<'_>> = curves.collect();
        let how = match here.iter().any(|one| one.is_of_open_loop) {
            true => "open loop, all subjects at the same rate",
            false => "closed loop: under saturation this is queueing",
        };
        drawn(number, place, &curves, how)
    })
    .collect()
}

/// The curve ends at the place `last` at the latest.
fn curve(of: &Distribution, colour: usize, last: f64) -> Option<Curve<'_>> {
    let (name, histogram) = (of.subject.as_str(), &of.response);
    let count = histogram.count();
    let buckets = histogram.buckets_us();
    buckets.first()?;
    let end = match of.up_to {
        up_to if up_to < 1.0 => -(1.0 - up_to).log10(),
        _ => f64::INFINITY,
    };
    let place = |beyond: f64| (-(beyond / count as f64).log10()).min(end);
    // Up to here enough answers lie beyond.
    let resolved = place(RESOLVED.min(count) as f64).min(last);
    let mut points = Vec::new();
    let (mut below, mut from) = (0, 0.0);
    for (us, in_bucket) in &buckets {
        below += in_bucket;
        // The last bucket ends the curve where half an answer would lie beyond.
        let to = place((count.saturating_sub(below) as f64).max(0.5));
        let height = us.log10();
        // A step, as in the quantiles of a histogram: a slope would invent values in between.
        points.extend([(from, height), (to.min(resolved), height)]);
        from = to;
        if to >= resolved {
            break;
        }
    }
    let told = [(0.5, "median"), (0.99, "p99")];
    let told = told.into_iter();
    let told = told.filter(|(quantile, _)| -f64::log10(1.0 - quantile) <= resolved + 1e-9);
    let told =
        told.map(|(quantile, word)| format!("{word} {}", time(histogram.quantile_us(quantile))));
    (resolved > 0.0).then(|| Curve {
        name,
        colour,
        points: thinned(points),
        summary: format!("{name}: {}", told.collect::<Vec<_>>().join(", ")),
    })
}

/// Leaves out points that lie too close to the one before to be seen.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let last = points.last().copied();
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for p in points {
        let near = kept
            .last()
            .is_some_and(|k| (p.0 - k.0).abs() < 0.004 && (p.1 - k.1).abs() < 0.004);
        if !near || Some(p) == last {
            kept.push(p);
        }
    }
    kept
}

fn drawn(number: usize, place: &Condition, curves: &[Curve<'_>], how: &str) -> Option<String> {
    let points = || curves.iter().flat_map(|c| &c.points);
    let right = points().map(|p| p.0).reduce(f64::max)?;
    let low = points().map(|p| p.1).fold(f64::INFINITY, f64::min) - 0.05;
    let high = points().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max) + 0.05;
    let x = Scale::new(0.0, right, LEFT, RIGHT);
    let y = Scale::new(low, high, BOTTOM, TOP);

    let title = titled("Response latency over quantile", place);
    let summaries: Vec<&str> = curves.iter().map(|c| c.summary.as_str()).collect();
    let id = format!("curves-{number}");
    let mut picture = Picture::new(&id, WIDTH, &title, &summaries.join("; "));
    picture.rows(&y, &time_ticks(low, high), (LEFT, RIGHT));
    picture.columns(&x, &quantile_ticks(right), (TOP, BOTTOM));
    let mut names = Vec::new();
    for c in curves {
        let points = c.points.iter().map(|p| (x.place(p.0), y.place(p.1)));
        let points: Vec<(f64, f64)> = points.collect();
        let class = format!("curve l{} d{}", c.colour % 8, c.colour % 4);
        picture.polyline(&class, &points);
        let end = points.last().map_or(BOTTOM, |point| point.1);
        names.push((end, c.colour, c.name, c.summary.as_str()));
    }
    let free = picture.names(RIGHT + 14.0, names);
    let height = (BOTTOM + 28.0).max(free + 10.0);
    let caption = format!("{title} ({how}; as far as {RESOLVED} answers or more lie beyond)");
    let legend = legend(curves.iter().map(|c| (c.name, Some(c.colour))));
    Some(figure(&caption, &(picture.finish(height) + &legend)))
}

#[cfg(test)]
mod tests {
    use readings::Histogram;

    use super::*;

    fn of(response: Histogram, up_to: f64) -> Distribution {
        Distribution {
            condition: Condition::new(),
            subject: "direct".into(),
            is_of_open_loop: true,
            response,
            up_to,
        }
    }

    #[test]
    fn a_curve_ends_where_fewer_than_a_hundred_answers_lie_beyond() {
        let mut histogram = Histogram::new();
        for i in 0..10_000 {
            histogram.record_ns(if i < 9_950 { 100_000 } else { 1_000_000 });
        }
        let of = of(histogram, 1.0);
        let drawn = curve(&of, 0, f64::INFINITY).unwrap();
        // 100 of 10,000 lie beyond the 99th percentile, whose place is 2.
        let last = drawn.points.last().unwrap();
        assert!(
            (last.0 - 2.0).abs() < 1e-9 && (last.1 - 2.0).abs() < 0.001,
            "{last:?}"
        );
        assert_eq!(drawn.summary, "direct: median 100us, p99 100us");
        // Where the table does not resolve p99, its picture does not show it.
        let short = curve(&of, 0, P98).unwrap();
        assert_eq!(short.summary, "direct: median 100us");
    }

    #[test]
    fn few_answers_make_no_curve() {
        let mut histogram = Histogram::new();
        assert!(curve(&of(histogram.clone(), 1.0), 0, f64::INFINITY).is_none());
        histogram.record_ns(5_000);
        assert!(curve(&of(histogram, 1.0), 0, f64::INFINITY).is_none());
    }

    #[test]
    fn a_curve_ends_where_the_clients_lag_begins() {
        let mut histogram = Histogram::new();
        for i in 0..10_000 {
            histogram.record_ns(i * 1_000);
        }
        let of = of(histogram, 0.9);
        let curve = curve(&of, 0, f64::INFINITY).unwrap();
        assert!((curve.points.last().unwrap().0 - 1.0).abs() < 1e-9);
        assert_eq!(curve.summary, "direct: median 5.00ms");
    }
}
