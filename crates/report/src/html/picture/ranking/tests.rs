//! What holds of every picture.

use readings::RunHeader;
use testing::Text as _;
use testing::journals;
use verdict::{Analysis, Bound, Metric, Ranking};

use super::canvas::{Drawing, Element, Ink};
use super::content::Content;
use super::layout::{Format, laid_out};
use super::made::{grid, name, ranking};
use super::{ranking_svg, rankings};
use crate::html::picture::svg::Anchor;

const FORMATS: [&Format; 3] = [&Format::FILE, &Format::PAGE, &Format::NARROW];

fn run(rankings: Vec<Ranking>) -> (RunHeader, Analysis) {
    let journal = journals::journal();
    let mut analysis = verdict::analyse(&journal);
    let subjects = rankings.iter().map(|one| one.rows.len()).max().unwrap_or(0);
    analysis.rankings = rankings;
    let header = RunHeader {
        subjects: (0..subjects).map(name).collect(),
        baseline: name(0),
        ..journal.header
    };
    (header, analysis)
}

fn drawn(rankings: Vec<Ranking>) -> Vec<Drawing> {
    let (header, analysis) = run(rankings);
    let content = Content::of(&header, &analysis).unwrap();
    FORMATS.map(|format| laid_out(&content, format)).into()
}

fn throughput(subjects: usize) -> Ranking {
    let condition = [("connections", "16")];
    ranking(&condition, Metric::RequestsPerS, subjects, (20_000.0, 0.8))
}

/// Texts with their places: left end, base line, right end.
fn texts(drawing: &Drawing) -> Vec<(&str, f64, f64, f64)> {
    let each = drawing.elements.iter().filter_map(|element| {
        let Element::Text {
            anchor,
            at,
            text,
            then,
        } = element
        else {
            return None;
        };
        let then = then.as_ref().map_or(0.0, |then| then.width() + 8.0);
        let width = text.width() + then;
        let from = match anchor {
            Anchor::Start => at.0,
            Anchor::Middle => at.0 - width / 2.0,
            Anchor::End => at.0 - width,
        };
        Some((text.text.as_str(), from, at.1, from + width))
    });
    each.collect()
}

fn of_all_kinds() -> Vec<(&'static str, Vec<Ranking>)> {
    let latency = |metric, protocol| ranking(&[("protocol", protocol)], metric, 8, (150.0, 0.5));
    let mut long = throughput(6);
    long.rows[3].subject = "a-subject-with-a-name-of-eighty-characters".repeat(2);
    let mut wide = throughput(6);
    wide.rows[5].high = Some(300_000.0);
    let factor = |levels: u32| -> Vec<Ranking> {
        let each = (0..levels).map(|level| {
            let level = (8 << level).to_string();
            ranking(
                &[("connections", &level)],
                Metric::RequestsPerS,
                30,
                (20_000.0, 0.9),
            )
        });
        each.collect()
    };
    let mut one = throughput(6);
    one.rows[0].bound = Some(Bound::AtLeast);
    (one.rows[1].bound, one.rows[1].high) = (Some(Bound::AtLeast), None);
    (one.rows[2].bound, one.rows[2].low) = (Some(Bound::AtMost), None);
    vec![
        ("two", vec![throughput(2)]),
        ("thirty", vec![throughput(30)]),
        ("long", vec![long]),
        ("wide", vec![wide]),
        ("bounds", vec![one]),
        ("four levels", factor(4)),
        ("twelve levels", factor(12)),
        ("grid", grid(&["1KB", "64KB"], &["16", "64", "256"], 0.8)),
        (
            "own scales",
            grid(&["1KB", "64KB", "1MB"], &["1", "2", "3", "4"], 0.1),
        ),
        (
            "three decades",
            vec![ranking(
                &[("protocol", "h1")],
                Metric::ServerCpuUsPerRequest,
                8,
                (150_000.0, 0.35),
            )],
        ),
        (
            "many decades",
            vec![ranking(
                &[("protocol", "h1")],
                Metric::RequestsPerS,
                12,
                (90_000_000.0, 0.2),
            )],
        ),
        ("logarithmic", vec![latency(Metric::LatencyUsP50, "h1")]),
        (
            "metrics",
            vec![
                throughput(6),
                latency(Metric::LatencyUsP50, "h1"),
                latency(Metric::LatencyUsP99, "h1"),
                latency(Metric::ServerCpuUsPerRequestAtRate, "h1"),
            ],
        ),
    ]
}

