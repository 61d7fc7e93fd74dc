//! h2load of nghttp2, for HTTP/1.1, HTTP/2 and HTTP/3.
//!
//! - `errored` are requests that did not end: those that timed out, those that were broken off, and
//!   those that were never started because their connection was gone. `failed` adds answers with a
//!   status of 400 or more; the line of status codes tells these apart. What ended is therefore
//!   `succeeded` + `failed` - `errored`; `done` is the same, but for versions before 1.52, where it
//!   holds the errored ones too. Why requests were never started is not said: their connections may
//!   have failed to open, or ended.
//! - The rate counts answers that came whole, whatever their status.
//! - `time for connect` is per connection, and `time to 1st byte` is counted from the beginning of
//!   connecting: it is that of a connection's first answer. Since 1.69 the rows are called
//!   `request`, `connect` and `TTFB`, and the table has a median and two quantiles more.
//! - Without one request there are zeros in the table, which are no figures.
//! - Sizes have K = 1024, with the bytes in brackets; heads are counted as they travelled.

use super::Reader;
use crate::mark::Mark;
use crate::reading::{Figures, set_quantile, sum};
use crate::text::lines::Line;
use crate::text::units;
use crate::{Tool, ToolLatency, ToolReading, ToolTls, tls};

const FINISHED: &str = "`finished in 1.00s, 123.45 req/s, 1.23MB/s`";

pub(super) static READER: Reader = Reader {
    first: FINISHED,
    result: FINISHED,
    gives_up: &["-n: ", "-c: ", "-t: ", "No URI", "invalid URI", "Unable to"],
    mark: |lines, at| mark(&lines[at]),
    read,
    document: None,
};

const BESIDE: &[&str] = &[
    "Warm-up ",
    "Main benchmark duration",
    "Stopped all clients",
    "progress: ",
    "TLS Protocol:",
    "Cipher:",
    "Server Temp Key:",
    "Application protocol:",
    "UDP datagram:",
];

fn mark(line: &Line) -> Option<Mark> {
    let text = line.text.as_str();
    let row = row_of(text);
    if text.starts_with("starting benchmark...") {
        Mark::opens(1)
    } else if text.starts_with("spawning thread #") {
        Mark::many(2)
    } else if text.starts_with("finished in ") && text.contains(" req/s") {
        Mark::opens(10)
    } else if text.starts_with("requests: ") && text.contains(" total, ") {
        Mark::opens(11)
    } else if text.starts_with("status codes: ") && text.contains("2xx") {
        Mark::once(12)
    } else if text.starts_with("traffic: ") {
        Mark::once(13)
    } else if columns(text).is_some() {
        Mark::once(14)
    } else if let Some((row, _)) = row {
        Mark::once(match row {
            Row::Request => 15,
            Row::Connect => 16,
            Row::FirstByte => 17,
        })
    } else if text.starts_with("req/s ") && text.contains(':') {
        Mark::once(18)
    } else if BESIDE.iter().any(|label| text.starts_with(label)) {
        Mark::anywhere()
    } else {
        None
    }
}

enum Row {
    Request,
    Connect,
    FirstByte,
}

/// A row of the table and its cells.
fn row_of(text: &str) -> Option<(Row, &str)> {
    let (label, cells) = text.split_once(':')?;
    let row = match label.trim_end() {
        "time for request" | "request" => Row::Request,
        "time for connect" | "connect" => Row::Connect,
        "time to 1st byte" | "TTFB" => Row::FirstByte,
        _ => return None,
    };
    let first = cells.split_whitespace().next()?;
    units::duration_us(first).map(|_| (row, cells))
}

/// The table's columns, which differ between versions.
fn columns(text: &str) -> Option<Vec<&str>> {
    let names = text.strip_suffix("+/- sd")?;
    let names: Vec<&str> = names.split_whitespace().collect();
    names.starts_with(&["min", "max"]).then_some(names)
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut reading = ToolReading::new(Tool::H2load);
    let mut names = vec!["min", "max", "mean", "sd"];
    let mut spawned = Vec::new();
    let mut seen = Requests::default();
    let mut encrypted = ToolTls::default();
    for &line in lines {
        let text = line.text.as_str();
        read_tls(&mut encrypted, text);
        if text.starts_with("spawning thread #") {
            spawned.push(clients(line, figures).unwrap_or(0));
        } else if let Some(rest) = line.after("finished in") {
            let mut parts = rest.split(", ");
            let time = parts.next().and_then(units::duration_s);
            reading.duration_s = figures.want(line, FINISHED, time);
            let rate = parts.next().and_then(|part| part.strip_suffix(" req/s"));
            let rate = rate.and_then(units::number);
            reading.requests_per_s = figures.want(line, FINISHED, rate);
            let bytes = parts.next().and_then(|part| part.strip_suffix("/s"));
            let bytes = bytes.and_then(units::bytes_1024);
            reading.bytes_per_s = figures.want(line, FINISHED, bytes);
        } else if let Some(rest) = line.after("requests:") {
            seen = Requests::read(line, rest, figures);
        } else if let Some(rest) = line.after("status codes:") {
            let classes = ["4xx", "5xx"].map(|class| named_count(line, rest, class, figures));
            reading.errors.status = sum(classes);
        } else if let Some(rest) = line.after("traffic:") {
            let total = rest.split(" total").next().unwrap_or("");
            let bytes = in_brackets(total).or_else(|| total.strip_suffix(" bytes"));
            let bytes = bytes.and_then(units::count);
            reading.bytes_read = figures.want(line, "`traffic: 1.23MB (1234567) total`", bytes);
        } else if let Some(found) = columns(text) {
            names = found;
        } else if let Some((row, cells)) = row_of(text) {
            let place = match row {
                Row::Request => &mut reading.latency,
                Row::Connect => &mut reading.connect,
                Row::FirstByte => &mut reading.first_byte,
            };
            let cells = figures.want(line, "a row of times", times(&names, cells));
            *place = cells.unwrap_or_default();
        }
    }
    if !spawned.is_empty() {
        reading.threads = Some(spawned.len() as u64);
        reading.connections = Some(sum(spawned));
    }
    seen.complete(&mut reading);
    // Without TLS it prints the protocol only.
    reading.tls = encrypted.version.is_some().then_some(encrypted);
    vec![reading]
}

