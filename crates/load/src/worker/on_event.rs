//! What the events of the loop mean: connections that open, answers that come.

use net::{Buf, ConnId, Event, Io};
use readings::{Wrong, WrongKind};

use super::segment::SegmentRun;
use crate::exchange::conn::{Conn, State};
use crate::exchange::{AnswerAge, Kind};
use crate::pacing::Pacer;
use crate::pacing::clock::Clock;
use crate::pacing::stop::StopRule;
use crate::pacing::window::LATE_NS;
use crate::record::Recorder;

impl<I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'_, I, C, K, P, S> {
    #[inline]
    pub(super) fn handle(&mut self, event: Event) {
        if !self.worker.late.is_empty()
            && let Some(at) = self.worker.late_of(&event)
        {
            return self.worker.handle_late(at, event);
        }
        match event {
            Event::Data { conn, buf } if self.worker.is_link(conn) => {
                self.link_data(conn, &buf);
                self.worker.io.recycle(buf);
            }
            Event::Connected { conn } if self.worker.is_link(conn) => self.link_connected(conn),
            Event::ConnectFailed { conn, errno } if self.worker.is_link(conn) => {
                self.link_connect_failed(conn, errno);
            }
            Event::Eof { conn } if self.worker.is_link(conn) => self.link_ended(conn, 0),
            Event::Failed { conn, errno } if self.worker.is_link(conn) => {
                self.link_ended(conn, errno);
            }
            Event::Readable { conn } => self.quic_readable(conn),
            Event::Data { conn, buf } => {
                self.data(conn, &buf);
                self.worker.io.recycle(buf);
            }
            Event::Connected { conn } => {
                self.connected(conn);
                if !self.unopened.is_empty() {
                    self.open_next();
                }
            }
            Event::ConnectFailed { conn: id, errno } => {
                let number = self.worker.by_slot[id.slot()] as usize;
                if self.worker.conns[number].id == Some(id) {
                    match self.worker.io.failure(id).map(str::to_owned) {
                        Some(why) => self.handshake_failed(number, &why),
                        None => self.could_not_connect(number, errno),
                    }
                }
                if !self.unopened.is_empty() {
                    self.open_next();
                }
            }
            Event::Eof { conn: id } => self.ended(id, 0),
            Event::Failed { conn: id, errno } => self.ended(id, errno),
            Event::Accepted { .. } | Event::AcceptFailed { .. } | Event::Drained { .. } => {}
        }
    }

    fn connected(&mut self, id: ConnId) {
        let worker = &mut *self.worker;
        let number = worker.by_slot[id.slot()] as usize;
        let conn = &mut worker.conns[number];
        if conn.id != Some(id) || conn.state != State::Connecting {
            return;
        }
        let now = worker.clock.now_ns();
        let recorder = &mut worker.recorders[self.recorder];
        recorder.connects += 1;
        let is_inside = self.window.contains(now);
        let mut opened = now;
        if let Some(handshake) = worker.io.handshake(id) {
            opened = handshake.opened_ns.max(conn.since);
            recorder.handshake(handshake, is_inside);
        }
        if is_inside {
            recorder.connect.record_ns(opened - conn.since);
        }
        self.send_first(number, id, now);
    }

    #[inline]
    fn data(&mut self, id: ConnId, buf: &Buf) {
        let span = self.span();
        let worker = &mut *self.worker;
        let number = worker.by_slot[id.slot()] as usize;
        let conn = &mut worker.conns[number];
        if conn.id != Some(id) {
            return;
        }
        if conn.state != State::Waiting {
            // Bytes that are no answer: the connection cannot be used any more.
            if conn.is_busy() {
                self.protocol_error(number, "an answer before the request was sent");
            } else {
                worker.close(number);
            }
            return;
        }
        let now = worker.clock.now_ns();
        let mut arrived = now;
        if let Some(arrived_ns) = buf.arrived_ns() {
            // Converted from CLOCK_REALTIME, which may have been set in the meantime.
            arrived = arrived_ns.max(conn.sent).min(now);
            if conn.intended >= self.window.from {
                let recorder = &mut worker.recorders[self.recorder];
                recorder.receive_lag.record_ns(now - arrived);
            }
        }
        if conn.first_byte == 0 {
            conn.first_byte = arrived;
        }
        conn.bytes += buf.len() as u64;
        let target = &worker.job.targets[self.target];
        let request = &target.requests[conn.request as usize];
        let times = conn.times(arrived);
        let recorder = &mut worker.recorders[self.recorder];
        let bytes = worker.io.bytes(buf);
        let taken = conn.exchange.take(request, times, bytes, |note| {
            Self::record_note(recorder, span, times, note);
        });
        // Over HTTP/2 and HTTP/3 too, the first byte is that of the final answer.
        if let Some(has_more) = conn.exchange.interim_ended() {
            let has_begun = has_more || matches!(taken, Ok(true));
            conn.first_byte = if has_begun { arrived } else { 0 };
        }
        match taken {
            Ok(false) => {}
            Ok(true) => {
                // If the request was sent only in part, the rest would be taken for the next one.
                let is_partly_sent = worker.io.queued(id) > 0 || worker.io.has_failed_send(id);
                self.complete(number, (arrived, now), is_partly_sent);
            }
            Err(e) => self.protocol_error(number, &e.to_string()),
        }
    }

    /// Records a complete answer, which arrived and was read at these times. The connection is
    /// closed if it is the `last` one.
    #[inline]
    pub(super) fn complete(&mut self, number: usize, (arrived, now): (u64, u64), last: bool) {
        if K::HAS_MESSAGES {
            self.exchange_complete(number, now);
        }
        let worker = &mut *self.worker;
        let conn = &mut worker.conns[number];
        let request = &worker.job.targets[self.target].requests[conn.request as usize];
        let wrong = conn.exchange.judge(request);
        let recorder = &mut worker.recorders[self.recorder];
        if let Some(status) = conn.exchange.status()
            && let Some(count) = recorder.statuses.get_mut(status as usize)
        {
            *count += 1;
        }
        if K::HAS_MESSAGES
            && wrong.is_none()
            && let Some(ages) = &mut recorder.ages
            && let Some(AnswerAge {
                age_s: Some(age_s),
                max_age_s,
            }) = conn.exchange.age()
            && self.window.contains(Self::counted_at(conn.intended, now))
        {
            ages.record(age_s, max_age_s);
        }
        let last = last || !conn.exchange.keeps_connection();
        self.completed(number, (arrived, now), wrong, last);
    }

    /// Records a complete answer that was judged.
    #[inline]
    pub(super) fn completed(
        &mut self,
        number: usize,
        (arrived, now): (u64, u64),
        wrong: Option<Wrong>,
        last: bool,
    ) {
        let worker = &mut *self.worker;
        let conn = &mut worker.conns[number];
        let intended = conn.intended;
        let counted_at = Self::counted_at(intended, now);
        let is_inside = self.window.contains(counted_at);
        let recorder = &mut worker.recorders[self.recorder];
        if is_inside {
            recorder.bytes_read += conn.bytes;
            recorder.row.row.bytes_read += conn.bytes;
        }
        self.last_done = now;
        let is_good = wrong.is_none();
        match wrong {
            None => {
                recorder.requests_all += 1;
                if self.row.is_some() {
                    // A load that is stopped in its ramp-up has a window that ends before it begins.
                    let at = arrived.min(self.window.end).max(self.window.from);
                    recorder.gaps.end(self.number, at - self.window.from);
                }
                self.tick_requests += 1;
                if !P::OPEN && !S::COUNTS {
                    self.edges += self.window.edge_correction(conn.sent, now);
                    if conn.counted > 0 {
                        self.edges += conn.counted as f64 / (now - conn.sent) as f64;
                    }
                }
                if is_inside {
                    self.requests += 1;
                    conn.answers += 1;
                    let stage = self.stage_ends.partition_point(|&end| end <= intended);
                    record(recorder, conn, arrived, stage);
                    if P::OPEN
                        && let Some(rows) = self.row.and_then(|row| row.rows_before(intended))
                        && arrived.saturating_sub(intended) <= LATE_NS
                    {
                        recorder.row.row.due_before[rows - 1] += 1;
                    }
                }
                if P::OPEN {
                    self.record_answer(intended, (arrived, now));
                }
            }
            Some(wrong) => {
                let request = conn.request;
                self.count_wrong(wrong, counted_at, request);
            }
        }
        if K::HAS_MESSAGES {
            self.step_over(number, now, is_good);
        }
        let worker = &mut *self.worker;
        let conn = &mut worker.conns[number];
        conn.completed = now;
        conn.fruitless = 0;
        let most = worker.pickers[self.target].requests_per_connection;
        if conn.link.is_some() {
            conn.state = State::Idle;
        } else if last || most.is_some_and(|most| conn.requests >= most) {
            worker.close(number);
        } else {
            conn.state = State::Idle;
        }
        self.free(number, now);
    }

    /// Counts a complete answer that is not good.
    #[cold]
    fn count_wrong(&mut self, wrong: Wrong, at: u64, request: u32) {
        let kind = wrong.kind;
        self.worker.recorders[self.recorder].keep_sample(wrong);
        self.count_error(at, Some(request), |errors| match kind {
            WrongKind::Status => &mut errors.status,
            _ => &mut errors.verify,
        });
    }

    /// A connection's request is over: on to the next.
    pub(super) fn free(&mut self, number: usize, now: u64) {
        self.busy = self.busy.saturating_sub(1);
        if K::HAS_MESSAGES && self.goes_on(number, now) {
            return;
        }
        if P::OPEN {
            self.serve(number);
        } else {
            self.issue(number, now);
        }
    }
}

/// Records the times of a good answer, which arrived at this time.
#[inline]
fn record<K>(recorder: &mut Recorder, conn: &Conn<K>, arrived: u64, stage: usize) {
    let response = arrived.saturating_sub(conn.intended);
    recorder.row.row.requests += 1;
    if conn.first_byte == arrived && conn.sent == conn.intended {
        recorder.plain.record_ns(response);
    } else {
        recorder.row.response.record_ns(response);
        recorder
            .service
            .record_ns(arrived.saturating_sub(conn.sent));
        let first_byte = conn.first_byte.saturating_sub(conn.sent);
        recorder.first_byte.record_ns(first_byte);
        let transfer = arrived.saturating_sub(conn.first_byte);
        recorder.transfer.record_ns(transfer);
    }
    if let Some(stats) = recorder.stages.get_mut(stage) {
        stats.requests += 1;
        stats.response.record_ns(response);
    }
    if let Some(stats) = recorder.of_request(conn.request) {
        stats.requests += 1;
        if let Some(histogram) = &mut stats.response {
            histogram.record_ns(response);
        }
    }
}
