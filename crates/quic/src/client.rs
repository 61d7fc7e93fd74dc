//! The client side: one connection with a socket of its own.

use std::io;
use std::net::SocketAddr;

use net::{Datagrams, Handshake};
use quinn_proto::{Connection, ConnectionHandle, DatagramEvent, Endpoint, VarInt};
use tls::QuicNegotiated;

use crate::config::ClientSettings;
use crate::wire::{self, RETRY_NS, Scratch, Unsent};

/// Why a connection cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("cannot begin a QUIC connection: {0}")]
    Connect(#[from] quinn_proto::ConnectError),
}

/// A connection with its own socket, and so its own source port. Servers and kernels spread
/// connections by address, and a batch of datagrams belongs to one connection.
pub struct Client {
    socket: Datagrams,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    pub connection: Connection,
    opened_ns: u64,
    unsent: Option<Unsent>,
}

impl Client {
    /// Begins a connection. [`Client::flush`] sends its first packets.
    ///
    /// # Errors
    /// When there is no free descriptor or port, or no route.
    pub fn open(
        settings: &ClientSettings,
        to: SocketAddr,
        source: Option<SocketAddr>,
        stamps: bool,
        now_ns: u64,
        scratch: &Scratch,
    ) -> Result<Self, OpenError> {
        let socket = Datagrams::connect(to, source, stamps)?;
        let mut endpoint = Endpoint::new(settings.endpoint.clone(), None, true, None);
        let now = scratch.clock.instant(now_ns);
        // This name is not used: the TLS settings have the one that the certificate must bear.
        let (handle, connection) = endpoint.connect(now, settings.client.clone(), to, "server")?;
        Ok(Self {
            socket,
            endpoint,
            handle,
            connection,
            opened_ns: now_ns,
            unsent: None,
        })
    }

    /// The socket, to be watched by the event loop.
    pub fn socket(&self) -> &Datagrams {
        &self.socket
    }

    /// Receives datagrams. `each` is called once for all that arrived together, with the kernel's
    /// timestamp in ns if there is one. Returns whether there may be more.
    ///
    /// # Errors
    /// The `errno`, which may come from an ICMP message.
    pub fn receive(
        &mut self,
        now_ns: u64,
        scratch: &mut Scratch,
        mut each: impl FnMut(&mut Connection, Option<u64>),
    ) -> Result<bool, i32> {
        let now = scratch.clock.instant(now_ns);
        let is_more = self.socket.receive(&mut scratch.received)?;
        let remote = self.connection.remote_address();
        for arrival in scratch.received.arrivals() {
            for datagram in wire::split(&arrival) {
                scratch.out.clear();
                let out = &mut scratch.out;
                match self.endpoint.handle(now, remote, None, None, datagram, out) {
                    Some(DatagramEvent::ConnectionEvent(_, event)) => {
                        self.connection.handle_event(event);
                    }
                    Some(DatagramEvent::Response(transmit)) => {
                        // A stateless reset, for a connection that is no longer known.
                        let _ = wire::send(&self.socket, &transmit, None, out);
                    }
                    Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
                    None => {}
                }
            }
            each(&mut self.connection, arrival.arrived_ns);
        }
        Ok(is_more)
    }

    /// Handles timers that have expired.
    pub fn expire(&mut self, now_ns: u64, scratch: &Scratch) {
        let now = scratch.clock.instant(now_ns);
        if self.connection.poll_timeout().is_some_and(|at| at <= now) {
            self.connection.handle_timeout(now);
        }
    }

    /// Sends what is ready. Returns the time at which the connection needs attention again, ns.
    pub fn flush(&mut self, now_ns: u64, scratch: &mut Scratch) -> Option<u64> {
        if let Some(unsent) = &self.unsent {
            if !unsent.is_sent(&self.socket) {
                return Some(now_ns + RETRY_NS);
            }
            self.unsent = None;
        }
        let (connection, socket) = (&mut self.connection, &self.socket);
        self.unsent = wire::transmit(connection, socket, true, now_ns, scratch);
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
        let timer = self.connection.poll_timeout();
        let timer = timer.map(|at| scratch.clock.ns(at));
        match self.unsent {
            Some(_) => Some(timer.map_or(u64::MAX, |at| at).min(now_ns + RETRY_NS)),
            None => timer,
        }
    }

    /// Closes the connection with an application error code, and tells the server.
    pub fn close(&mut self, code: u64, what: &'static str, now_ns: u64, scratch: &mut Scratch) {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        let now = scratch.clock.instant(now_ns);
        self.connection
            .close(now, code, bytes::Bytes::from_static(what.as_bytes()));
        self.flush(now_ns, scratch);
    }

    /// What was negotiated, for a connection that was established at `established_ns`. A QUIC
    /// handshake opens the connection and agrees on keys at once, so it begins with the first
    /// packet.
    pub fn handshake(&self, established_ns: u64) -> Option<Handshake> {
        let data = self.connection.crypto_session().handshake_data()?;
        let one = data.downcast::<QuicNegotiated>().ok()?;
        Some(Handshake {
            opened_ns: self.opened_ns,
            established_ns,
            is_resumed: one.is_resumed,
            version: "1.3",
            suite: one.suite,
            group: one.group,
            alpn: one.alpn,
            key: one.key,
        })
    }
}
