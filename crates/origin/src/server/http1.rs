//! The part of a thread that serves HTTP/1.1 clients.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use net::{Buf, ConnId, Io, PayloadId, os};

use super::{AnswerKey, AnswerTo, Worker, stats};
use crate::pages::{BLOCK, ConnectionReuse, Page, answer, page, sized_body};

/// How many sends may wait for the client before its next requests are taken.
const SENDS_MAX: usize = 16;
/// How many blocks of a long body are given to the loop ahead of what the client takes. With TLS each is
/// encrypted then.
const BLOCKS_AHEAD: usize = 2;

/// Bytes of a client.
enum Input<'a> {
    /// They have just arrived.
    Received(&'a Buf),
    /// They arrived while earlier answers were being sent.
    Waiting(&'a [u8]),
}

impl Input<'_> {
    fn len(&self) -> usize {
        match self {
            Input::Received(buf) => buf.len(),
            Input::Waiting(bytes) => bytes.len(),
        }
    }

    #[inline]
    fn bytes<'b>(&'b self, io: &'b impl Io) -> &'b [u8] {
        match self {
            Input::Received(buf) => io.bytes(buf),
            Input::Waiting(bytes) => bytes,
        }
    }

    /// The kernel timestamp, if there is one.
    fn arrived_ns(&self) -> Option<u64> {
        match self {
            Input::Received(buf) => buf.arrived_ns(),
            Input::Waiting(_) => None,
        }
    }
}

impl<I: Io> Worker<I> {
    pub(super) fn data(&mut self, conn: ConnId, buf: &Buf) {
        let slot = conn.slot();
        if self.clients[slot].closing {
            return self.discard(conn, buf.len());
        }
        let is_first = !std::mem::replace(&mut self.clients[slot].has_begun, true);
        if is_first {
            self.begin_h2(conn, buf);
        }
        if self.clients[slot].h2.is_some() {
            return self.h2_data(conn, buf);
        }
        if self.clients[slot].is_paused {
            let waiting = &mut self.clients[slot].waiting;
            return waiting.extend_from_slice(self.io.bytes(buf));
        }
        self.take_requests(conn, &Input::Received(buf));
    }

    /// Whether the next request has to wait for earlier answers.
    #[inline]
    fn is_answering(&self, conn: ConnId) -> bool {
        let client = &self.clients[conn.slot()];
        client.rest > 0 || client.is_held || self.io.queued(conn) >= SENDS_MAX
    }

    /// Answers requests. Those that have to wait for earlier answers are stored, and reading is
    /// paused; returns whether it is.
    fn take_requests(&mut self, conn: ConnId, input: &Input<'_>) -> bool {
        let slot = conn.slot();
        let length = input.len();
        let mut at = 0;
        while at < length && !self.clients[slot].closing {
            if self.is_answering(conn) {
                let client = &mut self.clients[slot];
                client
                    .waiting
                    .extend_from_slice(&input.bytes(&self.io)[at..]);
                if !std::mem::replace(&mut client.is_paused, true) {
                    self.io.pause(conn);
                }
                return true;
            }
            let bytes = &input.bytes(&self.io)[at..];
            let client = &mut self.clients[slot];
            let at_start = client.parser.at_start();
            if let Some(payload) = client.last_page
                && at_start
                && bytes == client.last
            {
                client.closing = !client.last_keep_alive;
                self.requests += 1;
                self.io.send_ordered(conn, payload);
                return false;
            }
            let whole = at == 0 && at_start;
            match client.parser.feed(bytes) {
                Ok((taken, false)) => at += taken.max(1),
                Ok((taken, true)) => {
                    client.last.clear();
                    client.last_page = None;
                    if whole && taken == bytes.len() {
                        client.last.extend_from_slice(bytes);
                    }
                    at += taken;
                    self.requests += 1;
                    self.respond(conn, input.arrived_ns());
                }
                Err(e) => {
                    let text = format!("{e}\n");
                    let bytes = answer(
                        400,
                        "text/plain",
                        text.as_bytes(),
                        false,
                        ConnectionReuse::Closed,
                    );
                    client.closing = true;
                    client.may_send = true;
                    self.io.send_copy(conn, &bytes);
                }
            }
        }
        // More was pipelined after the last request that is answered.
        self.clients[slot].may_send |= at < length;
        false
    }

