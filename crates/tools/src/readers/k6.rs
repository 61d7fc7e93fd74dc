//! k6: the summary at a test's end, old and new form, and its JSON.
//!
//! - `http_req_duration` is sending + waiting + receiving: connecting is not in it.
//!   `http_req_waiting` is the time to the first byte after sending.
//! - `http_req_connecting` is over all requests, with 0 for those on an open connection: only its
//!   largest value is the time of opening one.
//! - `http_req_failed` counts requests that failed in any way, by default also those with a status
//!   of 400 or more; k6 does not tell them apart. If all failed and nothing was received, none was
//!   answered. In the old form and in the JSON the ticks
//!   (`passes`) are the failed ones.
//! - `http_reqs` counts failed requests too.
//! - Checks are the script's, any number for a request: failed ones, and thresholds that were
//!   crossed, are what k6 said. In the JSON of `--summary-export` a threshold's `true` is a crossed
//!   one.
//! - A virtual user has its own connections and makes, outside of batches, one request at a time:
//!   the largest number of users is taken for the connections.
//! - A WebSocket has no answers: the messages that were received count as requests, and nothing says
//!   how long one took. `ws_connecting` is the time of opening a session.
//! - gRPC calls are timed (`grpc_req_duration`), but not counted. Messages of streams are: those that
//!   were received count as requests where there are no others.
//! - A rate of iterations is the offered rate of requests only if each iteration made one.
//! - Bytes have k = 1000 in the text; times in the JSON are milliseconds.

use serde_json::Value;

use super::{Document, Reader};
use crate::mark::Mark;
use crate::reading::{Figures, set_quantile};
use crate::text::lines::Line;
use crate::text::units;
use crate::{Tool, ToolLatency, ToolReading};

const RESULT: &str = "`http_reqs......: 100 9.9/s`";

pub(super) static READER: Reader = Reader {
    first: "`http_reqs......: 100 9.9/s`, or its JSON",
    result: RESULT,
    gives_up: &["ERRO[", "level=error"],
    mark: |lines, at| mark(&lines[at]),
    read,
    document: Some(Document {
        key: "\"metrics\"",
        is_one: is_document,
        read: |json| Some(read_document(json)),
    }),
};

/// The metrics that are read, each once in an output. All others are k6's or the script's too.
const METRICS: [&str; 22] = [
    "checks",
    "checks_total",
    "checks_succeeded",
    "checks_failed",
    "data_received",
    "http_req_connecting",
    "http_req_duration",
    "http_req_failed",
    "http_req_waiting",
    "http_reqs",
    "iterations",
    "vus",
    "vus_max",
    "data_sent",
    "grpc_req_duration",
    "grpc_streams",
    "grpc_streams_msgs_received",
    "grpc_streams_msgs_sent",
    "ws_connecting",
    "ws_msgs_received",
    "ws_msgs_sent",
    "ws_sessions",
];

/// Those that say that an output is k6's, in JSON.
const MADE: [&str; 4] = [
    "http_reqs",
    "ws_sessions",
    "grpc_req_duration",
    "grpc_streams",
];

/// Where the thresholds are listed, in the new form; the old one has ticks before the metrics.
const THRESHOLDS: &str = "█ THRESHOLDS";

/// Where parts of groups and scenarios begin, which repeat the metrics of the whole.
fn is_part(text: &str) -> bool {
    ["█ GROUP", "█ SCENARIO", "↳ GROUP"]
        .iter()
        .any(|heading| text.starts_with(heading))
}

