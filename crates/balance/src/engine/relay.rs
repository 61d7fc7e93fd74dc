//! A client and its back end, connected: what one sends goes to the other.

use net::{Buf, ConnId, Io};

use super::events::Happened;
use super::side::{Role, Side};
use super::worker::Worker;
use crate::health::HealthEvent;

/// A side stops being read when its peer has this many buffers still to send; when buffers are
/// scarce, as soon as it has any.
const QUEUE_MAX: usize = 8;

impl<I: Io> Worker<I> {
    /// Passes a buffer on.
    #[inline]
    pub(super) fn relay(&mut self, conn: ConnId, buf: Buf) {
        let Worker { io, sides, .. } = self;
        let side = &mut sides[conn.slot()];
        let Some(peer) = side.peer else {
            return io.recycle(buf);
        };
        side.bytes += buf.len() as u64;
        if side.traced {
            self.trace(conn, &buf);
        }
        let Worker { io, sides, .. } = self;
        let side = &mut sides[conn.slot()];
        io.forward(peer, buf);
        let most = if io.scarce() { 1 } else { QUEUE_MAX };
        if io.queued(peer) >= most && !side.paused {
            side.paused = true;
            io.pause(conn);
        }
        let other = &mut sides[peer.slot()];
        other.sends = other.sends.wrapping_add(1);
    }

    /// Has a buffer copied to a traffic log.
    #[cold]
    pub(super) fn trace(&self, conn: ConnId, buf: &Buf) {
        let side = &self.sides[conn.slot()];
        let front = match &side.client {
            Some(_) => Some(side),
            None => side.peer.map(|peer| &self.sides[peer.slot()]),
        };
        if let Some(client) = front.and_then(|front| front.client.as_ref()) {
            let whose = (side.service as usize, side.backend as usize);
            let to_backend = side.client.is_some();
            let bytes = self.io.bytes(buf);
            self.shared
                .tell_passed(whose, client.address, to_backend, bytes);
        }
    }

    /// Has bytes of an HTTP exchange copied to a traffic log, as the back end gets or sends them.
    #[cold]
    pub(super) fn trace_bytes(&self, upstream: ConnId, to_backend: bool, bytes: &[u8]) {
        let side = &self.sides[upstream.slot()];
        let front = side.peer.map(|client| &self.sides[client.slot()]);
        if let Some(client) = front.and_then(|front| front.client.as_ref())
            && !bytes.is_empty()
        {
            let whose = (side.service as usize, side.backend as usize);
            self.shared
                .tell_passed(whose, client.address, to_backend, bytes);
        }
    }

    pub(super) fn relay_drained(&mut self, conn: ConnId) {
        let Some(peer) = self.side(conn).peer else {
            return;
        };
        if std::mem::take(&mut self.side(peer).paused) {
            self.io.resume(peer);
        }
        self.close_if_done(conn);
    }

    pub(super) fn relay_ended(&mut self, conn: ConnId) {
        let side = self.side(conn);
        // A loop may tell of an end twice, when a reset follows it.
        if std::mem::replace(&mut side.ended, true) {
            return;
        }
        let Some(peer) = side.peer else { return };
        // A peer that has ended too is closed at once, which tells it the same.
        if !self.side(peer).ended {
            self.io.finish(peer);
        }
        self.close_if_done(conn);
    }

    /// Closes both sides once both have ended and everything was passed on.
    fn close_if_done(&mut self, conn: ConnId) {
        let Some(peer) = self.side(conn).peer else {
            return;
        };
        let done = self.sides[conn.slot()].ended
            && self.sides[peer.slot()].ended
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
        let Some(peer) = self.side(conn).peer else {
            return;
        };
        let side = self.side(conn);
        let service = side.service;
        let unanswered = side.client.is_none() && side.bytes == 0;
        let backend = side.backend as usize;
        if unanswered && self.posts[service as usize].ejects {
            self.shared
                .note(service as usize, backend, HealthEvent::AnswerFailed);
        }
        self.end_pair(conn);
        self.io.close(conn);
        if self.io.queued(peer) == 0 {
            return self.io.abort(peer);
        }
        let now_ns = self.now();
        self.io.pause(peer);
        self.sides[peer.slot()] = Side {
            role: Role::Ending,
            conn: Some(peer),
            service,
            since_ns: now_ns,
            ..Side::default()
        };
    }

    /// Resets a side whose peer was reset.
    pub(super) fn end_by_reset(&mut self, conn: ConnId) {
        *self.side(conn) = Side::default();
        self.io.abort(conn);
    }

    /// Ends a pair that has been without traffic for too long, or takes nothing.
    pub(super) fn end_late_pair(&mut self, conn: ConnId, reset: bool) {
        let service = self.side(conn).service as usize;
        self.state(service).timeouts.add(1);
        self.close_pair(conn, reset);
    }

    /// Ends a pair, whatever is under way.
    pub(super) fn close_pair(&mut self, conn: ConnId, reset: bool) {
        let Some(peer) = self.side(conn).peer else {
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
        let Some(peer) = self.side(conn).peer else {
            return;
        };
        self.end_pair(conn);
        self.io.close(conn);
        self.io.close(peer);
    }

    /// Adds what has passed since the last time to the counters; both sides of a pair do so.
    pub(super) fn count_bytes(&mut self, slot: usize) -> bool {
        let side = &mut self.sides[slot];
        let more = side.bytes - side.counted;
        if more == 0 {
            return false;
        }
        side.counted = side.bytes;
        let backend = &self.shared.services[side.service as usize].backends[side.backend as usize];
        match side.client {
            Some(_) => backend.bytes_to.add(more),
            None => backend.bytes_from.add(more),
        }
        true
    }

    /// Takes a pair out of the books; both connections are still to be closed.
    fn end_pair(&mut self, conn: ConnId) {
        let now_ns = self.now();
        let Some(peer) = self.side(conn).peer else {
            return;
        };
        self.count_bytes(conn.slot());
        self.count_bytes(peer.slot());
        let (one, other) = (
            std::mem::take(self.side(conn)),
            std::mem::take(self.side(peer)),
        );
        let (front, back) = match one.client {
            Some(_) => (one, other),
            None => (other, one),
        };
        let Some(client) = front.client else { return };
        let (service, backend) = (front.service as usize, front.backend as usize);
        if self.posts[service].ejects && back.bytes > 0 {
            self.shared.note(service, backend, HealthEvent::Answered);
        }
        let duration_ns = now_ns.saturating_sub(client.began_ns);
        self.posts[service].finished(backend, front.bytes + back.bytes, duration_ns);
        self.state(service).backends[backend]
            .service_times
            .note_ns(duration_ns);
        if self.posts[service].wanted {
            self.shared.tell(Happened::ConnectionOver {
                service,
                backend,
                client: client.address,
                bytes_to: front.bytes,
                bytes_from: back.bytes,
                duration_ns,
            });
        }
        self.give_place_back(service, backend);
        self.client_gone(service);
    }
}
