//! The part of a thread that serves HTTP/1.1 clients.

use std::sync::Arc;

use net::{Buf, ConnId, Io, PayloadId};

use super::{AnswerKey, AnswerTo, RequestBody, Worker};
use crate::pages::{BLOCK, ConnectionReuse, Page, answer, page_with, sized_body};

/// With this many bytes queued for a client, no further request is taken and no more of a long body
/// is sent. With TLS, this limits the ciphertext in memory.
pub(super) const UNSENT_MAX: usize = 2 * BLOCK;

/// Bytes received from a client.
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
        if self.clients[slot].is_tunnel {
            return self.tunnel_data(conn, buf);
        }
        if self.clients[slot].is_paused {
            let unparsed = &mut self.clients[slot].unparsed;
            return unparsed.extend_from_slice(self.io.bytes(buf));
        }
        self.answer_requests(conn, &Input::Received(buf));
    }

    /// Whether the next request has to wait for earlier answers.
    #[inline]
    fn must_wait(&self, conn: ConnId) -> bool {
        let client = &self.clients[conn.slot()];
        client.body_left > 0 || client.is_held || client.unsent >= UNSENT_MAX
    }

    /// Answers requests. Those that have to wait for earlier answers are stored, and reading is
    /// paused; returns whether it is.
    fn answer_requests(&mut self, conn: ConnId, input: &Input<'_>) -> bool {
        let slot = conn.slot();
        let length = input.len();
        let mut at = 0;
        while at < length && !self.clients[slot].closing {
            if self.must_wait(conn) {
                if self.clients[slot].is_tunnel {
                    let rest = input.bytes(&self.io)[at..].to_vec();
                    self.tunnel_rest(conn, &rest);
                    return false;
                }
                let client = &mut self.clients[slot];
                client
                    .unparsed
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
                client.unsent += client.last_page_size;
                self.counts.request(client.last_body);
                self.counts.sent(client.last_page_size);
                self.io.send_ordered(conn, payload);
                return false;
            }
            let whole = at == 0 && at_start;
            match client.parser.feed(bytes) {
                Ok((taken, false)) => at += taken.max(1),
                Ok((taken, true)) => {
                    client.last.clear();
                    client.last_page = None;
                    if whole && taken == bytes.len() && self.limit.is_none() {
                        client.last.extend_from_slice(bytes);
                    }
                    at += taken;
                    client.last_body = RequestBody::of(client.parser.request());
                    let body = client.last_body;
                    if !self.refuse(conn) {
                        self.counts.request(body);
                        self.respond(conn, input.arrived_ns());
                    }
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
                    self.send(conn, &bytes);
                }
            }
        }
        // More was pipelined after the last request that is answered.
        self.clients[slot].may_send |= at < length;
        false
    }

    /// Sends more of a long body, then answers the requests that waited.
    pub(super) fn continue_answers(&mut self, conn: ConnId) {
        self.send_body(conn);
        if self.must_wait(conn) {
            return;
        }
        let slot = conn.slot();
        if self.clients[slot].is_paused {
            let unparsed = std::mem::take(&mut self.clients[slot].unparsed);
            let must_wait = self.answer_requests(conn, &Input::Waiting(&unparsed));
            let client = &mut self.clients[slot];
            client.is_paused = must_wait;
            if !must_wait && !client.is_half_closed {
                // Input that arrived during the pause is unread: closing at once would reset the
                // connection.
                client.may_send |= client.closing;
                self.io.resume(conn);
            }
        }
        if self.clients[slot].is_half_closed {
            self.client_ended(conn);
        }
    }

    /// Sends as much of a long body as may be queued.
    fn send_body(&mut self, conn: ConnId) {
        let slot = conn.slot();
        while self.clients[slot].body_left > 0 && self.clients[slot].unsent < UNSENT_MAX {
            let size = BLOCK.min(self.clients[slot].body_left);
            self.clients[slot].body_left -= size;
            match size {
                BLOCK => {
                    let block = self.block();
                    self.clients[slot].unsent += BLOCK;
                    self.counts.sent(BLOCK);
                    self.io.send_ordered(conn, block);
                }
                _ => self.send(conn, &sized_body(size)),
            }
        }
    }

    /// Copies and sends bytes.
    pub(super) fn send(&mut self, conn: ConnId, bytes: &[u8]) {
        self.clients[conn.slot()].unsent += bytes.len();
        self.counts.sent(bytes.len());
        self.io.send_copy(conn, bytes);
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
        let request = client.parser.request().in_origin_form();
        let request = request.as_ref();
        let persist = ConnectionReuse::of(request);
        let head_only = request.method == "HEAD";
        client.closing = persist.closes();
        let key = (format!("{} {}", request.method, request.target), persist);
        if let Some(&(payload, size)) = self.pages.get(&key) {
            return self.send_page(conn, payload, size, persist);
        }
        match page_with(self.always, request) {
            Page::Own(bytes) => {
                client.last.clear();
                self.send(conn, &bytes);
            }
            Page::Delayed(delay) => {
                client.last.clear();
                client.closing = false;
                client.is_held = true;
                let key = AnswerKey {
                    to: AnswerTo::Http1(conn),
                    persist,
                    head_only,
                };
                self.hold(key, delay, arrived_ns);
            }
            Page::Lasting(plan) => self.begin_on_http1(conn, plan, persist, arrived_ns),
            Page::Asked(asked) => {
                client.last.clear();
                let (kind, body) = self.find_out(asked);
                let bytes = answer(200, kind, body.as_bytes(), head_only, persist);
                self.send(conn, &bytes);
            }
            Page::Long(head, size) => {
                client.last.clear();
                client.body_left = size;
                self.send(conn, &head);
                self.send_body(conn);
            }
            Page::Fixed(bytes) => {
                let is_cached = self.reserve_cache(self.pages.len(), bytes.len());
                if !is_cached {
                    self.clients[conn.slot()].last.clear();
                    return self.send(conn, &bytes);
                }
                let payload = self.io.add_payload(Arc::from(bytes.as_slice()));
                self.pages.insert(key, (payload, bytes.len()));
                self.send_page(conn, payload, bytes.len(), persist);
            }
        }
    }

    /// Sends a fixed page, and remembers it if the request arrived in one piece.
    fn send_page(
        &mut self,
        conn: ConnId,
        payload: PayloadId,
        size: usize,
        persist: ConnectionReuse,
    ) {
        let client = &mut self.clients[conn.slot()];
        if !client.last.is_empty() {
            client.last_page = Some(payload);
            client.last_page_size = size;
            client.last_keep_alive = !persist.closes();
        }
        client.unsent += size;
        self.counts.sent(size);
        self.io.send_ordered(conn, payload);
    }
}
