//! What a worker does with the events of its loop.

use std::time::Duration;

use net::http::{HttpError, Progress as Parsing};
use net::{Buf, ConnId, Event, Io, os};
use readings::{ErrorCounts, Wrong, WrongKind};

use super::{ActiveSegment, REST_NS, Worker};
use crate::conn::{Conn, State};
use crate::ns;
use crate::prepare::describe_connect_error;
use crate::record::Recorder;
use crate::run::Progress;

/// The two error numbers that this room tells apart; the same on every Linux.
const EPIPE: i32 = 32;

impl<I: Io> Worker<I> {
    pub(super) fn handle(&mut self, current: &mut ActiveSegment, event: Event) {
        match event {
            Event::Data { conn, buf } => {
                self.data(current, conn, &buf);
                self.io.recycle(buf);
            }
            Event::Connected { conn: id } => {
                let number = self.by_slot[id.slot()] as usize;
                let conn = &mut self.conns[number];
                if conn.id != Some(id) || conn.state != State::Connecting {
                    return;
                }
                let now = os::now_ns();
                let took = now - conn.since;
                let recorder = &mut self.recorders[current.recorder];
                recorder.connects += 1;
                if current.has(now) {
                    recorder.connect.record_ns(took);
                }
                self.send_first(current, number, id, now);
            }
            Event::ConnectFailed { conn: id, errno } => {
                let number = self.by_slot[id.slot()] as usize;
                if self.conns[number].id == Some(id) {
                    self.could_not_connect(current, number, errno);
                }
            }
            Event::Eof { conn: id } => self.ended(current, id, 0),
            Event::Failed { conn: id, errno } => self.ended(current, id, errno),
            Event::Accepted { .. } | Event::AcceptFailed { .. } | Event::Drained { .. } => {}
        }
    }

    fn data(&mut self, current: &mut ActiveSegment, id: ConnId, buf: &Buf) {
        let number = self.by_slot[id.slot()] as usize;
        let conn = &mut self.conns[number];
        if conn.id != Some(id) {
            return;
        }
        if conn.state != State::Waiting {
            // An answer that nobody asked for: the connection is of no more use.
            let busy = conn.is_busy();
            if busy {
                self.protocol_error(current, number, "an answer before the request was sent");
            } else {
                self.close(number);
            }
            return;
        }
        let now = os::now_ns();
        let mut came = now;
        if let Some(arrived) = buf.arrived_ns() {
            // By two clocks, one of which may have been set in the meantime.
            came = arrived.max(conn.sent).min(now);
            if conn.intended >= current.from {
                let recorder = &mut self.recorders[current.recorder];
                recorder.receive_lag.record_ns(now - came);
            }
        }
        if conn.first_byte == 0 {
            conn.first_byte = came;
        }
        conn.bytes += buf.len() as u64;
        let target = &self.job.targets[current.target];
        let rule = &target.requests[conn.request as usize].expect.body;
        let check = &mut conn.check;
        match conn
            .parser
            .feed(self.io.bytes(buf), |piece| check.take(rule, piece))
        {
            Ok(Parsing::More) => {}
            Ok(Parsing::Done { taken }) if taken < buf.len() => {
                // Where the answer ends is not known then: its length may be the wrong one.
                self.protocol_error(current, number, &HttpError::Unasked.to_string());
            }
            Ok(Parsing::Done { .. }) => {
                // An answer to half a request: the other half would be taken for the next.
                let half = self.io.queued(id) > 0;
                self.complete(current, number, (came, now), half);
            }
            Err(e) => self.protocol_error(current, number, &e.to_string()),
        }
    }

