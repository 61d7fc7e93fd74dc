//! The capacity under an objective, as text, Markdown and JSON.

use readings::text::{percent, rate};
use serde_json::{Value, json};
use verdict::capacity::{
    Bound, Judgement, Objective, Offer, Quantity, RatePoint, RateStep, Spread, times_of,
};

use crate::section::columns::Columns;
use crate::section::document::Document;
use crate::section::{Part, Section};
use crate::text::load::hosts;
use crate::text::plot::{Plot, rate_labels, time_labels};
use readings::text::compact::time;
use verdict::capacity::CapacityView;
use verdict::words::{self, why_unmet};

pub(crate) const STOPPED: &str = "It was stopped; this is what was measured until then.";

/// The sentences, the curve as a picture and as a table, at most `width` columns wide.
pub fn capacity_terminal(view: &CapacityView<'_>, width: usize) -> String {
    document(view).terminal(width)
}

/// The same as Markdown; the picture is text.
pub fn capacity_markdown(view: &CapacityView<'_>) -> String {
    document(view).markdown()
}

pub(crate) fn document<'a>(view: &CapacityView<'a>) -> Document<'a> {
    let mut parts = vec![Part::List(said(view).collect())];
    let view = *view;
    if shown(&view).next().is_some() {
        let draw = move |width| picture(&view, width).unwrap_or_default();
        parts.push(Part::Drawing(caption(&view), Box::new(draw)));
    }
    if !view.points.is_empty() {
        parts.push(Part::Table(
            table(view.points, view.objective.offered()),
            "all levels",
        ));
    }
    let why = view.points.iter().filter_map(why);
    let problems = Section::list("problems", "Why trials did not hold", why);
    Document {
        title: format!("Capacity of {}", view.url),
        parts,
        sections: problems.into_iter().collect(),
        end: None,
        footer: Some(format!(
            "{} connections, seed {}.",
            view.connections, view.seed
        )),
    }
}

/// The same as one JSON document.
///
/// Of streams, what is offered and found stands under `..._streams` instead of `..._per_s`.
pub fn capacity_json(view: &CapacityView<'_>) -> Value {
    let mut document = of_rates(view);
    if view.objective.offered() == Offer::Streams {
        name_streams(&mut document);
    }
    document
}

fn name_streams(value: &mut Value) {
    const RATES: [(&str, &str); 7] = [
        ("holds_per_s", "holds_streams"),
        ("low_per_s", "low_streams"),
        ("high_per_s", "high_streams"),
        ("lower_per_s", "lower_streams"),
        ("upper_per_s", "upper_streams"),
        ("rate_per_s", "streams"),
        ("achieved_per_s", "messages_per_s"),
    ];
    match value {
        Value::Object(map) => {
            for (rate, streams) in RATES {
                if let Some(of) = map.remove(rate) {
                    map.insert(streams.to_owned(), of);
                }
            }
            map.values_mut().for_each(name_streams);
        }
        Value::Array(items) => items.iter_mut().for_each(name_streams),
        _ => {}
    }
}

fn of_rates(view: &CapacityView<'_>) -> Value {
    let c = view.capacity;
    json!({
        "url": view.url,
        "objective": view.objective.to_string(),
        "conditions": view.objective.conditions(),
        "connections": view.connections,
        "hosts": hosts(view.steps),
        "seed": view.seed,
        "stopped": view.stopped,
        "complete": c.complete,
        "at_least": c.lower_per_s.is_some() && c.upper_is != Bound::Missed,
        "holds_share": verdict::capacity::HOLDS,
        "holds_per_s": c.holds_per_s,
        "correlation": c.correlation,
        "lower_per_s": c.lower_per_s,
        "upper_per_s": c.upper_per_s,
        "upper_is": c.upper_is,
        "low_per_s": c.low_per_s,
        "high_per_s": c.high_per_s,
        "precision": view.precision,
        "undetected_overload": view.undetected.map(|undetected| undetected.overload),
        "sentences": words::capacity(view),
        "curve": view.points.iter().map(point).collect::<Vec<_>>(),
        "steps": view.steps.iter().map(step).collect::<Vec<_>>(),
    })
}

