//! [`Multiplexed`] as an event loop.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use net::h2::ErrorCode;
use net::{
    Address, Buf, CarrierState, ConnId, Event, FULL_BYTES, Handshake, Io, IoOptions, PayloadId,
    SCARCE_BYTES, TargetId, WireBytes,
};

use super::carrier::Carrier;
use super::{CONNECTION_RESET, Multiplexed, StreamsMax, carrier_of, take};

impl<I: Io> Io for Multiplexed<I> {
    const NAME: &'static str = I::NAME;

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    fn coarse_now_ns(&self) -> u64 {
        self.inner.coarse_now_ns()
    }

    /// Opens a loop that accepts no streams.
    fn open(options: IoOptions) -> io::Result<Self> {
        Ok(Self::over(
            I::open(options)?,
            &options,
            StreamsMax::default(),
        ))
    }

    fn listen(&mut self, listener: TcpListener) -> io::Result<()> {
        self.inner.listen(listener)
    }

    fn add_target(&mut self, address: &Address, sources: &[SocketAddr]) -> TargetId {
        self.inner.add_target(address, sources)
    }

    fn add_tls_target(
        &mut self,
        address: &Address,
        sources: &[SocketAddr],
        tls: Option<u32>,
    ) -> TargetId {
        self.inner.add_tls_target(address, sources, tls)
    }

    fn add_stream_target(
        &mut self,
        address: &Address,
        sources: &[SocketAddr],
        tls: Option<u32>,
    ) -> TargetId {
        let target = self.inner.add_tls_target(address, sources, tls);
        self.note_stream_target(target, tls.is_some());
        target
    }

    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId {
        self.inner.add_payload(bytes)
    }

    /// For a stream, `first` is ignored.
    fn connect(&mut self, target: TargetId, first: Option<PayloadId>) -> io::Result<ConnId> {
        match self.stream_target(target) {
            None => self.inner.connect(target, first),
            Some(_) => self.open_stream(target),
        }
    }

    fn send_before_handshake(&mut self, conn: ConnId, bytes: &[u8]) -> bool {
        !self.table.has(conn) && self.inner.send_before_handshake(conn, bytes)
    }

    fn handshake(&self, conn: ConnId) -> Option<&Handshake> {
        match self.table.has(conn) {
            true => None,
            false => self.inner.handshake(conn),
        }
    }

    fn failure(&self, conn: ConnId) -> Option<&str> {
        match self.table.has(conn) {
            true => None,
            false => self.inner.failure(conn),
        }
    }

    fn carry_streams(&mut self, conn: ConnId, bytes: &[u8]) -> bool {
        self.carriers[conn.slot()] = Some(Box::new(Carrier::new(conn)));
        self.receive(conn, bytes);
        true
    }

    fn carrier(&self, conn: ConnId) -> Option<ConnId> {
        match self.table.has(conn) {
            true => Some(self.table.peek(conn)?.carrier),
            false => None,
        }
    }

    fn is_reused(&self, conn: ConnId) -> bool {
        let outgoing = self.table.peek(conn).and_then(|one| one.outgoing.as_ref());
        outgoing.is_some_and(|outgoing| outgoing.is_reused)
    }

    fn waits_for_place(&self, conn: ConnId) -> bool {
        self.is_queued_for_place(conn)
    }

    fn carrier_state(&mut self, conn: ConnId) -> CarrierState {
        let Some(carrier) = self.carrier_at(conn) else {
            return CarrierState::default();
        };
        carrier.session.forgive(Carrier::FORGIVEN);
        CarrierState {
            streams: carrier.slots.len(),
            has_begun: carrier.session.has_begun(),
            is_draining: carrier.session.is_draining(),
            malformed: std::mem::take(&mut carrier.malformed),
        }
    }

    fn end_streams(&mut self, conn: ConnId, now: bool) {
        let Some(carrier) = self.carrier_at(conn) else {
            return;
        };
        match now {
            true => carrier.session.drained(),
            false => carrier.session.drain(),
        }
        let is_new = !std::mem::replace(&mut carrier.is_dirty, true);
        if is_new {
            self.dirty.push(conn);
        }
    }

    fn wire_bytes(&self) -> WireBytes {
        self.inner.wire_bytes()
    }

    /// Not for streams.
    #[inline]
    fn send(&mut self, conn: ConnId, payload: PayloadId) {
        self.inner.send(conn, payload);
    }

    /// Not for streams.
    #[inline]
    fn send_ordered(&mut self, conn: ConnId, payload: PayloadId) {
        self.inner.send_ordered(conn, payload);
    }

    fn send_copy(&mut self, conn: ConnId, bytes: &[u8]) {
        match self.table.has(conn) {
            true => self.take(conn, bytes),
            false => self.inner.send_copy(conn, bytes),
        }
    }

    #[inline]
    fn forward(&mut self, conn: ConnId, buf: Buf) {
        let is_stream = self.table.has(conn);
        if self.table.buffers.has_lent(&buf) {
            if is_stream {
                let mut copied = std::mem::take(&mut self.copied);
                copied.extend_from_slice(self.table.buffers.bytes(&buf));
                self.take(conn, &copied);
                copied.clear();
                self.copied = copied;
            } else {
                self.inner.send_copy(conn, self.table.buffers.bytes(&buf));
            }
            return self.table.buffers.give_back(&buf);
        }
        if !is_stream {
            return self.inner.forward(conn, buf);
        }
        take(
            &mut self.carriers,
            &mut self.table,
            &mut self.dirty,
            conn,
            self.inner.bytes(&buf),
        );
        self.inner.recycle(buf);
    }

