//! What clients send in exchanges that last.

use std::ops::Range;

use net::{Buf, ConnId, Io};

use super::super::{RequestBody, Worker};
use super::{Ending, Entry, LastingId, UNSENT_MAX, Wire};
use crate::h2::H2Incoming;
use crate::lasting::Taken;

/// With so many bytes waiting for a client on a stream, what it sends more is refused: flow control
/// would not hold it back.
const BACKLOG_MAX: usize = 1 << 20;
/// So many bytes of unfinished messages of all clients are held by a thread.
const MEMORY_MAX: usize = 256 << 20;
/// What a client may hold of them in any case.
const MEMORY_OF_ONE: usize = 64 << 10;

impl<I: Io> Worker<I> {
    /// Takes bytes that were received on an HTTP/1.1 connection that has become a tunnel.
    pub(in crate::server) fn tunnel_data(&mut self, conn: ConnId, buf: &Buf) {
        let client = &self.clients[conn.slot()];
        let Some(id) = client.exchange else { return };
        let Some(mut entry) = self.exchanges.table.take(id) else {
            return;
        };
        let exchanges = &mut self.exchanges;
        let mut frames = std::mem::take(&mut exchanges.frames);
        let bytes = self.io.bytes(buf);
        let published = &mut exchanges.sent;
        let taken = entry.exchange.take(bytes, false, &mut frames, published);
        self.took(&mut entry, taken);
        self.settle(id, entry, frames);
        self.choke(conn);
    }

    /// The same of bytes behind the request that opened the tunnel.
    pub(in crate::server) fn tunnel_rest(&mut self, conn: ConnId, bytes: &[u8]) {
        let Some(id) = self.clients[conn.slot()].exchange else {
            return;
        };
        let Some(mut entry) = self.exchanges.table.take(id) else {
            return;
        };
        let mut frames = std::mem::take(&mut self.exchanges.frames);
        let published = &mut self.exchanges.sent;
        let taken = entry.exchange.take(bytes, false, &mut frames, published);
        self.took(&mut entry, taken);
        self.settle(id, entry, frames);
    }

    /// Reads no more from a client that does not read.
    fn choke(&mut self, conn: ConnId) {
        let client = &mut self.clients[conn.slot()];
        if client.unsent >= UNSENT_MAX
            && !client.closing
            && !std::mem::replace(&mut client.is_choked, true)
        {
            self.io.pause(conn);
        }
    }

    /// Takes content of a stream.
    pub(in crate::server) fn stream_content(
        &mut self,
        conn: ConnId,
        stream: u32,
        bytes: &[u8],
        ends: bool,
    ) {
        let Some(h2) = &self.clients[conn.slot()].h2 else {
            return;
        };
        let Some(id) = h2.exchanges.get(&stream).copied().flatten() else {
            return;
        };
        let Some(mut entry) = self.exchanges.table.take(id) else {
            return;
        };
        if entry.ending.is_some() {
            // Its end waits for the client's window: what comes now changes nothing.
            return self.exchanges.table.put_back(id, entry);
        }
        let mut message = std::mem::take(&mut self.exchanges.message);
        message.clear();
        let published = &mut self.exchanges.sent;
        let taken = entry.exchange.take(bytes, ends, &mut message, published);
        if !message.is_empty() {
            self.put(&mut entry, &message, &mut Vec::new());
        }
        self.exchanges.message = message;
        self.took(&mut entry, taken);
        if let Wire::Http2 { unsent, .. } = &entry.wire
            && unsent.len() > BACKLOG_MAX
            && !taken.is_over
        {
            self.exchanges.lost += taken.messages;
            entry.ending = Some(Ending::Refused);
        }
        let frames = std::mem::take(&mut self.exchanges.frames);
        self.settle(id, entry, frames);
        if taken.is_due {
            self.wake(id);
        }
    }

    /// Counts what came of a client's bytes.
    fn took(&mut self, entry: &mut Entry, taken: Taken) {
        let exchanges = &mut self.exchanges;
        exchanges.messages += taken.messages;
        if taken.published > 0
            && let Some(topic) = entry.exchange.topic()
        {
            let frames = &exchanges.sent;
            exchanges.topics.publish(topic, taken.published, frames);
        }
        exchanges.sent.clear();
        if taken.is_over {
            entry.ending = Some(Ending::Complete);
        }
        let (before, memory) = (entry.memory, entry.exchange.memory_bytes());
        entry.memory = memory;
        exchanges.memory = exchanges.memory + memory - before;
        if exchanges.memory > MEMORY_MAX && memory > MEMORY_OF_ONE && entry.ending.is_none() {
            exchanges.lost += 1;
            entry.ending = Some(Ending::Refused);
        }
    }

    /// Passes on what was written, and keeps or frees the exchange.
    pub(super) fn settle(&mut self, id: LastingId, mut entry: Entry, mut frames: Vec<u8>) {
        let is_over = self.submit(id, &mut entry, &frames);
        frames.clear();
        self.exchanges.frames = frames;
        match is_over {
            true => self.free(id, Some(entry)),
            false => self.exchanges.table.put_back(id, entry),
        }
    }

    /// What came on streams.
    pub(in crate::server) fn stream_events(
        &mut self,
        conn: ConnId,
        incoming: &mut Vec<H2Incoming>,
        contents: &[u8],
        arrived_ns: Option<u64>,
    ) {
        for one in incoming.drain(..) {
            match one {
                H2Incoming::Request(request) => {
                    self.counts.request(RequestBody::of(&request.request));
                    self.respond_h2(conn, request, arrived_ns);
                }
                H2Incoming::Content {
                    stream,
                    range: Range { start, end },
                    ends,
                } => self.stream_content(conn, stream, &contents[start..end], ends),
                H2Incoming::Gone(id) => self.forget(id),
            }
        }
    }
}
