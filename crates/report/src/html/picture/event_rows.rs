//! The rate of good answers around events, and the connections that last.

use std::iter::zip;

use readings::text::{counted, once};
use readings::{Condition, EventReading, Journal, LoadReading, LoadRow};
use verdict::{Analysis, judged_trials};

use crate::html::picture::axis::{Scale, rate_ticks};
use crate::html::picture::svg::{Anchor, Picture, figure, legend, titled};

const WIDTH: f64 = 880.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 860.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 260.0;
/// Events of one kind that are closer in time than this are shown as one, s.
const SAME_TIME_S: f64 = 0.2;
/// The most lines of one subject; each is a block.
const LINES_MAX: usize = 20;

struct Line<'a> {
    colour: usize,
    condition: &'a Condition,
    /// Time, s, and value.
    points: Vec<(f64, f64)>,
    events: &'a [EventReading],
}

/// What a picture shows of a load.
struct Shown {
    id: &'static str,
    title: &'static str,
    points: fn(&LoadReading) -> Vec<(f64, f64)>,
}

const SHOWN: [Shown; 2] = [
    Shown {
        id: "events",
        title: "Good answers per second around the events",
        points: rates,
    },
    Shown {
        id: "connections",
        title: "Connections that stayed open around the events",
        points: lasting,
    },
];

pub(crate) fn event_rows(journal: &Journal, analysis: &Analysis, subjects: &[String]) -> String {
    let each = SHOWN.iter();
    each.map(|shown| pictures(shown, journal, analysis, subjects))
        .collect()
}

fn pictures(shown: &Shown, journal: &Journal, analysis: &Analysis, subjects: &[String]) -> String {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for judged in judged_trials(journal, &analysis.judgements) {
        let trial = judged.trial;
        let events = trial.reading().and_then(|reading| reading.events.as_ref());
        let (Some(events), Some(load)) = (events, judged.open()) else {
            continue;
        };
        let colour = subjects.iter().position(|name| *name == trial.subject);
        let points = (shown.points)(load);
        if let (Some(colour), false, false) = (colour, points.is_empty(), trial.baseline_copy) {
            lines.push(Line {
                colour,
                condition: &trial.condition,
                points,
                events: &events.events,
            });
        }
    }
    let places = once(lines.iter().map(|line| line.condition));
    let each = places.iter().enumerate().map(|(number, place)| {
        let here: Vec<&Line<'_>> = lines.iter().filter(|l| l.condition == *place).collect();
        picture(shown, number, place, &here, subjects)
    });
    each.collect()
}

/// The events of all lines; those of the same kind at the same time count as one. Each has the name
/// of its server or host, or none if these differ. An event happens at the same time in all blocks,
/// to within milliseconds.
fn distinct<'a>(lines: &[&Line<'a>]) -> Vec<(&'a EventReading, &'a str)> {
    let mut found: Vec<(&EventReading, &str)> = Vec::new();
    for event in lines.iter().flat_map(|line| line.events) {
        let is_same = |(other, _): &&mut (&EventReading, &str)| {
            other.what == event.what && (other.at_s - event.at_s).abs() < SAME_TIME_S
        };
        match found.iter_mut().find(is_same) {
            Some((_, target)) if *target != event.target() => *target = "",
            Some(_) => {}
            None => found.push((event, event.target())),
        }
    }
    found
}

fn rates(load: &LoadReading) -> Vec<(f64, f64)> {
    let at = |row: &LoadRow| (row.start_s + row.duration_s / 2.0, row.requests_per_s());
    whole(&load.rows).map(at).collect()
}

/// The connections at the end of each row that were open all through it.
fn lasting(load: &LoadReading) -> Vec<(f64, f64)> {
    let rows = load.lasting.iter().flat_map(|one| &one.connections);
    zip(&load.rows, rows)
        .map(|(row, seen)| {
            let held = seen.open.saturating_sub(seen.opened);
            (row.start_s + row.duration_s, held as f64)
        })
        .collect()
}

/// All rows except one that the window's end cut short: its few answers are no rate.
fn whole(rows: &[LoadRow]) -> impl Iterator<Item = &LoadRow> {
    let longest = rows.iter().map(|row| row.duration_s).fold(0.0, f64::max);
    rows.iter()
        .filter(move |row| row.duration_s > longest / 2.0)
}