fn read_tls(encrypted: &mut ToolTls, text: &str) {
    let Some((label, rest)) = text.split_once(": ") else {
        return;
    };
    match label {
        "TLS Protocol" => encrypted.version = tls::version(rest),
        "Cipher" => encrypted.suite = Some(rest.to_owned()),
        "Server Temp Key" => encrypted.group = tls::group(rest),
        "Application protocol" => encrypted.alpn = Some(rest.to_owned()),
        _ => {}
    }
}

/// `spawning thread #0: 5 total client(s). 500 total requests`.
fn clients(line: &Line, figures: &mut Figures) -> Option<u64> {
    let count = line
        .text
        .split_once(": ")
        .and_then(|(_, rest)| rest.split(' ').next())
        .and_then(units::count);
    figures.want(line, "`spawning thread #0: N total client(s)`", count)
}

/// The count before a name: `100 4xx` among `0 2xx, 0 3xx, 100 4xx`.
fn named_count(line: &Line, rest: &str, name: &str, figures: &mut Figures) -> u64 {
    let found = rest.split(',').find_map(|part| {
        let (count, label) = part.trim().split_once(' ')?;
        (label == name).then_some(count)
    });
    let count = found.and_then(units::count);
    figures
        .want(line, "counts, each with its name", count)
        .unwrap_or(0)
}

fn in_brackets(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('(')?;
    rest.split_once(')').map(|(inside, _)| inside)
}

/// A row's times by the names of their columns; none where all are zero, for want of samples.
fn times(names: &[&str], cells: &str) -> Option<ToolLatency> {
    let cells: Vec<&str> = cells.split_whitespace().collect();
    let mut latency = ToolLatency::default();
    let mut largest = 0.0;
    for (at, name) in names.iter().enumerate() {
        let us = units::duration_us(cells.get(at)?)?;
        largest = f64::max(largest, us);
        match *name {
            "min" => latency.min_us = Some(us),
            "max" => latency.max_us = Some(us),
            "mean" => {
                latency.mean_us = Some(us);
                latency.mean_step_us = units::step_us(cells[at]);
            }
            "sd" => latency.stdev_us = Some(us),
            "median" => set_quantile(&mut latency, 0.5, us),
            name => {
                let share = name.strip_prefix('p').map(|share| format!("{share}%"));
                if let Some(share) = share.and_then(|share| units::percent(&share)) {
                    set_quantile(&mut latency, share, us);
                }
            }
        }
    }
    Some(if largest > 0.0 {
        latency
    } else {
        ToolLatency::default()
    })
}

/// `requests: 100 total, 100 started, 100 done, 90 succeeded, 10 failed, 0 errored, 0 timeout`.
#[derive(Default)]
struct Requests {
    ended: Option<u64>,
    total: u64,
    started: u64,
    errored: u64,
    timeout: u64,
}

impl Requests {
    fn read(line: &Line, rest: &str, figures: &mut Figures) -> Self {
        let mut count = |name| named_count(line, rest, name, figures);
        let errored = count("errored");
        let ended = sum([count("succeeded"), count("failed")]).saturating_sub(errored);
        Self {
            ended: Some(ended),
            total: count("total"),
            started: count("started"),
            errored,
            // Older versions have no timeouts.
            timeout: if rest.contains("timeout") {
                count("timeout")
            } else {
                0
            },
        }
    }

    fn complete(self, reading: &mut ToolReading) {
        reading.requests = self.ended;
        reading.errors.timeout = self.timeout;
        let broken = self.errored.saturating_sub(self.timeout);
        // A run by time has no total to begin with and starts more than it.
        let never_started = match self.started {
            0 => broken,
            started => self.total.saturating_sub(started).min(broken),
        };
        reading.errors.unexplained = never_started;
        reading.errors.read = broken - never_started;
    }
}