    /// Sends more of a long body, and takes requests that waited for it or for other answers.
    pub(super) fn go_on(&mut self, conn: ConnId) {
        self.send_rest(conn);
        let slot = conn.slot();
        if !self.clients[slot].is_paused || self.is_answering(conn) {
            return;
        }
        let waiting = std::mem::take(&mut self.clients[slot].waiting);
        if self.take_requests(conn, &Input::Waiting(&waiting)) {
            return;
        }
        let client = &mut self.clients[slot];
        client.is_paused = false;
        match client.has_ended {
            true => self.client_ended(conn),
            false => self.io.resume(conn),
        }
    }

    fn send_rest(&mut self, conn: ConnId) {
        while self.clients[conn.slot()].rest > 0 && self.io.queued(conn) < BLOCKS_AHEAD {
            let rest = &mut self.clients[conn.slot()].rest;
            let size = BLOCK.min(*rest);
            *rest -= size;
            match size {
                BLOCK => {
                    let block = self.block();
                    self.io.send_ordered(conn, block);
                }
                _ => self.io.send_copy(conn, &sized_body(size)),
            }
        }
    }

    /// A [`BLOCK`] of the text of long bodies.
    fn block(&mut self) -> PayloadId {
        let io = &mut self.io;
        *self
            .block
            .get_or_insert_with(|| io.add_payload(sized_body(BLOCK).into()))
    }

    /// `arrived_ns` is the kernel timestamp of the request, if there is one.
    fn respond(&mut self, conn: ConnId, arrived_ns: Option<u64>) {
        let client = &mut self.clients[conn.slot()];
        let request = client.parser.request();
        let persist = ConnectionReuse::of(request);
        let head_only = request.method == "HEAD";
        client.closing = persist.closes();
        let key = (format!("{} {}", request.method, request.target), persist);
        if let Some(&payload) = self.pages.get(&key) {
            if !client.last.is_empty() {
                client.last_page = Some(payload);
                client.last_keep_alive = !persist.closes();
            }
            self.io.send_ordered(conn, payload);
            return;
        }
        match page(request) {
            Page::Own(bytes) => {
                client.last.clear();
                self.io.send_copy(conn, &bytes);
            }
            Page::Delayed(delay) => {
                client.last.clear();
                let now = os::now_ns();
                let came = arrived_ns.map_or(now, |at| at.min(now));
                let due = came + delay.draw(&mut self.random);
                let to = AnswerTo::Http1(conn);
                let key = AnswerKey { to, persist };
                client.closing = false;
                client.is_held = true;
                self.held.push(Reverse((due, came, key)));
            }
            Page::Delays => {
                client.last.clear();
                let sum = self.all_delays();
                let text = sum.to_base64();
                let bytes = answer(200, "text/plain", text.as_bytes(), head_only, persist);
                self.io.send_copy(conn, &bytes);
            }
            Page::Stall(ms) => {
                client.last.clear();
                std::thread::sleep(Duration::from_millis(ms));
                let bytes = answer(200, "text/plain", b"stood still\n", head_only, persist);
                self.io.send_copy(conn, &bytes);
            }
            Page::Stats => {
                client.last.clear();
                self.publish();
                let text = serde_json::to_string(&stats(&self.all)).unwrap_or_default();
                let bytes = answer(200, "application/json", text.as_bytes(), head_only, persist);
                self.io.send_copy(conn, &bytes);
            }
            Page::Long(head, size) => {
                client.last.clear();
                client.rest = size;
                self.io.send_copy(conn, &head);
                self.send_rest(conn);
            }
            Page::Fixed(bytes) => {
                let is_cached = self.reserve_cache(self.pages.len(), bytes.len());
                let client = &mut self.clients[conn.slot()];
                if !is_cached {
                    client.last.clear();
                    self.io.send_copy(conn, &bytes);
                    return;
                }
                let payload = self.io.add_payload(Arc::from(bytes.as_slice()));
                self.pages.insert(key, payload);
                if !client.last.is_empty() {
                    client.last_page = Some(payload);
                    client.last_keep_alive = !persist.closes();
                }
                self.io.send_ordered(conn, payload);
            }
        }
    }
}
