//! Clients that speak HTTP/2: which version a client speaks, and the connections that carry streams.
//!
//! A stream is served as a client of HTTP/1.1 (see [`multiplexed`](crate::engine::multiplexed)). A client is
//! counted once, and each of its requests as one of the back end.

use net::{Buf, ConnId, Io};

use super::Worker;
use super::connection::{Client, Connection, Role};
use super::places::Need;

/// The start of the HTTP/2 connection preface; no method of HTTP/1.1 has this name.
const PRIOR_KNOWLEDGE: &[u8] = b"PRI ";
/// By how many streams and clients together may exceed the limit of clients, as the back ends'
/// connections have spare places.
const SPARE: u32 = 32;

impl<I: Io> Worker<I> {
    /// Finds out by ALPN, or without TLS by its first bytes, which version a client speaks.
    pub(in crate::engine) fn detect_http(&mut self, conn: ConnId, buf: Buf) {
        let connection = &mut self.connections[conn.slot()];
        let service = connection.service as usize;
        let Some(client) = connection.client.as_deref_mut() else {
            return self.io.recycle(buf);
        };
        let bytes = self.io.bytes(&buf);
        let mut held = std::mem::take(&mut client.header);
        let mut begun = held.clone();
        begun.extend(bytes.iter().take(PRIOR_KNOWLEDGE.len()));
        begun.truncate(PRIOR_KNOWLEDGE.len());
        let by_alpn = self.io.handshake(conn).map(|one| one.alpn == Some("h2"));
        let is_h2 = match by_alpn {
            Some(is_h2) => is_h2,
            None if begun != PRIOR_KNOWLEDGE && PRIOR_KNOWLEDGE.starts_with(&begun) => {
                client.header = begun;
                return self.io.recycle(buf);
            }
            None => begun == PRIOR_KNOWLEDGE,
        };
        if is_h2 {
            held.extend_from_slice(bytes);
            self.io.recycle(buf);
            connection.role = Role::Carrier;
            connection.sends = 0;
            let now_ns = self.now();
            self.connection(conn).since_ns = now_ns;
            self.io.carry_streams(conn, &held);
            return;
        }
        if !self.services[service].speaks_http_1 {
            self.io.recycle(buf);
            self.state(service).bad_requests.add(1);
            return self.end_client(conn);
        }
        self.http_begin(conn);
        let connection = self.connection(conn);
        connection.bytes += held.len() as u64;
        if let Some(downstream) = connection.downstream.as_deref_mut() {
            downstream.hold(held);
        }
        self.http_request(conn, buf);
    }

    /// A client has opened a stream.
    pub(in crate::engine) fn stream_accepted(&mut self, conn: ConnId) {
        let now_ns = self.now();
        let carrier = self.io.carrier(conn);
        let Some(carrier) = carrier.filter(|carrier| {
            let connection = &self.connections[carrier.slot()];
            connection.conn == Some(*carrier) && connection.role == Role::Carrier
        }) else {
            return self.io.close(conn);
        };
        let connection = &mut self.connections[carrier.slot()];
        // Before a place is sought, as it is not idle any more.
        connection.since_ns = now_ns;
        connection.sends = 1;
        if let Some(client) = &mut connection.client {
            client.moving_ns = now_ns;
        }
        let service = connection.service;
        let most = self.clients_max.saturating_add(SPARE);
        let is_full = !self.has_memory()
            || (self.clients + self.streams >= most && !self.evict(Need::Stream));
        let connection = &self.connections[carrier.slot()];
        let client = connection.client.as_deref().filter(|_| !is_full);
        let client = client.map(|client| Client {
            trusted: client.trusted,
            carrier: Some(carrier),
            ..Client::new(client.address, client.local, now_ns)
        });
        let Some(client) = client else {
            self.state(service as usize).overflowed.add(1);
            return self.io.close(conn);
        };
        self.streams += 1;
        self.used = self.used.max(conn.slot() + 1);
        self.connections[conn.slot()] = Connection {
            conn: Some(conn),
            service,
            client: Some(Box::new(client)),
            ..Connection::default()
        };
        self.http_begin(conn);
    }

    /// Checks the limits of a connection that carries streams.
    pub(in crate::engine) fn scan_carrier(&mut self, conn: ConnId, now_ns: u64) {
        let state = self.io.carrier_state(conn);
        let draining = self.shared.is_draining();
        let connection = &mut self.connections[conn.slot()];
        let service = connection.service as usize;
        // For `Worker::evict`.
        connection.sends = u32::from(state.streams > 0);
        if state.streams > 0 {
            connection.since_ns = now_ns;
        }
        let quiet_ns = now_ns.saturating_sub(connection.since_ns);
        if state.malformed > 0 {
            self.state(service).bad_requests.add(state.malformed);
        }
        let limits = &self.services[service].limits;
        let limit_ns = match state.has_begun {
            true => limits.client_idle,
            false => limits.client_header,
        };
        if draining && (state.has_begun || quiet_ns >= limit_ns) {
            // The first time it is announced, the second time it is done.
            return self.io.end_streams(conn, state.is_draining);
        }
        if quiet_ns >= limit_ns {
            self.state(service).timeouts.add(1);
            self.io.end_streams(conn, true);
            self.connections[conn.slot()].since_ns = now_ns;
        }
    }
}
