//! autocannon: drawn tables and a line of totals, or JSON (`--json`).
//!
//! - `Req/Sec` are answers in each interval of the sampling, of a second unless the output says
//!   otherwise. `requests in` are those that were sent, rounded to thousands: they are not read.
//! - Latencies are whole milliseconds, rounded down; the mean is that of these. 0 is no figure, and
//!   a mean below 5 ms is off by a tenth and more. At a rate they are corrected afterwards.
//! - A latency of a connection's first request includes opening it.
//! - `non 2xx` are answers, redirects too; with `--renderStatusCodes` their codes are known.
//! - `errors` are connections that failed, without a word how, and timeouts; neither has a latency.
//! - Bytes are all that was received, with k = 1000.

use serde_json::Value;

use crate::mark::Mark;
use crate::readers::{Document, Reader};
use crate::reading::{Figures, coarse_mean, count_statuses, set_named};
use crate::text::lines::{Line, next_filled};
use crate::text::{named, units};
use crate::{Tool, ToolReading};

pub(in crate::readers) static READER: Reader = Reader {
    first: "`10 connections` below `Running 10s test @ http://...`, or its JSON",
    result: "a row `Req/Sec` in its table",
    gives_up: &["Error: ", "autocannon: "],
    mark,
    read,
    document: Some(Document {
        key: "\"pipelining\"",
        is_one: |json| json["pipelining"].is_u64() && json["requests"]["total"].is_u64(),
        read: |json| Some(read_document(json)),
    }),
};

const STEP_US: f64 = 1e3;

/// Whether an output begins with the line: it is as wrk's, the next is not.
pub(in crate::readers) fn begins(lines: &[Line], at: usize) -> bool {
    let begins = |text: &str| text.starts_with("Running ") && text.contains(" test @ ");
    begins(&lines[at].text)
        && next_filled(lines, at).is_some_and(|next| concurrency(&next.text).is_some())
}

/// Connections, and how many requests each has in flight.
fn concurrency(text: &str) -> Option<(u64, u64)> {
    let (connections, rest) = named::leading(text)?;
    let depth = match rest.strip_prefix("connections")?.trim() {
        "" => 1,
        rest => units::count(
            rest.strip_prefix("with ")?
                .strip_suffix(" pipelining factor")?,
        )?,
    };
    Some((connections, depth))
}

/// Whether a line is the total, and not wrk's, which has no space in its size.
pub(in crate::readers) fn is_total(text: &str) -> bool {
    let size = text
        .strip_suffix(" read")
        .and_then(|text| text.rsplit_once(", "));
    size.is_some_and(|(before, size)| before.contains(" requests in ") && size.contains(' '))
}

fn mark(lines: &[Line], at: usize) -> Option<Mark> {
    let text = lines[at].text.as_str();
    if let Some(cells) = named::cells(text) {
        let is_count = |cell: &&str| units::count(cell).is_some();
        return match (cells[0], cells.last()) {
            ("Stat", Some(&"Max")) => Mark::opens(5),
            ("Stat", Some(&"Min")) => Mark::opens(7),
            ("Latency", _) => Mark::once(6),
            ("Req/Sec", _) => Mark::once(8),
            ("Bytes/Sec", _) => Mark::once(9),
            ("Code", Some(&"Count")) => Mark::once(10),
            ("Percentile", _) => Mark::once(20),
            (first, Some(last)) if units::number(first).is_some() => {
                is_count(last).then(Mark::anywhere)?
            }
            _ => None,
        };
    }
    if begins(lines, at) {
        Mark::opens(1)
    } else if concurrency(text).is_some() {
        Mark::once(2)
    } else if text.ends_with(" workers") && named::leading(text).is_some() {
        Mark::once(3)
    } else if named::is_rule(text) || text.starts_with("running [") {
        Mark::anywhere()
    } else if text.starts_with("Req/Bytes counts sampled ") {
        Mark::once(12)
    } else if text.starts_with("# of samples:") {
        Mark::once(13)
    } else if text.ends_with(" non 2xx responses") {
        Mark::opens(30)
    } else if is_total(text) {
        Mark::opens(31)
    } else if text.ends_with(" timeouts)") {
        Mark::once(32)
    } else if text.ends_with(" requests with mismatched body") {
        Mark::once(33)
    } else if text.starts_with("request pipeline was reset ") {
        Mark::once(34)
    } else {
        None
    }
}

