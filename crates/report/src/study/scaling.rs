//! Throughput over concurrency, as text, Markdown and JSON.

use readings::text::{grouped, rate};
use serde_json::{Value, json};
use verdict::usl::{Level, LevelStep, Scaling};

use crate::section::columns::Columns;
use crate::section::document::Document;
use crate::section::{Part, Section};
use crate::study::capacity::{STOPPED, range};
use crate::text::load::hosts::{made_by, names};
use crate::text::plot::{Plot, rate_labels};
use readings::text::compact::time;
use readings::text::once;
use verdict::words::{self, flaw};

/// What `weigh capacity --concurrency` found.
#[derive(Clone, Copy, Debug)]
pub struct ScalingView<'a> {
    pub url: &'a str,
    /// Throughput by concurrency, and the law.
    pub scaling: &'a Scaling,
    /// All steps, in the order in which they were made.
    pub steps: &'a [LevelStep],
    /// The seed of the order and of the bootstrap.
    pub seed: u64,
    /// Whether a signal ended it.
    pub stopped: bool,
}

const CAPTION: &str = "requests/s against connections: o measured, ^ at least (the client was the \
                       limit), | spread of the rounds, . the law, within what was measured";

/// The sentences, the curve as a picture and as a table, at most `width` columns wide.
pub fn scaling_terminal(view: &ScalingView<'_>, width: usize) -> String {
    document(view).terminal(width)
}

/// The same as Markdown; the picture is text.
pub fn scaling_markdown(view: &ScalingView<'_>) -> String {
    document(view).markdown()
}

pub(crate) fn document<'a>(view: &ScalingView<'a>) -> Document<'a> {
    let scaling = view.scaling;
    let mut parts = vec![Part::List(said(view).collect())];
    if has_picture(scaling) {
        let draw = move |width| picture(scaling, width).unwrap_or_default();
        parts.push(Part::Drawing(CAPTION.to_owned(), Box::new(draw)));
    }
    if !scaling.levels.is_empty() {
        parts.push(Part::Table(table(scaling), "all levels"));
    }
    let problems = Section::list("problems", "What did not count", problems(scaling));
    Document {
        title: format!("Throughput over concurrency of {}", view.url),
        parts,
        sections: problems.into_iter().collect(),
        end: None,
        footer: Some(format!("Seed {}.", view.seed)),
    }
}

/// The same as one JSON document.
pub fn scaling_json(view: &ScalingView<'_>) -> Value {
    let step = |s: &LevelStep| {
        json!({
            "connections": s.connections,
            "round": s.round,
            "requests": s.load.requests,
            "duration_s": s.load.duration_s,
            "requests_per_s": s.load.requests_per_s(),
            "errors": s.load.errors,
            "latency_us": s.load.response.quantiles(),
            "client": s.load.client,
            "problems": words::flaws(&s.flaws()),
        })
    };
    let level = |l: &Level| {
        let mut object = json!(l);
        object["problems"] = json!(problems_at(l));
        object
    };
    json!({
        "url": view.url,
        "seed": view.seed,
        "stopped": view.stopped,
        "hosts": view.steps.first().map_or_else(Vec::new, |step| names(&step.load).collect()),
        "sentences": words::scaling(view.scaling),
        "levels": view.scaling.levels.iter().map(level).collect::<Vec<_>>(),
        "fit": view.scaling.fit,
        "lack_of_fit": view.scaling.lack_of_fit,
        "closed_loop": view.scaling.closed_loop,
        "closed_loop_lack_of_fit": view.scaling.closed_loop_lack_of_fit,
        "no_fit": view.scaling.no_fit.as_ref().map(words::no_fit),
        "expected": view.scaling.expected,
        "steps": view.steps.iter().map(step).collect::<Vec<_>>(),
    })
}

fn said(view: &ScalingView<'_>) -> impl Iterator<Item = String> {
    let stopped = view.stopped.then(|| STOPPED.to_owned());
    let hosts = view.steps.first().and_then(|step| made_by(&step.load));
    let sentences = words::scaling(view.scaling);
    stopped.into_iter().chain(hosts).chain(sentences)
}

fn problems(scaling: &Scaling) -> impl Iterator<Item = String> {
    scaling.levels.iter().flat_map(|level| {
        let said = |problem: String| format!("{} connections: {problem}", level.connections);
        problems_at(level).into_iter().map(said)
    })
}

/// Why rounds of a level were not valid, each reason once.
fn problems_at(level: &Level) -> Vec<String> {
    once(level.problems.iter().map(flaw))
}

fn has_picture(scaling: &Scaling) -> bool {
    scaling.levels.iter().any(|l| l.requests_per_s.is_some())
}

