//! How exchanges are laid on HTTP/1.1 connections and on streams of HTTP/2.

use std::io::Write as _;
use std::sync::OnceLock;

use net::h2::ErrorCode;
use net::{ConnId, Io};

use super::super::{AnswerTo, Worker};
use super::{Ending, Entry, LastingId, UNSENT_MAX, Wire};
use crate::h2::H2Page;
use crate::lasting::{Framing, Plan};
use crate::pages::{ConnectionReuse, StreamPage};

/// The head of the answers to all gRPC calls.
static CALL_HEAD: OnceLock<H2Page> = OnceLock::new();

impl<I: Io> Worker<I> {
    /// Begins an exchange on an HTTP/1.1 connection, whose later requests wait for its end.
    pub(in crate::server) fn begin_on_http1(
        &mut self,
        conn: ConnId,
        plan: Plan,
        persist: ConnectionReuse,
        arrived_ns: Option<u64>,
    ) {
        let client = &mut self.clients[conn.slot()];
        let request = client.parser.request();
        let (head_only, is_http_1_0) = (request.method == "HEAD", request.is_http_1_0);
        client.last.clear();
        // HTTP/1.0 has no chunks.
        let (framing, persist) = match is_http_1_0 || plan.is_tunnel() {
            true => (Framing::Bare, ConnectionReuse::Closed),
            false => (Framing::Chunked, persist),
        };
        client.closing = head_only && persist.closes();
        client.is_tunnel = plan.is_tunnel();
        client.is_held = !head_only;
        self.send(conn, &plan.head(framing, persist));
        if head_only {
            return;
        }
        let to = AnswerTo::Http1(conn);
        let wire = Wire::Http1 { framing, persist };
        let id = self.begin_exchange(plan, arrived_ns, to, wire);
        self.clients[conn.slot()].exchange = Some(id);
    }

    /// Begins an exchange on a stream.
    pub(in crate::server) fn begin_on_http2(
        &mut self,
        conn: ConnId,
        stream: u32,
        plan: Plan,
        head_only: bool,
        arrived_ns: Option<u64>,
    ) {
        let head = || H2Page::of(&plan.head(Framing::Bare, ConnectionReuse::Kept));
        let own;
        let page = match &plan {
            Plan::Call(_) => CALL_HEAD.get_or_init(head),
            _ => {
                own = head();
                &own
            }
        };
        let Some(h2) = &mut self.clients[conn.slot()].h2 else {
            return;
        };
        if head_only {
            return h2.answer(stream, page);
        }
        if !h2.open_answer(stream, page, plan.is_tunnel()) {
            return;
        }
        let to = AnswerTo::Http2(conn, stream);
        let wire = Wire::Http2 {
            unsent: Vec::new(),
            at: 0,
        };
        let id = self.begin_exchange(plan, arrived_ns, to, wire);
        if let Some(h2) = &mut self.clients[conn.slot()].h2 {
            h2.exchanges.insert(stream, Some(id));
        }
    }

    /// Whether an exchange may write a message, with so many bytes of frames not passed on yet.
    pub(super) fn has_room(&self, entry: &Entry, frames: usize) -> bool {
        match (entry.to, &entry.wire) {
            (AnswerTo::Http1(conn), _) => self.clients[conn.slot()].unsent + frames < UNSENT_MAX,
            (AnswerTo::Http2(conn, _), Wire::Http2 { unsent, .. }) => {
                let client = &self.clients[conn.slot()];
                let out = client.h2.as_ref().map_or(0, |h2| h2.out_len());
                unsent.is_empty() && client.unsent + out < UNSENT_MAX
            }
            _ => false,
        }
    }

    /// Sends what the windows had no room for, as far as they have now.
    pub(super) fn flush(&mut self, entry: &mut Entry) {
        if let (AnswerTo::Http2(conn, stream), Wire::Http2 { unsent, at }) =
            (entry.to, &mut entry.wire)
            && let Some(h2) = &mut self.clients[conn.slot()].h2
        {
            *at += h2.send_content(stream, &unsent[*at..]);
            if *at == unsent.len() {
                unsent.clear();
                *at = 0;
            }
        }
    }

