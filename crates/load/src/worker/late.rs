//! Requests that are still open when their segment ends.
//!
//! A slice of a closed loop waits for its last answers only for a limited time: one lost SYN would
//! otherwise stretch each slice by a second or more. Nothing is given up, or the slowest requests
//! would be missing. A request that is open for longer keeps its connection. It is answered, or
//! exceeds its time limit, in a later segment on the same target, or beside the segments on others,
//! or after the last one.

use std::time::Duration;

use net::{Event, Io};

use super::Worker;
use super::segment::SegmentRun;
use crate::exchange::Kind;
use crate::exchange::conn::State;
use crate::pacing::clock::Clock;
use crate::pacing::stop::{AfterTime, StopRule};
use crate::pacing::window::Window;
use crate::pacing::{ClosedLoop, Pacer};

/// A segment that has ended, with requests that are still open.
pub(super) struct LateSegment {
    number: usize,
    target: usize,
    /// The end of its window.
    end: u64,
}

impl<I: Io, C: Clock, K: Kind> Worker<I, C, K> {
    /// The index of the late segment that an event belongs to.
    pub(super) fn late_of(&self, event: &Event) -> Option<usize> {
        let id = match *event {
            Event::Data { conn, .. }
            | Event::Connected { conn }
            | Event::ConnectFailed { conn, .. }
            | Event::Eof { conn }
            | Event::Failed { conn, .. } => conn,
            _ => return None,
        };
        if self.is_link(id) {
            return None;
        }
        let number = self.by_slot[id.slot()] as usize;
        let conn = &self.conns[number];
        if conn.id != Some(id) || !conn.is_busy() {
            return None;
        }
        let is_own = |late: &LateSegment| self.conns_of[late.target].contains(&number);
        self.late.iter().position(is_own)
    }

    /// Handles an event of the late segment at this index.
    pub(super) fn handle_late(&mut self, at: usize, event: Event) {
        self.with_late(at, |run| run.handle(event));
    }

    /// Checks the requests of late segments for timeouts.
    pub(super) fn scan_late(&mut self) {
        // Each is taken from the front and, if requests are left, added at the back.
        for _ in 0..self.late.len() {
            self.with_late(0, |run| run.scan());
        }
    }

    /// Continues a late segment after the end of its window.
    fn with_late(
        &mut self,
        at: usize,
        act: impl FnOnce(&mut SegmentRun<'_, I, C, K, ClosedLoop, AfterTime>),
    ) {
        let late = self.late.remove(at);
        let rule = AfterTime {
            time: Duration::ZERO,
            stopped: true,
        };
        let mut run = SegmentRun::new(self, late.number, late.end, ClosedLoop, rule);
        run.window = Window {
            from: late.end,
            end: late.end,
        };
        run.row = None;
        act(&mut run);
        if K::HAS_MESSAGES {
            // A stream that opens behind its window would have no end.
            run.now = run.worker.clock.now_ns();
            run.cut_open();
        }
        let (recorder, edges) = (run.recorder, run.edges);
        if let Some(slice) = self.recorders[recorder].slices.last_mut() {
            slice.edges += edges;
        }
        let mut conns = self.conns[self.conns_of[late.target].clone()].iter();
        if conns.any(|conn| conn.is_busy()) {
            self.late.push(late);
        }
    }

    /// Gives up the requests of late segments.
    pub(super) fn abandon_late(&mut self) {
        for late in std::mem::take(&mut self.late) {
            for number in self.conns_of[late.target].clone() {
                if self.conns[number].is_busy() {
                    self.close(number);
                }
            }
        }
    }
}

impl<I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'_, I, C, K, P, S> {
    /// Ends the segment with requests that are still open.
    pub(super) fn leave_open(&mut self) {
        for number in self.worker.conns_of[self.target].clone() {
            let conn = &mut self.worker.conns[number];
            if conn.state == State::Waiting {
                conn.counted += self
                    .window
                    .end
                    .saturating_sub(conn.sent.max(self.window.from));
            }
        }
        self.worker.late.push(LateSegment {
            number: self.number,
            target: self.target,
            end: self.window.end,
        });
    }

    /// Takes over the requests that the last segment on this target left open.
    pub(super) fn take_late(&mut self) {
        let target = self.target;
        self.worker.late.retain(|late| late.target != target);
    }

    /// Whether the load is at its end, but for requests of earlier segments.
    pub(super) fn awaits_late(&self) -> bool {
        let is_last = self.number + 1 == self.worker.job.segments.len();
        is_last && !self.worker.late.is_empty()
    }
}