fn mark(line: &Line) -> Option<Mark> {
    let text = line.text.as_str();
    if let Some((name, _)) = metric(text) {
        let key = METRICS.iter().position(|metric| *metric == name);
        return match key {
            // The keys stand apart from the ranks, which are keys too.
            Some(key) => Mark::opens(30)?.with_key(32 + key as u8),
            None => Mark::many(30),
        };
    }
    if is_part(text) {
        return Mark::part(12);
    }
    if text.starts_with("execution: ") {
        return Mark::opens(1);
    }
    match text {
        THRESHOLDS => return Mark::opens(11),
        "█ TOTAL RESULTS" => return Mark::opens(12),
        "HTTP" | "EXECUTION" | "NETWORK" | "CUSTOM" | "WEBSOCKET" | "GRPC" => {
            return Mark::anywhere();
        }
        _ => {}
    }
    let beside = text.starts_with(['✓', '✗', '↳', '*'])
        || [
            "{ expected_response",
            "script: ",
            "output: ",
            "scenarios: ",
            "running (",
        ]
        .iter()
        .any(|label| text.starts_with(label))
        || is_progress(text)
        || ["http_req", "ws_", "grpc_"]
            .iter()
            .any(|start| text.starts_with(start));
    if beside { Mark::anywhere() } else { None }
}

/// `default ✓ [======] 10 VUs  30s`.
fn is_progress(text: &str) -> bool {
    text.contains('[') && text.contains(']') && text.contains(" VUs ")
}

/// A metric's name and values: `http_reqs......: 100 9.9/s`. Ticks and crosses may stand before.
fn metric(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(['✓', '✗']).trim_start();
    let (name, values) = text.split_once(':')?;
    let word = name.trim_end_matches('.');
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let dots = name.len() - word.len();
    let is_name = dots >= 2 && !word.is_empty() && word.bytes().all(plain);
    is_name.then(|| (word, values.trim()))
}

/// What goes together to make the reading, whatever the form.
#[derive(Default)]
struct Said {
    /// Messages that were received, and per second.
    messages: Option<(u64, f64)>,
    /// Whether metrics of WebSockets stood there, and the last of them.
    has_sockets: bool,
    has_sessions: bool,
    iterations: Option<u64>,
    vus: Option<u64>,
    vus_max: Option<u64>,
    iteration_rate_per_s: Option<f64>,
}

impl Said {
    fn complete(self, reading: &mut ToolReading) {
        if let (None, Some((count, per_s))) = (reading.requests, self.messages) {
            (reading.requests, reading.requests_per_s) = (Some(count), Some(per_s));
        }
        reading.connections = self.vus.or(self.vus_max);
        let none_answered = reading.bytes_read == Some(0)
            && reading.requests.is_some_and(|n| n > 0)
            && reading.requests == Some(reading.errors.unexplained);
        if none_answered {
            // The times are zeros.
            reading.latency = ToolLatency::default();
            reading.first_byte = ToolLatency::default();
            (reading.requests, reading.requests_per_s) = (Some(0), Some(0.0));
        }
        if self.iterations.is_some() && self.iterations == reading.requests {
            reading.offered_per_s = self.iteration_rate_per_s;
        }
        if reading.duration_s.is_none() {
            // The rate is the count over the time.
            let rate = reading.requests_per_s.filter(|&rate| rate > 0.0);
            let time = reading.requests.zip(rate);
            reading.duration_s = time.map(|(count, rate)| count as f64 / rate);
        }
    }
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut reading = ToolReading::new(Tool::K6);
    let mut said = Said::default();
    let mut whole = true;
    // The metric that thresholds are listed of.
    let mut listed = None;
    for &line in lines {
        let text = line.text.as_str();
        if text.starts_with('█') {
            whole &= !is_part(text);
            listed = (text == THRESHOLDS).then_some("");
        } else if is_part(text) {
            whole = false;
        } else if let Some(metric) = listed {
            match text.strip_prefix('✗') {
                Some(_) => reading
                    .said
                    .push(format!("{metric} {text}").trim().to_owned()),
                None if !text.starts_with('✓') => listed = Some(text),
                None => {}
            }
        } else if let Some((name, values)) = metric(text).filter(|_| whole) {
            read_metric(&mut reading, &mut said, (name, values), line, figures);
        } else if let Some(rest) = text.strip_prefix("running (") {
            // How long the test took stands in the last such line, when no user is left.
            if let Some((time, users)) = rest.split_once("), ")
                && users.trim_start_matches('0').starts_with('/')
            {
                reading.duration_s = units::duration_s(time).or(reading.duration_s);
            }
        } else if text.starts_with('*') {
            let rate = text.split_once(" iterations/s");
            let rate = rate.and_then(|(before, _)| before.split_whitespace().last());
            said.iteration_rate_per_s = rate.and_then(units::number);
        }
    }
    // These metrics come last: without them the output was cut off.
    if said.has_sockets && !said.has_sessions {
        let end = lines.last();
        end.map(|line| figures.want(line, "`ws_sessions...: 10 1.0/s`", None::<u64>));
    }
    said.complete(&mut reading);
    vec![reading]
}

