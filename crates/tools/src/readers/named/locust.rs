//! Locust: the tables that it prints at the end, or its `_stats.csv`. The row of all is read.
//!
//! - A user waits for its answer before it goes on, and may pause; it has connections of its own.
//! - `# reqs` are all requests, failures included, and so are the rate and the latencies. The list
//!   of errors tells those that were answered (`HTTPError`, or a check of the script) from others;
//!   where there is none, nothing does.
//! - Times on the terminal are whole milliseconds, so that a mean below 5 ms is no figure; its
//!   quantiles have two digits everywhere. A latency includes opening a connection.
//! - While it runs it prints its table again and again: the last one counts.

use crate::mark::Mark;
use crate::readers::Reader;
use crate::reading::{Figures, coarse_mean, count_failure, leave_unanswered_out, set_named, sum};
use crate::text::lines::Line;
use crate::text::{named, units};
use crate::{Tool, ToolReading};

const ROW: &str = "a row `Aggregated` with its counts, times and rates";

pub(in crate::readers) static READER: Reader = Reader {
    first: "`Type  Name  # reqs  # fails | Avg ...`, or its `_stats.csv`",
    result: ROW,
    gives_up: &["Could not find any locustfile", "No User class found"],
    mark: |lines, at| mark(&lines[at]),
    read,
    document: None,
};

const STEP_US: f64 = 1e3;
const CSV: &str = "Type,Name,Request Count,Failure Count,";

/// A row of `_stats.csv`, and no JSON of another tool.
fn is_csv_row(text: &str) -> bool {
    !text.starts_with('{') && text.matches(',').count() >= CSV.matches(',').count()
}

fn mark(line: &Line) -> Option<Mark> {
    let text = line.text.as_str();
    if text.contains("/INFO/locust.") {
        return match text.contains(": Starting Locust ") {
            true => Mark::opens(1),
            false => Mark::anywhere(),
        };
    }
    let is_head = text.contains("Name ") && text.contains("# reqs");
    if is_head && text.contains("# fails") {
        Mark::opens_many(2)
    } else if row(text).is_some() {
        Mark::many(2)
    } else if named::is_rule(text) {
        Mark::anywhere()
    } else if text.starts_with("Response time percentiles") {
        Mark::once(3)
    } else if is_head && text.contains('%') {
        Mark::once(4)
    } else if quantiles(line).is_some() {
        Mark::many(5)
    } else if text == "Error report" {
        Mark::once(6)
    } else if text.starts_with("# occurrences") {
        Mark::once(7)
    } else if error(text).is_some() {
        Mark::many(8)
    } else if text.starts_with(CSV) {
        Mark::opens(1)
    } else if is_csv_row(text) {
        Mark::many(9)
    } else {
        None
    }
}

/// Name, requests, failures, times and rate of
/// `Aggregated  188  5(2.66%) | 16  1  234  9 | 121.12  3.22`.
fn row(text: &str) -> Option<(&str, &str, &str, Vec<&str>, &str)> {
    let mut parts = text.rsplitn(3, '|');
    let rate = parts.next()?.split_whitespace().next()?;
    let times: Vec<&str> = parts.next()?.split_whitespace().collect();
    let (counts, _) = parts.next()?.trim().strip_suffix("%)")?.rsplit_once('(')?;
    let (name, failures) = counts.rsplit_once(char::is_whitespace)?;
    let (name, requests) = name.trim_end().rsplit_once(char::is_whitespace)?;
    (times.len() == 4).then(|| (name.trim(), requests, failures, times, rate))
}

/// The whole numbers at the end of a row of quantiles.
fn quantiles(line: &Line) -> Option<Vec<f64>> {
    let words = line.words();
    let from = words
        .iter()
        .rposition(|word| units::count(word).is_none())?
        + 1;
    let values = words[from..].iter().filter_map(|word| units::number(word));
    (words.len() >= from + 6).then(|| values.collect())
}

