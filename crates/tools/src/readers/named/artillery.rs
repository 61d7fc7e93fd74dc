//! Artillery 2: the summary report at the end, or the JSON of `--output`.
//!
//! - Users arrive at a rate, whatever the server does. `http.requests` were sent, `http.responses`
//!   answered; `http.request_rate` is the mean of what was sent in each period, in whole numbers.
//! - `http.response_time` ends with an answer's head, and begins when the request was sent: it is
//!   the time to the first byte. Its quantiles are those of a sketch, within 1%.
//! - `errors.NAME` are requests without an answer, by the name of Node's error.
//! - Bytes are bodies only.
//! - Messages of WebSockets and events of Socket.IO are counted when they are sent. Where there are no
//!   HTTP requests they count as requests; only events that the server acknowledges are timed
//!   (`socketio.response_time`).

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
        key: "\"vusers.created\"",
        is_one: |json| {
            let counters = &json["aggregate"]["counters"];
            KINDS.iter().any(|kind| counters[kind.sent].is_u64())
        },
        read: |json| Some(read_document(&json["aggregate"])),
    }),
};

/// The names of what a kind of traffic counts.
struct Kind {
    sent: &'static str,
    rate: &'static str,
    times: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind {
        sent: "http.requests",
        rate: "http.request_rate",
        times: "http.response_time",
    },
    Kind {
        sent: "websocket.messages_sent",
        rate: "websocket.send_rate",
        times: "",
    },
    Kind {
        sent: "socketio.emit",
        rate: "socketio.emit_rate",
        times: "socketio.response_time",
    },
];

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

/// The first kind of traffic whose figures are there.
fn kind_of(has: impl Fn(&str) -> bool) -> &'static Kind {
    let [http, ..] = &KINDS;
    KINDS.iter().find(|kind| has(kind.sent)).unwrap_or(http)
}

/// What counters of both forms say.
fn count(
    reading: &mut ToolReading,
    counters: &[(&str, u64)],
    kind: &Kind,
    sent_per_s: Option<f64>,
) {
    let value = |name: &str| {
        counters
            .iter()
            .find(|(one, _)| *one == name)
            .map(|one| one.1)
    };
    let is_http = kind.sent == "http.requests";
    let codes = counters
        .iter()
        .filter_map(|(name, n)| Some((name.strip_prefix("http.codes.")?, *n)));
    count_statuses(reading, codes);
    reading.requests = match is_http {
        true => value("http.responses").or_else(|| value(kind.sent).map(|_| 0)),
        false => value(kind.sent),
    };
    reading.bytes_read = value("http.downloaded_bytes");
    for (name, n) in counters {
        if let Some(said) = name.strip_prefix("errors.") {
            count_failure(reading, said, *n);
        }
    }
    let part = reading
        .requests
        .zip(value(kind.sent).filter(|sent| *sent > 0));
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
    let lines = &lines[begins.unwrap_or(lines.len())..];
    // They come last; without any session that ended there is no length of one.
    const LAST: [&str; 2] = ["vusers.failed:", "vusers.session_length:"];
    let is_last = |line: &&Line| LAST.iter().any(|text| line.text.starts_with(text));
    if begins.is_some() && !lines.iter().any(is_last) {
        figures.lacks("`vusers.failed:` in the summary report");
    }
    let kind = kind_of(|name| {
        let mut all = lines.iter().filter_map(|line| dotted(&line.text));
        all.any(|(one, _)| one == name)
    });
    let (mut counters, mut rate_per_s) = (Vec::new(), None);
    let mut heading = "";
    for &line in lines {
        match dotted(&line.text) {
            None => heading = line.text.trim_end_matches(':'),
            Some((name @ ("min" | "max" | "mean" | "median" | "p95" | "p99"), value)) => {
                if heading == kind.times {
                    let us = figures.want(line, "milliseconds", units::ms(value));
                    set_named(&mut reading.first_byte, name, us.unwrap_or(0.0));
                }
            }
            Some((name, value)) if name == kind.rate => {
                let rate = value.strip_suffix("/sec").and_then(units::number);
                rate_per_s = figures.want(line, "`10/sec`", rate);
            }
            Some((name, value)) => {
                let starts = ["http.", "errors."];
                let is_read = starts.iter().any(|start| name.starts_with(start));
                let is_read = is_read || name == kind.sent;
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
    count(&mut reading, &counters, kind, rate_per_s);
    vec![reading]
}

fn read_document(aggregate: &Value) -> ToolReading {
    let mut reading = ToolReading::new(Tool::Artillery);
    let counters: Vec<_> = named::counts(&aggregate["counters"]).collect();
    let kind = kind_of(|name| counters.iter().any(|(one, _)| *one == name));
    reading.first_byte = named::times(&aggregate["summaries"][kind.times], 1e3);
    let rate_per_s = units::figure(&aggregate["rates"][kind.rate]);
    count(&mut reading, &counters, kind, rate_per_s);
    reading
}