    /// An answer is complete: it came and was seen at the times given. `last` when the connection
    /// is of no more use.
    fn complete(
        &mut self,
        current: &mut ActiveSegment,
        number: usize,
        (came, now): (u64, u64),
        last: bool,
    ) {
        let conn = &mut self.conns[number];
        let head = conn.parser.head();
        let target = &self.job.targets[current.target];
        let request = &target.requests[conn.request as usize];
        let wrong = request
            .expect
            .judge(head.status, request.is_head(), &conn.check);
        let counted_at = current.counted_at(conn.intended, now);
        let inside = current.has(counted_at);
        let recorder = &mut self.recorders[current.recorder];
        if let Some(count) = recorder.statuses.get_mut(head.status as usize) {
            *count += 1;
        }
        if inside {
            recorder.bytes_read += conn.bytes;
            recorder.row.row.bytes_read += conn.bytes;
        }
        current.last_done = now;
        match wrong {
            None => {
                recorder.requests_all += 1;
                self.tick_requests += 1;
                if current.schedule.is_none() {
                    current.edges += current.beyond_edges(conn.sent, now);
                }
                if inside {
                    current.requests += 1;
                    conn.answers += 1;
                    note(recorder, conn, came, current.stage(conn.intended));
                }
            }
            Some(wrong) => {
                let kind = wrong.kind;
                recorder.keep_sample(wrong);
                let (at, request) = (counted_at, Some(conn.request));
                match kind {
                    WrongKind::Status => self.count_error(current, at, request, |e| &mut e.status),
                    _ => self.count_error(current, at, request, |e| &mut e.verify),
                }
            }
        }
        let conn = &self.conns[number];
        let used_up = self
            .job
            .requests_per_connection
            .is_some_and(|most| conn.requests >= most);
        if !head.keep_alive || used_up || last {
            self.close(number);
        } else {
            self.conns[number].state = State::Idle;
        }
        self.free(current, number, now);
    }

    /// The connection's request is over, for good or ill: on to the next.
    fn free(&mut self, current: &mut ActiveSegment, number: usize, now: u64) {
        self.busy = self.busy.saturating_sub(1);
        if current.schedule.is_some() {
            self.idle.push_back(number as u32);
            self.serve_backlog(current);
        } else {
            self.issue(current, number, now);
        }
    }

    /// Counts a failure at the time that decides whether it belongs to the window.
    pub(super) fn count_error(
        &mut self,
        current: &mut ActiveSegment,
        at: u64,
        request: Option<u32>,
        count: fn(&mut ErrorCounts) -> &mut u64,
    ) {
        let recorder = &mut self.recorders[current.recorder];
        *count(&mut recorder.errors_all) += 1;
        self.tick_errors += 1;
        if !current.has(at) {
            return;
        }
        *count(&mut recorder.errors) += 1;
        current.errors += 1;
        recorder.row.row.errors += 1;
        if let Some(stage) = current.stage(at) {
            recorder.stages[stage].errors += 1;
        }
        if let Some(request) = request
            && let Some(notes) = recorder.per_request.get_mut(request as usize)
        {
            notes.errors += 1;
        }
    }

    /// A request ended without an answer.
    fn fail(
        &mut self,
        current: &mut ActiveSegment,
        number: usize,
        count: fn(&mut ErrorCounts) -> &mut u64,
        wrong: Wrong,
    ) {
        let now = os::now_ns();
        let conn = &self.conns[number];
        let at = current.counted_at(conn.intended, now);
        let request = conn.request;
        self.recorders[current.recorder].keep_sample(wrong);
        self.count_error(current, at, Some(request), count);
        current.last_done = now;
        self.close(number);
    }

    fn protocol_error(&mut self, current: &mut ActiveSegment, number: usize, found: &str) {
        let wrong = Wrong {
            kind: WrongKind::Protocol,
            expected: "an HTTP/1.1 answer".to_string(),
            found: found.to_string(),
        };
        self.fail(current, number, |e| &mut e.read, wrong);
        self.free(current, number, os::now_ns());
    }

    pub(super) fn could_not_connect(
        &mut self,
        current: &mut ActiveSegment,
        number: usize,
        errno: i32,
    ) {
        let found = describe_connect_error(&std::io::Error::from_raw_os_error(errno));
        let wrong = Wrong {
            kind: WrongKind::Connection,
            expected: "an open connection".to_string(),
            found,
        };
        self.fail(current, number, |e| &mut e.connect, wrong);
        // A rest, so that a dead server is not asked a million times a second.
        self.busy = self.busy.saturating_sub(1);
        let conn = &mut self.conns[number];
        conn.state = State::Resting;
        conn.since = os::now_ns() + REST_NS;
    }

