//! JMeter: the lines of its summariser, of which the last `summary =` counts, or the
//! `statistics.json` of its dashboard.
//!
//! - A thread waits for its answer, and may pause. `Active` are the threads at that moment: the
//!   most that a line names are the connections.
//! - Samples are all requests, failures included, and so are rate and times. `Err` may be answers
//!   with a status of 400 and more, failed assertions, or requests without an answer.
//! - Times are whole milliseconds, rounded down, and so is the mean of the text; a small one is off
//!   by much. A time includes opening a connection.
//! - The shares of the dashboard's three percentiles are settings: 90, 95 and 99 unless changed.

use serde_json::Value;

use crate::mark::Mark;
use crate::readers::{Document, Reader};
use crate::reading::{Figures, coarse_mean, set_named};
use crate::text::lines::Line;
use crate::text::units;
use crate::{Tool, ToolLatency, ToolReading};

const RESULT: &str = "`summary =  10 in 00:00:05 =  2.0/s Avg: 1 Min: 1 Max: 1 Err: 0 (0.00%)`";

pub(in crate::readers) static READER: Reader = Reader {
    first: "`summary =  10 in 00:00:05 =  2.0/s Avg: ...`, or its statistics.json",
    result: RESULT,
    gives_up: &["An error occurred: ", "Error in NonGUIDriver"],
    mark: |lines, at| mark(&lines[at].text),
    read,
    document: Some(Document {
        key: "\"sampleCount\"",
        is_one: |json| json["Total"]["sampleCount"].is_u64(),
        read: |json| Some(read_document(&json["Total"])),
    }),
};

/// How a run begins on a terminal.
const BEGINNINGS: [&str; 2] = ["Creating summariser <", "Starting "];

fn mark(text: &str) -> Option<Mark> {
    const BEFORE: [&str; 4] = [
        "Created the tree ",
        "Starting standalone ",
        "Starting the test ",
        "Waiting for possible ",
    ];
    if text.starts_with("Creating summariser <") {
        Mark::opens(1)
    } else if BEFORE.iter().any(|line| text.starts_with(line)) {
        Mark::many(2)
    } else if summary(text).is_some() {
        Mark::opens_many(3)
    } else if text.starts_with("Tidying up ...") {
        Mark::once(4)
    } else if text.starts_with("... end of run") {
        Mark::once(5)
    } else {
        None
    }
}

/// Whether a line sums up the whole run until then, its words, and those behind `=` and labels.
fn summary(text: &str) -> Option<(bool, Vec<&str>)> {
    if !text.contains(" in ") {
        return None;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        [_, kind @ ("=" | "+"), _, "in", time, "=", ..]
            if time.contains(':') || time.ends_with('s') =>
        {
            Some((kind == "=", words))
        }
        _ => None,
    }
}

/// Seconds of `00:01:05`.
fn seconds(text: &str) -> Option<f64> {
    text.split(':')
        .try_fold(0.0, |sum, part| Some(sum * 60.0 + units::duration_s(part)?))
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut readings: Vec<ToolReading> = Vec::new();
    let mut reading = ToolReading::new(Tool::Jmeter);
    // A run that begins here also ends here; lines of a summary alone are what they are.
    let (mut begins, mut ends, mut is_stale) = (false, false, false);
    for &line in lines {
        let Some((is_whole, words)) = summary(&line.text) else {
            begins |= BEGINNINGS.iter().any(|text| line.text.starts_with(text));
            ends |= line.text.starts_with("Tidying up ...");
            continue;
        };
        ends = false;
        is_stale = !is_whole && reading.requests.is_some();
        let after = |label: &str| {
            let at = words.iter().position(|word| *word == label)?;
            words.get(at + 1).copied()
        };
        if !is_whole {
            let active = after("Active:").and_then(units::count);
            reading.connections = reading.connections.max(active.filter(|n| *n > 0));
            continue;
        }
        let samples = figures.want(line, RESULT, units::count(words[2]));
        // Counts only grow within a run.
        if samples < reading.requests {
            readings.push(std::mem::replace(
                &mut reading,
                ToolReading::new(Tool::Jmeter),
            ));
        }
        reading.lines.0 = if reading.lines.0 == 0 {
            line.number
        } else {
            reading.lines.0
        };
        reading.lines.1 = line.number;
        reading.requests = samples;
        reading.duration_s = figures
            .want(line, RESULT, seconds(words[4]))
            .filter(|s| *s > 0.0);
        let rate = words.get(6).and_then(|rate| rate.strip_suffix("/s"));
        reading.requests_per_s = figures.want(line, RESULT, rate.and_then(units::number));
        let failed = after("Err:").and_then(units::count);
        reading.errors.unexplained = figures.want(line, RESULT, failed).unwrap_or(0);
        reading.latency = ToolLatency::default();
        for (label, name) in [("Avg:", "avg"), ("Min:", "min"), ("Max:", "max")] {
            let us = figures.want(line, RESULT, after(label).and_then(units::ms));
            set_named(&mut reading.latency, name, us.unwrap_or(0.0));
        }
        coarse_mean(&mut reading.latency, 2e3);
    }
    if readings.is_empty() {
        reading.lines = (0, 0);
    }
    if begins && !ends {
        figures.lacks("`Tidying up ...`");
    } else if is_stale {
        figures.lacks("`summary = ...` below the last `summary + ...`");
    }
    readings.push(reading);
    readings
}

fn read_document(total: &Value) -> ToolReading {
    let mut reading = ToolReading::new(Tool::Jmeter);
    let figure = |name: &str| units::figure(&total[name]);
    reading.requests = total["sampleCount"].as_u64();
    reading.errors.unexplained = total["errorCount"].as_u64().unwrap_or(0);
    reading.requests_per_s = figure("throughput");
    reading.bytes_per_s = figure("receivedKBytesPerSec").map(|kb| kb * 1024.0);
    for (name, key) in [
        ("mean", "meanResTime"),
        ("med", "medianResTime"),
        ("min", "minResTime"),
        ("max", "maxResTime"),
        ("90", "pct1ResTime"),
        ("95", "pct2ResTime"),
        ("99", "pct3ResTime"),
    ] {
        let ms = figure(key).unwrap_or(0.0);
        set_named(&mut reading.latency, name, ms * 1e3);
    }
    coarse_mean(&mut reading.latency, 1e3);
    reading
}
