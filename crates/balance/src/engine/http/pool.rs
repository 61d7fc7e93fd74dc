//! The pool of idle connections to back ends.
//!
//! Each thread has its own. When the back end closes a pooled connection, the loop reports it and
//! it is dropped. A request sent before that report is sent again by [`super::close`].

use net::{ConnId, Io};

use super::Upstream;
use crate::engine::shared::events::Event;
use crate::engine::worker::Worker;
use crate::engine::worker::connection::{Connection, Role};

/// A request that must not be sent twice only takes a connection used within this time, ns: servers
/// close idle connections after some seconds.
const FRESH_NS: u64 = 1_000_000_000;
/// Longest time in the pool, ns.
const WAIT_NS: u64 = 60_000_000_000;

/// Takes a usable connection from the pool.
///
/// A connection is not taken if it has unread data, or if its end was received: no request is under
/// way on it, so the data is not a response. Its event follows in this turn, and closes it.
pub(super) fn take_idle<I: Io>(
    io: &I,
    connections: &[Connection],
    idle: &mut Vec<ConnId>,
    address_version: u32,
    can_repeat: bool,
    now_ns: u64,
) -> Option<ConnId> {
    let at = idle.iter().rposition(|conn| !io.has_unread(*conn))?;
    let connection = &connections[idle[at].slot()];
    let old = !can_repeat && now_ns.saturating_sub(connection.since_ns) > FRESH_NS;
    match old || connection.is_outdated(address_version) {
        true => None,
        false => Some(idle.remove(at)),
    }
}

impl Connection {
    /// Whether the back end has another address since this connection to it was opened.
    fn is_outdated(&self, address_version: u32) -> bool {
        let upstream = self.upstream.as_ref();
        upstream.is_none_or(|upstream| upstream.address_version != address_version)
    }
}

impl<I: Io> Worker<I> {
    /// Puts a connection into the pool, or closes it if the pool is full.
    pub(super) fn put_idle(&mut self, conn: ConnId) {
        let now_ns = self.now();
        let connection = &mut self.connections[conn.slot()];
        let Some(http) = &mut self.services[connection.service as usize].http else {
            return;
        };
        let backend_slot = &mut http.backends[connection.backend as usize];
        let address_version = self.shared.services[connection.service as usize].backends
            [connection.backend as usize]
            .address_version();
        // A draining balancer serves at most one more request per client.
        let draining = self.shared.is_draining();
        if connection.is_outdated(address_version)
            || draining
            || !backend_slot.reusable
            || backend_slot.idle.len() >= backend_slot.idle_max
        {
            return self.close_upstream(conn);
        }
        backend_slot.idle.push(conn);
        (connection.role, connection.peer, connection.since_ns) = (Role::HttpIdle, None, now_ns);
        if std::mem::take(&mut connection.paused) {
            self.io.resume(conn);
        }
        if let Some(upstream) = &mut connection.upstream {
            super::empty(&mut upstream.head);
            upstream.reused = true;
        }
    }

    /// Drops a pooled connection that ended, or on which the back end sent unsolicited data.
    pub(in crate::engine) fn close_idle(&mut self, conn: ConnId) {
        let connection = self.connection(conn);
        let (service, backend) = connection.indexes();
        if let Some(http) = &mut self.services[service].http {
            http.backends[backend].idle.retain(|one| *one != conn);
        }
        self.close_upstream(conn);
    }

    /// Closes a connection to a back end outside of an exchange.
    pub(super) fn close_upstream(&mut self, conn: ConnId) {
        self.count_upstream(conn);
        let now_ns = self.now();
        let connection = std::mem::take(self.connection(conn));
        self.io.close(conn);
        let service = connection.service as usize;
        if let Some(upstream) = connection
            .upstream
            .filter(|_| self.services[service].emits_events)
        {
            self.shared.emit(Event::ConnectionClosed {
                cut: None,
                service,
                backend: connection.backend as usize,
                client: upstream.opened_for,
                bytes_to: upstream.sent,
                bytes_from: connection.bytes,
                duration_ns: now_ns.saturating_sub(upstream.opened_ns),
            });
        }
    }

    /// Adds bytes since the last call to the counters.
    pub(super) fn count_upstream(&mut self, conn: ConnId) {
        self.count_bytes(conn.slot());
        let connection = &mut self.connections[conn.slot()];
        let Some(Upstream {
            sent, sent_counted, ..
        }) = connection.upstream.as_deref_mut()
        else {
            return;
        };
        let more = *sent - *sent_counted;
        if more > 0 {
            *sent_counted = *sent;
            let service = &self.shared.services[connection.service as usize];
            service.backends[connection.backend as usize]
                .bytes_to
                .add(more);
        }
    }

    /// Drops a pooled connection that is too old or of no more use.
    pub(super) fn scan_idle(&mut self, conn: ConnId, now_ns: u64) {
        self.count_upstream(conn);
        let connection = &self.connections[conn.slot()];
        let (service, backend) = connection.indexes();
        let waited_ns = now_ns.saturating_sub(connection.since_ns);
        let limit_ns = self.services[service].backends[backend].idle.min(WAIT_NS);
        let address_version = self.state(service).backends[backend].address_version();
        let usable = self.state(service).backends[backend].usable();
        let draining = self.shared.is_draining();
        if connection.is_outdated(address_version) || !usable || draining || waited_ns >= limit_ns {
            self.close_idle(conn);
        }
    }
}
