//! siege: its summary, as text or as JSON; a setting of a file says which (`json_output`).
//!
//! - Times are seconds with two decimal digits, so that below 10 ms they say nothing; 0.00 is no
//!   figure. `Concurrency` is the sum of all times over the duration, so that over the rate it
//!   gives the mean with more digits.
//! - `Transactions` are answers with a status below 500; `Successful transactions` leave out those
//!   of 400 and more.
//! - `Failed transactions` are answers of 500 and more, and connections that were refused, broken
//!   off or timed out, without a word which.
//! - A time includes opening the connection; whether connections are kept is a setting of a file.
//! - Sizes are bodies in MB of 1024 x 1024 bytes with two decimal digits: small ones say nothing.

use serde_json::Value;

use super::{Document, Reader};
use crate::mark::Mark;
use crate::reading::Figures;
use crate::text::lines::Line;
use crate::text::units;
use crate::{Tool, ToolReading};

const FIRST: &str = "`Transactions: 123 hits`, or its JSON";

pub(super) static READER: Reader = Reader {
    first: FIRST,
    result: FIRST,
    gives_up: &["[fatal]"],
    mark: |lines, at| mark(&lines[at]),
    read,
    document: Some(Document {
        key: "\"transaction_rate\"",
        is_one: is_document,
        read: |json| Some(read_document(json)),
    }),
};

/// The lines by how they begin, in their order, each with its key in the document.
const LINES: [(&str, &str); 12] = [
    ("Transactions:", "transactions"),
    ("Availability:", "availability"),
    ("Elapsed time:", "elapsed_time"),
    ("Data transferred:", "data_transferred"),
    ("Response time:", "response_time"),
    ("Transaction rate:", "transaction_rate"),
    ("Throughput:", "throughput"),
    ("Concurrency:", "concurrency"),
    ("Successful transactions:", "successful_transactions"),
    ("Failed transactions:", "failed_transactions"),
    ("Longest transaction:", "longest_transaction"),
    ("Shortest transaction:", "shortest_transaction"),
];
/// Below this a time in hundredths of a second is more than 5% off.
const COARSE_S: f64 = 0.1;
/// Below this a size in hundredths of a MB is more than 1% off.
const COARSE_MB: f64 = 0.5;
const MB: f64 = 1024.0 * 1024.0;

fn key_of(text: &str) -> Option<(u8, &'static str)> {
    let at = LINES
        .iter()
        .position(|(label, _)| text.starts_with(label))?;
    Some((at as u8 + 1, LINES[at].1))
}

fn mark(line: &Line) -> Option<Mark> {
    let (rank, key) = key_of(&line.text)?;
    match key {
        "transactions" => line.text.ends_with("hits").then(|| Mark::opens(rank))?,
        _ => Mark::once(rank),
    }
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut found = Vec::new();
    for &line in lines {
        let Some((_, key)) = key_of(&line.text) else {
            continue;
        };
        let (_, rest) = line.text.split_once(':').unwrap_or_default();
        let figure = rest.split_whitespace().next().and_then(units::number);
        let figure = figures.want(line, "a figure behind the colon", figure);
        found.extend(figure.map(|figure| (key, figure)));
    }
    let figure = |key: &str| found.iter().find(|(one, _)| *one == key).map(|one| one.1);
    vec![reading(figure)]
}

/// Whether a document is siege's.
fn is_document(json: &Value) -> bool {
    ["transactions", "availability", "transaction_rate"]
        .iter()
        .all(|key| json[*key].is_number())
}

fn read_document(json: &Value) -> ToolReading {
    reading(|key| units::figure(&json[key]))
}

/// A reading of figures by the keys of the document.
fn reading(figure: impl Fn(&str) -> Option<f64>) -> ToolReading {
    let mut reading = ToolReading::new(Tool::Siege);
    reading.depth = Some(1);
    let count = |key| figure(key).filter(|n| *n >= 0.0).map(|n| n as u64);
    let above = |key, least: f64| figure(key).filter(|value| *value > 0.0 && *value >= least);
    reading.requests = count("transactions");
    reading.duration_s = above("elapsed_time", 0.0);
    reading.requests_per_s = figure("transaction_rate");
    let bytes = above("data_transferred", COARSE_MB).map(|mb| mb * MB);
    reading.bytes_read = bytes.map(units::whole);
    reading.bytes_per_s = above("throughput", COARSE_MB).map(|mb| mb * MB);
    let per_s = above("transaction_rate", 0.0);
    let worked_out = above("concurrency", 0.0)
        .zip(per_s)
        .map(|(concurrency, per_s)| concurrency / per_s);
    let mean_s = above("response_time", COARSE_S).or(worked_out);
    reading.latency.mean_us = mean_s.map(|s| s * 1e6);
    reading.latency.mean_step_us = match above("response_time", COARSE_S) {
        Some(_) => Some(1e4),
        None => per_s.map(|per_s| 1e4 / per_s),
    };
    reading.latency.min_us = above("shortest_transaction", 0.0).map(|s| s * 1e6);
    reading.latency.max_us = above("longest_transaction", 0.0).map(|s| s * 1e6);
    let well = count("successful_transactions");
    reading.errors.status = reading
        .requests
        .zip(well)
        .map_or(0, |(all, well)| all.saturating_sub(well));
    reading.errors.unexplained = count("failed_transactions").unwrap_or(0);
    reading
}
