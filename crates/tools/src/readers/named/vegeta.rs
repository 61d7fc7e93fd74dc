//! vegeta: `vegeta report` as text, JSON (`-type json`), histogram (`-type hist`) or quantiles
//! (`-type hdrplot`).
//!
//! - It is an open loop: `rate` is that at which requests were sent, `throughput` that of answers
//!   with a status below 400. Answers per second are worked out where there were others.
//! - `total` of the duration runs from the first request to the end of the last one.
//! - The code 0 is a request without an answer; the set of errors tells the kinds, but not how many
//!   there were of each.
//! - Latencies include requests that failed, and opening a connection. Those of a histogram are
//!   bounds and no figures. Bytes are bodies only.

use serde_json::Value;

use crate::mark::Mark;
use crate::readers::{Document, Reader};
use crate::reading::{Figures, count_statuses, place_of, set_named, set_quantile, sum};
use crate::text::lines::Line;
use crate::text::{named, units};
use crate::{Tool, ToolReading};
use readings::ErrorCounts;

const REQUESTS: &str = "`Requests  [total, rate, throughput]  10, 5.00, 4.99`";

pub(in crate::readers) static READER: Reader = Reader {
    first: "`Requests  [total, rate, throughput]  10, 5.00, 4.99`, or its JSON",
    result: REQUESTS,
    gives_up: &[
        "bad report type",
        "encode: can't detect encoding",
        "error opening ",
    ],
    mark: |lines, at| mark(&lines[at]),
    read,
    document: Some(Document {
        key: "\"status_codes\"",
        is_one: |json| json["status_codes"].is_object() && json["bytes_in"].is_object(),
        read: |json| Some(read_document(json)),
    }),
};

/// How lines without a digit begin.
const HEADS: [&str; 4] = ["Error Set:", "Bucket ", "Value(ms) ", "Status Codes "];

fn mark(line: &Line) -> Option<Mark> {
    const LISTS: [&str; 7] = [
        "Requests [total,",
        "Duration [total",
        "Latencies [",
        "Bytes In [total,",
        "Bytes Out [total,",
        "Success [ratio]",
        "Status Codes [code:count]",
    ];
    if !line.text.contains(|c: char| c.is_ascii_digit())
        && !HEADS.iter().any(|head| line.text.starts_with(head))
        && !is_error(&line.text)
    {
        return None;
    }
    let words = line.words().join(" ");
    if let Some(at) = LISTS.iter().position(|list| words.starts_with(list)) {
        let rank = at as u8 + 1;
        return if matches!(at, 0..=2) {
            Mark::opens(rank)
        } else {
            Mark::once(rank)
        };
    }
    if words == "Error Set:" {
        Mark::once(8)
    } else if is_error(&line.text) {
        Mark::many(9)
    } else if words == "Bucket # % Histogram" {
        Mark::opens(1)?.with_key(20)
    } else if bucket(&line.text).is_some() {
        Mark::many(10)
    } else if words.starts_with("Value(ms) Percentile TotalCount") {
        Mark::opens(1)?.with_key(30)
    } else if plotted(line).is_some() {
        Mark::many(10)
    } else {
        None
    }
}

/// An error of the set: a status with its reason, or what the Go client said of a request.
fn is_error(text: &str) -> bool {
    is_status(text)
        || text.split_once(" \"").is_some_and(|(verb, rest)| {
            !verb.is_empty()
                && verb.bytes().all(|b| b.is_ascii_alphabetic())
                && rest.contains("\": ")
        })
}