/// `2   GET /some: ConnectionResetError(104, ...)`.
fn error(text: &str) -> Option<(u64, &str)> {
    let (count, rest) = named::leading(text)?;
    let (_, said) = rest.split_once(": ")?;
    Some((count, said))
}

/// What both forms say of all requests.
#[derive(Default)]
struct Said {
    all: Option<u64>,
    failures: u64,
    rate_per_s: Option<f64>,
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut reading = ToolReading::new(Tool::Locust);
    let mut said = Said::default();
    let mut head: Vec<&str> = Vec::new();
    let (mut is_table, mut has_quantiles, mut listed) = (false, false, 0);
    for &line in lines {
        let text = line.text.as_str();
        if text.contains("/INFO/locust.") {
            let users = text
                .strip_suffix(" total users)")
                .and_then(|text| text.rsplit_once('('));
            reading.connections = users
                .and_then(|(_, n)| units::count(n))
                .or(reading.connections);
        } else if let Some((name, requests, failures, times, rate)) = row(text) {
            if !matches!(name, "Aggregated" | "Total") {
                continue;
            }
            said = Said {
                all: figures.want(line, ROW, units::count(requests)),
                failures: figures.want(line, ROW, units::count(failures)).unwrap_or(0),
                rate_per_s: figures.want(line, ROW, units::number(rate)),
            };
            is_table = true;
            reading.latency = Default::default();
            for (name, time) in ["avg", "min", "max", "med"].into_iter().zip(times) {
                let us = figures.want(line, ROW, units::ms(time));
                set_named(&mut reading.latency, name, us.unwrap_or(0.0));
            }
            coarse_mean(&mut reading.latency, STEP_US);
        } else if text.contains("# reqs") || text.starts_with(CSV) {
            let parts: Vec<&str> = match text.starts_with(CSV) {
                true => text.split(',').collect(),
                false => text
                    .split_whitespace()
                    .filter(|word| word.ends_with('%'))
                    .collect(),
            };
            head = parts;
        } else if let Some((count, words)) = error(text) {
            listed = sum([listed, count]);
            match words {
                _ if words.starts_with("HTTPError(") || words.starts_with("BadStatusCode(") => {
                    reading.errors.status = sum([reading.errors.status, count]);
                }
                _ if words.contains("CatchResponseError(") => {
                    reading.errors.verify = sum([reading.errors.verify, count]);
                }
                _ => count_failure(&mut reading, words, count),
            }
        } else if let Some(rest) = text.strip_prefix(",Aggregated,") {
            for (name, cell) in head.iter().skip(2).zip(rest.split(',')) {
                let value = units::number(cell);
                match *name {
                    "Request Count" => {
                        said.all = figures.want(line, "a count", units::count(cell));
                    }
                    "Failure Count" => said.failures = units::count(cell).unwrap_or(0),
                    "Requests/s" => said.rate_per_s = figures.want(line, "a rate", value),
                    name => {
                        let name = name.strip_suffix(" Response Time").unwrap_or(name);
                        let us = units::ms(cell).unwrap_or(0.0);
                        set_named(&mut reading.latency, name, us);
                    }
                }
            }
        } else if let Some(values) = quantiles(line).filter(|_| text.starts_with("Aggregated ")) {
            has_quantiles = true;
            for (share, ms) in head.iter().zip(values) {
                set_named(&mut reading.latency, share, ms * 1e3);
            }
        }
    }
    if is_table && !has_quantiles && said.all > Some(0) {
        figures.lacks("a row `Aggregated` below `Response time percentiles`");
    } else if is_table && listed < said.failures {
        figures.lacks("a part of `Error report`");
    }
    let known = reading.errors.total();
    reading.errors.unexplained = sum([
        reading.errors.unexplained,
        said.failures.saturating_sub(known),
    ]);
    leave_unanswered_out(&mut reading, said.all, said.rate_per_s);
    vec![reading]
}
