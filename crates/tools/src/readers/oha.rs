//! oha: its summary, which is hey's with a success rate, and its JSON.
//!
//! - Times of the summary have a unit that follows from the slowest request; those of the JSON are
//!   seconds. `DNS+dialup` counts connections that were opened, and so is true with keep-alive.
//! - `Requests/sec` counts failures and requests that were under way when the time was up; answers
//!   per second are worked out where there were such.
//! - Bytes are bodies only; KiB are 1024.
//! - With `-q` alone the rate is held, but latencies count from when a request was sent; with
//!   `--latency-correction` from when it was due.

use serde_json::Value;

use super::{Document, Reader, hey};
use crate::mark::Mark;
use crate::reading::{Figures, count_failure, set_quantile, sum};
use crate::text::lines::{Line, next_filled};
use crate::text::units;
use crate::{Tool, ToolLatency, ToolReading};

pub(super) static READER: Reader = Reader {
    first: "`Summary:` and `Success rate: 100.00%`, or its JSON",
    result: hey::RESULT,
    gives_up: &["error: ", "Error: "],
    mark,
    read,
    document: Some(Document {
        key: "\"requestsPerSec\"",
        is_one: is_document,
        read: |json| Some(read_document(json)),
    }),
};

fn mark(lines: &[Line], at: usize) -> Option<Mark> {
    let line = &lines[at];
    let next = next_filled(lines, at).map_or("", |line| line.text.as_str());
    match line.text.as_str() {
        "Summary:" if next.starts_with("Success rate:") => Mark::opens(1),
        "Summary:" => None,
        _ => hey::mark_summary(line),
    }
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut reading = ToolReading::new(Tool::Oha);
    let details = hey::read_summary(&mut reading, lines, figures);
    reading.connect = details.dial.unwrap_or_default();
    vec![reading]
}

/// Whether a document is oha's.
fn is_document(json: &Value) -> bool {
    json["summary"]["requestsPerSec"].is_number() && json["statusCodeDistribution"].is_object()
}

fn read_document(json: &Value) -> ToolReading {
    let mut reading = ToolReading::new(Tool::Oha);
    let summary = &json["summary"];
    let us = |value: &Value| units::figure(value).map(|seconds| seconds * 1e6);
    reading.duration_s = units::figure(&summary["total"]);
    reading.requests_per_s = units::figure(&summary["requestsPerSec"]);
    reading.bytes_read = summary["totalData"].as_u64();
    reading.bytes_per_s = units::figure(&summary["sizePerSec"]);
    reading.latency.mean_us = us(&summary["average"]);
    reading.latency.min_us = us(&summary["fastest"]);
    reading.latency.max_us = us(&summary["slowest"]);
    read_quantiles(&mut reading.latency, &json["latencyPercentiles"]);
    read_quantiles(&mut reading.first_byte, &json["firstBytePercentiles"]);
    for (place, name) in [
        (&mut reading.connect, "DNSDialup"),
        (&mut reading.first_byte, "firstByte"),
    ] {
        let triple = &json["details"][name];
        place.mean_us = us(&triple["average"]);
        place.min_us = us(&triple["fastest"]);
        place.max_us = us(&triple["slowest"]);
    }

    let counts = |name: &str| {
        let counts = json[name].as_object().into_iter().flatten();
        counts.map(|(key, count)| (key.as_str(), count.as_u64().unwrap_or(0)))
    };
    let answers = sum(counts("statusCodeDistribution").map(|(_, count)| count));
    reading.requests = Some(answers);
    let wrong = |status: &str| units::count(status).is_some_and(|status| status >= 400);
    reading.errors.status = sum(counts("statusCodeDistribution")
        .filter(|(status, _)| wrong(status))
        .map(|(_, count)| count));
    let mut failures = 0;
    for (said, count) in counts("errorDistribution") {
        failures = sum([failures, count]);
        // What was under way when the time was up has not failed.
        if said != "aborted due to deadline" {
            count_failure(&mut reading, said, count);
        }
    }
    if failures > 0 {
        let seconds = reading.duration_s.filter(|&s| s > 0.0);
        reading.requests_per_s = seconds.map(|seconds| answers as f64 / seconds);
    }
    reading
}

/// `{"p50": 0.012, "p99.9": 0.034}`, in seconds.
fn read_quantiles(latency: &mut ToolLatency, percentiles: &Value) {
    for (name, value) in percentiles.as_object().into_iter().flatten() {
        let share = name.strip_prefix('p').map(|share| format!("{share}%"));
        let share = share.and_then(|share| units::percent(&share));
        if let Some((share, seconds)) = share.zip(units::figure(value)) {
            set_quantile(latency, share, seconds * 1e6);
        }
    }
}
