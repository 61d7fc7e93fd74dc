//! How requests are sent: when, and on which connection.

use net::{ConnId, Io};

use super::OPENING_MAX;
use super::segment::SegmentRun;
use crate::exchange::Kind;
use crate::exchange::conn::State;
use crate::pacing::Pacer;
use crate::pacing::clock::Clock;
use crate::pacing::offer::WORK_NS;
use crate::pacing::stop::StopRule;
use crate::progress::LoadError;

impl<I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'_, I, C, K, P, S> {
    /// Issues the requests of an open loop that are due; whether there were any.
    ///
    /// # Errors
    /// When more wait for a connection than are kept.
    pub(super) fn issue_due(&mut self) -> Result<bool, LoadError> {
        let mut issued = false;
        while P::OPEN && self.rule.is_open() {
            let due = self.pacer.next_ns();
            if due > self.now || due >= self.window.end {
                break;
            }
            if !self.worker.pickers[self.target].claim() {
                self.use_up(due);
                break;
            }
            issued = true;
            self.pacer.advance();
            // The ramp-up is not counted.
            if due >= self.window.from {
                self.rule.count(0);
                self.count_offered(due);
                if K::HAS_MESSAGES {
                    self.count_arrival(due);
                }
            }
            if K::HAS_MESSAGES
                && let Some(turns) = &mut self.turns
            {
                let link = turns.push(due)?;
                self.serve_turn(link);
                continue;
            }
            self.backlog.push(due)?;
            self.serve_backlog();
        }
        Ok(issued)
    }

    /// Counts a request that is due in the window, with the delay of this loop. Waiting for a free
    /// connection is the servers' doing, and is part of the response time.
    #[inline]
    pub(super) fn count_offered(&mut self, due: u64) {
        let late = self.now.saturating_sub(due);
        let recorder = &mut self.worker.recorders[self.recorder];
        recorder.schedule_lag.record_ns(late);
        recorder.row.row.due += 1;
        self.count_due(due);
        if let Some(stage) = self.stage(due) {
            self.worker.recorders[self.recorder].stages[stage].due += 1;
        }
    }

    /// Gives due requests to free connections.
    pub(super) fn serve_backlog(&mut self) {
        while !self.backlog.is_empty() {
            let Some(number) = self.idle.pop_front() else {
                return;
            };
            if let Some(due) = self.backlog.pop_front() {
                let now = self.worker.clock.now_ns();
                self.start(number as usize, due, now);
            }
        }
    }

    /// Gives due messages of a link to its free places.
    fn serve_turn(&mut self, link: usize) {
        while let Some(turns) = &mut self.turns
            && let Some((place, due)) = turns.take(link)
        {
            let now = self.worker.clock.now_ns();
            self.start(place, due, now);
        }
    }

    /// In an open loop: a place is free for the next due request.
    pub(super) fn is_free(&mut self, number: usize) {
        match (&mut self.turns, self.worker.conns[number].link) {
            (Some(turns), Some(link)) => turns.free(number, link as usize),
            _ => self.idle.push_back(number as u32),
        }
    }

    /// As [`Self::is_free`], for one that is due already.
    #[inline]
    pub(super) fn serve(&mut self, number: usize) {
        if !K::HAS_MESSAGES {
            self.idle.push_back(number as u32);
            return self.serve_backlog();
        }
        self.is_free(number);
        match (&self.turns, self.worker.conns[number].link) {
            (Some(_), Some(link)) => self.serve_turn(link as usize),
            _ => self.serve_backlog(),
        }
    }

    /// Due requests that wait for a free place.
    pub(super) fn waiting(&self) -> usize {
        let own = self.turns.as_ref().map_or(0, |turns| turns.waiting());
        self.backlog.len() + own
    }

    /// In a closed loop: sends a connection's next request, if there is one.
    pub(super) fn issue(&mut self, number: usize, now: u64) {
        if now >= self.window.end || !self.rule.is_open_for(number) {
            return;
        }
        if !self.claim(number) {
            // Other users go on.
            if !(K::HAS_MESSAGES && self.has_users_left()) {
                self.use_up(now);
            }
            return;
        }
        // The ramp-up is not counted.
        if now >= self.window.from {
            self.rule.count(number);
        }
        self.start(number, now, now);
    }

    /// Whether a place may send its next request: its user has a row, or there is one.
    pub(super) fn claim(&mut self, number: usize) -> bool {
        K::HAS_MESSAGES && self.has_user(number) || self.worker.pickers[self.target].claim()
    }

    /// The rows of a feed are used up: nothing is due from this time on, and the segment ends with the
    /// last answer; users who have a place make their rounds.
    #[cold]
    fn use_up(&mut self, at: u64) {
        self.is_used_up = true;
        self.rule.stop();
        if K::HAS_MESSAGES {
            self.end_pauses_of_nobody();
        }
        let feed = self.worker.pickers[self.target].numbered.as_ref();
        let feed = feed
            .and_then(|numbered| numbered.used_up())
            .map(str::to_owned);
        self.worker.recorders[self.recorder].used_up = feed;
        if !(K::HAS_MESSAGES && self.has_users_left()) {
            self.end_offer(at);
        }
    }

    /// Fills in requests that are due later, while nothing else is to be done.
    #[inline]
    pub(super) fn render_ahead(&mut self) {
        if P::OPEN
            && let Some(numbered) = &mut self.worker.pickers[self.target].numbered
        {
            let clock = &self.worker.clock;
            while numbered.render_ahead() && clock.now_ns() + WORK_NS < self.pacer.next_ns() {}
        }
    }

    /// Sends a request that was due at `intended` on a connection, which is opened if need be.
    pub(super) fn start(&mut self, number: usize, mut intended: u64, mut now: u64) {
        self.worked(WORK_NS);
        self.has_sent = true;
        let step = match K::HAS_MESSAGES {
            true => self.next_step(number, intended),
            false => None,
        };
        let worker = &mut *self.worker;
        let picker = &mut worker.pickers[self.target];
        let request = match (step, &mut picker.numbered) {
            (Some(step), _) => step,
            (None, Some(numbered)) => numbered.next(&mut worker.conns[number].rendered),
            (None, None) => picker.next(),
        };
        if picker.numbered.is_some() {
            // Filling in is not part of the latency.
            now = worker.clock.now_ns();
            if !P::OPEN {
                intended = now;
            }
        }
        let target = &worker.job.targets[self.target];
        if K::HAS_MESSAGES {
            worker.conns[number].exchange.prepare(target, request);
        }
        let conn = &mut worker.conns[number];
        conn.begin(intended, &target.requests[request]);
        conn.request = request as u32;
        self.busy += 1;
        if let Some(link) = conn.link {
            return self.start_stream(number, link as usize, now);
        }
        if let Some(id) = conn.id {
            conn.leaves(now);
            conn.requests += 1;
            return self.send(number, id);
        }
        self.open(number, now);
    }

    /// Sends the request of a connection.
    #[inline]
    fn send(&mut self, number: usize, id: ConnId) {
        let worker = &mut *self.worker;
        let conn = &worker.conns[number];
        let payload = worker.pickers[self.target].payloads[conn.request as usize];
        let rendered = &conn.rendered;
        if rendered.is_empty() {
            worker.io.send(id, payload);
        } else if rendered.shared.is_none() {
            worker.io.send_quietly(id, &rendered.bytes);
        } else {
            worker.io.send_copy(id, &rendered.bytes);
            worker.io.send_ordered(id, payload);
        }
    }

    /// One connection is open, or could not be opened: the next one that waits for that is opened.
    #[cold]
    pub(super) fn open_next(&mut self) {
        if let Some(number) = self.unopened.pop_front() {
            let now = self.worker.clock.now_ns();
            let number = number as usize;
            if self.reading.is_some() {
                self.issue(number, now);
            } else if self.claim(number) {
                self.start(number, now, now);
            }
        }
    }

    /// Opens those that wait, as far as others are not being opened; all of them if `at_once`.
    pub(super) fn open_waiting(&mut self, at_once: bool) {
        let conns = &self.worker.conns[self.worker.conns_of[self.target].clone()];
        let opening = conns.iter().filter(|conn| conn.state == State::Connecting);
        let room = OPENING_MAX.saturating_sub(opening.count());
        let room = if at_once { usize::MAX } else { room };
        for _ in 0..room.min(self.unopened.len()) {
            self.open_next();
        }
    }

    /// Opens a connection for a request.
    pub(super) fn open(&mut self, number: usize, now: u64) {
        let worker = &mut *self.worker;
        let conn = &mut worker.conns[number];
        conn.since = now;
        conn.requests = 1;
        conn.fruitless = conn.fruitless.saturating_add(1);
        conn.exchange.reset();
        conn.state = State::Connecting;
        // The request is sent after the connection is open, not along with it: otherwise the time
        // of sending would be unknown.
        match worker.io.connect(worker.pickers[self.target].id, None) {
            Ok(id) => {
                conn.id = Some(id);
                worker.by_slot[id.slot()] = number as u32;
                worker.announce_before_handshake(self.target, id);
            }
            Err(e) => self.could_not_connect(number, e.raw_os_error().unwrap_or(0)),
        }
    }

    /// Sends the first request of a connection, after a PROXY protocol header if there is one.
    pub(super) fn send_first(&mut self, number: usize, id: ConnId, now: u64) {
        let worker = &mut *self.worker;
        let conn = &mut worker.conns[number];
        conn.leaves(now);
        let target = &worker.job.targets[self.target];
        // With TLS the header has been sent before the handshake.
        if target.proxy_header.is_none() || target.tls.is_some() {
            return self.send(number, id);
        }
        let number_of = conn.request as usize;
        worker.next_preamble(self.target);
        let request = &worker.job.targets[self.target].requests[number_of];
        let rendered = &worker.conns[number].rendered;
        worker
            .preamble
            .extend_from_slice(match rendered.is_empty() {
                true => &request.bytes,
                false => &rendered.bytes,
            });
        worker.io.send_copy(id, &worker.preamble);
        if rendered.shared.is_some() {
            let payload = worker.pickers[self.target].payloads[number_of];
            worker.io.send_ordered(id, payload);
        }
    }
}