fn read_metric(
    reading: &mut ToolReading,
    said: &mut Said,
    (name, values): (&str, &str),
    line: &Line,
    figures: &mut Figures,
) {
    let words: Vec<&str> = values.split_whitespace().collect();
    if line.text.starts_with('✗') {
        reading.said.push(format!("✗ {name}"));
    }
    let first = words.first().copied().unwrap_or("");
    let count = units::count(first);
    let rate = words.get(1).and_then(|word| word.strip_suffix("/s"));
    said.has_sockets |= name.starts_with("ws_");
    said.has_sessions |= name == "ws_sessions";
    match name {
        "http_reqs" => {
            reading.requests = figures.want(line, RESULT, count);
            let rate = rate.and_then(units::number);
            reading.requests_per_s = figures.want(line, RESULT, rate);
        }
        "iterations" => said.iterations = count,
        // The largest, where it changed; without it the number never did.
        "vus" => said.vus = named(&words, "max=").and_then(units::count).or(count),
        "vus_max" => said.vus_max = named(&words, "max=").and_then(units::count).or(count),
        "data_received" => {
            // A size is two words: `1.3 MB 31 kB/s`.
            let size = |words: &[&str]| units::bytes_1000(&words.join(" "));
            let total = words.get(..2).and_then(size);
            let total = figures.want(line, "`1.3 MB 31 kB/s`", total);
            reading.bytes_read = total.map(units::whole);
            let rate = values.strip_suffix("/s").map(str::split_whitespace);
            let rate: Option<Vec<&str>> = rate.map(|words| words.skip(2).collect());
            reading.bytes_per_s = rate.and_then(|words| size(&words));
        }
        "http_req_failed" => reading.errors.unexplained = failed(&words).unwrap_or(0),
        "checks" | "checks_failed" => {
            let count = match name {
                "checks" => after(&words, "✗"),
                _ => failed(&words),
            };
            if count.is_some_and(|count| count > 0) {
                reading.said.push(format!("{name}: {}", words.join(" ")));
            }
        }
        "http_req_duration" => {
            let times = figures.want(line, "`avg=1.2ms min=... p(95)=...`", trend(&words));
            reading.latency = times.unwrap_or_default();
        }
        "grpc_req_duration" if reading.latency == ToolLatency::default() => {
            let times = figures.want(line, "`avg=1.2ms min=... p(95)=...`", trend(&words));
            reading.latency = times.unwrap_or_default();
        }
        "ws_msgs_received" | "grpc_streams_msgs_received" => {
            let messages = count.zip(rate.and_then(units::number));
            said.messages = figures.want(line, "`ws_msgs_received...: 100 9.9/s`", messages);
        }
        "ws_connecting" => reading.connect = trend(&words).unwrap_or_default(),
        "http_req_waiting" => reading.first_byte = trend(&words).unwrap_or_default(),
        "http_req_connecting" => {
            reading.connect.max_us = trend(&words).and_then(|times| times.max_us);
        }
        _ => {}
    }
}

fn named<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name))
}

/// The count after a sign: `✓ 0 ✗ 180`.
fn after(words: &[&str], sign: &str) -> Option<u64> {
    let at = words.iter().position(|word| *word == sign)?;
    words.get(at + 1).and_then(|word| units::count(word))
}

/// The failed ones of `0.00% ✓ 0 ✗ 180` and of `0.00% 0 out of 180`.
fn failed(words: &[&str]) -> Option<u64> {
    match words {
        [_, failed, "out", "of", _] => units::count(failed),
        _ => after(words, "✓"),
    }
}