    /// The connection ended, by its peer's will or by a failure.
    fn ended(&mut self, current: &mut ActiveSegment, id: ConnId, errno: i32) {
        let number = self.by_slot[id.slot()] as usize;
        let conn = &mut self.conns[number];
        if conn.id != Some(id) {
            return;
        }
        if !conn.is_busy() {
            // An idle connection may be closed; it is opened again when it is needed.
            self.close(number);
            return;
        }
        if errno == 0 && conn.parser.end() {
            let now = os::now_ns();
            self.complete(current, number, (now, now), true);
            return;
        }
        let found = match (errno, conn.bytes) {
            (0, 0) => "the connection closed before an answer".to_string(),
            (0, bytes) => format!("the connection closed after {bytes} bytes of an answer"),
            (errno, _) => std::io::Error::from_raw_os_error(errno).to_string(),
        };
        let wrong = Wrong {
            kind: WrongKind::Connection,
            expected: "a complete answer".to_string(),
            found,
        };
        let sending = conn.state == State::Connecting || errno == EPIPE;
        if sending {
            self.fail(current, number, |e| &mut e.write, wrong);
        } else {
            self.fail(current, number, |e| &mut e.read, wrong);
        }
        self.free(current, number, os::now_ns());
    }

    pub(super) fn close(&mut self, number: usize) {
        let conn = &mut self.conns[number];
        if let Some(id) = conn.id.take() {
            self.io.close(id);
        }
        conn.state = State::Closed;
        conn.parser.reset();
    }

    /// Gives up what is under way on a target.
    pub(super) fn abandon(&mut self, target: usize) {
        for number in self.conns_of[target].clone() {
            if self.conns[number].is_busy() {
                self.close(number);
            }
        }
        self.busy = 0;
    }

    /// Looks at time limits, and wakes connections that rested.
    pub(super) fn scan(&mut self, current: &mut ActiveSegment) {
        self.now = os::now_ns();
        self.scanned = self.now;
        let (connect, answer) = (ns(self.job.connect_timeout), ns(self.job.timeout));
        for number in self.conns_of[current.target].clone() {
            let conn = &self.conns[number];
            let (late, what, limit) = match conn.state {
                State::Connecting => (self.now > conn.since + connect, "a connection", connect),
                State::Waiting => (self.now > conn.sent + answer, "a complete answer", answer),
                State::Resting if self.now >= conn.since => {
                    self.conns[number].state = State::Closed;
                    self.busy += 1;
                    self.free(current, number, os::now_ns());
                    continue;
                }
                _ => continue,
            };
            if late {
                let wrong = Wrong {
                    kind: WrongKind::Connection,
                    expected: format!("{what} within {:?}", Duration::from_nanos(limit)),
                    found: "none".to_string(),
                };
                self.fail(current, number, |e| &mut e.timeout, wrong);
                self.free(current, number, os::now_ns());
            }
        }
        // Due requests that found no connection in all that time will not be answered in time.
        while let Some(&due) = self.backlog.front() {
            if self.now <= due.saturating_add(answer) {
                break;
            }
            self.backlog.pop_front();
            self.never_sent(current, due);
        }
    }

    pub(super) fn tick(&mut self, current: &ActiveSegment) {
        self.ticked = self.now;
        let (requests, errors) = (self.tick_requests, self.tick_errors);
        (self.tick_requests, self.tick_errors) = (0, 0);
        self.say(Progress::Tick {
            thread: self.thread,
            segment: current.number,
            requests,
            errors,
        });
    }
}

/// Notes the times of a good answer, which was there at `came`.
#[inline]
fn note(recorder: &mut Recorder, conn: &Conn, came: u64, stage: Option<usize>) {
    let response = came.saturating_sub(conn.intended);
    recorder.row.row.requests += 1;
    if conn.first_byte == came && conn.sent == conn.intended {
        recorder.plain.record_ns(response);
    } else {
        recorder.row.response.record_ns(response);
        recorder.service.record_ns(came.saturating_sub(conn.sent));
        let first_byte = conn.first_byte.saturating_sub(conn.sent);
        recorder.first_byte.record_ns(first_byte);
        let transfer = came.saturating_sub(conn.first_byte);
        recorder.transfer.record_ns(transfer);
    }
    if let Some(notes) = stage.and_then(|stage| recorder.stages.get_mut(stage)) {
        notes.requests += 1;
        notes.response.record_ns(response);
    }
    if let Some(notes) = recorder.per_request.get_mut(conn.request as usize) {
        notes.requests += 1;
        if let Some(histogram) = &mut notes.response {
            histogram.record_ns(response);
        }
    }
}
