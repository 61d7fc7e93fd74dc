//! Requests that fail: connections that do not open or break, and timeouts.

use std::time::Duration;

use net::{ConnId, Io};
use readings::{ErrorCounts, Wrong, WrongKind};

use super::segment::SegmentRun;
use super::{FRUITLESS_MAX, REST_NS};
use crate::exchange::Kind;
use crate::exchange::conn::State;
use crate::ns;
use crate::pacing::Pacer;
use crate::pacing::clock::Clock;
use crate::pacing::stop::StopRule;
use crate::prepare::describe_connect_error;

/// The same on every Linux, as is [`ECONNRESET`].
const EPIPE: i32 = 32;
const ECONNRESET: i32 = 104;
/// A server that closes a connection for being idle does so after a second at least: that is the
/// unit of most such settings.
pub(super) const IDLE_NS: u64 = 1_000_000_000;
/// How an exchange ended whose connection or stream was reset.
pub(super) const RESET: &str = "reset";
/// What was found where a connection ended before an answer.
pub(super) const CLOSED: &str = "the connection closed before an answer";

/// Whether a connection that a server closes for being idle may end with this error; 0 is none.
pub(super) fn ends_idle(errno: i32) -> bool {
    matches!(errno, 0 | EPIPE | ECONNRESET)
}

/// The counter of a kind of failures.
type Count = fn(&mut ErrorCounts) -> &mut u64;

/// How a request failed.
pub(super) struct Failure {
    count: Count,
    wrong: Wrong,
    /// How it ended an exchange that was open: [`readings::ExchangeEnd::how`].
    how: &'static str,
}

impl Failure {
    pub(super) fn new(
        count: Count,
        kind: WrongKind,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        let (expected, found) = (expected.into(), found.into());
        let wrong = Wrong {
            kind,
            expected,
            found,
        };
        let how = match kind {
            WrongKind::Protocol => "malformed",
            _ => "closed",
        };
        Self { count, wrong, how }
    }

    /// That ended an exchange in this way.
    pub(super) fn how(self, how: &'static str) -> Self {
        Self { how, ..self }
    }
}

