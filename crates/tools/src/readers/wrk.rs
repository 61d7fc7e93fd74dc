//! wrk: `Running ...`, the table of threads, perhaps quantiles, totals, errors, rates.
//!
//! Facts of wrk 4: a latency runs from writing a request to the end of its answer, and an answer
//! that took longer than `--timeout` counts as a request and as a timeout but is left out of the
//! latencies; a request that is never answered counts nowhere. `Non-2xx or 3xx` are answers with a
//! status of 400 or more. Without one latency wrk prints `-nan%` and zeros; these, and a quantile of
//! zero, are no figures.
//! Bytes are all that was received, with K = 1024. wrk2 prints the same and more ([`super::wrk2`]).

use super::named::autocannon;
use super::{Reader, wrk2};
use crate::mark::Mark;
use crate::reading::{Figures, set_quantile};
use crate::text::lines::Line;
use crate::text::units;
use crate::{Tool, ToolReading};

const RESULT: &str = "`Requests/sec: 123.45`";

pub(super) static READER: Reader = Reader {
    first: "`Running 10s test @ http://...`",
    result: RESULT,
    gives_up: &[
        "unable to create thread",
        "unable to connect to",
        "unable to resolve",
        "invalid URL",
        "number of connections must",
    ],
    mark,
    read,
    document: None,
};

const DISTRIBUTION: u8 = 7;

fn mark(lines: &[Line], at: usize) -> Option<Mark> {
    let line = &lines[at];
    let text = line.text.as_str();
    let words = || line.words();
    if text.starts_with("Running ") && text.contains(" test @ ") {
        return (!autocannon::begins(lines, at)).then(|| Mark::opens(1))?;
    }
    if text.ends_with(" connections") && concurrency(line).is_some() {
        return Mark::opens(2);
    }
    if text.starts_with("Thread Stats ") && text.contains("Stdev") {
        return Mark::opens(4);
    }
    if text.starts_with("Latency Distribution") {
        return Mark::many(DISTRIBUTION);
    }
    if text.starts_with("Latency ") && words().len() == 5 && text.ends_with('%') {
        return Mark::opens(5);
    }
    if text.starts_with("Req/Sec ") && words().len() == 5 {
        return Mark::once(6);
    }
    if is_quantile(line) || wrk2::is_spectrum(line) {
        return Mark::many(DISTRIBUTION);
    }
    if wrk2::is_calibration(line) {
        return Mark::many(3);
    }
    if text.ends_with(" read") && text.contains(" requests in ") {
        return (!autocannon::is_total(text)).then(|| Mark::opens(20))?;
    }
    if text.starts_with("Socket errors: connect ") {
        return Mark::opens(21);
    }
    if text.starts_with("Non-2xx or 3xx responses:") {
        return Mark::opens(22);
    }
    // hey and oha have the same line, with four decimals; ghz has it below its mean.
    if let Some(rate) = line.after("Requests/sec:") {
        let above = lines[..at]
            .last()
            .is_some_and(|line| line.text.starts_with("Average:"));
        let wrks = rate.split_once('.').is_some_and(|(_, d)| d.len() == 2)
            && !text.contains('\t')
            && !above;
        return if wrks { Mark::opens(23) } else { None };
    }
    if text.starts_with("Transfer/sec:") {
        return Mark::once(24);
    }
    None
}

/// Threads and connections of `12 threads and 400 connections`.
fn concurrency(line: &Line) -> Option<(u64, u64)> {
    match line.words()[..] {
        [threads, "threads", "and", connections, "connections"] => {
            Some((units::count(threads)?, units::count(connections)?))
        }
        _ => None,
    }
}

fn is_quantile(line: &Line) -> bool {
    match line.words()[..] {
        [share, value] => units::percent(share).is_some() && units::duration_us(value).is_some(),
        _ => false,
    }
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut reading = ToolReading::new(Tool::Wrk);
    let mut extra = wrk2::Extra::default();
    let mut samples = true;
    for &line in lines {
        let text = line.text.as_str();
        if let Some(rest) = text.strip_prefix("Running ") {
            reading.url = rest
                .split_once(" test @ ")
                .map(|(_, url)| url.trim().to_owned());
        } else if let Some((threads, connections)) = concurrency(line) {
            reading.threads = Some(threads);
            reading.connections = Some(connections);
        } else if text.starts_with("Latency Distribution") {
            extra.begins(line);
        } else if extra.takes(line, figures) {
            // A line of wrk2's.
        } else if text.starts_with("Latency ") {
            let words = line.words();
            samples = !words.last().is_some_and(|last| last.contains("nan"));
            if samples {
                let mut time = |at: usize| {
                    let value = words.get(at).and_then(|word| units::duration_us(word));
                    figures.want(line, "`Latency`, mean, deviation, maximum", value)
                };
                reading.latency.mean_us = time(1);
                reading.latency.mean_step_us = words.get(1).and_then(|word| units::step_us(word));
                reading.latency.stdev_us = time(2);
                reading.latency.max_us = time(3);
            }
        } else if is_quantile(line) {
            let words = line.words();
            let value = units::duration_us(words[1]);
            let value = figures.want(line, "a share and a time", value);
            if let Some((share, value)) = units::percent(words[0]).zip(value)
                && samples
                && value > 0.0
                && !extra.is_uncorrected()
            {
                set_quantile(&mut reading.latency, share, value);
            }
        } else if text.contains(" requests in ") {
            read_totals(&mut reading, line, figures);
        } else if let Some(rest) = line.after("Socket errors:") {
            for part in rest.split(',') {
                let (kind, count) = part.trim().split_once(' ').unwrap_or((part, ""));
                let count = figures.want(
                    line,
                    "`Socket errors: connect N, read N, write N, timeout N`",
                    units::count(count.trim()),
                );
                let count = count.unwrap_or(0);
                match kind {
                    "connect" => reading.errors.connect = count,
                    "read" => reading.errors.read = count,
                    "write" => reading.errors.write = count,
                    "timeout" => reading.errors.timeout = count,
                    _ => {}
                }
            }
        } else if let Some(rest) = line.after("Non-2xx or 3xx responses:") {
            let count = figures.want(line, "a count of answers", units::count(rest));
            reading.errors.status = count.unwrap_or(0);
        } else if let Some(rest) = line.after("Requests/sec:") {
            reading.requests_per_s = figures.want(line, RESULT, units::number(rest));
        } else if let Some(rest) = line.after("Transfer/sec:") {
            let bytes = units::bytes_1024(rest);
            reading.bytes_per_s = figures.want(line, "`Transfer/sec: 1.23MB`", bytes);
        }
    }
    extra.complete(&mut reading);
    vec![reading]
}

/// `20211 requests in 30.04s, 24.25MB read`.
fn read_totals(reading: &mut ToolReading, line: &Line, figures: &mut Figures) {
    const FORM: &str = "`N requests in 30.04s, 24.25MB read`";
    let Some((requests, rest)) = line.text.split_once(" requests in ") else {
        return;
    };
    let (time, bytes) = rest.split_once(',').unwrap_or((rest, ""));
    let bytes = bytes.trim().strip_suffix(" read").unwrap_or("");
    reading.requests = figures.want(line, FORM, units::count(requests.trim()));
    reading.duration_s = figures.want(line, FORM, units::duration_s(time));
    let bytes = figures.want(line, FORM, units::bytes_1024(bytes));
    reading.bytes_read = bytes.map(units::whole);
}
