//! The part of a thread that serves HTTP/2 clients.

use net::{Buf, ConnId, Io};

use super::http1::UNSENT_MAX;
use super::{AnswerTo, Worker};
use crate::h2::{H2Request, H2Server};
use crate::lasting::Plan;

impl<I: Io> Worker<I> {
    /// Begins a session if a client's first bytes, or ALPN, ask for HTTP/2.
    pub(super) fn begin_h2(&mut self, conn: ConnId, buf: &Buf) {
        if self.speaks_h2(conn, buf) {
            self.clients[conn.slot()].h2 = Some(Box::new(H2Server::new()));
        }
    }

    /// Whether a client speaks HTTP/2, by ALPN or by its first bytes. Where it has to, a wrong preface
    /// ends its session.
    pub(super) fn speaks_h2(&self, conn: ConnId, buf: &Buf) -> bool {
        let bytes = self.io.bytes(buf);
        match self.io.handshake(conn) {
            Some(handshake) => handshake.alpn == Some("h2"),
            // HTTP/1.1 has no method `PRI`.
            None => self.http2_only || bytes.starts_with(b"PRI"),
        }
    }

    pub(super) fn h2_data(&mut self, conn: ConnId, buf: &Buf) {
        let mut incoming = std::mem::take(&mut self.h2_incoming);
        let client = &mut self.clients[conn.slot()];
        let Some(h2) = &mut client.h2 else { return };
        let fed = h2.feed(self.io.bytes(buf), &mut incoming);
        let contents = h2.take_contents();
        self.stream_events(conn, &mut incoming, &contents, buf.arrived_ns());
        self.h2_incoming = incoming;
        if let Some(h2) = &mut self.clients[conn.slot()].h2 {
            h2.keep_contents(contents);
        }
        self.unblock(conn);
        self.send_h2(conn);
        if fed.is_err() {
            // It is closed once the reason is sent.
            self.forget_all(conn);
            let client = &mut self.clients[conn.slot()];
            (client.closing, client.may_send) = (true, true);
            if self.io.queued(conn) == 0 {
                self.end(conn);
            }
        }
    }

    pub(super) fn respond_h2(&mut self, conn: ConnId, one: H2Request, arrived_ns: Option<u64>) {
        let H2Request { stream, request } = one;
        if let Some(h2) = &mut self.clients[conn.slot()].h2 {
            // Until the exchange begins; a request that is refused has none.
            h2.exchanges.remove(&stream);
        }
        if let Some(Ok(plan)) = Plan::of(&request) {
            let head_only = request.method == "HEAD";
            return self.begin_on_http2(conn, stream, plan, head_only, arrived_ns);
        }
        let mut pages = std::mem::take(&mut self.h2_pages);
        let to = AnswerTo::Http2(conn, stream);
        self.with_page(&mut pages, &request, arrived_ns, to, |worker, page| {
            if let Some(h2) = &mut worker.clients[conn.slot()].h2 {
                h2.answer(stream, page);
            }
        });
        self.h2_pages = pages;
    }

    /// Sends what a session has to send, as much as the socket takes.
    pub(super) fn send_h2(&mut self, conn: ConnId) {
        let Some(h2) = &mut self.clients[conn.slot()].h2 else {
            return;
        };
        if self.io.queued(conn) == 0 {
            h2.send_bodies();
        }
        let out = h2.out();
        let bytes = out.len();
        if bytes > 0 {
            self.counts.sent(bytes);
            self.io.send_copy(conn, out);
            out.clear();
        }
        // Heads and acknowledgements have no flow control.
        let client = &mut self.clients[conn.slot()];
        client.unsent += bytes;
        if client.unsent >= UNSENT_MAX && !std::mem::replace(&mut client.is_choked, true) {
            self.io.pause(conn);
        }
    }

    /// Sends more once everything is sent, and reads on.
    pub(super) fn h2_drained(&mut self, conn: ConnId) {
        if self.io.queued(conn) == 0 {
            let client = &mut self.clients[conn.slot()];
            client.unsent = 0;
            if std::mem::take(&mut client.is_choked) {
                self.io.resume(conn);
            }
            self.unblock(conn);
        }
        self.send_h2(conn);
    }
}
