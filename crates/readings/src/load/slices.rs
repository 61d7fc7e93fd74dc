//! A load over time: its slices, its rows, and its silences.

use serde::{Deserialize, Serialize};

use crate::Quantiles;

/// A good answer is late if it took longer than this: see [`LoadRow::late`].
pub const LATE_S: f64 = 0.3;

/// The good answers to an open loop by when they came, whenever their requests were due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// Inside the measured window.
    pub within: u64,
    /// After its end: a segment ends with its last answer.
    pub after: u64,
    /// How long after its end the last of them came.
    pub after_s: f64,
}

/// One stretch of load on one subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Start of the measured part, since the start of this slice's load: the length of its ramp-up.
    pub start_s: f64,
    /// When the measured part began, by the monotonic clock of the load's host: the slices of all
    /// subjects of a block have it in common. Absent of outside drivers, and in journals of before it
    /// was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
    /// Length of the measured part (edges cut off).
    pub duration_s: f64,
    /// Good answers inside it.
    pub requests: u64,
    /// Failures inside it.
    pub errors: u64,
    /// CPU time of the load's threads inside it.
    pub client_cpu_s: f64,
    /// What has to be added to `requests` in a closed loop, where a good answer whose time lies
    /// partly inside counts with that part of its time. Without it answers that take a tenth of the
    /// slice come in bursts, and one burst more or less is 10% of the throughput.
    pub edges: f64,
    /// When good answers came, of an open loop; `None` in a closed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Answered>,
    /// Time inside it that the load's threads were ready to run and had no CPU.
    pub client_waited_s: f64,
}

impl Slice {
    /// The slices on the axis of their load. `start_s` counts from the start of each slice's own stretch
    /// of load, or, of an outside driver's runs, from the first of them.
    pub fn one_after_another(slices: &[Slice]) -> Vec<Slice> {
        let mut end_s = 0.0;
        let placed = slices.iter().map(|slice| {
            let mut placed = *slice;
            if slice.start_s < end_s {
                placed.start_s += end_s;
            }
            end_s = placed.start_s + placed.duration_s;
            placed
        });
        placed.collect()
    }

    /// Good answers per second, those at the edges with their part.
    pub fn requests_per_s(&self) -> f64 {
        (self.requests as f64 + self.edges) / self.duration_s
    }

    /// Adds the answers of another thread or host to the same slice ([`Slice::answered`]).
    pub fn add_answered(&mut self, other: &Slice) {
        let both = self.answered.zip(other.answered);
        self.answered = both.map(|(a, b)| Answered {
            within: a.within.saturating_add(b.within),
            after: a.after.saturating_add(b.after),
            after_s: a.after_s.max(b.after_s),
        });
    }
}

/// What was measured in one stretch of a load, a second as a rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadRow {
    /// Start, since the start of the measured window.
    pub start_s: f64,
    pub duration_s: f64,
    /// Requests that became due (open loop only).
    pub due: u64,
    /// Good answers that came.
    pub requests: u64,
    /// Those of them that took longer than [`LATE_S`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: u64,
    /// The others to requests that were due one, two, or three and more rows before (open loop only, with rows
    /// of at most a third of [`LATE_S`]).
    #[serde(default, skip_serializing_if = "are_zero")]
    pub due_before: [u64; 3],
    pub errors: u64,
    pub bytes_read: u64,
    /// The response times of the good answers.
    pub latency_us: Quantiles,
}

impl LoadRow {
    /// Good answers per second; 0 for a row without length.
    pub fn requests_per_s(&self) -> f64 {
        per_s(self.requests as f64, self.duration_s)
    }
}

/// A time without any good answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Silence {
    /// Start, since the start of the measured window.
    pub start_s: f64,
    pub duration_s: f64,
}

impl Silence {
    /// Its end, since the start of the measured window.
    pub fn end_s(&self) -> f64 {
        self.start_s + self.duration_s
    }
}

/// A count over a time; 0 without time.
pub(super) fn per_s(count: f64, duration_s: f64) -> f64 {
    match duration_s > 0.0 {
        true => count / duration_s,
        false => 0.0,
    }
}

pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn are_zero(counts: &[u64; 3]) -> bool {
    *counts == [0; 3]
}
