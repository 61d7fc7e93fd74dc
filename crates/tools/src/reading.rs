//! What all readers need to fill in a [`ToolReading`].

use super::{ReadError, Tool, ToolLatency, ToolReading};
use crate::text::lines::Line;

/// Collects the figures that could not be read. A reader of a single run fails at the first; a
/// reader of any text leaves them out.
pub(super) struct Figures {
    tool: Tool,
    pub wrong: Vec<ReadError>,
}

impl Figures {
    pub fn new(tool: Tool) -> Self {
        let wrong = Vec::new();
        Self { tool, wrong }
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
    let said = said.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let errors = &mut reading.errors;
    let place = if has(&["timeout", "timed out", "deadline exceeded"]) {
        &mut errors.timeout
    } else if has(&[
        "refused",
        "dial ",
        "no such host",
        "dns",
        "cannot assign",
        "unreachable",
    ]) {
        &mut errors.connect
    } else if has(&["broken pipe", "write"]) {
        &mut errors.write
    } else {
        // Closed, reset, cut off, not understood.
        &mut errors.read
    };
    *place = place.saturating_add(count);
}

/// Removes what is no figure, and, once that is known, figures that hold only with, or only without
/// keep-alive.
///
/// A quantile of 0 below an earlier one is none. ab and hey give requests on an open connection a connect time of 0. Their largest is that of a
/// connection that was opened; the rest is so only where every request opened one.
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
