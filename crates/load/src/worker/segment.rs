//! The loop of one segment on one thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use net::{Io, WireBytes};
use readings::{Answered, Pacing};

use super::backlog::{Backlog, Turns};
use super::lasting::topics::Topics;
use super::lasting::users::Pauses;
use super::{
    EMPTY_POLL_NS_MAX, OPENING_MAX, REOPENING_NS, SCAN_NS, STOP_DRAIN_NS, TICK_NS, Worker,
};
use crate::exchange::Kind;
use crate::exchange::conn::{Conn, State};
use crate::job::{Job, Segment, Wait};
use crate::ns;
use crate::pacing::Pacer;
use crate::pacing::clock::Clock;
use crate::pacing::offer::{Offer, Presence, WORK_NS};
use crate::pacing::stop::{StopRule, last_answers_wait_ns};
use crate::pacing::window::{RowSpan, Window};
use crate::progress::{LoadError, Progress};

/// Bytes so far, and CPU time, time in the run queue and wasted polling time in ns, at an edge of the
/// window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) wire: WireBytes,
    /// Packets of QUIC connections to the segment's target.
    pub(super) quic: quic::Counts,
    pub(super) cpu: u64,
    pub(super) waited: u64,
    pub(super) wasted: u64,
}

/// Whether the next segment of a segment's target has the same pacing and reading.
fn has_next(job: &Job, number: usize) -> bool {
    let own = &job.segments[number];
    let is_open = |one: &Segment| matches!(one.pacing, Pacing::Open { .. });
    let mut later = job.segments[number + 1..].iter();
    let next = later.find(|one| one.target == own.target);
    next.is_some_and(|next| next.reading == own.reading && is_open(next) == is_open(own))
}

/// A segment under way.
pub(super) struct SegmentRun<'w, I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> {
    pub(super) worker: &'w mut Worker<I, C, K>,
    pub(super) pacer: P,
    pub(super) rule: S,
    pub(super) number: usize,
    pub(super) target: usize,
    pub(super) reading: Option<usize>,
    pub(super) recorder: usize,
    pub(super) start: u64,
    pub(super) window: Window,
    /// When it stops waiting for its last answers.
    waits_until: u64,
    /// The ends of its stages, if there are several.
    pub(super) stage_ends: Vec<u64>,
    /// Connections of a closed loop by time whose opening waits for that of others.
    pub(super) unopened: VecDeque<u32>,
    /// Free connections of an open loop.
    pub(super) idle: VecDeque<u32>,
    pub(super) backlog: Backlog,
    /// Instead of the two, where connections have due messages of their own.
    pub(super) turns: Option<Box<Turns>>,
    /// The topics of WebSockets; what is due waits in `turns`.
    pub(super) topics: Option<Box<Topics>>,
    /// Whether the target's next segment goes on with this one: it has the same pacing and reading.
    pub(super) has_next: bool,
    /// Users who wait for the time of their next request.
    pub(super) pauses: Pauses,
    /// Requests without an answer yet.
    pub(super) busy: u64,
    /// Whether requests were sent since the last poll, which hands some of them to the kernel.
    pub(super) has_sent: bool,
    /// Whether it ends because the rows of a feed are used up.
    pub(super) is_used_up: bool,
    /// The time of this turn of the loop.
    pub(super) now: u64,
    pub(super) last_done: u64,
    pub(super) requests: u64,
    pub(super) errors: u64,
    /// Sum of [`Window::edge_correction`].
    pub(super) edges: f64,
    /// Of an open loop.
    pub(super) answered: Answered,
    /// Time of polls without events so far.
    wasted: u64,
    pub(super) opened: Option<Edge>,
    pub(super) closed: Option<Edge>,
    /// Open connections at the end of the window, with those that are opened again.
    pub(super) open: u64,
    /// WebSockets at the end of the window that are open after their handshake.
    pub(super) open_sockets: u64,
    pub(super) row: Option<RowSpan>,
    pub(super) scanned: u64,
    ticked: u64,
    pub(super) tick_requests: u64,
    pub(super) tick_errors: u64,
    pub(super) offer: Offer,
    pub(super) presence: Presence,
}