/// The hosts that made the load together; empty where one did.
fn hosts(steps: &[RateStep]) -> Vec<&str> {
    let first = steps.first();
    first.map_or_else(Vec::new, |step| hosts::names(&step.load).collect())
}

fn point(point: &RatePoint) -> Value {
    let mut object = json!(point);
    object["reasons"] = json!(reasons_at(point));
    object
}

fn step(step: &RateStep) -> Value {
    let outcome = match &step.judgement {
        Judgement::Met => "held",
        Judgement::Missed(_) => "missed",
        Judgement::Unusable(_) => "unusable",
    };
    let load = &step.load;
    json!({
        "rate_per_s": step.rate_per_s,
        "outcome": outcome,
        "reasons": why_unmet(&step.judgement),
        "requests": load.requests,
        "duration_s": load.duration_s,
        "requests_per_s": load.requests_per_s(),
        "errors": load.errors,
        "latency_us": times_of(load).quantiles(),
        "service_us": load.service.quantiles(),
        "schedule_lag_us": load.schedule_lag.quantiles(),
        "client": load.client,
    })
}

fn said(view: &CapacityView<'_>) -> impl Iterator<Item = String> {
    let stopped = view.stopped.then(|| STOPPED.to_owned());
    let first = view.steps.first();
    let hosts = first.and_then(|step| hosts::made_by(&step.load));
    let sentences = words::capacity(view);
    stopped.into_iter().chain(hosts).chain(sentences)
}

/// The limit of the highest quantile that the objective limits.
pub(crate) fn limit(objective: &Objective) -> Option<(f64, f64)> {
    let of_quantile = objective.limits().iter().filter_map(|l| match l.quantity {
        Quantity::Quantile(q) => Some((q, l.value)),
        _ => None,
    });
    of_quantile.max_by(|a, b| a.0.total_cmp(&b.0))
}

/// The quantile that is drawn: the highest.
fn drawn(point: &RatePoint) -> Option<Spread> {
    point.quantiles.last().map(|q| q.latency_us)
}

/// `p99`, `p99.9`.
pub(crate) fn quantile_name(q: f64) -> String {
    let text = format!("{:.4}", q * 100.0);
    format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn name_of_drawn(view: &CapacityView<'_>) -> String {
    let first = view.points.iter().find_map(|p| p.quantiles.last());
    first.map_or(String::new(), |q| quantile_name(q.quantile))
}

fn caption(view: &CapacityView<'_>) -> String {
    format!(
        "{} against offered {}: o held, x did not hold, ? says nothing, | spread of the \
         trials{}",
        name_of_drawn(view),
        words::offered(view.objective),
        if limit(view.objective).is_some() {
            ", --- the objective"
        } else {
            ""
        }
    )
}

/// How the trials of a point ended, most of them.
pub(crate) fn mark(point: &RatePoint) -> char {
    match point {
        p if p.held == 0 && p.missed == 0 => '?',
        p if p.held > p.missed => 'o',
        _ => 'x',
    }
}

/// The range of a list of values; nothing of none.
pub(crate) fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, v| match range {
        None => Some((v, v)),
        Some((low, high)) => Some((v.min(low), v.max(high))),
    })
}

/// The points that have a place in the picture.
fn shown<'a>(view: &CapacityView<'a>) -> impl Iterator<Item = (&'a RatePoint, Spread)> {
    let points = view.points.iter();
    points.filter_map(|p| Some((p, drawn(p).filter(|s| s.low > 0.0)?)))
}

