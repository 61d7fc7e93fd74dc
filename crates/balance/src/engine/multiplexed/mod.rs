//! An event loop whose connections may carry HTTP/2 streams.
//!
//! To the user of the loop, each stream is a connection that speaks HTTP/1.1. On a stream of a
//! client, the user receives a request and sends the response; on a stream to a back end, it sends
//! a request and receives the response. So the same code serves streams and HTTP/1.1 connections,
//! and applies the same checks.
//!
//! The connection that carries streams is their *carrier*. The user sees the carriers of clients'
//! streams as connections. It does not see the carriers of streams to back ends, which are
//! [`backend_connection`]s.
//!
//! Received data of a paused stream wait, within its flow-control window. Content to send waits in
//! the stream ([`Io::queued`]) while a window is closed or the peer does not read.

mod as_io;
mod backend_connection;
mod carrier;
mod content;
mod placing;
mod stream;
mod table;

use net::h2::ErrorCode;
use net::{Buf, ConnId, Event, Io, IoOptions};

use carrier::{Carrier, OUT_MAX};
use placing::StreamTarget;
use stream::{StreamSendError, Tunnel};
use table::Table;

/// How many sends may be queued in the inner loop before streams wait.
const QUEUE_MAX: usize = 2;
/// `ECONNRESET`.
const CONNECTION_RESET: i32 = 104;

pub(super) struct Multiplexed<I: Io> {
    inner: I,
    /// By the slot of their connection.
    carriers: Vec<Option<Box<Carrier>>>,
    table: Table,
    /// Carriers that may have something to send.
    dirty: Vec<ConnId>,
    /// By the number of the target; `None` for one whose connections are not streams.
    targets: Vec<Option<StreamTarget>>,
    /// All connections to back ends that carry streams.
    backend_connections: Vec<ConnId>,
    /// When they were last checked, ns.
    checked_ns: u64,
    /// Memory for what one stream sends to another.
    copied: Vec<u8>,
}

/// How many streams there may be at a time, on all connections together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamsMax {
    /// Of clients.
    pub incoming: u32,
    /// To back ends.
    pub outgoing: u32,
}

impl<I: Io> Multiplexed<I> {
    /// Adds streams to a loop that was opened with these options.
    pub fn over(inner: I, options: &IoOptions, most: StreamsMax) -> Self {
        Self {
            inner,
            carriers: (0..options.slots()).map(|_| None).collect(),
            table: Table::new(options.slots(), most.incoming, most.outgoing),
            dirty: Vec::new(),
            targets: Vec::new(),
            backend_connections: Vec::new(),
            checked_ns: 0,
            copied: Vec::new(),
        }
    }

    #[cfg(test)]
    pub fn inner_mut(&mut self) -> &mut I {
        &mut self.inner
    }

    /// The most memory that one stream has had for what it holds, bytes.
    #[cfg(test)]
    pub fn most_of_one(&self) -> usize {
        self.table.most_of_one
    }

    #[inline]
    fn carrier_at(&mut self, conn: ConnId) -> Option<&mut Carrier> {
        carrier_of(&mut self.carriers, conn)
    }

    fn note_dirty(dirty: &mut Vec<ConnId>, carrier: &mut Carrier) {
        if !std::mem::replace(&mut carrier.is_dirty, true) {
            dirty.push(carrier.conn);
        }
    }

    /// Takes bytes from a client.
    fn receive(&mut self, conn: ConnId, bytes: &[u8]) {
        let Some(carrier) = self.carriers[conn.slot()].as_deref_mut() else {
            return;
        };
        let is_well = carrier.receive(bytes, &mut self.table);
        Self::note_dirty(&mut self.dirty, carrier);
        if !is_well {
            self.flush(conn);
            self.give_up(conn, Event::Eof { conn });
        }
    }

