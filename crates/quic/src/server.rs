//! The server side: all connections of one socket.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use net::Datagrams;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Incoming, ServerConfig,
    VarInt,
};
use tls::{ServerTls, TlsError};

use crate::config::{self, ServerLimits};
use crate::time::Timers;
use crate::wire::{self, RETRY_NS, Scratch, Unsent};

/// A connection and the caller's session for it.
pub struct Entry<S> {
    /// Unique: unlike the connection's number, it is not reused.
    pub id: u64,
    pub connection: Connection,
    pub session: S,
    /// The kernel's timestamp of the last datagrams, ns.
    pub arrived_ns: Option<u64>,
    timer_ns: u64,
    is_touched: bool,
    is_dirty: bool,
    is_handshaking: bool,
    unsent: Option<Unsent>,
}

/// How many clients were accepted, retried and refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Connections whose handshake began.
    pub accepted: u64,
    /// Clients that were asked to prove their address (Retry).
    pub retried: u64,
    /// Clients that were refused.
    pub refused: u64,
    /// Connections that ended because their handshake took too long.
    pub slow: u64,
}

/// The connections of a socket. Each has a number and a session of type `S`.
pub struct Server<S> {
    socket: Datagrams,
    endpoint: Endpoint,
    entries: Vec<Option<Box<Entry<S>>>>,
    limits: ServerLimits,
    handshaking: usize,
    /// The deadlines of handshakes: time, number and ID of each connection.
    handshakes: VecDeque<(u64, usize, u64)>,
    timers: Timers,
    touched: VecDeque<usize>,
    dirty: Vec<usize>,
    scratch: Scratch,
    counts: ServerCounts,
}

impl<S> Server<S> {
    /// A server on a socket, with these TLS settings and this ALPN protocol. `now_ns` is the time
    /// of the event loop.
    ///
    /// # Errors
    /// When the TLS settings cannot be used with QUIC.
    pub fn new(
        socket: Datagrams,
        tls: &ServerTls,
        alpn: &str,
        limits: ServerLimits,
        now_ns: u64,
    ) -> Result<Self, TlsError> {
        let config: Arc<ServerConfig> = Arc::new(config::server(tls, alpn, &limits)?);
        let endpoint = Arc::new(EndpointConfig::default());
        Ok(Self {
            socket,
            endpoint: Endpoint::new(endpoint, Some(config), true, None),
            entries: Vec::new(),
            limits,
            handshaking: 0,
            handshakes: VecDeque::new(),
            timers: Timers::default(),
            touched: VecDeque::new(),
            dirty: Vec::new(),
            scratch: Scratch::new(now_ns, 8),
            counts: ServerCounts::default(),
        })
    }

    /// The socket, to be watched by the event loop.
    pub fn socket(&self) -> &Datagrams {
        &self.socket
    }

    pub fn counts(&self) -> ServerCounts {
        self.counts
    }

    /// The connection of a number, if it still exists.
    #[inline]
    pub fn entry(&mut self, number: usize) -> Option<&mut Entry<S>> {
        self.entries.get_mut(number)?.as_deref_mut()
    }

    /// When to call [`Server::expire`], ns.
    pub fn next_ns(&self) -> Option<u64> {
        let handshake = self.handshakes.front().map(|(at, _, _)| *at);
        self.timers.next_ns().into_iter().chain(handshake).min()
    }

