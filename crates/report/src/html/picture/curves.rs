//! Latency over quantile, on a quantile scale that gives each nine the same space.

use std::collections::BTreeMap;

use readings::text::condition;
use readings::{Condition, Histogram, Journal, LoadReading, Outcome, Trial};
use verdict::{latest, load_flaws};

use crate::html::picture::axis::{Scale, quantile_ticks, time_ticks};
use crate::html::picture::svg::{Anchor, Picture, escaped, legend};
use readings::text::compact::ends_kept;
use readings::text::compact::time;

const WIDTH: f64 = 880.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 740.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 300.0;
/// How many answers must lie beyond a quantile for it to be drawn as a full line.
const RESOLVED: u64 = 100;

struct Curve<'a> {
    name: &'a str,
    colour: usize,
    /// (-log10(1 - quantile), log10 us) up to where the quantiles are resolved.
    full: Vec<(f64, f64)>,
    /// The points from there to the largest value.
    thin: Vec<(f64, f64)>,
    summary: String,
}

/// One picture for each condition: the merged response histograms of each subject's valid trials,
/// from the open loop if there is one.
pub(crate) fn curves(journal: &Journal, subjects: &[String]) -> String {
    let header = &journal.header;
    let mut places: BTreeMap<&Condition, Vec<&Trial>> = BTreeMap::new();
    let mut conditions: Vec<&Condition> = Vec::new();
    let compared = journal.trials();
    let compared = compared.filter(|trial| !header.is_background(&trial.condition));
    for trial in latest(header, compared) {
        let here = places.entry(&trial.condition).or_insert_with(|| {
            conditions.push(&trial.condition);
            Vec::new()
        });
        if !trial.baseline_copy {
            here.push(trial);
        }
    }
    let declared: BTreeMap<&Condition, usize> = header.conditions.iter().zip(0..).collect();
    conditions.sort_by_key(|condition| declared.get(condition));
    conditions
        .into_iter()
        .enumerate()
        .filter_map(|(i, place)| {
            let here = &places[place];
            let open = of_subjects(here, subjects, |r| r.latency.as_ref());
            if open.is_empty() {
                let closed = of_subjects(here, subjects, |r| r.throughput.as_ref());
                let how = "closed loop: under saturation this is queueing";
                drawn(i, place, &closed, how)
            } else {
                drawn(i, place, &open, "open loop, all subjects at the same rate")
            }
        })
        .collect()
}

fn of_subjects<'a>(
    trials: &[&'a Trial],
    subjects: &'a [String],
    load: fn(&readings::Reading) -> Option<&LoadReading>,
) -> Vec<Curve<'a>> {
    let mut curves = Vec::new();
    for (colour, name) in subjects.iter().enumerate() {
        let mut merged: Option<Histogram> = None;
        for trial in trials.iter().filter(|t| t.subject == *name) {
            let Outcome::Done(reading) = &trial.outcome else {
                continue;
            };
            let Some(load) = load(reading).filter(|l| load_flaws(l).is_empty()) else {
                continue;
            };
            merged
                .get_or_insert_with(Histogram::new)
                .merge(&load.response);
        }
        curves.extend(merged.and_then(|h| curve(name, colour, &h)));
    }
    curves
}

