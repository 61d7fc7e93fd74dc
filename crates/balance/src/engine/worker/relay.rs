//! Relaying between a client and its back end.

use net::{Buf, ConnId, Io};

use super::Worker;
use super::connection::{Client, Connection, Role};
use crate::engine::shared::events::Event;
use crate::health::HealthEvent;

/// Buffers queued to a peer before the sender is paused; 1 while buffers are scarce.
const QUEUE_MAX: usize = 8;

impl<I: Io> Worker<I> {
    #[inline]
    pub(in crate::engine) fn relay(&mut self, conn: ConnId, buf: Buf) {
        let connection = &mut self.connections[conn.slot()];
        let Some(peer) = connection.peer else {
            return self.io.recycle(buf);
        };
        connection.bytes += buf.len() as u64;
        if connection.traced {
            self.trace(conn, &buf);
        }
        let connection = &mut self.connections[conn.slot()];
        if let Some(frames) = &mut connection.frames {
            frames.pass(self.io.bytes(&buf));
        }
        self.io.forward(peer, buf);
        let most = if self.io.scarce() { 1 } else { QUEUE_MAX };
        if self.io.queued(peer) >= most && !connection.paused {
            connection.paused = true;
            self.io.pause(conn);
        }
        let other = &mut self.connections[peer.slot()];
        other.sends = other.sends.wrapping_add(1);
    }

    /// Copies a buffer to the traffic log.
    #[cold]
    pub(in crate::engine) fn trace(&self, conn: ConnId, buf: &Buf) {
        let connection = &self.connections[conn.slot()];
        let downstream = match &connection.client {
            Some(_) => Some(connection),
            None => connection.peer.map(|peer| &self.connections[peer.slot()]),
        };
        if let Some(client) = downstream.and_then(|downstream| downstream.client.as_ref()) {
            let index = (connection.service as usize, connection.backend as usize);
            let to_backend = connection.client.is_some();
            let bytes = self.io.bytes(buf);
            self.shared
                .emit_traffic(index, client.address, to_backend, bytes);
        }
    }

    /// Copies data of an HTTP exchange to the traffic log, as the back end sees it.
    #[cold]
    pub(in crate::engine) fn trace_bytes(&self, server: ConnId, to_backend: bool, bytes: &[u8]) {
        let connection = &self.connections[server.slot()];
        let downstream = connection
            .peer
            .map(|client| &self.connections[client.slot()]);
        if let Some(client) = downstream.and_then(|downstream| downstream.client.as_ref())
            && !bytes.is_empty()
        {
            let index = (connection.service as usize, connection.backend as usize);
            self.shared
                .emit_traffic(index, client.address, to_backend, bytes);
        }
    }

    pub(in crate::engine) fn relay_drained(&mut self, conn: ConnId) {
        let Some(peer) = self.connection(conn).peer else {
            return;
        };
        if std::mem::take(&mut self.connection(peer).paused) {
            self.io.resume(peer);
        }
        self.close_if_done(conn);
    }

    pub(in crate::engine) fn relay_ended(&mut self, conn: ConnId) {
        let connection = self.connection(conn);
        // A loop may report the end twice: when a reset follows, or once all was sent on a stream.
        if std::mem::replace(&mut connection.ended, true) {
            return self.close_if_done(conn);
        }
        let Some(peer) = connection.peer else { return };
        // When both have ended, closing a connection says the same, but resets a stream.
        if !self.connection(peer).ended || self.io.carrier(peer).is_some() {
            self.io.finish(peer);
        }
        self.close_if_done(conn);
    }

    /// Closes both once both have ended and nothing is queued.
    fn close_if_done(&mut self, conn: ConnId) {
        let Some(peer) = self.connection(conn).peer else {
            return;
        };
        let done = self.connections[conn.slot()].ended
            && self.connections[peer.slot()].ended
            && self.io.queued(conn) == 0
            && self.io.queued(peer) == 0;
        if done {
            self.end_pair(conn);
            self.io.close(conn);
            self.io.close(peer);
        }
    }

