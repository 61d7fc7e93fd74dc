//! What all readers need to fill in a [`ToolReading`].

use readings::ErrorCounts;

use super::{ReadError, Tool, ToolLatency, ToolReading};
use crate::text::lines::Line;
use crate::text::units;

/// Collects the figures that could not be read. A reader of a single run fails at the first; a
/// reader of any text leaves them out.
pub(super) struct Figures {
    tool: Tool,
    pub wrong: Vec<ReadError>,
    missing: Option<&'static str>,
}

impl Figures {
    pub fn new(tool: Tool) -> Self {
        Self {
            tool,
            wrong: Vec::new(),
            missing: None,
        }
    }

    /// Notes what is missing at the end of an output, as its other figures show.
    pub fn lacks(&mut self, expected: &'static str) {
        self.missing.get_or_insert(expected);
    }

    /// What is missing at the end of the output that was read last.
    pub fn take_missing(&mut self) -> Option<&'static str> {
        self.missing.take()
    }

    /// Passes a figure on, or notes that the line has none of the expected form.
    pub fn want<T>(&mut self, line: &Line, expected: &'static str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.wrong.push(ReadError::Figure {
                tool: self.tool,
                line: line.number,
                expected,
                found: line.text.chars().take(120).collect(),
            });
        }
        value
    }
}

/// Sets a quantile and keeps the order. The shares 0 and 1 are the smallest and the largest.
pub(super) fn set_quantile(latency: &mut ToolLatency, share: f64, us: f64) {
    if share <= 0.0 {
        latency.min_us.get_or_insert(us);
    } else if share >= 1.0 {
        latency.max_us.get_or_insert(us);
    } else {
        let quantiles = &mut latency.quantiles_us;
        let at = quantiles.partition_point(|(other, _)| *other < share);
        match quantiles.get_mut(at) {
            Some(same) if same.0 == share => same.1 = us,
            _ => quantiles.insert(at, (share, us)),
        }
    }
}

/// Sets what a name stands for: `avg`, `stddev`, `min`, `slowest`, `med`, and shares such as `50`,
/// `97.5%`, `p99_9` and `95th`. A time of 0 is below what the tool can tell, and no figure.
pub(super) fn set_named(latency: &mut ToolLatency, name: &str, us: f64) {
    if us <= 0.0 {
        return;
    }
    let place = match name.to_ascii_lowercase().as_str() {
        "avg" | "average" | "mean" => &mut latency.mean_us,
        "stdev" | "stddev" => &mut latency.stdev_us,
        "min" | "fastest" => &mut latency.min_us,
        "max" | "slowest" => &mut latency.max_us,
        "med" | "median" => return set_quantile(latency, 0.5, us),
        name => {
            if let Some(share) = share(name) {
                set_quantile(latency, share, us);
            }
            return;
        }
    };
    *place = Some(us);
}

fn share(name: &str) -> Option<f64> {
    let letters = |c: char| c.is_ascii_alphabetic() || c == '%';
    let mut digits = name.trim_matches(letters).replace('_', ".");
    // `p999` is 99.9%.
    if digits.len() > 2 && digits.starts_with("99") && !digits.contains('.') {
        digits.insert(2, '.');
    }
    units::percent(&format!("{digits}%"))
}

/// Notes the step of a mean that is made of whole steps, and takes it away where it is too small
/// for that: within a fifth of it.
pub(super) fn coarse_mean(latency: &mut ToolLatency, step_us: f64) {
    latency.mean_us = latency.mean_us.filter(|us| *us >= 5.0 * step_us);
    latency.mean_step_us = latency.mean_us.map(|_| step_us);
}

/// Counts answers by their status, of which those of 400 and more are errors.
pub(super) fn count_statuses<'a>(
    reading: &mut ToolReading,
    statuses: impl IntoIterator<Item = (&'a str, u64)>,
) {
    let mut answers = 0;
    for (status, count) in statuses {
        let Some(class) = status.bytes().next().filter(|b| (b'1'..=b'9').contains(b)) else {
            continue;
        };
        answers = sum([answers, count]);
        if class >= b'4' {
            reading.errors.status = sum([reading.errors.status, count]);
        }
    }
    reading.requests = Some(answers);
}

