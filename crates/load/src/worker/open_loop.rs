//! What a worker watches in an open loop: the backlog, answers in time, and pauses of its CPU.

use net::Io;

use super::segment::{SegmentRun, Window};
use super::{PAUSE_NS, WORK_NS};
use crate::clock::Clock;
use crate::job::{Segment, Stop};
use crate::pacing::Pacer;
use crate::stop::StopRule;

/// When the backlog is sampled, and until when requests are offered.
#[derive(Debug, Default)]
pub(super) struct Offer {
    /// Four quarters of each stage: their starts, and the end.
    marks: Vec<u64>,
    /// The mark that comes next.
    next: usize,
    /// The end of the offer. In a segment by count that of its last request, once it is known.
    until: u64,
}

impl Offer {
    pub(super) fn new(segment: &Segment, window: Window, stage_ends: &[u64]) -> Self {
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
pub(super) struct Presence {
    seen: u64,
    explained_ns: u64,
    is_asleep: bool,
}

impl Presence {
    pub(super) fn since(now: u64) -> Self {
        Self {
            seen: now,
            explained_ns: 0,
            is_asleep: false,
        }
    }

    /// It polled for so long, and may have read as many answers.
    #[inline]
    pub(super) fn polled(&mut self, wait_ns: u64, answers: u64) {
        self.explained_ns = self
            .explained_ns
            .saturating_add(wait_ns)
            .saturating_add(answers * WORK_NS / 4);
        self.is_asleep = true;
    }

    #[inline]
    pub(super) fn worked(&mut self, work_ns: u64) {
        self.explained_ns = self.explained_ns.saturating_add(work_ns);
    }

    #[inline]
    pub(super) fn is_asleep(&self) -> bool {
        self.is_asleep
    }

    /// It is back; how much of the time nothing explains.
    #[inline]
    fn back(&mut self, now: u64) -> u64 {
        let gap = now.saturating_sub(self.seen);
        let unexplained = gap.saturating_sub(self.explained_ns);
        *self = Self::since(now);
        unexplained
    }
}

impl<I: Io, C: Clock, P: Pacer, S: StopRule> SegmentRun<'_, I, C, P, S> {
    /// Records a pause where the thread comes back later than its work and its sleep explain.
    #[inline]
    pub(super) fn watch_for_pause(&mut self, now: u64) {
        if !P::OPEN {
            return;
        }
        let pause = self.presence.back(now);
        if pause > PAUSE_NS {
            self.pause(now - pause, now);
        }
    }

    /// As above, before the first event after a poll is handled: what it answers may be late
    /// because of the pause.
    #[inline]
    pub(super) fn watch_after_poll(&mut self) {
        if P::OPEN && self.presence.is_asleep() {
            self.watch_for_pause(self.worker.clock.now_ns());
        }
    }

    #[cold]
    fn pause(&mut self, start: u64, end: u64) {
        let (start, end) = (start.max(self.window.from), end.min(self.window.end));
        let Some(open) = &mut self.worker.recorders[self.recorder].open_loop else {
            return;
        };
        if start < end {
            let position = open.measured_ns + start - self.window.from;
            open.pauses.pause(position, end - start);
        }
    }

    /// Records the backlog at each mark that has passed.
    #[inline]
    pub(super) fn sample_backlog(&mut self) {
        while P::OPEN
            && let Some(&mark) = self.offer.marks.get(self.offer.next)
            && self.now >= mark
        {
            let backlog = self.busy + self.backlog.len() as u64;
            let at = self.offer.next;
            self.offer.next += 1;
            let Some(open) = &mut self.worker.recorders[self.recorder].open_loop else {
                continue;
            };
            // The end of a stage is the start of the next.
            if let Some(stage) = open.offered.get_mut(at / 4) {
                stage.backlog[at % 4] += backlog;
            }
            if at > 0
                && at.is_multiple_of(4)
                && let Some(stage) = open.offered.get_mut(at / 4 - 1)
            {
                stage.backlog[4] += backlog;
            }
        }
    }

    /// No request is due from this time on.
    pub(super) fn end_offer(&mut self, at: u64) {
        self.offer.until = self.offer.until.min(at);
        for mark in &mut self.offer.marks[self.offer.next..] {
            *mark = (*mark).min(at);
        }
    }

    /// Counts a request that is due in the window.
    #[inline]
    pub(super) fn count_due(&mut self, due: u64) {
        let stage = self.stage(due).unwrap_or(0);
        if let Some(open) = &mut self.worker.recorders[self.recorder].open_loop
            && let Some(offered) = open.offered.get_mut(stage)
        {
            offered.due += 1;
        }
        if S::COUNTS && !self.rule.is_open() {
            self.end_offer(due + 1);
        }
    }

    /// Records a good answer that arrived and was read at these times.
    #[inline]
    pub(super) fn record_answer(&mut self, intended: u64, (arrived, now): (u64, u64)) {
        let window = self.window;
        if window.contains(arrived) {
            self.answered.within += 1;
        } else if arrived >= window.end {
            self.answered.after += 1;
            let after_s = (arrived - window.end) as f64 / 1e9;
            self.answered.after_s = self.answered.after_s.max(after_s);
        }
        let stage = self.stage(arrived).unwrap_or(0);
        let Some(open) = &mut self.worker.recorders[self.recorder].open_loop else {
            return;
        };
        if arrived >= window.from
            && arrived < self.offer.until
            && let Some(offered) = open.offered.get_mut(stage)
        {
            offered.answered_within += 1;
        }
        if window.contains(intended) {
            let before = open.measured_ns;
            let position = |at: u64| before + at.clamp(window.from, window.end) - window.from;
            let response_ns = arrived.saturating_sub(intended);
            open.answered(position(intended), position(now), response_ns);
        }
    }

    /// Adds the window to the measured time.
    pub(super) fn finish_open_loop(&mut self) {
        self.end_offer(self.now);
        self.sample_backlog();
        let window = self.window;
        if let Some(open) = &mut self.worker.recorders[self.recorder].open_loop {
            open.measured_ns += window.end.saturating_sub(window.from);
        }
    }
}