impl<'w, I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'w, I, C, K, P, S> {
    pub(super) fn new(
        worker: &'w mut Worker<I, C, K>,
        number: usize,
        start: u64,
        pacer: P,
        rule: S,
    ) -> Self {
        let segment = &worker.job.segments[number];
        let from = start + ns(segment.ramp_up);
        let mut stage_ends = Vec::new();
        if segment.stages.len() > 1 {
            stage_ends.extend(segment.stages.iter().scan(from, |at, stage| {
                *at += ns(stage.duration);
                Some(*at)
            }));
        }
        let window = Window {
            from,
            end: rule.end_ns(from),
        };
        Self {
            offer: match P::OPEN && segment.reading.is_some() {
                true => Offer::new(segment, window, &stage_ends),
                false => Offer::default(),
            },
            presence: Presence::since(start),
            number,
            target: segment.target,
            reading: segment.reading,
            recorder: segment.reading.unwrap_or(worker.recorders.len() - 1),
            start,
            window,
            waits_until: last_answers_wait_ns(&worker.job, number)
                .map_or(u64::MAX, |wait| window.end.saturating_add(wait)),
            stage_ends,
            unopened: VecDeque::new(),
            idle: VecDeque::new(),
            backlog: Backlog::of_one_of(worker.job.threads),
            turns: worker.turns(segment.target, P::OPEN),
            topics: worker.topics(segment.target, start),
            has_next: has_next(&worker.job, number),
            pauses: Pauses::default(),
            busy: 0,
            has_sent: false,
            is_used_up: false,
            now: start,
            last_done: start,
            requests: 0,
            errors: 0,
            edges: 0.0,
            answered: Answered::default(),
            wasted: 0,
            opened: None,
            closed: None,
            open: 0,
            open_sockets: 0,
            row: segment.reading.and(worker.job.rows).map(|length| RowSpan {
                length: ns(length),
                from,
                number: 0,
            }),
            scanned: start,
            ticked: start,
            tick_requests: 0,
            tick_errors: 0,
            worker,
            pacer,
            rule,
        }
    }

    /// Makes the load, until its last answer has come or was given up, or the time to wait for it is
    /// over.
    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<(), LoadError> {
        self.begin();
        self.turn_until_over(stop)?;
        self.finish();
        Ok(())
    }

    fn begin(&mut self) {
        self.worker.recorders[self.recorder].gaps.begin();
        self.report(Progress::SegmentBegins {
            segment: self.number,
        });
        self.worker.clock.sleep_until(self.start);
        self.now = self.worker.clock.now_ns();
        (self.scanned, self.ticked) = (self.now, self.now);
        self.presence = Presence::since(self.now);
        self.take_late();
        if K::HAS_MESSAGES {
            self.begin_users();
        }
        // A segment without a reading opens connections, even if this thread woke after its short window.
        let opens_late = self.reading.is_none() && self.now >= self.window.end;
        let mut opening = 0;
        for number in self.worker.conns_of[self.target].clone() {
            let conn = &mut self.worker.conns[number];
            conn.answers = 0;
            if conn.state == State::Resting {
                conn.state = State::Closed;
            }
            if conn.is_busy() {
                self.busy += 1;
                continue;
            }
            if K::HAS_MESSAGES && self.is_paused(number) {
                continue;
            }
            let conn = &self.worker.conns[number];
            let is_new = conn.state == State::Closed && conn.link.is_none();
            opening += usize::from(is_new);
            match P::OPEN {
                true => self.is_free(number),
                false if is_new && opening > OPENING_MAX && !S::COUNTS => {
                    self.unopened.push_back(number as u32);
                }
                false if opens_late => {
                    if self.claim(number) {
                        self.start(number, self.now, self.now);
                    }
                }
                false => self.issue(number, self.now),
            }
        }
        self.open_websockets(self.now);
    }

    fn turn_until_over(&mut self, stop: &AtomicBool) -> Result<(), LoadError> {
        let mut stopped = None;
        let mut was_empty_poll = false;
        loop {
            let last = std::mem::replace(&mut self.now, self.worker.clock.now_ns());
            if was_empty_poll {
                self.wasted += (self.now - last).min(EMPTY_POLL_NS_MAX);
            }
            self.watch_for_pause(self.now);
            self.sample_backlog();
            self.cross_edges();
            self.finish_rows();
            if stopped.is_none() && stop.load(Ordering::Relaxed) {
                self.window.end = self.window.end.min(self.now);
                self.rule.stop();
                stopped = Some(self.now + STOP_DRAIN_NS);
                self.unopened.clear();
                self.end_offer(self.now);
                self.cross_edges();
            }
            let is_over = self.now >= self.window.end;
            if K::HAS_MESSAGES {
                let limit_ns = match stopped {
                    Some(_) => STOP_DRAIN_NS / 2,
                    None => ns(self.worker.job.timeout),
                };
                if is_over && self.busy > 0 && !self.awaits_deliveries(limit_ns) {
                    self.cut_open();
                }
                self.end_pauses();
                self.publish_due()?;
            }
            // Also after the window's end: what was due before it and is late must be sent.
            let issued = self.issue_due()?;
            let pauses = K::HAS_MESSAGES && self.is_used_up && !self.pauses.is_empty();
            let is_exhausted = !self.rule.is_open() && self.waiting() == 0 && !pauses;
            let is_opening = self.reading.is_none() && !self.unopened.is_empty();
            let is_at_rest = self.busy == 0 && !is_opening;
            if is_at_rest && (is_over || is_exhausted) && !self.awaits_late() {
                if stopped.is_some() {
                    self.worker.abandon_late();
                }
                return Ok(());
            }
            if let Some(until) = stopped {
                if self.now >= until {
                    self.abandon();
                    return Ok(());
                }
            } else if self.now >= self.waits_until {
                self.leave_open();
                return Ok(());
            }
            if !std::mem::take(&mut self.has_sent) && !is_over {
                self.render_ahead();
            }
            let wait = self.wait_ns(is_over);
            self.worker.flush_links();
            self.worker.io.poll(Some(wait)).map_err(LoadError::Loop)?;
            was_empty_poll = wait == 0 && !issued;
            if P::OPEN {
                self.presence.polled(wait, self.busy);
            }
            while let Some(event) = self.worker.io.next_event() {
                self.watch_after_poll();
                self.worked(WORK_NS);
                self.handle(event);
                was_empty_poll = false;
            }
            if self.worker.quic.is_some() {
                self.expire_quic();
            }
            if self.now >= self.scanned + SCAN_NS {
                self.scan();
                self.worker.scan_late();
                was_empty_poll = false;
            }
            if self.now >= self.ticked + TICK_NS {
                self.tick();
            }
        }
    }