#[test]
fn no_text_leaves_the_picture_or_covers_another() {
    for (what, rankings) in of_all_kinds() {
        for drawing in drawn(rankings) {
            let texts = texts(&drawing);
            for (number, (text, from, base, to)) in texts.iter().enumerate() {
                let (width, height) = drawing.size;
                assert!(
                    *from >= 0.0 && *to <= width + 0.5 && *base > 9.0 && *base < height,
                    "{what}, {width} wide: {text} from {from} to {to} at {base}"
                );
                for (other, from_other, base_other, to_other) in &texts[..number] {
                    let across = to.min(*to_other) - from.max(*from_other);
                    let down = (base - base_other).abs();
                    assert!(
                        across <= 0.5 || down >= 11.0,
                        "{what}, {width} wide: {text} and {other}"
                    );
                }
            }
        }
    }
}

#[test]
fn each_subject_stands_once_in_each_panel() {
    for (what, rankings) in of_all_kinds()
        .into_iter()
        .filter(|(what, _)| *what != "long")
    {
        let rows: usize = rankings.iter().map(|one| one.rows.len()).sum();
        let mut counts = std::collections::BTreeMap::new();
        for row in rankings.iter().flat_map(|one| &one.rows) {
            *counts.entry(row.subject.clone()).or_insert(0) += 1;
        }
        for drawing in drawn(rankings) {
            for (subject, count) in &counts {
                let found = texts(&drawing)
                    .iter()
                    .filter(|text| text.0 == subject)
                    .count();
                assert_eq!(found, *count, "{what}: {subject}");
            }
            let marks = drawing.elements.iter();
            let marks =
                marks.filter(|one| matches!(one, Element::Bar { .. } | Element::Dot { .. }));
            assert_eq!(marks.count(), rows, "{what}");
        }
    }
}

#[test]
fn bars_and_intervals_are_as_long_as_their_figures() {
    let rankings = vec![throughput(6)];
    let rows = rankings[0].rows.clone();
    for drawing in drawn(rankings) {
        let mut bars = Vec::new();
        let mut ends = Vec::new();
        for element in &drawing.elements {
            match element {
                Element::Bar { corner, size, .. } => bars.push((corner.0, size.0)),
                Element::Lines {
                    ink: Ink::Text,
                    lines,
                    ..
                } => {
                    let line = lines.last().unwrap();
                    ends.push((line[0].0, line[1].0));
                }
                _ => {}
            }
        }
        assert_eq!((bars.len(), ends.len()), (6, 5));
        let per_unit = bars[0].1 / rows[0].value;
        for (row, (_, width)) in rows.iter().zip(&bars) {
            assert!((width - row.value * per_unit).abs() < 0.01);
        }
        // The baseline has no interval.
        for (row, (from, to)) in rows[1..].iter().zip(ends) {
            let left = bars[0].0;
            assert!((from - left - row.low.unwrap() * per_unit).abs() < 0.01);
            assert!((to - left - row.high.unwrap() * per_unit).abs() < 0.01);
        }
    }
}

#[test]
fn a_bound_has_an_open_end_and_says_at_least() {
    let (_, rankings) = of_all_kinds()
        .into_iter()
        .find(|(what, _)| *what == "bounds")
        .unwrap();
    let (header, analysis) = run(rankings);
    let svg = ranking_svg(&header, &analysis).unwrap();
    assert_eq!(svg.matches(">at least ").count(), 2, "{svg}");
    svg.has("the client was the limit");
    let (header, analysis) = run(vec![throughput(6)]);
    let svg = ranking_svg(&header, &analysis).unwrap();
    svg.lacks("at least");
    svg.lacks("the client");
}