    /// Takes a buffer of received bytes. False if the peer broke a rule of the connection.
    fn receive_buf(&mut self, conn: ConnId, buf: Buf) -> bool {
        let Some(carrier) = self.carriers[conn.slot()].as_deref_mut() else {
            self.inner.recycle(buf);
            return true;
        };
        let is_well = carrier.receive(self.inner.bytes(&buf), &mut self.table);
        self.inner.recycle(buf);
        Self::note_dirty(&mut self.dirty, carrier);
        is_well
    }

    /// Fails the streams of a carrier, and reports its end to the user with an event.
    fn give_up(&mut self, conn: ConnId, event: Event) {
        let Some(carrier) = self.carriers[conn.slot()].as_deref_mut() else {
            return;
        };
        for (_, slot) in carrier.slots.drain() {
            self.table.fail(slot, CONNECTION_RESET);
        }
        if !std::mem::replace(&mut carrier.is_over, true) {
            self.table.ready.push_back(event);
        }
    }

    /// Takes what the user sends on a stream.
    fn take(&mut self, conn: ConnId, bytes: &[u8]) {
        take(
            &mut self.carriers,
            &mut self.table,
            &mut self.dirty,
            conn,
            bytes,
        );
    }

    /// Encodes and sends what a carrier's streams have to send.
    fn flush(&mut self, conn: ConnId) {
        let Some(carrier) = carrier_of(&mut self.carriers, conn) else {
            return;
        };
        carrier.is_dirty = false;
        loop {
            carrier.encode(&mut self.table);
            if carrier.session.out.is_empty() || self.inner.queued(conn) >= QUEUE_MAX {
                break;
            }
            self.inner.send_copy(conn, &carrier.session.out);
            carrier.session.out.clear();
            carrier.session.out.shrink_to(OUT_MAX);
        }
        // Heads have no flow control, so nothing is read from a peer that does not read.
        let is_full = carrier.session.out.len() >= OUT_MAX;
        if is_full != carrier.is_paused {
            carrier.is_paused = is_full;
            match is_full {
                true => self.inner.pause(conn),
                false => self.inner.resume(conn),
            }
        }
        if carrier.session.is_done() && carrier.session.out.is_empty() {
            self.give_up(conn, Event::Eof { conn });
        }
    }

    /// Sends all that a carrier has encoded, however much is queued, as nothing follows.
    fn flush_rest(&mut self, conn: ConnId) {
        self.flush(conn);
        let Some(carrier) = self.carriers[conn.slot()].as_deref_mut() else {
            return;
        };
        if !carrier.session.out.is_empty() {
            self.inner.send_copy(conn, &carrier.session.out);
            carrier.session.out = Vec::new();
        }
        if std::mem::take(&mut carrier.is_paused) {
            self.inner.resume(conn);
        }
    }

    fn flush_dirty(&mut self) {
        while let Some(conn) = self.dirty.pop() {
            self.flush(conn);
        }
    }

    /// Passes on data for which there was no buffer.
    fn feed_starved(&mut self) {
        for slot in std::mem::take(&mut self.table.starved) {
            let Some(stream) = self.table.at(slot) else {
                continue;
            };
            let carrier = stream.carrier;
            self.deliver(carrier, slot);
        }
    }

    fn deliver(&mut self, carrier: ConnId, slot: u32) {
        match carrier_of(&mut self.carriers, carrier) {
            Some(carrier) => {
                self.table.deliver(slot, Some(&mut carrier.session));
                Self::note_dirty(&mut self.dirty, carrier);
            }
            None => self.table.deliver(slot, None),
        }
    }