/// `avg=1.2ms min=1ms med=1.1ms max=3ms p(90)=2ms p(95)=2.5ms`.
fn trend(words: &[&str]) -> Option<ToolLatency> {
    let mut latency = ToolLatency::default();
    for word in words {
        let (name, value) = word.split_once('=')?;
        set_trend(&mut latency, name, units::duration_us(value)?);
    }
    latency.mean_us.is_some().then_some(latency)
}

fn set_trend(latency: &mut ToolLatency, name: &str, us: f64) {
    match name {
        "avg" => latency.mean_us = Some(us),
        "min" => latency.min_us = Some(us),
        "max" => latency.max_us = Some(us),
        "med" => set_quantile(latency, 0.5, us),
        name => {
            let share = name.strip_prefix("p(").and_then(|n| n.strip_suffix(')'));
            let share = share.and_then(|share| units::percent(&format!("{share}%")));
            if let Some(share) = share {
                set_quantile(latency, share, us);
            }
        }
    }
}

/// Whether a document is k6's: that of `--summary-export`, or the data of `handleSummary`.
fn is_document(json: &Value) -> bool {
    let metrics = &json["metrics"];
    MADE.iter().any(|name| metrics[name].is_object())
}

fn read_document(json: &Value) -> ToolReading {
    let mut reading = ToolReading::new(Tool::K6);
    let mut said = Said::default();
    // `handleSummary` has the values one level deeper.
    let values = |name: &str| {
        let metric = &json["metrics"][name];
        match &metric["values"] {
            Value::Null => metric,
            values => values,
        }
    };
    let count = |value: &Value| units::figure(value).map(units::whole);
    let requests = values("http_reqs");
    reading.requests = count(&requests["count"]);
    reading.requests_per_s = units::figure(&requests["rate"]);
    let received = values("data_received");
    reading.bytes_read = count(&received["count"]);
    reading.bytes_per_s = units::figure(&received["rate"]);
    reading.latency = document_trend(values("http_req_duration"));
    reading.first_byte = document_trend(values("http_req_waiting"));
    reading.connect.max_us = document_trend(values("http_req_connecting")).max_us;
    let messages = ["ws_msgs_received", "grpc_streams_msgs_received"].map(|name| {
        let messages = values(name);
        count(&messages["count"]).zip(units::figure(&messages["rate"]))
    });
    said.messages = messages.into_iter().flatten().next();
    if reading.latency == ToolLatency::default() {
        reading.latency = document_trend(values("grpc_req_duration"));
    }
    if values("ws_connecting").is_object() {
        reading.connect = document_trend(values("ws_connecting"));
    }
    reading.errors.unexplained = count(&values("http_req_failed")["passes"]).unwrap_or(0);
    reading.said = document_said(json);
    said.iterations = count(&values("iterations")["count"]);
    said.vus = count(&values("vus")["max"]);
    said.vus_max = count(&values("vus_max")["max"]);
    let duration_ms = units::figure(&json["state"]["testRunDurationMs"]);
    reading.duration_s = duration_ms.map(|ms| ms / 1e3);
    said.complete(&mut reading);
    reading
}

/// The checks that failed, and the thresholds that were crossed.
fn document_said(json: &Value) -> Vec<String> {
    let mut said = Vec::new();
    for (name, metric) in json["metrics"].as_object().into_iter().flatten() {
        let fails = metric["fails"]
            .as_u64()
            .or(metric["values"]["fails"].as_u64());
        if name == "checks" && fails.is_some_and(|fails| fails > 0) {
            said.extend(fails.map(|fails| format!("checks: ✗ {fails}")));
        }
        for (threshold, state) in metric["thresholds"].as_object().into_iter().flatten() {
            if *state == Value::Bool(true) || state["ok"] == Value::Bool(false) {
                said.push(format!("{name} ✗ '{threshold}'"));
            }
        }
    }
    said
}

fn document_trend(values: &Value) -> ToolLatency {
    let mut latency = ToolLatency::default();
    for (name, value) in values.as_object().into_iter().flatten() {
        if let Some(ms) = units::figure(value) {
            set_trend(&mut latency, name, ms * 1e3);
        }
    }
    latency
}