fn picture(
    shown: &Shown,
    number: usize,
    place: &Condition,
    lines: &[&Line<'_>],
    subjects: &[String],
) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let last_s = points().map(|(at_s, _)| *at_s).fold(0.0, f64::max);
    let most = points().map(|(_, value)| *value).fold(0.0, f64::max) * 1.08;
    if last_s <= 0.0 || most <= 0.0 {
        return String::new();
    }
    let x = Scale::new(0.0, last_s, LEFT, RIGHT);
    let y = Scale::new(0.0, most, BOTTOM, TOP);
    let title = titled(shown.title, place);
    let described = counted(lines.len(), "trial");
    let mut picture = Picture::new(&format!("{}-{number}", shown.id), WIDTH, &title, &described);
    picture.rows(&y, &rate_ticks(0.0, most), (LEFT, RIGHT));
    for (value, _) in rate_ticks(0.0, last_s) {
        let at = x.place(value);
        let label = format!("{}", (value * 100.0).round() / 100.0);
        picture.text("tick", (at, BOTTOM + 18.0), Anchor::Middle, &label);
    }
    let middle = (LEFT + RIGHT) / 2.0;
    let axis = "seconds since the measured window began";
    picture.text("tick", (middle, BOTTOM + 36.0), Anchor::Middle, axis);
    for (line, (event, target)) in distinct(lines).into_iter().enumerate() {
        let height = 12.0 + 12.0 * (line % 2) as f64;
        let ends = [
            (Some(event.at_s), event.what.as_str()),
            (event.back_s, "back"),
        ];
        for (at_s, what) in ends {
            let Some(at_s) = at_s.filter(|at| (0.0..=last_s).contains(at)) else {
                continue;
            };
            let at = x.place(at_s);
            picture.line("zero", (at, height + 3.0), (at, BOTTOM));
            let said = format!("{what} {target}");
            let said = said.trim_end();
            let anchor = match at {
                at if at > RIGHT - 90.0 => Anchor::End,
                _ => Anchor::Start,
            };
            picture.text("tick", (at + 3.0, height), anchor, said);
        }
    }
    let mut used = vec![0; subjects.len()];
    for line in lines {
        used[line.colour] += 1;
        if used[line.colour] > LINES_MAX {
            continue;
        }
        let points = line.points.iter();
        let points: Vec<(f64, f64)> = points
            .map(|(at_s, value)| (x.place(*at_s), y.place(*value)))
            .collect();
        let class = format!("curve thin l{} d{}", line.colour % 8, line.colour % 4);
        picture.polyline(&class, &points);
    }
    let names = (0..subjects.len()).filter(|colour| used[*colour] > 0);
    let names = names.map(|colour| (subjects[colour].as_str(), Some(colour)));
    let caption = format!("{title} (a line for each block)");
    figure(&caption, &(picture.finish(BOTTOM + 46.0) + &legend(names)))
}

#[cfg(test)]
mod tests {
    use readings::{ConnectionsRow, LastingReading};

    use super::*;

    #[test]
    fn connections_that_were_opened_again_in_a_row_are_missing_in_it() {
        let row = |start_s: f64| LoadRow {
            start_s,
            duration_s: 0.1,
            ..LoadRow::default()
        };
        let seen = |start_s: f64, opened: u64| ConnectionsRow {
            start_s,
            open: 200,
            cut: opened,
            opened,
        };
        let load = LoadReading {
            rows: vec![row(0.0), row(0.1)],
            lasting: Some(Box::new(LastingReading {
                connections: vec![seen(0.0, 0), seen(0.1, 150)],
                ..LastingReading::default()
            })),
            ..LoadReading::default()
        };
        assert_eq!(lasting(&load), [(0.1, 200.0), (0.2, 50.0)]);
    }

    #[test]
    fn a_row_that_the_windows_end_cut_short_is_not_drawn() {
        let row = |start_s: f64, duration_s: f64| LoadRow {
            start_s,
            duration_s,
            ..LoadRow::default()
        };
        let rows = [row(0.0, 0.1), row(0.1, 0.1), row(0.2, 0.003)];
        let starts: Vec<f64> = whole(&rows).map(|row| row.start_s).collect();
        assert_eq!(starts, [0.0, 0.1]);
    }
}
