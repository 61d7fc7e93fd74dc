//! What a thread does for clients that speak HTTP/2.

use std::cmp::Reverse;
use std::time::Duration;

use net::{Buf, ConnId, Io, os};

use super::{ConnKey, PAGES_MAX, Worker, stats};
use crate::h2::{H2Page, H2Request, H2Server};
use crate::pages::{ConnectionReuse, Page, answer, page};

impl<I: Io> Worker<I> {
    /// Begins a session if a client's first bytes, or ALPN, ask for HTTP/2.
    pub(super) fn begin_h2(&mut self, conn: ConnId, buf: &Buf) {
        if self.speaks_h2(conn, buf) {
            self.clients[conn.slot()].h2 = Some(Box::new(H2Server::new()));
        }
    }

    /// Whether a client speaks HTTP/2, by ALPN or by its first bytes.
    pub(super) fn speaks_h2(&self, conn: ConnId, buf: &Buf) -> bool {
        let bytes = self.io.bytes(buf);
        match self.io.handshake(conn) {
            Some(handshake) => handshake.alpn == Some("h2"),
            // `PRI` is no method of HTTP/1.1.
            None => bytes.starts_with(b"PRI"),
        }
    }

    pub(super) fn h2_data(&mut self, conn: ConnId, buf: &Buf) {
        let mut requests = std::mem::take(&mut self.h2_requests);
        let client = &mut self.clients[conn.slot()];
        let Some(h2) = &mut client.h2 else { return };
        let fed = h2.feed(self.io.bytes(buf), &mut requests);
        for one in requests.drain(..) {
            self.requests += 1;
            self.respond_h2(conn, one, buf.arrived_ns());
        }
        self.h2_requests = requests;
        self.send_h2(conn);
        if fed.is_err() {
            // It is closed once the reason is sent.
            self.clients[conn.slot()].closing = true;
            if self.io.queued(conn) == 0 {
                self.io.close(conn);
            }
        }
    }

    pub(super) fn respond_h2(&mut self, conn: ConnId, one: H2Request, arrived_ns: Option<u64>) {
        let persist = ConnectionReuse::Kept;
        let (stream, request) = (Some(one.stream), &one.request);
        let own = |status, kind, body: &[u8]| {
            H2Page::of(&answer(
                status,
                kind,
                body,
                request.method == "HEAD",
                persist,
            ))
        };
        let page = match page(request) {
            Page::Own(bytes) => H2Page::of(&bytes),
            Page::Fixed(bytes) => match self.h2_pages.get(&bytes) {
                Some(page) => page.clone(),
                None => {
                    let page = H2Page::of(&bytes);
                    if self.h2_pages.len() < PAGES_MAX {
                        self.h2_pages.insert(bytes, page.clone());
                    }
                    page
                }
            },
            Page::Delayed(delay) => {
                let now = os::now_ns();
                let came = arrived_ns.map_or(now, |at| at.min(now));
                let due = came + delay.draw(&mut self.random);
                let key = ConnKey {
                    conn,
                    persist,
                    stream,
                };
                self.held.push(Reverse((due, came, key)));
                return;
            }
            Page::Delays => own(200, "text/plain", self.all_delays().to_base64().as_bytes()),
            Page::Stall(ms) => {
                std::thread::sleep(Duration::from_millis(ms));
                own(200, "text/plain", b"stood still\n")
            }
            Page::Stats => {
                self.publish();
                let text = serde_json::to_string(&stats(&self.all)).unwrap_or_default();
                own(200, "application/json", text.as_bytes())
            }
        };
        if let Some(h2) = &mut self.clients[conn.slot()].h2 {
            h2.answer(one.stream, &page);
        }
    }

    /// Sends what a session has to send, as much as the socket takes.
    pub(super) fn send_h2(&mut self, conn: ConnId) {
        let Some(h2) = &mut self.clients[conn.slot()].h2 else {
            return;
        };
        if self.io.queued(conn) == 0 {
            h2.send_bodies();
        }
        if !h2.out.is_empty() {
            self.io.send_copy(conn, &h2.out);
            h2.out.clear();
        }
    }
}
