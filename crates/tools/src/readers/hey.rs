//! hey, and the summary that oha has from it.
//!
//! - `Requests/sec` counts failures too; answers per second are worked out from the status codes
//!   where there were failures. Where the counts below do not add up to it, some are missing, and
//!   the rate of answers is not known.
//! - Beyond a million answers `Average` is the sum of all times over a million, and some versions
//!   count a million in `Status code distribution`.
//! - `Total data` are bodies only, and only of answers that named their length.
//! - `DNS+dialup` is a mean over all requests, with 0 for those on an open connection; it is the
//!   time to open one only without keep-alive, and its largest value always.
//! - `resp wait` runs from the request's last byte to the answer's first.
//! - Times are in seconds with four decimals, and so rounded to 100 us.
//! - Nothing says how many workers there were; that is on the command line.

use super::Reader;
use crate::mark::Mark;
use crate::reading::{Figures, count_failure, is_absent, set_quantile, sum};
use crate::text::lines::{Line, next_filled};
use crate::text::units;
use crate::{Tool, ToolLatency, ToolReading};

pub(super) const RESULT: &str = "`Requests/sec: 123.4567`";

pub(super) static READER: Reader = Reader {
    first: "`Summary:` and `Total: 1.2345 secs`",
    result: RESULT,
    gives_up: &["-c cannot", "-n cannot", "-n and -c", "could not parse"],
    mark,
    read,
    document: None,
};

/// hey keeps so many results.
const RESULTS_MAX: u64 = 1_000_000;

fn mark(lines: &[Line], at: usize) -> Option<Mark> {
    let line = &lines[at];
    let next = next_filled(lines, at).map_or("", |line| line.text.as_str());
    match line.text.as_str() {
        "Summary:" if next.starts_with("Total:") => Mark::opens(1),
        "Summary:" => None,
        // All that there is when every request has failed.
        "Error distribution:" if is_failure(next) => Mark::opens(40),
        _ => mark_summary(line),
    }
}

/// A failure as hey lists it: `[20] Get "http://...": EOF`.
fn is_failure(text: &str) -> bool {
    let words = bracketed(text).and_then(|(_, said)| said.split_once(' '));
    words.is_some_and(|(method, url)| {
        let is_method = method.bytes().all(|b| b.is_ascii_alphabetic());
        is_method && url.trim_start_matches('"').starts_with("http")
    })
}

/// The lines that hey and oha share, but for the first.
pub(crate) fn mark_summary(line: &Line) -> Option<Mark> {
    const ONCE: &[(&str, u8)] = &[
        ("Success rate:", 2),
        ("Total:", 3),
        ("Slowest:", 4),
        ("Fastest:", 5),
        ("Average:", 6),
        ("Requests/sec:", 7),
        ("Total data:", 8),
        ("Size/request:", 9),
        ("Size/sec:", 10),
        ("Details (average, fastest, slowest):", 30),
        ("DNS+dialup:", 31),
        ("DNS-lookup:", 32),
        ("req write:", 33),
        ("resp wait:", 34),
        ("resp read:", 35),
        ("Status code distribution:", 36),
        ("Error distribution:", 40),
    ];
    let text = line.text.as_str();
    if let Some(&(_, rank)) = ONCE.iter().find(|(label, _)| text.starts_with(label)) {
        return Mark::once(rank);
    }
    // The histogram and the quantiles; oha has them several times.
    if Section::of(text).is_some() || is_bar(text) || quantile_words(line).is_some() {
        return Mark::many(20);
    }
    if bracketed(text).is_some() {
        return Mark::many(if text.ends_with(" responses") { 37 } else { 41 });
    }
    text.starts_with("Note:").then(Mark::anywhere).flatten()
}

/// A bar of the histogram: `0.012 [57] |■■■`.
fn is_bar(text: &str) -> bool {
    let Some((before, _)) = text.split_once('|') else {
        return false;
    };
    let label = before.split('[').next().unwrap_or("").trim();
    before.trim_end().ends_with(']')
        && (units::number(label).is_some() || units::duration_us(label).is_some())
}

/// The share and the time of `10% in 0.0012 secs`.
fn quantile_words(line: &Line) -> Option<(f64, &str)> {
    let (share, time) = line.text.split_once(" in ")?;
    Some((units::percent(share.trim())?, time.trim()))
}

/// The count or status of `[200] 1000 responses`, and what follows it.
fn bracketed(text: &str) -> Option<(u64, &str)> {
    let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
    Some((units::count(inside)?, rest.trim()))
}

#[derive(Clone, Copy, PartialEq)]
enum Section {
    /// Of all answers.
    Quantiles,
    /// Of some answers, or nothing that is read.
    Other,
    Statuses,
    Failures,
}