/// Connections stand on a logarithmic scale: they are mostly doubled.
fn picture(scaling: &Scaling, width: usize) -> Option<String> {
    let shown = || scaling.levels.iter().filter(|l| l.requests_per_s.is_some());
    let at = |level: &Level| f64::from(level.connections).log2();
    let (from, to) = range(shown().map(at))?;
    let measured = shown().filter_map(|l| l.requests_per_s).map(|s| s.high);
    let law = || scaling.expected.iter();
    let most = measured
        .chain(law().map(|p| p.requests_per_s.value))
        .fold(0.0, f64::max);
    let mut plot = Plot::new(width, (from, to), (0.0, most));
    for p in law() {
        plot.mark(p.concurrency.log2(), p.requests_per_s.value, '.');
    }
    for level in shown() {
        if let Some(spread) = level.requests_per_s {
            plot.spread(at(level), spread.low, spread.high);
            let mark = if level.at_least { '^' } else { 'o' };
            plot.mark(at(level), spread.middle, mark);
        }
    }
    let below: Vec<(f64, String)> = shown()
        .map(|l| (at(l), grouped(u64::from(l.connections))))
        .collect();
    Some(plot.finish(&rate_labels(most), &below))
}

/// A row for each concurrency, ascending.
fn table(scaling: &Scaling) -> Columns {
    let row = |level: &Level| {
        let figure = |spread: Option<verdict::capacity::Spread>| {
            spread.map_or("-".to_owned(), |s| time(s.middle))
        };
        let at_least = if level.at_least { ">= " } else { "" };
        let n = f64::from(level.connections);
        // Never beyond what went into the fit.
        let law = scaling.predict(n);
        vec![
            grouped(u64::from(level.connections)),
            level
                .requests_per_s
                .map_or("-".to_owned(), |s| format!("{at_least}{}", rate(s.middle))),
            level.requests_per_s.map_or("-".to_owned(), |s| {
                format!("{} to {}", rate(s.low), rate(s.high))
            }),
            law.map_or("-".to_owned(), |law| {
                let expected = law.requests_per_s;
                let high = expected.high.map_or("-".to_owned(), rate);
                format!("{} [{}, {high}]", rate(expected.value), rate(expected.low))
            }),
            figure(level.latency_us_p50),
            figure(level.latency_us_p99),
            level.rounds.to_string(),
        ]
    };
    let head = [
        "connections",
        "requests/s",
        "of the rounds",
        "by the law",
        "p50",
        "p99",
        "rounds",
    ];
    Columns {
        head: head.map(str::to_owned).to_vec(),
        rows: scaling.levels.iter().map(row).collect(),
        numeric: vec![true; head.len()],
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use testing::journals::load;

    /// A server that saturates, measured in five rounds; at 32 connections the client is busy.
    pub(crate) fn steps() -> Vec<LevelStep> {
        let mut steps = Vec::new();
        for round in 0..5 {
            for connections in [1, 2, 4, 8, 16, 32] {
                let n = f64::from(connections);
                let off = 1.0 + 0.004 * f64::from((round * 3 + connections) % 5);
                let per_s = 1000.0 * n / (1.0 + 0.1 * (n - 1.0)) * off;
                let mut load = load(per_s, 1e6 * n / per_s, None);
                load.client.saturated = connections == 32;
                load.connections = u64::from(connections);
                load.connections_open_min = load.connections;
                steps.push(LevelStep {
                    connections,
                    round,
                    load,
                });
            }
        }
        steps
    }

    pub(crate) fn view<'a>(scaling: &'a Scaling, steps: &'a [LevelStep]) -> ScalingView<'a> {
        ScalingView {
            url: "http://h/",
            scaling,
            steps,
            seed: 7,
            stopped: false,
        }
    }

    #[test]
    fn the_law_is_drawn_up_to_the_last_point_that_went_into_it() {
        let steps = steps();
        let scaling = Scaling::of(&steps, 7);
        let text = scaling_terminal(&view(&scaling, &steps), 100);
        let at = |part: &str| {
            text.find(part)
                .unwrap_or_else(|| panic!("no {part:?} in\n{text}"))
        };
        let picture = &text[at("measured\n") + 9..at("  connections  req")];
        assert_eq!(picture.matches('o').count(), 5, "{picture}");
        assert_eq!(picture.matches('^').count(), 1, "{picture}");
        // 16 of 32 connections on the logarithmic scale: four fifths of the way.
        let right = |mark: char| picture.lines().filter_map(|l| l.rfind(mark)).max().unwrap();
        assert!(right('.') < right('^') - 5, "{picture}");
        assert!(text.contains(">= "), "{text}");
        let last = text.lines().last().unwrap();
        assert!(
            last.trim_start().starts_with("32") && last.contains("  -  "),
            "{text}"
        );
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    }

    #[test]
    fn markdown_and_json_say_the_same() {
        let steps = steps();
        let scaling = Scaling::of(&steps, 7);
        let view = view(&scaling, &steps);
        let text = scaling_markdown(&view);
        assert!(text.contains("| connections | requests/s |"), "{text}");
        assert!(text.contains("\n```\n"), "{text}");
        let document = scaling_json(&view);
        assert_eq!(document["levels"][5]["at_least"], true);
        assert_eq!(document["fit"]["measured"][1], 16.0);
        assert_eq!(document["steps"].as_array().unwrap().len(), 30);
        assert!(document["no_fit"].is_null());
    }
}