    /// Resets the peer of a connection that was reset, after it has got what is queued.
    pub(in crate::engine) fn relay_failed(&mut self, conn: ConnId) {
        let Some(peer) = self.connection(conn).peer else {
            return;
        };
        let connection = self.connection(conn);
        let service = connection.service;
        let unanswered = connection.client.is_none() && connection.bytes == 0;
        let backend = connection.backend as usize;
        if unanswered && self.services[service as usize].ejects {
            self.shared
                .note(service as usize, backend, HealthEvent::ResponseFailed);
        }
        self.end_pair(conn);
        self.io.close(conn);
        if self.io.queued(peer) == 0 {
            return self.io.abort(peer);
        }
        let now_ns = self.now();
        self.io.pause(peer);
        self.connections[peer.slot()] = Connection {
            role: Role::Ending,
            conn: Some(peer),
            service,
            since_ns: now_ns,
            ..Connection::default()
        };
    }

    pub(in crate::engine) fn end_by_reset(&mut self, conn: ConnId) {
        *self.connection(conn) = Connection::default();
        self.io.abort(conn);
    }

    /// Closes a pair that was idle too long, or resets one that does not drain.
    pub(in crate::engine) fn end_late_pair(&mut self, conn: ConnId, reset: bool) {
        let service = self.connection(conn).service as usize;
        self.state(service).timeouts.add(1);
        let is_http = self.services[service].http.is_some();
        let limit = match (reset, self.connection(conn).ended) {
            (true, _) => "write_stall",
            (false, true) => "half_closed",
            (false, false) => "client_idle",
        };
        if is_http && !reset {
            self.state(service).cut_silent.add(1);
        }
        if reset || !self.close_websocket(conn, Some(limit)) {
            self.close_pair(conn, reset, Some(limit));
        }
    }

    /// Closes a pair, whatever is queued. `cut`: the time limit that ends it.
    fn close_pair(&mut self, conn: ConnId, reset: bool, cut: Option<&'static str>) {
        let Some(peer) = self.connection(conn).peer else {
            return;
        };
        let service = self.connection(conn).service as usize;
        if let Some(client) = self.settle_pair(conn, cut) {
            self.client_closed(service, client.carrier.is_some());
        }
        for one in [conn, peer] {
            match reset {
                true => self.io.abort(one),
                false => self.io.close(one),
            }
        }
    }

    /// Closes a pair whose back end was removed or taken down. `conn`: its client.
    pub(in crate::engine) fn cut_pair(&mut self, conn: ConnId) {
        if !self.close_websocket(conn, None) {
            self.close_pair(conn, false, None);
        }
    }

    /// Adds bytes since the last call to the counters.
    pub(in crate::engine) fn count_bytes(&mut self, slot: usize) -> bool {
        let connection = &mut self.connections[slot];
        let more = connection.bytes - connection.counted;
        if more == 0 {
            return false;
        }
        connection.counted = connection.bytes;
        let backend = &self.shared.services[connection.service as usize].backends
            [connection.backend as usize];
        match connection.client {
            Some(_) => backend.bytes_to.add(more),
            None => backend.bytes_from.add(more),
        }
        true
    }

    /// Accounts for a pair that ends. The caller closes the connections.
    fn end_pair(&mut self, conn: ConnId) {
        let service = self.connection(conn).service as usize;
        if let Some(client) = self.settle_pair(conn, None) {
            self.client_closed(service, client.carrier.is_some());
        }
    }

    /// The same, but the client keeps its place. `cut`: the time limit that ends the pair.
    pub(super) fn settle_pair(
        &mut self,
        conn: ConnId,
        cut: Option<&'static str>,
    ) -> Option<Box<Client>> {
        let now_ns = self.now();
        let peer = self.connection(conn).peer?;
        self.count_bytes(conn.slot());
        self.count_bytes(peer.slot());
        let (one, other) = (
            std::mem::take(self.connection(conn)),
            std::mem::take(self.connection(peer)),
        );
        let (downstream, upstream) = match one.client {
            Some(_) => (one, other),
            None => (other, one),
        };
        let client = downstream.client?;
        let (service, backend) = (downstream.service as usize, downstream.backend as usize);
        if self.services[service].ejects && upstream.bytes > 0 {
            self.shared.note(service, backend, HealthEvent::ResponseOk);
        }
        let duration_ns = now_ns.saturating_sub(client.began_ns);
        self.services[service].finished(backend, downstream.bytes + upstream.bytes, duration_ns);
        self.state(service).backends[backend]
            .service_times
            .record_ns(duration_ns);
        if self.services[service].emits_events {
            self.shared.emit(Event::ConnectionClosed {
                service,
                backend,
                client: client.address,
                bytes_to: downstream.bytes,
                bytes_from: upstream.bytes,
                duration_ns,
                cut,
            });
        }
        self.release_backend(service, backend);
        Some(client)
    }
}