    fn has_unread(&self, conn: ConnId) -> bool {
        !self.table.has(conn) && self.inner.has_unread(conn)
    }

    fn has_failed_send(&self, conn: ConnId) -> bool {
        !self.table.has(conn) && self.inner.has_failed_send(conn)
    }

    #[inline]
    fn queued(&self, conn: ConnId) -> usize {
        match self.table.has(conn) {
            true => self
                .table
                .peek(conn)
                .map_or(0, super::stream::Stream::queued),
            false => self.inner.queued(conn),
        }
    }

    fn unacknowledged(&self, conn: ConnId) -> usize {
        match self.table.has(conn) {
            true => 0,
            false => self.inner.unacknowledged(conn),
        }
    }

    fn finish(&mut self, conn: ConnId) {
        if !self.table.has(conn) {
            if self.carrier_at(conn).is_some() {
                self.flush_rest(conn);
            }
            return self.inner.finish(conn);
        }
        let Some((slot, stream)) = self.table.get(conn) else {
            return;
        };
        stream.finish();
        if stream.is_over {
            return;
        }
        if let Some(carrier) = carrier_of(&mut self.carriers, stream.carrier) {
            carrier.queue(slot, stream);
            Self::note_dirty(&mut self.dirty, carrier);
        }
    }

    fn pause(&mut self, conn: ConnId) {
        match self.table.has(conn) {
            false => self.inner.pause(conn),
            true => {
                if let Some((_, stream)) = self.table.get(conn) {
                    stream.is_paused = true;
                }
            }
        }
    }

    fn resume(&mut self, conn: ConnId) {
        if !self.table.has(conn) {
            return self.inner.resume(conn);
        }
        let Some((slot, stream)) = self.table.get(conn) else {
            return;
        };
        stream.is_paused = false;
        let carrier = stream.carrier;
        self.deliver(carrier, slot);
    }

    fn close(&mut self, conn: ConnId) {
        if self.table.has(conn) {
            return self.close_stream(conn, ErrorCode::Cancel);
        }
        self.drop_carrier(conn);
        self.inner.close(conn);
    }

    fn abort(&mut self, conn: ConnId) {
        if self.table.has(conn) {
            let code = self.table.get(conn).map(|(_, stream)| stream.abort_code);
            return self.close_stream(conn, code.unwrap_or(ErrorCode::InternalError));
        }
        self.drop_carrier(conn);
        self.inner.abort(conn);
    }

    fn reset_with(&mut self, conn: ConnId, code: ErrorCode) -> bool {
        let has_stream = self.table.has(conn);
        let stream = has_stream.then(|| self.table.get(conn)).flatten();
        stream.is_some_and(|(_, stream)| {
            stream.abort_code = code;
            stream.is_call
        })
    }

    fn listen_again(&mut self) {
        self.inner.listen_again();
    }

    fn stop_listening(&mut self) {
        self.inner.stop_listening();
    }

    fn poll(&mut self, wait_ns: Option<u64>) -> io::Result<()> {
        if !self.table.starved.is_empty() {
            self.feed_starved();
        }
        self.flush_dirty();
        self.check_backend_connections();
        let wait_ns = match self.table.ready.is_empty() {
            true => wait_ns,
            false => Some(0),
        };
        self.inner.poll(wait_ns)
    }

    #[inline]
    fn next_event(&mut self) -> Option<Event> {
        loop {
            if !self.table.ready.is_empty()
                && let Some(event) = self.table.next()
            {
                return Some(event);
            }
            match self.inner.next_event() {
                Some(event) => {
                    if let Some(event) = self.translate(event) {
                        return Some(event);
                    }
                }
                None => {
                    self.flush_dirty();
                    if self.table.ready.is_empty() {
                        return None;
                    }
                }
            }
        }
    }

    fn scarce(&self) -> bool {
        let is_scarce = self.table.held() > SCARCE_BYTES || self.table.buffers.is_scarce();
        is_scarce || self.inner.scarce()
    }

    fn is_full(&self) -> bool {
        let is_full = self.table.held() > FULL_BYTES || self.table.buffers.is_full();
        is_full || self.inner.is_full()
    }

    fn release_memory(&mut self) -> usize {
        self.copied = Vec::new();
        self.table.release_memory() + self.inner.release_memory()
    }

    #[inline]
    fn bytes(&self, buf: &Buf) -> &[u8] {
        match self.table.buffers.has_lent(buf) {
            true => self.table.buffers.bytes(buf),
            false => self.inner.bytes(buf),
        }
    }

    fn peer(&self, conn: ConnId) -> Option<SocketAddr> {
        self.inner.peer(self.carrier(conn).unwrap_or(conn))
    }

    fn local(&self, conn: ConnId) -> Option<SocketAddr> {
        self.inner.local(self.carrier(conn).unwrap_or(conn))
    }

    #[inline]
    fn recycle(&mut self, buf: Buf) {
        match self.table.buffers.has_lent(&buf) {
            true => self.table.buffers.give_back(&buf),
            false => self.inner.recycle(buf),
        }
    }
}

impl<I: Io> Multiplexed<I> {
    /// Drops a carrier that its user closes; its open streams fail.
    fn drop_carrier(&mut self, conn: ConnId) {
        if self.carrier_at(conn).is_none() {
            return;
        }
        self.flush(conn);
        if let Some(carrier) = self.carriers[conn.slot()].take() {
            for slot in carrier.slots.into_values() {
                self.table.fail(slot, CONNECTION_RESET);
            }
        }
        // A closed connection gives no more events.
        let is_of = |event: &Event| matches!(event, Event::Eof { conn: other } | Event::Failed { conn: other, .. } if *other == conn);
        self.table.ready.retain(|event| !is_of(event));
    }
}