fn is_status(text: &str) -> bool {
    let (code, reason) = text.split_at_checked(3).unwrap_or_default();
    units::count(code).is_some_and(|code| code >= 100)
        && reason
            .strip_prefix(' ')
            .is_some_and(|r| r.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// The count of `[1ms,    10ms]   42   4.20%   ###`.
fn bucket(text: &str) -> Option<u64> {
    let (edges, rest) = text.strip_prefix('[')?.split_once(']')?;
    let words: Vec<&str> = rest.split_whitespace().take(2).collect();
    let [count, share] = words[..] else {
        return None;
    };
    units::percent(share).filter(|_| edges.contains(','))?;
    units::count(count)
}

/// Milliseconds, share and running count of `0.237720   0.500000    500   2.000000`.
fn plotted(line: &Line) -> Option<(f64, f64, u64)> {
    match line.words()[..] {
        [ms, share, count, _] => {
            let share = units::number(share).filter(|share| (0.0..=1.0).contains(share))?;
            Some((units::ms(ms)?, share, units::count(count)?))
        }
        _ => None,
    }
}

/// What both forms say.
#[derive(Default)]
struct Said<'a> {
    all: u64,
    throughput: Option<f64>,
    codes: Option<Vec<(&'a str, u64)>>,
    messages: Vec<&'a str>,
}

impl Said<'_> {
    /// Whether failures have no message: each error status has one, and so has what was not answered.
    fn lacks_messages(&self) -> bool {
        let codes = self.codes.as_deref().unwrap_or_default();
        let of = |is: fn(&str) -> bool| codes.iter().filter(|(code, n)| *n > 0 && is(code)).count();
        let (wrong, lost) = (of(|code| code >= "400"), of(|code| code == "0"));
        let statuses = self.messages.iter().filter(|said| is_status(said)).count();
        statuses < wrong || self.messages.len() - statuses < lost
    }

    fn complete(self, reading: &mut ToolReading) {
        let Some(codes) = self.codes else {
            reading.requests = Some(self.all);
            return;
        };
        count_statuses(reading, codes.iter().copied());
        let answers = reading.requests.unwrap_or(0);
        let lost = self.all.saturating_sub(answers);
        let mut kinds = ErrorCounts::default();
        for said in self.messages.iter().filter(|said| !is_status(said)) {
            *place_of(&mut kinds, said) = lost;
        }
        // The count is known where all of them are of one kind.
        match kinds.total() == lost {
            true => reading.errors.add(&kinds),
            false => reading.errors.unexplained = lost,
        }
        let seconds = reading.duration_s.filter(|s| *s > 0.0);
        reading.requests_per_s = match lost + reading.errors.status {
            0 => self.throughput,
            _ => seconds.map(|s| answers as f64 / s),
        };
    }
}

/// `200:932  503:66` behind the brackets.
fn codes(text: &str) -> Option<Vec<(&str, u64)>> {
    let (_, codes) = text.split_once(']')?;
    let code = |word| {
        let (code, count) = str::split_once(word, ':')?;
        Some((code, units::count(count)?))
    };
    codes.split_whitespace().map(code).collect()
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut reading = ToolReading::new(Tool::Vegeta);
    let mut said = Said::default();
    let mut is_report = false;
    for &line in lines {
        let text = line.text.as_str();
        if let Some(count) = bucket(text) {
            said.all = sum([said.all, count]);
        } else if let Some((us, share, count)) = plotted(line) {
            if us > 0.0 {
                set_quantile(&mut reading.latency, share, us);
            }
            said.all = count;
        } else if is_error(text) {
            said.messages.push(text);
        } else if text.starts_with("Status Codes") {
            said.codes = figures.want(line, "`200:10  503:1`", codes(text));
        } else if let Some((label, pairs)) = named::listed(text) {
            is_report = true;
            for (name, value) in pairs {
                match (label, name) {
                    ("Requests", "total") => {
                        let count = figures.want(line, REQUESTS, units::count(value));
                        said.all = count.unwrap_or(0);
                    }
                    ("Requests", "throughput") => said.throughput = units::number(value),
                    ("Duration", "total") => {
                        reading.duration_s = figures.want(line, "`1.5s`", units::duration_s(value));
                    }
                    ("Latencies", name) => {
                        let us = units::duration_us(value);
                        let us = figures.want(line, "times such as `1.5ms`", us);
                        set_named(&mut reading.latency, name, us.unwrap_or(0.0));
                    }
                    ("Bytes In", "total") => reading.bytes_read = units::count(value),
                    _ => {}
                }
            }
        }
    }
    if said.lacks_messages() {
        figures.lacks("a part of `Error Set:`");
    }
    // Without its codes a report does not say which of its requests were answered.
    if !is_report || said.codes.is_some() {
        said.complete(&mut reading);
    }
    vec![reading]
}

fn read_document(json: &Value) -> ToolReading {
    let mut reading = ToolReading::new(Tool::Vegeta);
    let ns = |name: &str| units::figure(&json[name]);
    reading.duration_s = ns("duration").zip(ns("wait")).map(|(a, b)| (a + b) / 1e9);
    reading.latency = named::times(&json["latencies"], 1e-3);
    reading.bytes_read = json["bytes_in"]["total"].as_u64();
    let messages = json["errors"].as_array().into_iter().flatten();
    let said = Said {
        all: json["requests"].as_u64().unwrap_or(0),
        throughput: units::figure(&json["throughput"]),
        codes: Some(named::counts(&json["status_codes"]).collect()),
        messages: messages.filter_map(Value::as_str).collect(),
    };
    said.complete(&mut reading);
    reading
}