    /// Receives datagrams. Returns whether there may be more.
    pub fn receive(&mut self, now_ns: u64, mut session: impl FnMut() -> S) -> bool {
        let now = self.scratch.clock.instant(now_ns);
        let is_more = match self.socket.receive(&mut self.scratch.received) {
            Ok(is_more) => is_more,
            // An ICMP message about one client.
            Err(_) => return true,
        };
        // Taken out, as the endpoint needs `self` while the arrivals are read.
        let received = std::mem::take(&mut self.scratch.received);
        for arrival in received.arrivals() {
            let Some(from) = arrival.from else { continue };
            for datagram in wire::split(&arrival) {
                self.scratch.out.clear();
                let out = &mut self.scratch.out;
                let event = self
                    .endpoint
                    .handle(now, from, arrival.to, None, datagram, out);
                match event {
                    Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                        if let Some(Some(entry)) = self.entries.get_mut(handle.0) {
                            entry.connection.handle_event(event);
                            entry.arrived_ns = arrival.arrived_ns;
                            if !std::mem::replace(&mut entry.is_touched, true) {
                                self.touched.push_back(handle.0);
                            }
                        }
                    }
                    Some(DatagramEvent::NewConnection(incoming)) => {
                        self.accept(incoming, now_ns, &mut session);
                    }
                    Some(DatagramEvent::Response(transmit)) => {
                        let to = Some((transmit.destination, transmit.src_ip));
                        let _ = wire::send(&self.socket, &transmit, to, out);
                    }
                    None => {}
                }
            }
        }
        self.scratch.received = received;
        is_more
    }

    fn accept(&mut self, incoming: Incoming, now_ns: u64, session: &mut impl FnMut() -> S) {
        let (retry_from, refuse_from) = self.limits.handshakes;
        let is_full = self.endpoint.open_connections() >= self.limits.connections
            || self.handshaking >= refuse_from;
        let now = self.scratch.clock.instant(now_ns);
        self.scratch.out.clear();
        let out = &mut self.scratch.out;
        let answer = if is_full {
            self.counts.refused += 1;
            Some(self.endpoint.refuse(incoming, out))
        } else if self.handshaking >= retry_from && !incoming.remote_address_validated() {
            self.counts.retried += 1;
            match self.endpoint.retry(incoming, out) {
                Ok(transmit) => Some(transmit),
                Err(error) => {
                    self.endpoint.ignore(error.into_incoming());
                    None
                }
            }
        } else {
            match self.endpoint.accept(incoming, now, out, None) {
                Ok((handle, connection)) => {
                    self.insert(handle, connection, now_ns, session());
                    None
                }
                Err(error) => error.response,
            }
        };
        if let Some(transmit) = answer {
            let to = Some((transmit.destination, transmit.src_ip));
            let _ = wire::send(&self.socket, &transmit, to, &self.scratch.out);
        }
    }

    fn insert(
        &mut self,
        handle: ConnectionHandle,
        connection: Connection,
        now_ns: u64,
        session: S,
    ) {
        let number = handle.0;
        if self.entries.len() <= number {
            self.entries.resize_with(number + 1, || None);
        }
        self.counts.accepted += 1;
        self.handshaking += 1;
        let id = self.counts.accepted;
        let limit_ns = u64::try_from(self.limits.handshake.as_nanos()).unwrap_or(u64::MAX / 2);
        self.handshakes.push_back((now_ns + limit_ns, number, id));
        self.entries[number] = Some(Box::new(Entry {
            id,
            connection,
            session,
            arrived_ns: None,
            timer_ns: u64::MAX,
            is_touched: true,
            is_dirty: false,
            is_handshaking: true,
            unsent: None,
        }));
        self.touched.push_back(number);
    }

    /// Handles timers that have expired.
    pub fn expire(&mut self, now_ns: u64) {
        let now = self.scratch.clock.instant(now_ns);
        while let Some((at, number)) = self.timers.take_due(now_ns) {
            let number = number as usize;
            let Some(Some(entry)) = self.entries.get_mut(number) else {
                continue;
            };
            if entry.timer_ns != at {
                continue;
            }
            entry.timer_ns = u64::MAX;
            if entry.connection.poll_timeout().is_some_and(|at| at <= now) {
                entry.connection.handle_timeout(now);
            }
            if !std::mem::replace(&mut entry.is_touched, true) {
                self.touched.push_back(number);
            }
        }
        while let Some(&(until, number, id)) = self.handshakes.front()
            && now_ns >= until
        {
            self.handshakes.pop_front();
            let Some(Some(entry)) = self.entries.get_mut(number) else {
                continue;
            };
            if entry.id == id && entry.is_handshaking {
                self.counts.slow += 1;
                self.close(number, 0, "the handshake took too long", now_ns);
            }
        }
    }

    /// The next connection with events to poll.
    pub fn take_touched(&mut self) -> Option<usize> {
        let number = self.touched.pop_front()?;
        if let Some(Some(entry)) = self.entries.get_mut(number) {
            entry.is_touched = false;
            if entry.is_handshaking && !entry.connection.is_handshaking() {
                entry.is_handshaking = false;
                self.handshaking -= 1;
            }
            self.mark(number);
        }
        Some(number)
    }

    /// Marks a connection that has something to send.
    pub fn mark(&mut self, number: usize) {
        if let Some(Some(entry)) = self.entries.get_mut(number)
            && !std::mem::replace(&mut entry.is_dirty, true)
        {
            self.dirty.push(number);
        }
    }

    /// Closes a connection with an application error code.
    pub fn close(&mut self, number: usize, code: u64, what: &'static str, now_ns: u64) {
        let now = self.scratch.clock.instant(now_ns);
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        if let Some(Some(entry)) = self.entries.get_mut(number) {
            let what = bytes::Bytes::from_static(what.as_bytes());
            entry.connection.close(now, code, what);
            self.mark(number);
        }
    }

    /// Closes all connections.
    pub fn close_all(&mut self, code: u64, now_ns: u64) {
        for number in 0..self.entries.len() {
            self.close(number, code, "", now_ns);
        }
        self.flush(now_ns);
    }

    /// Sends what connections have to send, and sets their timers.
    pub fn flush(&mut self, now_ns: u64) {
        while let Some(number) = self.dirty.pop() {
            let Some(Some(entry)) = self.entries.get_mut(number) else {
                continue;
            };
            entry.is_dirty = false;
            if let Some(unsent) = &entry.unsent
                && unsent.is_sent(&self.socket)
            {
                entry.unsent = None;
            }
            if entry.unsent.is_none() {
                let (connection, scratch) = (&mut entry.connection, &mut self.scratch);
                entry.unsent = wire::transmit(connection, &self.socket, false, now_ns, scratch);
            }
            while let Some(event) = entry.connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(ConnectionHandle(number), event) {
                    entry.connection.handle_event(event);
                }
            }
            if entry.connection.is_drained() {
                self.handshaking -= usize::from(entry.is_handshaking);
                self.entries[number] = None;
                continue;
            }
            let timer = entry.connection.poll_timeout();
            let mut timer = timer.map(|at| self.scratch.clock.ns(at));
            if entry.unsent.is_some() {
                timer = Some(timer.unwrap_or(u64::MAX).min(now_ns + RETRY_NS));
            }
            self.timers.set(number as u32, &mut entry.timer_ns, timer);
        }
    }

    /// The address that it listens on.
    pub fn address(&self) -> Option<SocketAddr> {
        self.socket.local()
    }
}