fn picture(view: &CapacityView<'_>, width: usize) -> Option<String> {
    let shown: Vec<(&RatePoint, Spread)> = shown(view).collect();
    let (_, most) = range(shown.iter().map(|(p, _)| p.rate_per_s))?;
    let limit = limit(view.objective).map(|(_, value)| value.log10());
    let ends = shown.iter().flat_map(|(_, s)| [s.low, s.high]);
    let (low, high) = range(ends.map(f64::log10).chain(limit))?;
    let mut plot = Plot::new(width, (0.0, most), (low, high));
    if let Some(limit) = limit {
        plot.level(limit);
    }
    for (point, spread) in &shown {
        plot.spread(point.rate_per_s, spread.low.log10(), spread.high.log10());
    }
    for (point, spread) in &shown {
        plot.mark(point.rate_per_s, spread.middle.log10(), mark(point));
    }
    Some(plot.finish(&time_labels(low, high), &rate_labels(most)))
}

/// A row for each rate, ascending.
fn table(points: &[RatePoint], offered: Offer) -> Columns {
    let head = match offered {
        Offer::Requests => ["offered/s", "answered/s"],
        Offer::Users => ["users/s", "answers/s"],
        Offer::Streams => ["streams", "messages/s"],
    };
    let mut head = head.map(str::to_owned).to_vec();
    let mut quantiles: Vec<f64> = points
        .iter()
        .flat_map(|p| p.quantiles.iter().map(|q| q.quantile))
        .collect();
    quantiles.sort_by(f64::total_cmp);
    quantiles.dedup();
    head.extend(quantiles.iter().map(|q| quantile_name(*q)));
    head.extend(["errors", "held", "client"].map(str::to_owned));
    let row = |p: &RatePoint| {
        let mut row = vec![rate(p.rate_per_s), rate(p.achieved_per_s.middle)];
        for q in &quantiles {
            let found = p.quantiles.iter().find(|at| at.quantile == *q);
            row.push(found.map_or("-".to_owned(), |at| {
                let doubt = if at.resolved { "" } else { "?" };
                format!("{}{doubt}", time(at.latency_us.middle))
            }));
        }
        row.push(match p.errors {
            0.0 => "-".to_owned(),
            share => percent(share * 100.0, 2, false),
        });
        row.push(format!("{} of {}", p.held, p.held + p.missed + p.unusable));
        let limited = if p.client_limited { "the limit" } else { "-" };
        row.push(limited.to_owned());
        row
    };
    let mut numeric = vec![true; head.len()];
    if let Some(last) = numeric.last_mut() {
        *last = false;
    }
    let rows = points.iter().map(row).collect();
    let columns = Columns {
        head,
        rows,
        numeric,
    };
    let is_needed = |name: &str, columns: &Columns| {
        let at = columns.head.iter().position(|h| h == name);
        at.is_some_and(|at| columns.rows.iter().any(|r| r[at] != "-"))
    };
    let optional = ["errors", "client"].into_iter();
    optional.fold(columns, |columns, name| match is_needed(name, &columns) {
        true => columns,
        false => columns.without(name),
    })
}

/// Why trials of a rate did not hold, each reason once.
fn reasons_at(point: &RatePoint) -> Vec<String> {
    readings::text::once(point.unmet.iter().flat_map(why_unmet))
}

