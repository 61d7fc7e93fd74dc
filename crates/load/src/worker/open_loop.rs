//! What a worker watches in an open loop: the backlog, answers in time, and pauses of its CPU.

use net::Io;

use super::PAUSE_NS;
use super::segment::SegmentRun;
use crate::exchange::Kind;
use crate::pacing::Pacer;
use crate::pacing::clock::Clock;
use crate::pacing::stop::StopRule;

impl<I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'_, I, C, K, P, S> {
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

    /// What it does next takes so long at most.
    #[inline]
    pub(super) fn worked(&mut self, work_ns: u64) {
        if P::OPEN {
            self.presence.worked(work_ns);
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
            let backlog = self.busy + self.waiting() as u64;
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
