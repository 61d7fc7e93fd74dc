//! bombardier: its statistics, or JSON (`-o json`).
//!
//! - `Reqs/sec` is the mean of rates over some milliseconds each, with failures, and can be twice
//!   the true rate: it is not read. Answers per second are worked out where the time is known: from
//!   the JSON, from the progress of a run of so many requests, or, of a run over a time, where the
//!   slowest answer is short against that time.
//! - `others` are requests without an answer; the latencies include them, and opening connections.
//! - `Throughput` is the sum of both directions, and so no figure of what was read.

use serde_json::Value;

use crate::mark::Mark;
use crate::readers::{Document, Reader};
use crate::reading::{Figures, count_failure, count_statuses, set_named, sum};
use crate::text::lines::Line;
use crate::text::{named, units};
use crate::{Tool, ToolReading};

const CODES: &str = "`1xx - 0, 2xx - 10, 3xx - 0, 4xx - 0, 5xx - 0`";

pub(in crate::readers) static READER: Reader = Reader {
    first: "`Bombarding http://... for 10s using 10 connection(s)`, or its JSON",
    result: CODES,
    gives_up: &["bombardier: error: "],
    mark,
    read,
    document: Some(Document {
        key: "\"timeTakenSeconds\"",
        is_one: |json| json["result"]["timeTakenSeconds"].is_number() && json["spec"].is_object(),
        read: |json| Some(read_document(json)),
    }),
};

/// An asked time counts as the time taken where the slowest answer is below this share of it.
const SHORT: f64 = 0.1;

fn mark(lines: &[Line], at: usize) -> Option<Mark> {
    let text = lines[at].text.as_str();
    let words = lines[at].words();
    if text.starts_with("Bombarding ") && text.ends_with(" connection(s)") {
        // What it says before its JSON.
        let mut next = lines.iter().skip(at + 1).take(6);
        return (!next.any(|line| line.text.starts_with("{\"spec\""))).then(|| Mark::opens(1))?;
    }
    match words[..] {
        ["Done!"] => Mark::once(3),
        ["Statistics", "Avg", "Stdev", "Max"] => Mark::opens(4),
        ["Reqs/sec", _, _, _] => Mark::opens(5),
        ["Latency", _, _, _] => Mark::once(6),
        ["Latency", "Distribution"] => Mark::once(7),
        [share, _] if units::percent(share).is_some() => Mark::many(8),
        ["HTTP", "codes:"] => Mark::opens(9),
        ["1xx", "-", ..] => Mark::once(10),
        ["others", "-", _] => Mark::once(11),
        ["Errors:"] => Mark::once(12),
        ["Throughput:", _] => Mark::once(14),
        _ if words.iter().all(|word| units::duration_us(word).is_some()) => Mark::many(2),
        _ if failure(text).is_some() => Mark::many(13),
        [_, "/", _, ..] => Mark::many(2),
        _ => None,
    }
}

/// `dial tcp ...: connection refused - 20`.
fn failure(text: &str) -> Option<(&str, u64)> {
    let (said, count) = text.rsplit_once(" - ")?;
    Some((said, units::count(count)?))
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut reading = ToolReading::new(Tool::Bombardier);
    reading.depth = Some(1);
    let (mut asked_s, mut progress) = (None, None);
    let mut codes = None;
    let mut others = 0;
    for &line in lines {
        let words = line.words();
        match words[..] {
            ["Bombarding", url, .., connections, "connection(s)"] => {
                reading.url = Some(url.to_owned());
                reading.connections = figures.want(line, "a count", units::count(connections));
                let at = words.iter().position(|word| *word == "for");
                let time = at.and_then(|at| words.get(at + 1));
                asked_s = time.and_then(|time| units::duration_s(time));
            }
            ["Latency", mean, stdev, max] => {
                for (name, word) in [("mean", mean), ("stdev", stdev), ("max", max)] {
                    let us = figures.want(line, "times such as `1.5ms`", units::duration_us(word));
                    set_named(&mut reading.latency, name, us.unwrap_or(0.0));
                }
            }
            [share, time] if units::percent(share).is_some() => {
                let us = figures.want(line, "a share and a time", units::duration_us(time));
                set_named(&mut reading.latency, share, us.unwrap_or(0.0));
            }
            ["1xx", "-", ..] => {
                let counts: Option<Vec<_>> = line.text.split(", ").map(failure).collect();
                codes = figures.want(line, CODES, counts);
            }
            ["others", "-", count] => {
                others = figures
                    .want(line, "a count", units::count(count))
                    .unwrap_or(0);
            }
            [_, "/", _, ..] => progress = progress_per_s(&words),
            _ => {
                if let Some((said, count)) = failure(&line.text) {
                    count_failure(&mut reading, said, count);
                }
            }
        }
    }
    count_answers(&mut reading, codes, others);
    let slowest_s = reading.latency.max_us.unwrap_or(f64::MAX) / 1e6;
    reading.duration_s = asked_s.filter(|asked| slowest_s <= SHORT * asked);
    let worked_out = per_s(&reading);
    reading.requests_per_s = worked_out.or(progress.filter(|_| others == 0));
    vec![reading]
}

/// The rate at the end of `0 / 20  0.00% 20 / 20  100.00% 99/s 0s`.
fn progress_per_s(words: &[&str]) -> Option<f64> {
    let at = words
        .iter()
        .rposition(|word| *word == "/")
        .filter(|at| *at > 0)?;
    words.get(at + 1).filter(|all| **all == words[at - 1])?;
    let rate = words[at..]
        .iter()
        .find_map(|word| word.strip_suffix("/s"))?;
    units::number(rate)
}

fn per_s(reading: &ToolReading) -> Option<f64> {
    let seconds = reading.duration_s.filter(|s| *s > 0.0)?;
    Some(reading.requests? as f64 / seconds)
}

/// Answers by the class of their status, and requests without one; the failures that are counted
/// already are among these.
fn count_answers(reading: &mut ToolReading, codes: Option<Vec<(&str, u64)>>, others: u64) {
    let known = reading.errors.total();
    reading.errors.unexplained = sum([reading.errors.unexplained, others.saturating_sub(known)]);
    if let Some(codes) = codes {
        count_statuses(reading, codes);
    }
}

fn read_document(json: &Value) -> ToolReading {
    let mut reading = ToolReading::new(Tool::Bombardier);
    reading.depth = Some(1);
    let (spec, result) = (&json["spec"], &json["result"]);
    reading.url = spec["url"].as_str().map(str::to_owned);
    reading.connections = spec["numberOfConnections"].as_u64();
    reading.closed_loop = Some(spec["rate"].is_null());
    reading.offered_per_s = units::figure(&spec["rate"]);
    reading.duration_s = units::figure(&result["timeTakenSeconds"]);
    reading.bytes_read = result["bytesRead"].as_u64();
    reading.latency = named::times(&result["latency"], 1.0);
    for (name, value) in result["latency"]["percentiles"]
        .as_object()
        .into_iter()
        .flatten()
    {
        set_named(
            &mut reading.latency,
            name,
            units::figure(value).unwrap_or(0.0),
        );
    }
    for failure in result["errors"].as_array().into_iter().flatten() {
        let said = failure["description"].as_str().unwrap_or("");
        count_failure(&mut reading, said, failure["count"].as_u64().unwrap_or(0));
    }
    let class = |(name, count)| Some((str::strip_prefix(name, "req")?, count));
    let codes: Vec<_> = named::counts(result).filter_map(class).collect();
    count_answers(&mut reading, Some(codes), sum(result["others"].as_u64()));
    reading.requests_per_s = per_s(&reading);
    reading
}