/// The first of them, and how many more there are.
fn why(point: &RatePoint) -> Option<String> {
    let all = reasons_at(point);
    let first = all.first()?;
    let more = match all.len() - 1 {
        0 => String::new(),
        1 => "; and one more reason".to_owned(),
        n => format!("; and {n} more reasons"),
    };
    Some(format!("{}: {first}{more}", rate(point.rate_per_s)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use testing::Text as _;
    use testing::journals::load;
    use verdict::capacity::{Capacity, Outcome, Search, SearchOptions, curve, quantiles_of};

    /// A server that is fast up to 2,000 requests/s and slow above.
    pub(crate) struct Example {
        pub objective: Objective,
        pub capacity: Capacity,
        pub steps: Vec<RateStep>,
        pub points: Vec<RatePoint>,
    }

    pub(crate) fn example() -> Example {
        let objective: Objective = "p99<50ms".parse().unwrap();
        let mut search = Search::new(SearchOptions::around(1500.0)).unwrap();
        let rates = [
            1500.0, 2500.0, 1900.0, 2100.0, 2000.0, 2040.0, 2000.0, 2040.0,
        ];
        let steps: Vec<RateStep> = rates
            .into_iter()
            .map(|rate_per_s: f64| {
                let median_us = if rate_per_s <= 2000.0 {
                    2000.0
                } else {
                    30_000.0
                };
                let load = load(rate_per_s, median_us, Some(rate_per_s));
                let judgement = objective.judge_load(&load);
                search.record(rate_per_s, Outcome::from(&judgement));
                RateStep {
                    rate_per_s,
                    load,
                    judgement,
                }
            })
            .collect();
        let capacity = search.so_far();
        let points = curve(&steps, &quantiles_of(&objective));
        Example {
            objective,
            capacity,
            steps,
            points,
        }
    }

    impl Example {
        pub(crate) fn view(&self) -> CapacityView<'_> {
            CapacityView {
                url: "http://h:8080/a_b",
                objective: &self.objective,
                capacity: &self.capacity,
                steps: &self.steps,
                precision: 0.02,
                undetected: None,
                points: &self.points,
                connections: 64,
                seed: 7,
                stopped: false,
            }
        }
    }

    #[test]
    fn the_answer_comes_first_then_the_picture_then_the_table() {
        let example = example();
        let text = capacity_terminal(&example.view(), 90);
        text.begins("Capacity of http://h:8080/a_b\n\nThe highest rate that keeps p99 < 50 ms");
        let at = |part: &str| {
            text.find(part)
                .unwrap_or_else(|| panic!("no {part:?} in\n{text}"))
        };
        assert!(at("in 90% of the trials") < at("p99 against offered requests/s: o held"));
        assert!(at("p99 against") < at("  offered/s  answered/s"));
        assert!(at("  offered/s") < at("Why trials did not hold"));
        let picture = &text[at("objective\n") + 10..at("  offered/s")];
        assert_eq!(picture.matches('o').count(), 3, "{picture}");
        assert_eq!(picture.matches('x').count(), 3, "{picture}");
        picture.has("--------");
        text.has("2,000       2,000  2.02ms");
        text.has("2 of 2");
        text.lacks("errors  held");
        assert!(text.lines().all(|l| l.chars().count() <= 90), "{text}");
    }

    #[test]
    fn a_stop_and_a_busy_client_are_told() {
        let mut example = example();
        for point in &mut example.points {
            point.client_limited = point.rate_per_s > 2400.0;
        }
        let view = CapacityView {
            stopped: true,
            ..example.view()
        };
        let text = capacity_terminal(&view, 90);
        text.has("It was stopped");
        assert_eq!(text.matches("the limit").count(), 1, "{text}");
        let empty = CapacityView {
            steps: &[],
            points: &[],
            ..view
        };
        assert!(!capacity_terminal(&empty, 90).contains("against offered"));
    }

    #[test]
    fn markdown_and_json_say_the_same() {
        let example = example();
        let text = capacity_markdown(&example.view());
        text.has_all([
            "# Capacity of http://h:8080/a\\_b\n",
            "- The highest rate that keeps p99 \\< 50 ms",
            "\n```\n",
            "| offered/s | answered/s | p50 | p99 | held |",
            "## Why trials did not hold\n\n- 2,040: ",
        ]);
        let document = capacity_json(&example.view());
        assert_eq!(document["lower_per_s"], 2000.0);
        assert_eq!(document["upper_is"], "missed");
        assert_eq!(document["at_least"], false);
        assert_eq!(document["curve"][0]["quantiles"][1]["quantile"], 0.99);
        assert_eq!(document["steps"][1]["outcome"], "missed");
        assert_eq!(document["steps"][1]["rate_per_s"], 2500.0);
    }

    #[test]
    fn quantiles_have_names_without_needless_digits() {
        let names: Vec<String> = [0.5, 0.99, 0.999, 0.9999].map(quantile_name).to_vec();
        assert_eq!(names, ["p50", "p99", "p99.9", "p99.99"]);
    }
}
