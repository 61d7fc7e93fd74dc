//! Our own load engine: the JSON document of `weigh load --format json`.
//!
//! `requests` are good answers there; complete answers, as other tools count them, are those and
//! the wrong ones. The latency is the response time, counted from when a request was due, over
//! all answers; quantiles that too few answers stand behind are left out. Without an answer all
//! latencies are 0, which are no figures.
//!
//! The text that it prints without `--format json` is for people, and has rounded figures: it is
//! recognised, since some of its lines are as wrk's, but not read.

use serde_json::Value;

use super::{Document, Reader};
use crate::text::lines::Line;
use crate::text::units;
use crate::{ReadError, Tool, ToolLatency, ToolReading};
use readings::{ErrorCounts, Quantiles};

const EXPECTED: &str = "a JSON document with `requests`, `duration_s` and `latency_us`";

pub(super) static READER: Reader = Reader {
    first: EXPECTED,
    result: EXPECTED,
    gives_up: &["weigh: "],
    // Its text for people is no output that can be read.
    mark: |_, _| None,
    read: |_, _| Vec::new(),
    document: Some(Document {
        key: "\"latency_us\"",
        is_one: |json| read_document(json).is_some(),
        read: read_document,
    }),
};

/// Most lines of a text: there is a line for each host, stage and request.
const TEXT_LINES: usize = 1000;

/// The reading of a document, if it has all that it takes.
fn read_document(json: &Value) -> Option<ToolReading> {
    let mut reading = ToolReading::new(Tool::Weigh);
    fill(&mut reading, json).ok()?;
    Some(reading)
}

/// Whether the text for people begins with a line: `10.00s measured @ http://...`.
pub(crate) fn begins_text(line: &Line) -> bool {
    let seconds = line.text.split_once(" measured @ ").map(|(s, _)| s);
    let seconds = seconds.and_then(|s| s.strip_suffix('s'));
    seconds.is_some_and(|s| units::number(s).is_some())
}

/// The last line of the text for people, given its first. It ends with the line `Transfer/sec:`;
/// `ends` tells a line at which something else begins, which is where one without it ends.
pub(crate) fn text_end(lines: &[Line], first: usize, ends: impl Fn(usize) -> bool) -> usize {
    let mut last = first;
    for (at, line) in lines.iter().enumerate().skip(first + 1).take(TEXT_LINES) {
        if line.text.starts_with("Transfer/sec:") {
            return at;
        }
        if line.text.is_empty() || begins_text(line) || ends(at) {
            break;
        }
        last = at;
    }
    last
}

/// Reads the one document that the program prints.
pub(crate) fn read(text: &str) -> Result<Vec<ToolReading>, ReadError> {
    let tool = Tool::Weigh;
    let Some(start) = text.find('{') else {
        let said = |(number, line): (usize, &str)| {
            let gives_up = READER
                .gives_up
                .iter()
                .any(|beginning| line.starts_with(beginning));
            gives_up.then(|| ReadError::GaveUp {
                tool,
                line: number + 1,
                said: line.to_owned(),
            })
        };
        let gave_up = text.lines().enumerate().find_map(said);
        return Err(gave_up.unwrap_or(ReadError::Nothing {
            tool,
            expected: EXPECTED,
            instead: None,
        }));
    };
    let first = text[..start].matches('\n').count() + 1;
    let wrong = |line: usize, reason: String| ReadError::Json { tool, line, reason };
    let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    let document = match documents.next() {
        Some(Ok(document)) => document,
        Some(Err(error)) => return Err(wrong(first + error.line() - 1, error.to_string())),
        None => return Err(wrong(first, "found none".to_owned())),
    };
    let end = start + documents.byte_offset();
    let mut reading = ToolReading::new(tool);
    reading.lines = (first, text[..end].matches('\n').count() + 1);
    fill(&mut reading, &document).map_err(|key| wrong(first, format!("found no `{key}`")))?;
    Ok(vec![reading])
}

fn fill(reading: &mut ToolReading, document: &Value) -> Result<(), &'static str> {
    let number = |key: &str| units::figure(&document[key]);
    let count = |key: &str| document[key].as_u64();
    let good = count("requests").ok_or("requests")?;
    reading.errors =
        serde_json::from_value::<ErrorCounts>(document["errors"].clone()).map_err(|_| "errors")?;
    reading.requests = Some(good.saturating_add(reading.errors.wrong_answers()));
    reading.duration_s = Some(number("duration_s").ok_or("duration_s")?);
    reading.requests_per_s = number("requests_per_s");
    reading.bytes_read = count("bytes_read");
    reading.bytes_per_s = reading
        .bytes_read
        .zip(reading.duration_s.filter(|s| *s > 0.0))
        .map(|(bytes, s)| bytes as f64 / s);
    reading.url = document["url"].as_str().map(str::to_owned);
    reading.connections = count("connections");
    reading.offered_per_s = units::figure(&document["pacing"]["rate_per_s"]);
    reading.threads = document["client"]["threads"]
        .as_array()
        .map(|threads| threads.len() as u64);
    reading.client_cpu_s = units::figure(&document["client"]["cpu_s"]);
    let few: Vec<&str> = document["latency_us_unresolved"]
        .as_array()
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    reading.latency = latency(&document["latency_us"], &few).ok_or("latency_us")?;
    reading.connect = latency(&document["connect_us"], &[]).unwrap_or_default();
    reading.first_byte = latency(&document["first_byte_us"], &[]).unwrap_or_default();
    Ok(())
}