    /// Closes a stream. The unsent part of its message is dropped.
    fn close_stream(&mut self, conn: ConnId, code: ErrorCode) {
        let Some((slot, stream)) = self.table.get(conn) else {
            return;
        };
        let code = match (&stream.outgoing, stream.is_given) {
            (Some(_), _) => ErrorCode::Cancel,
            (None, true) => code,
            // The request was not processed, so the client may send it again.
            (None, false) => ErrorCode::RefusedStream,
        };
        let is_tunnel = stream.tunnel == Tunnel::Open;
        // A WebSocket is reset as RFC 8441 5 says.
        let code = if is_tunnel { ErrorCode::Cancel } else { code };
        let (stream_carrier, outgoing) = (stream.carrier, stream.outgoing);
        if !stream.is_over
            && let Some(carrier) = carrier_of(&mut self.carriers, stream.carrier)
        {
            // The end that its user has sent is not overtaken by a reset.
            if is_tunnel && stream.is_finished() {
                stream.send_frame(&mut carrier.session);
            }
            carrier.session.reset(stream.id, code);
            carrier.slots.remove(&stream.id);
            Self::note_dirty(&mut self.dirty, carrier);
        }
        let is_waiting = stream.is_waiting.then_some(stream.carrier);
        if let Some(carrier) = is_waiting
            && let Some(carrier) = carrier_of(&mut self.carriers, carrier)
        {
            carrier.ring.retain(|one| *one != slot);
        }
        self.table.remove(slot);
        if let Some(outgoing) = outgoing {
            self.leave_place(slot, stream_carrier, outgoing);
        }
    }

    /// Turns an event of the inner loop into one for the user, if the user needs one.
    fn translate(&mut self, event: Event) -> Option<Event> {
        let conn = match &event {
            Event::Data { conn, .. }
            | Event::Eof { conn }
            | Event::Failed { conn, .. }
            | Event::Drained { conn }
            | Event::Connected { conn }
            | Event::ConnectFailed { conn, .. } => *conn,
            _ => return Some(event),
        };
        match self.carrier_at(conn) {
            None => return Some(event),
            Some(carrier) if carrier.backend.is_some() => {
                self.backend_event(conn, event);
                return None;
            }
            // The user knows that it ends, and waits for that.
            Some(carrier) if carrier.is_over => return Some(event),
            Some(_) => {}
        }
        match event {
            Event::Data { buf, .. } => {
                if !self.receive_buf(conn, buf) {
                    self.flush(conn);
                    self.give_up(conn, Event::Eof { conn });
                }
            }
            Event::Drained { .. } => self.flush(conn),
            Event::Eof { .. } => {
                let errno = CONNECTION_RESET;
                self.give_up(conn, Event::Failed { conn, errno });
            }
            event => self.give_up(conn, event),
        }
        None
    }
}

/// The carrier of a stream, if it is still there.
#[inline]
fn carrier_of(carriers: &mut [Option<Box<Carrier>>], conn: ConnId) -> Option<&mut Carrier> {
    let carrier = carriers.get_mut(conn.slot())?.as_deref_mut()?;
    (carrier.conn == conn).then_some(carrier)
}

/// Takes what the user sends on a stream.
fn take(
    carriers: &mut [Option<Box<Carrier>>],
    table: &mut Table,
    dirty: &mut Vec<ConnId>,
    conn: ConnId,
    bytes: &[u8],
) {
    let Some((slot, stream)) = table.get(conn) else {
        return;
    };
    if stream.is_over {
        return;
    }
    let Some(carrier) = carrier_of(carriers, stream.carrier) else {
        return;
    };
    let (was_open, before) = (stream.id != 0, stream.tunnel);
    let taken = stream.take(bytes, &mut carrier.session);
    let (id, opens) = (
        stream.id,
        stream.tunnel != before && stream.tunnel == Tunnel::Open,
    );
    if !was_open && stream.id != 0 {
        carrier.slots.insert(stream.id, slot);
    }
    if taken.is_ok() {
        carrier.queue(slot, stream);
    }
    table.count(slot);
    match taken {
        Ok(()) if opens => table.deliver(slot, Some(&mut carrier.session)),
        Ok(()) => {}
        Err(StreamSendError::NotProcessed) => table.fail(slot, net::NOT_PROCESSED),
        Err(StreamSendError::Invalid) => {
            carrier.session.reset(id, ErrorCode::InternalError);
            carrier.slots.remove(&id);
            table.fail(slot, CONNECTION_RESET);
        }
    }
    if !std::mem::replace(&mut carrier.is_dirty, true) {
        dirty.push(carrier.conn);
    }
}
