//! ghz: its summary, or JSON (`-O json`, `-O pretty`).
//!
//! - `Count` and `Requests/sec` are of all calls. A call has no answer where its error is the
//!   connection's or the deadline's; any other code than OK counts as an answer with a wrong status.
//! - `Average` is over all calls; the fastest, the slowest and the quantiles only over those that
//!   were OK. Where calls have failed, the mean is left out.
//! - Calls share connections; the workers (`-c`) are the calls in flight at one time.

use serde_json::Value;

use crate::mark::Mark;
use crate::readers::{Document, Reader};
use crate::reading::{Figures, count_failure, leave_unanswered_out, set_named, sum};
use crate::text::lines::{Line, next_filled};
use crate::text::{named, units};
use crate::{Tool, ToolReading};

const RESULT: &str = "`Count: 10` and `Requests/sec: 123.45`";

pub(in crate::readers) static READER: Reader = Reader {
    first: "`Summary:` and `Count: 10`, or its JSON",
    result: RESULT,
    gives_up: &["rpc error: code = ", "context deadline exceeded"],
    mark,
    read,
    document: Some(Document {
        key: "\"statusCodeDistribution\"",
        is_one: |json| json["latencyDistribution"].is_array() && json["rps"].is_number(),
        read: |json| Some(read_document(json)),
    }),
};

const LABELS: [&str; 10] = [
    "Count:",
    "Total:",
    "Slowest:",
    "Fastest:",
    "Average:",
    "Requests/sec:",
    "Response time histogram:",
    "Latency distribution:",
    "Status code distribution:",
    "Error distribution:",
];

/// A gRPC error in a list of errors.
pub(in crate::readers) fn is_error(text: &str) -> bool {
    text.starts_with('[') && text.contains("rpc error: code = ")
}

fn mark(lines: &[Line], at: usize) -> Option<Mark> {
    let text = lines[at].text.as_str();
    let next = next_filled(lines, at).map_or("", |line| line.text.as_str());
    if text == "Summary:" {
        let is_its = next.starts_with("Count:") || next.starts_with("Name:");
        return is_its.then(|| Mark::opens(1))?;
    }
    if let Some(at) = LABELS.iter().position(|label| text.starts_with(label)) {
        // Ten apart, with the lines of each list between.
        let rank = 10 * (at as u8 + 1);
        return match at {
            0 if next.starts_with("Total:") => Mark::opens(rank)?.with_key(3),
            _ => Mark::once(rank)?.with_key(3 + at as u8),
        };
    }
    if text.starts_with("Name:") {
        Mark::once(2)
    } else if quantile(text).is_some() {
        Mark::many(81)
    } else if text.starts_with('[') && text.ends_with(" responses") {
        Mark::many(91)
    } else if is_error(text) {
        Mark::many(101)
    } else if text.contains("]\t|") || text.contains("] |") {
        Mark::many(71)
    } else {
        None
    }
}

/// Share and time of `99 % in 31.60 ms`.
fn quantile(text: &str) -> Option<(&str, &str)> {
    let (share, time) = text.split_once(" % in ")?;
    units::number(share).map(|_| (share, time))
}

/// Counts a call's error, as a message or as a code with its message.
fn count_error(reading: &mut ToolReading, said: &str, count: u64) {
    let (_, rest) = said.split_once("code = ").unwrap_or(("", said));
    let (code, words) = rest.split_once(" desc = ").unwrap_or((rest, ""));
    let of_connection = ["transport", "connection", "Error while dialing", "EOF"];
    if code == "DeadlineExceeded" {
        reading.errors.timeout = sum([reading.errors.timeout, count]);
    } else if of_connection.iter().any(|word| words.contains(word)) {
        count_failure(reading, words, count);
    } else {
        reading.errors.status = sum([reading.errors.status, count]);
    }
}

/// Makes answers of calls.
fn complete(reading: &mut ToolReading, calls: Option<u64>, calls_per_s: Option<f64>) {
    leave_unanswered_out(reading, calls, calls_per_s);
    if reading.errors.total() > 0 {
        reading.latency.mean_us = None;
    }
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut reading = ToolReading::new(Tool::Ghz);
    let (mut calls, mut calls_per_s) = (None, None);
    let mut list = "";
    let (mut coded, mut good, mut listed) = (0, 0, 0);
    for &line in lines {
        let text = line.text.as_str();
        if let Some((share, time)) = quantile(text) {
            let us = figures.want(line, "a share and a time", units::duration_us(time));
            set_named(&mut reading.latency, share, us.unwrap_or(0.0));
        } else if let Some((count, said)) = text.strip_prefix('[').and_then(|t| t.split_once(']')) {
            // The codes say less than the errors.
            if list == "Error distribution" {
                let count = figures.want(line, "`[10] rpc error: ...`", units::count(count));
                let count = count.unwrap_or(0);
                listed = sum([listed, count]);
                count_error(&mut reading, said, count);
            } else if let Some((number, "responses")) = named::leading(said.trim()) {
                coded = sum([coded, number]);
                good = if count == "OK" { number } else { good };
            }
        } else if let Some((label, rest)) = text.split_once(':') {
            list = label;
            let rest = rest.trim();
            let mut time = || figures.want(line, "a time", units::duration_us(rest));
            match label {
                "Slowest" | "Fastest" | "Average" => {
                    set_named(&mut reading.latency, label, time().unwrap_or(0.0));
                }
                "Total" => reading.duration_s = time().map(|us| us / 1e6),
                "Count" => calls = figures.want(line, RESULT, units::count(rest)),
                "Requests/sec" => calls_per_s = figures.want(line, RESULT, units::number(rest)),
                _ => {}
            }
        }
    }
    if calls.is_some_and(|calls| coded < calls) {
        figures.lacks("a part of `Status code distribution`");
    } else if listed < coded - good {
        figures.lacks("a part of `Error distribution`");
    }
    complete(&mut reading, calls, calls_per_s);
    vec![reading]
}

fn read_document(json: &Value) -> ToolReading {
    let mut reading = ToolReading::new(Tool::Ghz);
    let options = &json["options"];
    let call = options["host"].as_str().zip(options["call"].as_str());
    reading.url = call.map(|(host, call)| format!("{host}/{call}"));
    reading.connections = options["connections"].as_u64();
    let workers = options["concurrency"].as_u64();
    // They share the connections, evenly if that is possible.
    let each = workers.zip(reading.connections.filter(|n| *n > 0));
    reading.depth = each.filter(|(all, n)| all % n == 0).map(|(all, n)| all / n);
    reading.offered_per_s = units::figure(&options["rps"]).filter(|rate| *rate > 0.0);
    reading.closed_loop = Some(reading.offered_per_s.is_none());
    reading.duration_s = units::figure(&json["total"]).map(|ns| ns / 1e9);
    reading.latency = named::times(json, 1e-3);
    for entry in json["latencyDistribution"].as_array().into_iter().flatten() {
        if let (Some(share), Some(ns)) = (
            entry["percentage"].as_f64(),
            units::figure(&entry["latency"]),
        ) {
            set_named(&mut reading.latency, &share.to_string(), ns / 1e3);
        }
    }
    for (said, count) in named::counts(&json["errorDistribution"]) {
        count_error(&mut reading, said, count);
    }
    complete(
        &mut reading,
        json["count"].as_u64(),
        units::figure(&json["rps"]),
    );
    reading
}