/// A summary, without the quantiles that are named in `few`.
fn latency(summary: &Value, few: &[&str]) -> Option<ToolLatency> {
    let count = summary["count"].as_u64()?;
    if count == 0 {
        return Some(ToolLatency::default());
    }
    let us = |key: &str| units::figure(&summary[key]);
    Some(ToolLatency {
        mean_step_us: None,
        mean_us: us("mean"),
        stdev_us: us("stdev"),
        min_us: us("min"),
        max_us: us("max"),
        quantiles_us: Quantiles::SHARES
            .iter()
            .filter(|(name, _)| !few.contains(name))
            .filter_map(|(name, share)| Some((*share, us(name)?)))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        let summary = serde_json::json!({
            "count": 4000, "min": 40.0, "mean": 60.0, "stdev": 9.0, "p50": 58.0, "p75": 64.0,
            "p90": 70.0, "p99": 90.0, "p99_9": 200.0, "p99_99": 900.0, "max": 1200.5,
        });
        serde_json::json!({
            "url": "http://127.0.0.1:8080/",
            "requests": 3990, "duration_s": 2.0, "requests_per_s": 1995.0, "bytes_read": 8000,
            "errors": {"connect": 1, "read": 2, "write": 0, "timeout": 0, "status": 10, "verify": 0},
            "connections": 8,
            "pacing": {"kind": "closed"},
            "latency_us": summary,
            "latency_us_unresolved": ["p99", "p99_9", "p99_99"],
            "connect_us": {"count": 0, "min": 0.0},
            "client": {"cpu_s": 0.5, "threads": [{"cpu": 0.25, "requests": 3990}]},
        })
    }

    #[test]
    fn our_own_document_is_read() {
        let text = format!("weigh: a note\n{:#}\nafter\n", document());
        let readings = read(&text).unwrap();
        let reading = &readings[0];
        assert_eq!(reading.requests, Some(4000), "with the wrong answers");
        assert_eq!(reading.errors.status, 10);
        assert_eq!(reading.duration_s, Some(2.0));
        assert_eq!(reading.threads, Some(1));
        assert_eq!(reading.client_cpu_s, Some(0.5));
        assert_eq!(reading.offered_per_s, None);
        let shares: Vec<f64> = reading.latency.quantiles_us.iter().map(|q| q.0).collect();
        assert_eq!(shares, [0.5, 0.75, 0.9]);
        assert_eq!(reading.latency.max_us, Some(1200.5));
        assert_eq!(reading.connect, ToolLatency::default());
        assert_eq!(reading.lines.0, 2);
        assert_eq!(text.lines().nth(reading.lines.1 - 1), Some("}"));
    }

    #[test]
    fn our_own_document_is_found_in_any_text() {
        let text = format!("It was fast:\n{:#}\nafter\n", document());
        let found = crate::read_text(&text);
        assert_eq!(found.problems, []);
        assert_eq!(found.readings.len(), 1);
        let reading = &found.readings[0];
        let alone = &read(&text).unwrap()[0];
        assert_eq!(reading, alone);
        assert_eq!((reading.tool, reading.lines.0), (Tool::Weigh, 2));
        let on_one_line = crate::read_all(&document().to_string());
        assert_eq!(on_one_line[0].requests, Some(4000));
        // A document with the key that is another's.
        assert_eq!(crate::read_all("{\"latency_us\": {\"count\": 3}}"), []);
    }

    /// As `weigh load` prints it.
    const TEXT: &str = "\
10.00s measured @ http://127.0.0.1:8080/
  1 thread and 96 connections, closed loop (epoll)
               mean     stdev       p50       p75       p90       p99     p99.9       max
  Latency    5.66ms    4.48ms    4.85ms    5.12ms    5.27ms    9.60ms   48.0ms?    48.0ms
  ? fewer than 100 answers lie beyond it
  200,000 requests in 10.00s, 40.0MB read
  Errors: 100 status
  Client: 4.00s of CPU, its threads busy 40%
Requests/sec:   20000.00
Transfer/sec:     4.00MB
";

    #[test]
    fn our_own_text_is_recognised_and_not_taken_for_wrks() {
        let wrks = "Running 1s test @ http://a/\n  2 threads and 4 connections\n  \
                    80 requests in 1.00s, 1.00MB read\nRequests/sec:     80.00\n";
        let text = format!("$ weigh load\n{TEXT}{wrks}{TEXT}");
        let found = crate::read_text(&text);
        let own = |lines| ReadError::OwnText { lines };
        assert_eq!(found.problems, [own((2, 11)), own((16, 25))]);
        let readings: Vec<_> = found.readings.iter().map(|r| (r.tool, r.lines)).collect();
        assert_eq!(readings, [(Tool::Wrk, (12, 15))]);
        let said = found.problems[0].to_string();
        assert!(
            said.contains("lines 2 to 11: ") && said.contains("--format json"),
            "{said}"
        );

        let cut: String = TEXT
            .lines()
            .take(6)
            .map(|line| format!("{line}\n"))
            .collect();
        let found = crate::read_text(&format!("{cut}{wrks}"));
        assert_eq!(found.problems, [own((1, 6))]);
        assert_eq!(found.readings.len(), 1);
        assert_eq!(crate::read_text(&cut).problems, [own((1, 6))]);
    }

    #[test]
    fn what_is_no_document_is_told_by_its_line() {
        let said = |text: &str| read(text).unwrap_err().to_string();
        let gave_up = said("one\nweigh: http://x/ does not answer: refused\n");
        assert!(
            gave_up.contains("line 2") && gave_up.contains("does not answer"),
            "{gave_up}"
        );
        assert!(said("hello").contains("found none of its lines"));
        assert!(said("a\n{\"requests\": }").contains("line 2"));
        assert!(said("{}").contains("`requests`"));
        let mut cut = document().to_string();
        cut.truncate(cut.len() / 2);
        assert!(said(&cut).contains("EOF"), "{}", said(&cut));
    }
}
