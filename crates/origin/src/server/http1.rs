//! The part of a thread that serves HTTP/1.1 clients.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use net::{Buf, ConnId, Io, os};

use super::{AnswerKey, AnswerTo, Worker, stats};
use crate::pages::{BLOCK, ConnectionReuse, Page, answer, page, sized_body};

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
        let mut at = 0;
        while at < buf.len() && !self.clients[slot].closing {
            let bytes = &self.io.bytes(buf)[at..];
            let client = &mut self.clients[slot];
            let at_start = client.parser.at_start();
            if let Some(payload) = client.last_page
                && at_start
                && bytes == client.last
            {
                client.closing = !client.last_keep_alive;
                self.requests += 1;
                self.io.send_ordered(conn, payload);
                return;
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
                    self.respond(conn, buf.arrived_ns());
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
        self.clients[slot].may_send |= at < buf.len();
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
                // Pipelined requests may be answered in any order: load generators wait for each
                // answer.
                client.closing = false;
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
                self.io.send_copy(conn, &head);
                let block = *self
                    .block
                    .get_or_insert_with(|| self.io.add_payload(sized_body(BLOCK).into()));
                for _ in 0..size / BLOCK {
                    self.io.send_ordered(conn, block);
                }
                if !size.is_multiple_of(BLOCK) {
                    self.io.send_copy(conn, &sized_body(size % BLOCK));
                }
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