impl Section {
    /// The section that a line begins.
    fn of(text: &str) -> Option<Self> {
        let heading = text.strip_suffix(':')?;
        match heading {
            "Latency distribution" | "Response time distribution" => Some(Self::Quantiles),
            "Status code distribution" => Some(Self::Statuses),
            "Error distribution" => Some(Self::Failures),
            "Details (average, fastest, slowest)" => Some(Self::Other),
            _ if heading.starts_with("Response time ") => Some(Self::Other),
            _ => None,
        }
    }
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut reading = ToolReading::new(Tool::Hey);
    reading.depth = Some(1);
    let details = read_summary(&mut reading, lines, figures);
    // Over all requests: what is true of it depends on keep-alive, which the command tells.
    reading.connect = details.dial.unwrap_or_default();
    reading.first_byte = details.wait.unwrap_or_default();
    vec![reading]
}

#[derive(Default)]
pub(crate) struct Details {
    pub dial: Option<ToolLatency>,
    pub wait: Option<ToolLatency>,
}

/// Reads what hey and oha share.
pub(crate) fn read_summary(
    reading: &mut ToolReading,
    lines: &[&Line],
    figures: &mut Figures,
) -> Details {
    const TIME: &str = "a time such as `0.0123 secs`";
    let mut section = Section::Other;
    let mut details = Details::default();
    let mut answers = None;
    let mut failures = 0;
    let mut total_step_us = 0.0;
    for &line in lines {
        let text = line.text.as_str();
        if let Some(begun) = Section::of(text) {
            section = begun;
        } else if let Some((share, time)) = quantile_words(line) {
            // hey prints a share of 0 where there were too few answers.
            if section == Section::Quantiles && share > 0.0 && !is_absent(time) {
                let time = figures.want(line, TIME, units::duration_us(time));
                if let Some(us) = time {
                    set_quantile(&mut reading.latency, share, us);
                }
            }
        } else if let Some((number, rest)) = bracketed(text) {
            match section {
                Section::Statuses => {
                    let count = rest.strip_suffix(" responses").and_then(units::count);
                    let count = figures
                        .want(line, "`[200] 10 responses`", count)
                        .unwrap_or(0);
                    answers = Some(sum([answers.unwrap_or(0), count]));
                    if number >= 400 {
                        reading.errors.status = sum([reading.errors.status, count]);
                    }
                }
                Section::Failures if !rest.starts_with("aborted due to deadline") => {
                    failures = sum([failures, number]);
                    count_failure(reading, rest, number);
                }
                // What was under way when the time was up has not failed.
                Section::Failures => failures = sum([failures, number]),
                _ => {}
            }
        } else if let Some((label, rest)) = text.split_once(':') {
            let rest = rest.trim();
            if is_absent(rest) {
                continue;
            }
            let mut time = || figures.want(line, TIME, units::duration_us(rest));
            match label {
                "Total" => {
                    let time = units::duration_s(rest);
                    reading.duration_s = figures.want(line, TIME, time);
                    total_step_us = units::step_us(rest).unwrap_or(0.0);
                }
                "Slowest" => reading.latency.max_us = time(),
                "Fastest" => reading.latency.min_us = time(),
                "Average" => {
                    reading.latency.mean_us = time();
                    reading.latency.mean_step_us = units::step_us(rest);
                }
                "Requests/sec" => {
                    reading.requests_per_s = figures.want(line, RESULT, units::number(rest));
                }
                "Total data" => {
                    let bytes = figures.want(line, "a size", units::bytes_1024(rest));
                    reading.bytes_read = bytes.map(units::whole);
                }
                "Size/sec" => {
                    reading.bytes_per_s = figures.want(line, "a size", units::bytes_1024(rest));
                }
                "DNS+dialup" => details.dial = figures.want(line, TIME, triple(rest)),
                "resp wait" => details.wait = figures.want(line, TIME, triple(rest)),
                _ => {}
            }
        }
    }
    reading.requests = answers.or((failures > 0).then_some(0));
    let seconds = reading.duration_s.filter(|&s| s > 0.0);
    let Some((rate, seconds)) = reading.requests_per_s.zip(seconds) else {
        return details;
    };
    let all = rate * seconds;
    let counted = sum([answers.unwrap_or(0), failures]);
    let rounding = 0.5 + rate * total_step_us / 2e6;
    if reading.tool == Tool::Hey && answers >= Some(RESULTS_MAX) {
        reading.requests = Some((all.round() as u64).saturating_sub(failures));
    } else if (counted as f64) < all - rounding {
        reading.requests_per_s = None;
        return details;
    }
    if failures > 0 {
        reading.requests_per_s = reading.requests.map(|answers| answers as f64 / seconds);
    }
    details
}

/// Mean, smallest and largest of `0.0012 secs, 0.0010 secs, 0.0100 secs`.
fn triple(rest: &str) -> Option<ToolLatency> {
    let times: Option<Vec<f64>> = rest.split(',').map(units::duration_us).collect();
    match times?[..] {
        [mean, min, max] => Some(ToolLatency {
            mean_us: Some(mean),
            min_us: Some(min),
            max_us: Some(max),
            ..ToolLatency::default()
        }),
        _ => None,
    }
}
