//! A client and its back end, connected: what one sends goes to the other.

use net::{Buf, ConnId, Io};

use super::connection::{Connection, Role};
use super::events::Event;
use super::worker::Worker;
use crate::health::HealthEvent;

/// A side stops being read when its peer has this many buffers still to send; when buffers are
/// scarce, as soon as it has any.
const QUEUE_MAX: usize = 8;

impl<I: Io> Worker<I> {
    /// Passes a buffer on.
    #[inline]
    pub(super) fn relay(&mut self, conn: ConnId, buf: Buf) {
        let Worker {
            io, connections, ..
        } = self;
        let connection = &mut connections[conn.slot()];
        let Some(peer) = connection.peer else {
            return io.recycle(buf);
        };
        connection.bytes += buf.len() as u64;
        if connection.traced {
            self.trace(conn, &buf);
        }
        let Worker {
            io, connections, ..
        } = self;
        let connection = &mut connections[conn.slot()];
        io.forward(peer, buf);
        let most = if io.scarce() { 1 } else { QUEUE_MAX };
        if io.queued(peer) >= most && !connection.paused {
            connection.paused = true;
            io.pause(conn);
        }
        let other = &mut connections[peer.slot()];
        other.sends = other.sends.wrapping_add(1);
    }

    /// Has a buffer copied to a traffic log.
    #[cold]
    pub(super) fn trace(&self, conn: ConnId, buf: &Buf) {
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

    /// Has bytes of an HTTP exchange copied to a traffic log, as the back end gets or sends them.
    #[cold]
    pub(super) fn trace_bytes(&self, server: ConnId, to_backend: bool, bytes: &[u8]) {
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

    pub(super) fn relay_drained(&mut self, conn: ConnId) {
        let Some(peer) = self.connection(conn).peer else {
            return;
        };
        if std::mem::take(&mut self.connection(peer).paused) {
            self.io.resume(peer);
        }
        self.close_if_done(conn);
    }

    pub(super) fn relay_ended(&mut self, conn: ConnId) {
        let connection = self.connection(conn);
        // A loop may tell of an end twice, when a reset follows it.
        if std::mem::replace(&mut connection.ended, true) {
            return;
        }
        let Some(peer) = connection.peer else { return };
        // A peer that has ended too is closed at once, which tells it the same.
        if !self.connection(peer).ended {
            self.io.finish(peer);
        }
        self.close_if_done(conn);
    }

    /// Closes both sides once both have ended and everything was passed on.
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

    /// A side was reset: so is the other, once it has got what is under way to it.
    pub(super) fn relay_failed(&mut self, conn: ConnId) {
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

    /// Resets a side whose peer was reset.
    pub(super) fn end_by_reset(&mut self, conn: ConnId) {
        *self.connection(conn) = Connection::default();
        self.io.abort(conn);
    }

    /// Ends a pair that has been without traffic for too long, or takes nothing.
    pub(super) fn end_late_pair(&mut self, conn: ConnId, reset: bool) {
        let service = self.connection(conn).service as usize;
        self.state(service).timeouts.add(1);
        self.close_pair(conn, reset);
    }

    /// Ends a pair, whatever is under way.
    pub(super) fn close_pair(&mut self, conn: ConnId, reset: bool) {
        let Some(peer) = self.connection(conn).peer else {
            return;
        };
        self.end_pair(conn);
        for one in [conn, peer] {
            match reset {
                true => self.io.abort(one),
                false => self.io.close(one),
            }
        }
    }

    /// Ends a pair whose back end is taken away.
    pub(super) fn cut_pair(&mut self, conn: ConnId) {
        let Some(peer) = self.connection(conn).peer else {
            return;
        };
        self.end_pair(conn);
        self.io.close(conn);
        self.io.close(peer);
    }

    /// Adds what has passed since the last time to the counters; both sides of a pair do so.
    pub(super) fn count_bytes(&mut self, slot: usize) -> bool {
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

    /// Takes a pair out of the books; both connections are still to be closed.
    fn end_pair(&mut self, conn: ConnId) {
        let now_ns = self.now();
        let Some(peer) = self.connection(conn).peer else {
            return;
        };
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
        let Some(client) = downstream.client else {
            return;
        };
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
            });
        }
        self.release_backend(service, backend);
        self.client_closed(service);
    }
}