#[test]
fn the_picture_says_what_it_shows() {
    let (header, analysis) = run(grid(&["1KB", "64KB"], &["16", "64"], 0.8));
    let svg = ranking_svg(&header, &analysis).unwrap();
    svg.has_all([
        "What a &lt;balancer&gt; costs</text>",
        ">Throughput<tspan",
        ">more is better</tspan>",
        "6 blocks; lines: 95% intervals of the ratio to nginx; 3-4: places not told apart.",
        ">body=64KB</text>",
        ">connections=16</text>",
        ">3-4</text>",
        ">Measured 14 November 2023 with weigh 0.1.0</text>",
        "role=\"img\" aria-labelledby=\"ranking-t ranking-d\"",
        "body=1KB, connections=16: 1. nginx 30,000/s (baseline); 2. haproxy 24,000/s (-20%",
        "fill=\"#ffffff\"",
        "font-family=\"sans-serif\"",
    ]);
    svg.lacks("class=");
    svg.lacks("var(");
    svg.lacks("NaN");
    // Panels of one order share their scale, others do not and say so.
    svg.lacks("its own scale");
    let (header, analysis) = run(grid(&["1KB", "1MB"], &["16", "64"], 0.1));
    ranking_svg(&header, &analysis)
        .unwrap()
        .has("each panel has its own scale");
}

#[test]
fn without_a_ranking_there_is_no_picture() {
    let (header, analysis) = run(Vec::new());
    assert_eq!(ranking_svg(&header, &analysis), None);
    assert_eq!(rankings(&header, &analysis), "");
}

#[test]
fn thousands_of_subjects_and_conditions_are_counted_and_not_drawn() {
    let many = |levels: usize, subjects| -> Vec<Ranking> {
        let each = (0..levels).map(|level| {
            let level = level.to_string();
            ranking(
                &[("connections", &level)],
                Metric::RequestsPerS,
                subjects,
                (2e4, 0.9999),
            )
        });
        each.collect()
    };
    let (header, analysis) = run(many(1, 2_000));
    let content = Content::of(&header, &analysis).unwrap();
    content.notes.ends("Not drawn: 1,940 more subjects.");
    let (header, analysis) = run(many(500, 6));
    let content = Content::of(&header, &analysis).unwrap();
    content.notes.ends("Not drawn: 440 more conditions.");
    let svg = ranking_svg(&header, &analysis).unwrap();
    assert!(svg.len() < 220_000, "{}", svg.len());
}

#[test]
fn the_colours_of_the_file_are_those_of_the_light_page() {
    let style = crate::html::page::PICTURE_STYLE;
    let light = &style[..style.find("@media").unwrap()];
    for (name, ink) in [
        ("ink", Ink::Text),
        ("soft", Ink::Soft),
        ("rule", Ink::Rule),
        ("card", Ink::Paper),
        ("s0", Ink::Series(0)),
        ("s7", Ink::Series(7)),
    ] {
        let colour = format!("--{name}: {};", ink.light());
        assert!(light.contains(&colour), "{colour}");
    }
}

#[cfg(feature = "full")]
#[test]
fn pixels_are_twice_as_many_and_not_all_white() {
    let (header, analysis) = run(vec![throughput(6)]);
    let svg = ranking_svg(&header, &analysis).unwrap();
    let png = super::ranking_png(&header, &analysis).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.ends_with(b"IEND\xae\x42\x60\x82"));
    let number = |from: usize| u32::from_be_bytes(png[from..from + 4].try_into().unwrap());
    let size = format!("viewBox=\"0 0 {} {}\"", number(16) / 2, number(20) / 2);
    assert!(svg.contains(&size), "{size}");
    // Nothing but white would be a few hundred bytes.
    assert!(png.len() > 20_000, "{}", png.len());
}
