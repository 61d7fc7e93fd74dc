//! How a worker sends its requests: when they are due, and on which connection.

use net::{ConnId, Io, os};

use super::{ActiveSegment, Worker};
use crate::conn::State;

impl<I: Io> Worker<I> {
    /// Issues the requests of an open loop that are due; whether there were any.
    pub(super) fn issue_due(&mut self, current: &mut ActiveSegment) -> bool {
        let mut issued = false;
        while current.left > 0 {
            let Some(schedule) = &mut current.schedule else {
                break;
            };
            let due = schedule.next_ns();
            if due > self.now || due >= current.end {
                break;
            }
            issued = true;
            schedule.advance();
            if current.left != u64::MAX && due >= current.from {
                current.left -= 1;
            }
            // How late this loop is; waiting for a free connection is the servers' doing, and shows
            // in the response time.
            if due >= current.from {
                let late = self.now.saturating_sub(due);
                let recorder = &mut self.recorders[current.recorder];
                recorder.schedule_lag.record_ns(late);
                recorder.row.row.due += 1;
                if let Some(stage) = current.stage(due) {
                    recorder.stages[stage].due += 1;
                }
            }
            self.backlog.push_back(due);
            self.serve_backlog(current);
        }
        issued
    }

    /// A due request that no connection took in time.
    pub(super) fn never_sent(&mut self, current: &mut ActiveSegment, due: u64) {
        let request = self.targets[current.target].next() as u32;
        self.count_error(current, due, Some(request), |e| &mut e.timeout);
    }

    /// Gives due requests to connections that are free.
    pub(super) fn serve_backlog(&mut self, current: &mut ActiveSegment) {
        while !self.backlog.is_empty() {
            let Some(number) = self.idle.pop_front() else {
                return;
            };
            if let Some(due) = self.backlog.pop_front() {
                self.start(current, number as usize, due, os::now_ns());
            }
        }
    }

    /// In a closed loop: the connection's next request, if there is one.
    pub(super) fn issue(&mut self, current: &mut ActiveSegment, number: usize, now: u64) {
        if current.left == 0 || now >= current.end || self.conns[number].quota == 0 {
            return;
        }
        // What is cut off at the start counts for nothing.
        if now >= current.from {
            if current.left != u64::MAX {
                current.left -= 1;
            }
            if self.conns[number].quota != u64::MAX {
                self.conns[number].quota -= 1;
            }
        }
        self.start(current, number, now, now);
    }

    /// Sends a request on a connection, opening it if need be.
    pub(super) fn start(
        &mut self,
        current: &mut ActiveSegment,
        number: usize,
        intended: u64,
        now: u64,
    ) {
        let picker = &mut self.targets[current.target];
        let request = picker.next();
        let conn = &mut self.conns[number];
        conn.begin(intended);
        if picker.has_head {
            let requests = &self.job.targets[current.target].requests;
            conn.parser.set_head_request(requests[request].is_head());
        }
        conn.request = request as u32;
        self.busy += 1;
        if let Some(id) = conn.id {
            conn.state = State::Waiting;
            conn.sent = now;
            conn.requests += 1;
            self.io.send(id, picker.payloads[request]);
            return;
        }
        conn.since = now;
        conn.requests = 1;
        conn.parser.reset();
        conn.state = State::Connecting;
        // The request is sent when the connection is open, not along with it: only then is it
        // known when it was sent.
        match self.io.connect(picker.id, None) {
            Ok(id) => {
                conn.id = Some(id);
                self.by_slot[id.slot()] = number as u32;
            }
            Err(e) => {
                let errno = e.raw_os_error().unwrap_or(0);
                self.could_not_connect(current, number, errno);
            }
        }
    }

    /// A connection is open: its first request follows, after a PROXY protocol header if there is
    /// one.
    pub(super) fn send_first(
        &mut self,
        current: &ActiveSegment,
        number: usize,
        id: ConnId,
        now: u64,
    ) {
        let conn = &mut self.conns[number];
        conn.state = State::Waiting;
        conn.sent = now;
        let target = &self.job.targets[current.target];
        if target.proxy_header.is_none() {
            let payload = self.targets[current.target].payloads[conn.request as usize];
            self.io.send(id, payload);
            return;
        }
        self.preamble.clear();
        target.preamble(self.openings, &mut self.preamble);
        self.openings += self.job.threads as u64;
        let request = &target.requests[conn.request as usize];
        self.preamble.extend_from_slice(&request.bytes);
        self.io.send_copy(id, &self.preamble);
    }
}