impl<I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'_, I, C, K, P, S> {
    /// Counts a failure at the time that decides whether it belongs to the window.
    pub(super) fn count_error(
        &mut self,
        at: u64,
        request: Option<u32>,
        count: impl Fn(&mut ErrorCounts) -> &mut u64,
    ) {
        let recorder = &mut self.worker.recorders[self.recorder];
        *count(&mut recorder.errors_all) += 1;
        self.tick_errors += 1;
        if !self.window.contains(at) {
            return;
        }
        *count(&mut recorder.errors) += 1;
        self.errors += 1;
        recorder.row.row.errors += 1;
        if let Some(stage) = self.stage(at) {
            self.worker.recorders[self.recorder].stages[stage].errors += 1;
        }
        let recorder = &mut self.worker.recorders[self.recorder];
        if let Some(request) = request
            && let Some(stats) = recorder.of_request(request)
        {
            stats.errors += 1;
        }
    }

    /// A due request for which no connection was free in time.
    pub(super) fn never_sent(&mut self, due: u64) {
        let of_user = K::HAS_MESSAGES.then(|| self.never_served(due)).flatten();
        let request = of_user.unwrap_or_else(|| self.worker.pickers[self.target].skip());
        self.count_error(due, Some(request as u32), |errors| &mut errors.timeout);
    }

    /// The same of connections' own messages, which were due before a time.
    pub(super) fn give_up_turns(&mut self, before: u64) {
        while let Some(turns) = &mut self.turns
            && let Some(due) = turns.give_up(before)
        {
            self.never_sent(due);
        }
    }

    /// A request ended without an answer.
    fn fail(&mut self, number: usize, failure: Failure) {
        let now = self.worker.clock.now_ns();
        if K::HAS_MESSAGES {
            self.exchange_failed(number, now, failure.how);
        }
        let conn = &self.worker.conns[number];
        let at = Self::counted_at(conn.intended, now);
        let request = conn.request;
        self.worker.recorders[self.recorder].keep_sample(failure.wrong);
        self.count_error(at, Some(request), failure.count);
        if K::HAS_MESSAGES {
            self.step_over(number, now, false);
        }
        self.last_done = now;
        self.worker.close(number);
    }

    /// As [`Self::fail`], and the connection goes on to the next request.
    pub(super) fn fail_and_free(&mut self, number: usize, failure: Failure) {
        self.fail(number, failure);
        let now = self.worker.clock.now_ns();
        self.free(number, now);
    }

    /// As [`Self::fail_and_free`], for a connection that ended; the next one is opened after a pause
    /// if several in a row have ended without an answer.
    fn fail_and_reopen(&mut self, number: usize, failure: Failure) {
        if self.worker.conns[number].fruitless < FRUITLESS_MAX {
            return self.fail_and_free(number, failure);
        }
        self.fail(number, failure);
        self.rest(number);
    }

    pub(super) fn protocol_error(&mut self, number: usize, found: &str) {
        let expected = K::expected(self.worker.job.targets[self.target].http());
        let failure = Failure::new(|e| &mut e.read, WrongKind::Protocol, expected, found);
        self.fail_and_reopen(number, failure);
    }

    pub(super) fn could_not_connect(&mut self, number: usize, errno: i32) {
        let found = describe_connect_error(&std::io::Error::from_raw_os_error(errno));
        self.opening_failed(number, "an open connection", found);
    }

    /// The TLS handshake failed.
    pub(super) fn handshake_failed(&mut self, number: usize, why: &str) {
        self.opening_failed(number, "a TLS session", why.to_string());
    }

    pub(super) fn opening_failed(&mut self, number: usize, expected: &str, found: String) {
        let failure = Failure::new(|e| &mut e.connect, WrongKind::Connection, expected, found);
        self.fail(number, failure);
        self.rest(number);
    }

    /// A place goes on after a pause: otherwise a dead server would be asked a million times a second.
    fn rest(&mut self, number: usize) {
        self.busy = self.busy.saturating_sub(1);
        let conn = &mut self.worker.conns[number];
        conn.state = State::Resting;
        conn.since = self.worker.clock.now_ns() + REST_NS;
    }

    /// The connection was closed by its peer, or broke.
    pub(super) fn ended(&mut self, id: ConnId, errno: i32) {
        let worker = &mut *self.worker;
        let number = worker.by_slot[id.slot()] as usize;
        let conn = &mut worker.conns[number];
        if conn.id != Some(id) {
            return;
        }
        if !conn.is_busy() {
            // An idle connection may be closed; it is opened again when it is needed.
            worker.close(number);
            return;
        }
        let failure = worker.io.failure(id).map(str::to_owned);
        if failure.is_none() && self.was_closed_as_idle(number, errno) {
            self.worker.recorders[self.recorder].resent += 1;
            self.worker.close(number);
            self.worker.conns[number].again += 1;
            let now = self.worker.clock.now_ns();
            self.open(number, now);
            return;
        }
        let worker = &mut *self.worker;
        let conn = &mut worker.conns[number];
        if errno == 0 && conn.exchange.end() {
            let now = worker.clock.now_ns();
            self.complete(number, (now, now), true);
            return;
        }
        let found = match (failure, errno, conn.bytes) {
            (Some(why), _, bytes) => format!("{why}, after {bytes} bytes of an answer"),
            (None, 0, 0) => CLOSED.to_string(),
            (None, 0, bytes) => format!("the connection closed after {bytes} bytes of an answer"),
            (None, errno, _) => std::io::Error::from_raw_os_error(errno).to_string(),
        };
        let is_sending = conn.state == State::Connecting || errno == EPIPE;
        let count: Count = match is_sending {
            true => |e| &mut e.write,
            false => |e| &mut e.read,
        };
        let failure = Failure::new(count, WrongKind::Connection, "a complete answer", found);
        let how = if errno == 0 { "closed" } else { RESET };
        self.fail_and_reopen(number, failure.how(how));
    }

    /// Whether a connection had been idle when its request was sent and ended without a byte of an
    /// answer: the server closed it for being idle while the request was on its way. A client may
    /// then send an idempotent request again on a new connection (RFC 9112, 9.3.1). Connections of
    /// one subject are idle while others have their slices.
    fn was_closed_as_idle(&self, number: usize, errno: i32) -> bool {
        let conn = &self.worker.conns[number];
        conn.state == State::Waiting
            && conn.requests > 1
            && conn.bytes == 0
            && ends_idle(errno)
            && conn.sent.saturating_sub(conn.completed) >= IDLE_NS
            && K::is_repeatable(
                &self.worker.job.targets[self.target].requests[conn.request as usize],
            )
    }

    /// Gives up the requests that are not answered.
    pub(super) fn abandon(&mut self) {
        for number in self.worker.conns_of[self.target].clone() {
            if self.worker.conns[number].is_busy() {
                self.worker.close(number);
            }
        }
        self.busy = 0;
        self.worker.abandon_late();
    }

    /// Checks for timeouts, and reopens connections that could not be opened before.
    pub(super) fn scan(&mut self) {
        self.now = self.worker.clock.now_ns();
        self.scanned = self.now;
        let connect = ns(self.worker.job.connect_timeout);
        let target = &self.worker.job.targets[self.target];
        let deadline = target.traffic.deadline().map(ns);
        let timeout = ns(self.worker.job.timeout);
        let answer = deadline.map_or(timeout, |deadline| deadline.min(timeout));
        self.give_up_links(connect);
        self.scan_websockets(connect);
        let mut is_unreachable = false;
        for number in self.worker.conns_of[self.target].clone() {
            let conn = &self.worker.conns[number];
            let has_no_answer = conn.again > 0 && self.now > conn.sent + answer;
            let (is_late, what, limit) = match conn.state {
                State::Connecting if has_no_answer => (true, "a complete answer", answer),
                State::Connecting => {
                    let what = match conn.link {
                        None => "a connection",
                        Some(_) => "a connection with a free stream",
                    };
                    (self.now > conn.since + connect, what, connect)
                }
                // Its messages come at the pace of its topic; what does not come is counted.
                State::Waiting if self.topics.is_some() => continue,
                State::Waiting => {
                    let sign = conn.sent.max(conn.exchange.last_sign());
                    // A stream that goes on has its deadline too.
                    let is_over = deadline.is_some_and(|limit| self.now > conn.sent + limit);
                    (
                        is_over || self.now > sign + answer,
                        "a complete answer",
                        answer,
                    )
                }
                State::Resting if self.now >= conn.since => {
                    self.worker.conns[number].state = State::Closed;
                    self.busy += 1;
                    let now = self.worker.clock.now_ns();
                    self.free(number, now);
                    continue;
                }
                _ => continue,
            };
            if is_late {
                is_unreachable |= limit == connect && what == "a connection";
                let expected = format!("{what} within {:?}", Duration::from_nanos(limit));
                let kind = WrongKind::Connection;
                let failure = Failure::new(|e| &mut e.timeout, kind, expected, "none");
                self.fail_and_free(number, failure.how("silent"));
            }
        }
        if !self.unopened.is_empty() {
            // What is not reached in time is not waited for one after the other.
            self.open_waiting(is_unreachable);
        }
        self.send_all_waiting(self.now);
        // Due requests that found no free connection within the time limit of an answer.
        while let Some(&due) = self.backlog.front()
            && self.now > due.saturating_add(answer)
        {
            self.backlog.pop_front();
            self.never_sent(due);
        }
        self.give_up_turns(self.now.saturating_sub(answer));
        if K::HAS_MESSAGES && S::COUNTS {
            self.give_up_endless();
        }
    }
}