    /// How long the loop may sleep: until something is due.
    fn wait_ns(&self, is_over: bool) -> u64 {
        if P::OPEN && self.worker.job.wait == Wait::Spin {
            return 0;
        }
        let mut until = (self.scanned + SCAN_NS).min(self.waits_until);
        if !is_over {
            until = until.min(self.window.end);
            if self.opened.is_none() {
                until = until.min(self.window.from);
            }
            if let Some(row) = &self.row {
                until = until.min(row.from + row.length);
            }
            if P::OPEN && self.rule.is_open() {
                until = until.min(self.pacer.next_ns());
            }
            if K::HAS_MESSAGES {
                until = until.min(self.pauses.next_ns());
                until = until.min(self.topics.as_ref().map_or(u64::MAX, |one| one.next_ns()));
            }
        }
        if let Some(at) = self.worker.next_quic_ns() {
            until = until.min(at);
        }
        until.saturating_sub(self.worker.clock.now_ns())
    }

    /// Records what belongs to the edges of the window, once each has passed.
    pub(super) fn cross_edges(&mut self) {
        let edge = |run: &Self| Edge {
            wire: run.worker.io.wire_bytes(),
            quic: run.worker.quic_counts(run.target),
            cpu: run.worker.clock.thread_cpu_ns(),
            waited: run.worker.clock.thread_waited_ns(),
            wasted: run.wasted,
        };
        if self.opened.is_none() && self.now >= self.window.from {
            self.opened = Some(edge(self));
            self.report(Progress::WindowOpens {
                segment: self.number,
            });
        }
        if self.closed.is_none() && self.now >= self.window.end {
            self.closed = Some(edge(self));
            self.note_offloads();
            let links = self.open_links();
            let conns = &self.worker.conns[self.worker.conns_of[self.target].clone()];
            let has_tls = self.worker.job.targets[self.target].tls.is_some();
            let is_open = |conn: &&Conn<K>| match conn.state {
                State::Idle | State::Waiting => true,
                State::Connecting => has_tls && conn.since + REOPENING_NS > self.now,
                State::Closed | State::Resting => false,
            };
            self.open = match links {
                Some(links) => links,
                // After the last of a number of requests connections are no longer needed.
                None if S::COUNTS => conns.len() as u64,
                None => conns.iter().filter(is_open).count() as u64,
            };
            if K::HAS_MESSAGES {
                self.open_sockets = self.connections_open();
                self.count_open();
            }
            self.report(Progress::WindowCloses {
                segment: self.number,
            });
        }
    }

    /// The stage that a due time lies in, if there are several.
    #[inline]
    pub(super) fn stage(&self, due: u64) -> Option<usize> {
        let stage = self.stage_ends.partition_point(|&end| end <= due);
        (stage < self.stage_ends.len()).then_some(stage)
    }

    /// The time that decides whether a request belongs to the window: when it was over in a closed
    /// loop that ends by time, otherwise when it was due.
    #[inline]
    pub(super) fn counted_at(intended: u64, now: u64) -> u64 {
        match P::OPEN || S::COUNTS {
            true => intended,
            false => now,
        }
    }

    pub(super) fn tick(&mut self) {
        self.ticked = self.now;
        let messages = self.worker.recorders[self.recorder].messages.as_mut();
        let messages = messages.map_or(0, |messages| std::mem::take(&mut messages.ticked));
        self.worker.report(Progress::Tick {
            thread: self.worker.thread,
            segment: self.number,
            requests: std::mem::take(&mut self.tick_requests),
            errors: std::mem::take(&mut self.tick_errors),
            messages,
        });
    }

    /// Progress that only the first thread reports.
    pub(super) fn report(&self, progress: Progress) {
        if self.worker.thread == 0 {
            self.worker.report(progress);
        }
    }
}
