//! Connections to back ends that wait for a request.
//!
//! Each thread has its own. A connection that its back end ends while it waits is closed when the
//! loop tells of it. Between the back end's decision and that moment a request may be sent on it;
//! [`super::ends`] sends it again.

use std::sync::atomic::Ordering;

use net::{ConnId, Io};

use super::Back;
use crate::engine::events::Happened;
use crate::engine::side::{Role, Side};
use crate::engine::worker::Worker;

/// A request that must not be sent twice goes on a connection only if it was used so short a time
/// ago, ns: servers close what has been idle for some seconds.
const FRESH_NS: u64 = 1_000_000_000;
/// For how long a connection waits, ns.
const WAIT_NS: u64 = 60_000_000_000;

/// Takes a connection to a back end that can be used at once, out of the pool.
pub(super) fn take_idle(
    sides: &[Side],
    idle: &mut Vec<ConnId>,
    moves: u32,
    can_repeat: bool,
    now_ns: u64,
) -> Option<ConnId> {
    let side = &sides[idle.last()?.slot()];
    let old = !can_repeat && now_ns.saturating_sub(side.since_ns) > FRESH_NS;
    let moved = side.back.as_ref().is_none_or(|back| back.moves != moves);
    match old || moved {
        true => None,
        false => idle.pop(),
    }
}

impl<I: Io> Worker<I> {
    /// Puts a connection into the pool, or closes it where that is full.
    pub(super) fn put_idle(&mut self, conn: ConnId) {
        let now_ns = self.now();
        let Worker {
            io,
            sides,
            posts,
            shared,
            ..
        } = self;
        let side = &mut sides[conn.slot()];
        let Some(http) = &mut posts[side.service as usize].http else {
            return;
        };
        let place = &mut http.places[side.backend as usize];
        let moves = shared.services[side.service as usize].backends[side.backend as usize].moves();
        let moved = side.back.as_ref().is_none_or(|back| back.moves != moves);
        // Whoever still comes under a configuration that ends sends one request more at most.
        let draining = shared.draining.load(Ordering::Relaxed);
        if moved || draining || !place.shares || place.idle.len() >= place.idle_max {
            return self.close_back(conn);
        }
        place.idle.push(conn);
        (side.role, side.peer, side.since_ns) = (Role::HttpIdle, None, now_ns);
        if std::mem::take(&mut side.paused) {
            io.resume(conn);
        }
        if let Some(back) = &mut side.back {
            super::empty(&mut back.head);
            back.reused = true;
        }
    }

    /// A connection in the pool has ended, or cannot be trusted: its back end sent something that
    /// nobody had asked for.
    pub(in crate::engine) fn idle_over(&mut self, conn: ConnId) {
        let side = self.side(conn);
        let (service, backend) = (side.service as usize, side.backend as usize);
        if let Some(http) = &mut self.posts[service].http {
            http.places[backend].idle.retain(|one| *one != conn);
        }
        self.close_back(conn);
    }

    /// Closes a connection to a back end that belongs to nobody.
    pub(super) fn close_back(&mut self, conn: ConnId) {
        self.count_back(conn);
        let now_ns = self.now();
        let side = std::mem::take(self.side(conn));
        self.io.close(conn);
        let service = side.service as usize;
        if let Some(back) = side.back.filter(|_| self.posts[service].wanted) {
            self.shared.tell(Happened::ConnectionOver {
                service,
                backend: side.backend as usize,
                client: back.opened_for,
                bytes_to: back.sent,
                bytes_from: side.bytes,
                duration_ns: now_ns.saturating_sub(back.opened_ns),
            });
        }
    }

    /// Adds what has passed since the last time to the counters.
    pub(super) fn count_back(&mut self, conn: ConnId) {
        self.count_bytes(conn.slot());
        let side = &mut self.sides[conn.slot()];
        let Some(Back {
            sent, sent_counted, ..
        }) = side.back.as_deref_mut()
        else {
            return;
        };
        let more = *sent - *sent_counted;
        if more > 0 {
            *sent_counted = *sent;
            let service = &self.shared.services[side.service as usize];
            service.backends[side.backend as usize].bytes_to.add(more);
        }
    }

    /// Whether a connection has waited for too long, or for nothing.
    pub(super) fn scan_idle(&mut self, conn: ConnId, now_ns: u64) {
        self.count_back(conn);
        let side = &self.sides[conn.slot()];
        let (service, backend) = (side.service as usize, side.backend as usize);
        let waited_ns = now_ns.saturating_sub(side.since_ns);
        let limit_ns = self.posts[service].places[backend].idle.min(WAIT_NS);
        let moves = self.state(service).backends[backend].moves();
        let moved = side.back.as_ref().is_none_or(|back| back.moves != moves);
        let usable = self.state(service).backends[backend].usable();
        let draining = self.shared.draining.load(Ordering::Relaxed);
        if moved || !usable || draining || waited_ns >= limit_ns {
            self.idle_over(conn);
        }
    }
}