fn curve<'a>(name: &'a str, colour: usize, histogram: &Histogram) -> Option<Curve<'a>> {
    let count = histogram.count();
    let buckets = histogram.buckets_us();
    buckets.first()?;
    let place = |beyond: f64| -(beyond / count as f64).log10();
    // Up to here enough answers lie beyond.
    let resolved = place(RESOLVED.min(count) as f64);
    let (mut full, mut thin) = (Vec::new(), Vec::new());
    let (mut below, mut from) = (0, 0.0);
    for (us, in_bucket) in &buckets {
        below += in_bucket;
        // The last bucket ends the curve where half an answer would lie beyond.
        let to = place((count.saturating_sub(below) as f64).max(0.5));
        let height = us.log10();
        // A step, as in the quantiles of a histogram: a slope would invent values in between.
        if from < resolved {
            full.extend([(from, height), (to.min(resolved), height)]);
        }
        if to > resolved {
            thin.extend([(from.max(resolved), height), (to, height)]);
        }
        from = to;
    }
    Some(Curve {
        name,
        colour,
        full: thinned(full),
        thin: thinned(thin),
        summary: format!(
            "{name}: median {}, p99 {}, max {}",
            time(histogram.quantile_us(0.5)),
            time(histogram.quantile_us(0.99)),
            time(histogram.quantile_us(1.0))
        ),
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
    let points = || curves.iter().flat_map(|c| c.full.iter().chain(&c.thin));
    let right = points().map(|p| p.0).reduce(f64::max)?;
    let low = points().map(|p| p.1).fold(f64::INFINITY, f64::min) - 0.05;
    let high = points().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max) + 0.05;
    let x = Scale::new(0.0, right, LEFT, RIGHT);
    let y = Scale::new(low, high, BOTTOM, TOP);

    let text = condition(place);
    let mut title = "Response latency over quantile".to_owned();
    if !text.is_empty() {
        title.push_str(&format!(", {text}"));
    }
    let summaries: Vec<&str> = curves.iter().map(|c| c.summary.as_str()).collect();
    let mut picture = Picture::new(
        &format!("curves-{number}"),
        WIDTH,
        &title,
        &summaries.join("; "),
    );
    for (value, label) in time_ticks(low, high) {
        let at = y.place(value);
        picture.line("grid", (LEFT, at), (RIGHT, at));
        picture.text("tick", (LEFT - 6.0, at + 4.0), Anchor::End, &label);
    }
    for (value, label) in quantile_ticks(right) {
        let at = x.place(value);
        picture.line("grid", (at, TOP), (at, BOTTOM));
        picture.text("tick", (at, BOTTOM + 16.0), Anchor::Middle, &label);
    }
    let mut labels: Vec<(f64, &Curve<'_>)> = Vec::new();
    for c in curves {
        let placed = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
            points
                .iter()
                .map(|p| (x.place(p.0), y.place(p.1)))
                .collect()
        };
        let class = format!("curve l{} d{}", c.colour % 8, c.colour % 4);
        picture.polyline(&class, &placed(&c.full));
        picture.polyline(&format!("{class} thin"), &placed(&c.thin));
        let end = c
            .thin
            .last()
            .or(c.full.last())
            .map_or(BOTTOM, |p| y.place(p.1));
        labels.push((end, c));
    }
    // Names are at the ends of the curves, pushed apart if they would overlap.
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = f64::NEG_INFINITY;
    for (end, c) in labels {
        let at = end.max(free);
        free = at + 18.0;
        let class = format!("mark c{}", c.colour % 8);
        picture.mark(c.colour, &class, (RIGHT + 14.0, at), &c.summary);
        let name = ends_kept(c.name, 15);
        picture.text("label", (RIGHT + 24.0, at + 4.0), Anchor::Start, &name);
    }
    let height = (BOTTOM + 28.0).max(free + 10.0);
    Some(format!(
        "<figure class=\"wide\"><figcaption>{}</figcaption>\n{}{}</figure>\n",
        escaped(&format!(
            "{title} ({how}; faint where fewer than {RESOLVED} answers lie beyond)"
        )),
        picture.finish(height),
        legend(curves.iter().map(|c| (c.name, Some(c.colour))))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_faint_from_where_fewer_than_a_hundred_answers_lie_beyond() {
        let mut histogram = Histogram::new();
        for i in 0..10_000 {
            histogram.record_ns(if i < 9_950 { 100_000 } else { 1_000_000 });
        }
        let curve = curve("direct", 0, &histogram).unwrap();
        // 100 of 10,000 lie beyond the 99th percentile, whose place is 2.
        let last = curve.full.last().unwrap();
        assert!(
            (last.0 - 2.0).abs() < 1e-9 && (last.1 - 2.0).abs() < 0.001,
            "{last:?}"
        );
        let end = curve.thin.last().unwrap();
        assert!((end.0 - 20_000_f64.log10()).abs() < 1e-9, "{end:?}");
        assert!((end.1 - 3.0).abs() < 0.001, "{end:?}");
    }

    #[test]
    fn few_answers_make_a_faint_curve_and_none_make_none() {
        let mut histogram = Histogram::new();
        assert!(curve("direct", 0, &histogram).is_none());
        histogram.record_ns(5_000);
        let curve = curve("direct", 0, &histogram).unwrap();
        assert!(curve.full.is_empty() && curve.thin.len() == 2);
    }
}
