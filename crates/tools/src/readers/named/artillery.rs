//! Artillery 2: the summary report at the end, or the JSON of `--output`.
//!
//! - Users arrive at a rate, whatever the server does. `http.requests` were sent, `http.responses`
//!   answered; `http.request_rate` is the mean of what was sent in each period, in whole numbers.
//! - `http.response_time` ends with an answer's head, and begins when the request was sent: it is
//!   the time to the first byte. Its quantiles are those of a sketch, within 1%.
//! - `errors.NAME` are requests without an answer, by the name of Node's error.
//! - Bytes are bodies only.

use serde_json::Value;

use crate::mark::Mark;
use crate::readers::{Document, Reader};
use crate::reading::{Figures, coarse_mean, count_failure, count_statuses, set_named};
use crate::text::lines::Line;
use crate::text::{named, units};
use crate::{Tool, ToolReading};

const RESULT: &str = "`http.responses: ..... 10` in the summary report";

pub(in crate::readers) static READER: Reader = Reader {
    first: "`Summary report @ 12:00:00(+0000)` and `http.responses: ..... 10`, or its JSON",
    result: RESULT,
    gives_up: &["Error: "],
    mark: |lines, at| mark(&lines[at].text),
    read,
    document: Some(Document {
        key: "\"http.requests\"",
        is_one: |json| json["aggregate"]["counters"]["http.requests"].is_u64(),
        read: |json| Some(read_document(&json["aggregate"])),
    }),
};

/// Its times are whole milliseconds.
const STEP_US: f64 = 1e3;

fn mark(text: &str) -> Option<Mark> {
    if text.starts_with("Metrics for period to: ") {
        Mark::opens_many(1)
    } else if text.starts_with("Summary report @ ") {
        Mark::opens(2)
    } else if dotted(text).is_some()
        || named::is_rule(text)
        || text.starts_with("All VUs finished")
        || text
            .strip_suffix(':')
            .is_some_and(|name| name.contains('.') && !name.contains(' '))
    {
        Mark::anywhere()
    } else {
        None
    }
}

/// Name and value of `http.responses: ........ 178`.
fn dotted(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once(": ..")?;
    let value = rest.trim_start_matches('.').strip_prefix(' ')?;
    (!name.contains(' ')).then(|| (name, value.trim()))
}

/// What counters of both forms say.
fn count(reading: &mut ToolReading, counters: &[(&str, u64)], sent_per_s: Option<f64>) {
    let value = |name: &str| {
        counters
            .iter()
            .find(|(one, _)| *one == name)
            .map(|one| one.1)
    };
    let codes = counters
        .iter()
        .filter_map(|(name, n)| Some((name.strip_prefix("http.codes.")?, *n)));
    count_statuses(reading, codes);
    reading.requests = value("http.responses").or_else(|| value("http.requests").map(|_| 0));
    reading.bytes_read = value("http.downloaded_bytes");
    for (name, n) in counters {
        if let Some(said) = name.strip_prefix("errors.") {
            count_failure(reading, said, *n);
        }
    }
    let part = reading
        .requests
        .zip(value("http.requests").filter(|sent| *sent > 0));
    let part = part.map(|(answers, sent)| answers as f64 / sent as f64);
    reading.requests_per_s = sent_per_s
        .zip(part)
        .map(|(rate, part)| rate * part.min(1.0));
    coarse_mean(&mut reading.first_byte, STEP_US);
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut reading = ToolReading::new(Tool::Artillery);
    let begins = lines
        .iter()
        .position(|line| line.text.starts_with("Summary report @ "));
    let (mut counters, mut rate_per_s) = (Vec::new(), None);
    let mut heading = "";
    for &line in lines.iter().skip(begins.unwrap_or(lines.len())) {
        match dotted(&line.text) {
            None => heading = line.text.trim_end_matches(':'),
            Some((name @ ("min" | "max" | "mean" | "median" | "p95" | "p99"), value)) => {
                if heading == "http.response_time" {
                    let us = figures.want(line, "milliseconds", units::ms(value));
                    set_named(&mut reading.first_byte, name, us.unwrap_or(0.0));
                }
            }
            Some(("http.request_rate", value)) => {
                let rate = value.strip_suffix("/sec").and_then(units::number);
                rate_per_s = figures.want(line, "`10/sec`", rate);
            }
            Some((name, value)) => {
                let is_read = ["http.", "errors."]
                    .iter()
                    .any(|start| name.starts_with(start));
                let value = units::count(value);
                let value = if is_read {
                    figures.want(line, "a count", value)
                } else {
                    value
                };
                counters.extend(value.map(|value| (name, value)));
            }
        }
    }
    count(&mut reading, &counters, rate_per_s);
    vec![reading]
}

fn read_document(aggregate: &Value) -> ToolReading {
    let mut reading = ToolReading::new(Tool::Artillery);
    let times = &aggregate["summaries"]["http.response_time"];
    reading.first_byte = named::times(times, 1e3);
    let counters: Vec<_> = named::counts(&aggregate["counters"]).collect();
    let rate_per_s = units::figure(&aggregate["rates"]["http.request_rate"]);
    count(&mut reading, &counters, rate_per_s);
    reading
}