/// `735`, or `2k` for about 2000.
fn rounded(text: &str) -> Option<u64> {
    units::metric(text).filter(|n| *n >= 0.0).map(units::whole)
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut reading = ToolReading::new(Tool::Autocannon);
    let mut head: Vec<&str> = Vec::new();
    let mut statuses = Vec::new();
    let (mut others, mut interval_s) = (None, 1.0);
    let (mut sent, mut has_failures) = (0.0, false);
    for &line in lines {
        let text = line.text.as_str();
        if let Some(cells) = named::cells(text) {
            let mut column = |name: &str, read: fn(&str) -> Option<f64>| {
                let at = head.iter().position(|head| *head == name)?;
                figures.want(line, "a figure in each cell", read(cells.get(at)?))
            };
            match (head.first(), cells[0]) {
                (_, "Stat" | "Code" | "Percentile") => head = cells,
                (_, "Latency") => {
                    for &name in head.iter().skip(1) {
                        if let Some(us) = column(name, units::duration_us) {
                            set_named(&mut reading.latency, name, us);
                        }
                    }
                }
                (_, "Req/Sec") => reading.requests_per_s = column("Avg", named::grouped),
                (_, "Bytes/Sec") => reading.bytes_per_s = column("Avg", units::bytes_1000),
                (Some(&"Code"), code) => {
                    let count = column("Count", units::number);
                    statuses.extend(count.map(|count| (code, units::whole(count))));
                }
                (Some(&"Percentile"), share) => {
                    if let Some(us) = column("Latency (ms)", units::ms) {
                        set_named(&mut reading.latency, share, us);
                    }
                }
                _ => {}
            }
        } else if let Some((_, url)) = text.split_once(" test @ ") {
            reading.url = Some(url.trim().to_owned());
        } else if let Some((connections, depth)) = concurrency(text) {
            reading.connections = Some(connections);
            reading.depth = Some(depth);
        } else if let Some((workers, "workers")) = named::leading(text) {
            reading.threads = Some(workers);
        } else if let Some(rest) = line.after("Req/Bytes counts sampled every") {
            let seconds = figures.want(
                line,
                "a time",
                units::duration_s(rest.trim_end_matches('.')),
            );
            interval_s = seconds.filter(|s| *s > 0.0).unwrap_or(1.0);
        } else if let Some(rest) = text.strip_suffix(" non 2xx responses") {
            let counts = rest.split_once(" 2xx responses, ");
            let counts = counts.and_then(|(a, b)| units::count(a).zip(units::count(b)));
            others = figures.want(line, "`10 2xx responses, 1 non 2xx responses`", counts);
        } else if is_total(text) {
            let (all, rest) = text.split_once(" requests in ").unwrap_or_default();
            sent = least(all);
            let (time, size) = rest.split_once(", ").unwrap_or_default();
            let size = size.strip_suffix(" read").and_then(units::bytes_1000);
            reading.duration_s = figures.want(line, "`in 2.01s`", units::duration_s(time));
            reading.bytes_read = figures.want(line, "`9.51 MB read`", size).map(units::whole);
        } else if let Some(rest) = text.strip_suffix(" timeouts)") {
            has_failures = true;
            let counts = rest.split_once(" errors (");
            let counts = counts.and_then(|(a, b)| rounded(a).zip(rounded(b)));
            let counts = figures.want(line, "`3 errors (1 timeouts)`", counts);
            let (errors, timeouts) = counts.unwrap_or_default();
            reading.errors.timeout = timeouts;
            reading.errors.unexplained = errors.saturating_sub(timeouts);
        } else if text.starts_with("request pipeline was reset ") {
            has_failures = true;
        } else if let Some(rest) = text.strip_suffix(" requests with mismatched body") {
            reading.errors.verify = figures.want(line, "a count", rounded(rest)).unwrap_or(0);
        }
    }
    for rate in [&mut reading.requests_per_s, &mut reading.bytes_per_s] {
        *rate = rate.map(|each| each / interval_s);
    }
    match others {
        _ if !statuses.is_empty() => count_statuses(&mut reading, statuses),
        Some((good, other)) => {
            reading.requests = good.checked_add(other);
            reading.errors.status = other;
        }
        None => {}
    }
    coarse_mean(&mut reading.latency, STEP_US);
    if !has_failures && most_without_failures(&reading, interval_s).is_some_and(|most| sent > most)
    {
        figures.lacks("`2k errors (0 timeouts)`");
    }
    vec![reading]
}

/// The fewest that a rounded count stands for.
fn least(text: &str) -> f64 {
    let rounding = if text.ends_with('k') { 500.0 } else { 0.0 };
    rounded(text).unwrap_or(0) as f64 - rounding
}

/// The most requests that can have been sent if none failed: those that were answered and those in
/// flight. The rate leaves out an interval at most.
fn most_without_failures(reading: &ToolReading, interval_s: f64) -> Option<f64> {
    let in_flight = reading.connections?.saturating_mul(reading.depth?);
    let answered = match reading.requests {
        Some(requests) => requests as f64,
        None => reading.requests_per_s? * (reading.duration_s? + interval_s),
    };
    Some(answered + in_flight as f64)
}

fn read_document(json: &Value) -> ToolReading {
    let mut reading = ToolReading::new(Tool::Autocannon);
    let count = |name: &str| json[name].as_u64();
    reading.url = json["url"].as_str().map(str::to_owned);
    reading.connections = count("connections");
    reading.depth = count("pipelining");
    reading.threads = count("workers").filter(|n| *n > 0);
    reading.duration_s = units::figure(&json["duration"]);
    reading.latency = named::times(&json["latency"], 1e3);
    coarse_mean(&mut reading.latency, STEP_US);
    reading.requests = json["requests"]["total"].as_u64();
    let interval_s = units::figure(&json["sampleInt"])
        .filter(|ms| *ms > 0.0)
        .unwrap_or(1e3)
        / 1e3;
    let rate = |name: &str| units::figure(&json[name]["average"]).map(|each| each / interval_s);
    reading.requests_per_s = rate("requests");
    reading.bytes_per_s = rate("throughput");
    reading.bytes_read = json["throughput"]["total"].as_u64();
    let known = |name: &str| count(name).unwrap_or(0);
    reading.errors.status = known("4xx").saturating_add(known("5xx"));
    reading.errors.timeout = known("timeouts");
    reading.errors.verify = known("mismatches");
    reading.errors.unexplained = known("errors").saturating_sub(known("timeouts"));
    reading
}
