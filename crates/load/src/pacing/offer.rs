//! What an open loop offers, and whether its thread is there to offer it.

use super::window::Window;
use crate::job::{Segment, Stop};

/// The most that sending a request or handling an event takes.
pub(crate) const WORK_NS: u64 = 20_000;

/// When the backlog is sampled, and until when requests are offered.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    /// Four quarters of each stage: their starts, and the end.
    pub(crate) marks: Vec<u64>,
    /// The mark that comes next.
    pub(crate) next: usize,
    /// The end of the offer. In a segment by count that of its last request, once it is known.
    pub(crate) until: u64,
}

impl Offer {
    pub(crate) fn new(segment: &Segment, window: Window, stage_ends: &[u64]) -> Self {
        let end = match (segment.stop, segment.pacing) {
            // As long as so many requests take on average; its end is not known yet.
            (Stop::Requests(total), readings::Pacing::Open { rate_per_s }) => {
                window.from + (total as f64 / rate_per_s * 1e9) as u64
            }
            _ => window.end,
        };
        let ends = match stage_ends {
            [] => &[end],
            ends => ends,
        };
        let mut marks = vec![window.from];
        let mut start = window.from;
        for &end in ends {
            marks.extend((1..=4).map(|quarter| start + (end - start) / 4 * quarter));
            start = end;
        }
        if window.end == u64::MAX
            && let Some(last) = marks.last_mut()
        {
            *last = u64::MAX;
        }
        Self {
            marks,
            next: 0,
            until: window.end,
        }
    }
}

/// Since when a thread has not been seen, and how much of that time is explained.
#[derive(Debug)]
pub(crate) struct Presence {
    seen: u64,
    explained_ns: u64,
    is_asleep: bool,
}

impl Presence {
    pub(crate) fn since(now: u64) -> Self {
        Self {
            seen: now,
            explained_ns: 0,
            is_asleep: false,
        }
    }

    /// It polled for so long, and may have read as many answers.
    #[inline]
    pub(crate) fn polled(&mut self, wait_ns: u64, answers: u64) {
        self.explained_ns = self
            .explained_ns
            .saturating_add(wait_ns)
            .saturating_add(answers * WORK_NS / 4);
        self.is_asleep = true;
    }

    #[inline]
    pub(crate) fn worked(&mut self, work_ns: u64) {
        self.explained_ns = self.explained_ns.saturating_add(work_ns);
    }

    #[inline]
    pub(crate) fn is_asleep(&self) -> bool {
        self.is_asleep
    }

    /// It is back; how much of the time nothing explains.
    #[inline]
    pub(crate) fn back(&mut self, now: u64) -> u64 {
        let gap = now.saturating_sub(self.seen);
        let unexplained = gap.saturating_sub(self.explained_ns);
        *self = Self::since(now);
        unexplained
    }
}