/// Takes those that surely failed without an answer out of a count and a rate of all requests.
pub(super) fn leave_unanswered_out(
    reading: &mut ToolReading,
    all: Option<u64>,
    all_per_s: Option<f64>,
) {
    let unanswered = ErrorCounts {
        status: 0,
        verify: 0,
        unexplained: 0,
        ..reading.errors
    };
    let unanswered = unanswered.total();
    let answers = all.map(|all| all.saturating_sub(unanswered));
    let part = answers.zip(all.filter(|all| *all > 0));
    let part = part.map_or(1.0, |(answers, all)| answers as f64 / all as f64);
    reading.requests = answers;
    reading.requests_per_s = all_per_s.map(|rate| rate * part);
}

/// Whether a tool printed something that stands for no value, as it does without any sample.
pub(super) fn is_absent(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("nan") || text.contains("inf")
}

/// Whether a reading has any figure in it that was measured.
pub(super) fn has_figures(reading: &ToolReading) -> bool {
    reading.requests.is_some()
        || reading.requests_per_s.is_some()
        || reading.duration_s.is_some()
        || reading.bytes_read.is_some()
        || [&reading.latency, &reading.connect, &reading.first_byte]
            .into_iter()
            .any(|latency| *latency != ToolLatency::default())
        || reading.errors.total() > 0
}

/// Counts a failure by the tool's words for it.
pub(super) fn count_failure(reading: &mut ToolReading, said: &str, count: u64) {
    let place = place_of(&mut reading.errors, said);
    *place = place.saturating_add(count);
}

/// What tools call an answer that was cut off or not understood.
const BROKEN: [&str; 14] = [
    "eof",
    "reset",
    "close",
    "closing",
    "hang up",
    "aborted",
    "disconnected",
    "incomplete",
    "terminated",
    "malformed",
    "parse error",
    "protocol error",
    "protocolerror",
    "read:",
];

/// The count of failures that a tool's words stand for.
pub(super) fn place_of<'a>(errors: &'a mut ErrorCounts, said: &str) -> &'a mut u64 {
    // The words of a URL are not the tool's.
    let words = said.split_whitespace().filter(|word| !word.contains("://"));
    let said = words.collect::<Vec<_>>().join(" ").to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&["timeout", "timed out", "timedout", "deadline exceeded"]) {
        &mut errors.timeout
    } else if has(&[
        "refused",
        "dial ",
        "trying to connect",
        "no such host",
        "dns",
        "cannot assign",
        "dialing",
        "notfound",
        "eai_again",
        "unreachable",
    ]) {
        &mut errors.connect
    } else if has(&["broken pipe", "write", "epipe"]) {
        &mut errors.write
    } else if has(&BROKEN) {
        &mut errors.read
    } else {
        &mut errors.unexplained
    }
}

/// Removes what is no figure, times of failures alone, and, once that is known, figures that hold
/// only with, or only without keep-alive.
///
/// A quantile of 0 below an earlier one is none. ab and hey give requests on an open connection a
/// connect time of 0. Their largest is that of a connection that was opened; the rest is so only
/// where every request opened one.
pub(super) fn settle(reading: &mut ToolReading) {
    let of_times = [
        &mut reading.latency,
        &mut reading.connect,
        &mut reading.first_byte,
    ];
    for latency in of_times {
        let mut largest = latency.min_us.unwrap_or(0.0);
        latency.quantiles_us.retain(|(_, us)| {
            let below = *us == 0.0 && largest > 0.0;
            largest = largest.max(*us);
            !below
        });
    }
    if reading.tool.times_failures() && reading.requests == Some(0) {
        reading.latency = ToolLatency::default();
    }
    let mixed = match reading.tool {
        Tool::Ab => reading.keepalive == Some(true),
        Tool::Hey => reading.keepalive != Some(false),
        _ => false,
    };
    if mixed {
        reading.connect = ToolLatency {
            max_us: reading.connect.max_us,
            ..ToolLatency::default()
        };
    }
}

/// Sums of counts that come from a text never overflow.
pub(super) fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}