    /// Frames a message.
    pub(super) fn put(&mut self, entry: &mut Entry, message: &[u8], frames: &mut Vec<u8>) {
        match &mut entry.wire {
            Wire::Http1 { framing, .. } => match framing {
                Framing::Bare => frames.extend_from_slice(message),
                Framing::Chunked => {
                    // Writing to a vector does not fail.
                    let _ = write!(frames, "{:x}\r\n", message.len());
                    frames.extend_from_slice(message);
                    frames.extend_from_slice(b"\r\n");
                }
            },
            Wire::Http2 { unsent, .. } => {
                let AnswerTo::Http2(conn, stream) = entry.to else {
                    return;
                };
                if let Some(h2) = &mut self.clients[conn.slot()].h2 {
                    // What waits goes before it.
                    let sent = match unsent.is_empty() {
                        true => h2.send_content(stream, message),
                        false => 0,
                    };
                    unsent.extend_from_slice(&message[sent..]);
                }
            }
        }
    }

    /// The same of a message that has not to be sent at once: on a connection whose client is behind
    /// it waits with its stream, so that each stream has a backlog of its own.
    pub(super) fn put_behind(&mut self, entry: &mut Entry, message: &[u8], frames: &mut Vec<u8>) {
        if let (AnswerTo::Http2(conn, _), Wire::Http2 { unsent, .. }) = (entry.to, &mut entry.wire)
        {
            let client = &self.clients[conn.slot()];
            let out = client.h2.as_ref().map_or(0, |h2| h2.out_len());
            if client.unsent + out >= UNSENT_MAX {
                return unsent.extend_from_slice(message);
            }
        }
        self.put(entry, message, frames);
    }

    /// Passes on what was framed, and the end if all before it is. Returns whether the exchange is
    /// over.
    pub(super) fn submit(&mut self, id: LastingId, entry: &mut Entry, frames: &[u8]) -> bool {
        match (entry.to, &mut entry.wire) {
            (AnswerTo::Http1(conn), Wire::Http1 { framing, persist }) => {
                if !frames.is_empty() {
                    self.exchanges.sends += 1;
                    self.send(conn, frames);
                }
                match entry.ending {
                    Some(ending) => self.end_on_http1(conn, *framing, *persist, ending),
                    None => return false,
                }
                true
            }
            (AnswerTo::Http2(conn, stream), Wire::Http2 { unsent, .. }) => {
                let Some(h2) = &mut self.clients[conn.slot()].h2 else {
                    return true;
                };
                if !self.exchanges.touched.contains(&conn) {
                    self.exchanges.touched.push(conn);
                }
                let is_refused = entry.ending == Some(Ending::Refused);
                let is_sent = unsent.is_empty() || is_refused;
                if let Some(ending) = entry.ending.filter(|_| is_sent) {
                    if let Some(fields) = entry.exchange.trailers()
                        && ending == Ending::Complete
                    {
                        h2.end_with_trailers(stream, &fields);
                        return true;
                    }
                    h2.end_answer(
                        stream,
                        match ending {
                            Ending::Complete => None,
                            Ending::Cut => Some(ErrorCode::InternalError),
                            Ending::Refused => Some(ErrorCode::EnhanceYourCalm),
                        },
                    );
                    return true;
                }
                entry.is_blocked |= !unsent.is_empty();
                if entry.is_blocked {
                    h2.blocked.push(id);
                }
                false
            }
            _ => true,
        }
    }

    fn end_on_http1(
        &mut self,
        conn: ConnId,
        framing: Framing,
        persist: ConnectionReuse,
        ending: Ending,
    ) {
        let is_complete = ending == Ending::Complete;
        if is_complete && framing == Framing::Chunked {
            self.send(conn, b"0\r\n\r\n");
        }
        let client = &mut self.clients[conn.slot()];
        (client.exchange, client.is_held) = (None, false);
        client.closing = !is_complete || persist.closes();
        if !client.closing {
            return self.continue_answers(conn);
        }
        // The client of a tunnel sends until it has seen the end.
        client.may_send |= client.is_paused || client.is_tunnel;
        if self.io.queued(conn) == 0 {
            self.end(conn);
        }
    }

    /// Lets the exchanges of a connection go on that waited until the client reads.
    pub(in crate::server) fn unblock(&mut self, conn: ConnId) {
        let client = &mut self.clients[conn.slot()];
        if let Some(id) = client.exchange {
            if std::mem::take(&mut client.is_choked) {
                self.io.resume(conn);
            }
            let entry = self.exchanges.table.get(id);
            if entry.is_some_and(|entry| entry.is_blocked) {
                self.wake(id);
            }
        } else if let Some(h2) = &mut client.h2
            && !h2.blocked.is_empty()
        {
            let mut blocked = std::mem::take(&mut h2.blocked);
            for id in blocked.drain(..) {
                self.wake(id);
            }
            if let Some(h2) = &mut self.clients[conn.slot()].h2 {
                h2.blocked = blocked;
            }
        }
    }
}
