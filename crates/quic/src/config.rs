//! The transport's settings.

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    ClientConfig, EndpointConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt,
};
use readings::QuicCongestion;
use tls::{ClientTls, ServerTls, TlsError};

use crate::bbr::BbrFactory;

/// Idle timeout: a connection without packets ends after this time.
const IDLE_MS: u32 = 30_000;
/// Flow-control windows of all connections of a client together. A server that leaves out the first
/// bytes of a stream makes the client keep all that follows, up to the window.
const CLIENT_WINDOWS: u32 = 1 << 30;
/// The smallest of these windows: over a round trip of 100 ms it still lets 335 Mbit/s through.
const CLIENT_WINDOW_MIN: u32 = 4 << 20;
/// Flow-control windows of a server: what it buffers of requests that it has not read.
const SERVER_STREAM_WINDOW: u32 = 256 * 1024;
const SERVER_WINDOW: u32 = 1024 * 1024;
/// The unidirectional streams that a peer may open: control, two for QPACK, and unknown ones.
const UNI_STREAMS: u32 = 16;
/// The congestion window at the start, bytes: ten packets of the size that QUIC begins with, as
/// RFC 9002 7.2 recommends, and as the kernel's TCP has it (RFC 6928). quinn-proto's BBR would begin
/// with 200.
const WINDOW_AT_START: u64 = 12_000;
/// How much of unacknowledged answers a connection keeps.
const SERVER_SEND_WINDOW: u64 = 8 << 20;

fn idle() -> Option<IdleTimeout> {
    Some(IdleTimeout::from(VarInt::from_u32(IDLE_MS)))
}

/// The congestion control that was asked for, or the one that matches the kernel's TCP in the network
/// namespace of this thread.
pub fn congestion(asked: Option<QuicCongestion>) -> QuicCongestion {
    asked.unwrap_or_else(|| QuicCongestion::like_tcp(net::os::tcp_congestion().as_deref()))
}

fn controller(congestion: QuicCongestion) -> Arc<dyn ControllerFactory + Send + Sync> {
    match congestion {
        QuicCongestion::Cubic => {
            let mut cubic = CubicConfig::default();
            cubic.initial_window(WINDOW_AT_START);
            Arc::new(cubic)
        }
        QuicCongestion::Bbr => {
            let mut bbr = BbrConfig::default();
            bbr.initial_window(WINDOW_AT_START);
            Arc::new(BbrFactory(Arc::new(bbr)))
        }
        QuicCongestion::NewReno => {
            let mut reno = NewRenoConfig::default();
            reno.initial_window(WINDOW_AT_START);
            Arc::new(reno)
        }
    }
}

/// The window that a client with so many connections announces for each stream and each connection,
/// bytes: 1 GiB divided by the connections, at least 4 MiB.
pub fn client_window(connections: u32) -> u32 {
    (CLIENT_WINDOWS / connections.max(1)).max(CLIENT_WINDOW_MIN)
}

/// What a client needs to open connections to one server.
#[derive(Clone)]
pub struct ClientSettings {
    pub(crate) endpoint: Arc<EndpointConfig>,
    pub(crate) client: ClientConfig,
}

impl ClientSettings {
    /// Settings for so many connections at once, with these TLS settings and this congestion control.
    ///
    /// # Errors
    /// When they cannot be used with QUIC.
    pub fn new(
        tls: &ClientTls,
        congestion: QuicCongestion,
        connections: u32,
    ) -> Result<Self, TlsError> {
        let window = VarInt::from_u32(client_window(connections));
        let mut transport = TransportConfig::default();
        transport
            .congestion_controller_factory(controller(congestion))
            .max_idle_timeout(idle())
            .stream_receive_window(window)
            .receive_window(window)
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .max_concurrent_uni_streams(VarInt::from_u32(UNI_STREAMS))
            .datagram_receive_buffer_size(None);
        let mut client = ClientConfig::new(tls.quic()?);
        client.transport_config(Arc::new(transport));
        Ok(Self {
            endpoint: Arc::new(EndpointConfig::default()),
            client,
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Connections open at one time.
    pub connections: usize,
    /// Streams with requests that a client may have open at once, per connection.
    pub streams: u32,
    /// Numbers of handshakes in progress: from the first on, clients must prove their address
    /// (Retry); from the second on, they are refused.
    pub handshakes: (usize, usize),
    /// How long a handshake may take.
    pub handshake: Duration,
    /// The congestion control of its connections.
    pub congestion: QuicCongestion,
}

pub(crate) fn server(
    tls: &ServerTls,
    alpn: &str,
    limits: &ServerLimits,
) -> Result<ServerConfig, TlsError> {
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(controller(limits.congestion))
        .max_idle_timeout(idle())
        .stream_receive_window(VarInt::from_u32(SERVER_STREAM_WINDOW))
        .receive_window(VarInt::from_u32(SERVER_WINDOW))
        .send_window(SERVER_SEND_WINDOW)
        .max_concurrent_bidi_streams(VarInt::from_u32(limits.streams))
        .max_concurrent_uni_streams(VarInt::from_u32(UNI_STREAMS))
        .datagram_receive_buffer_size(None);
    let mut server = ServerConfig::with_crypto(tls.quic(alpn)?);
    server.transport_config(Arc::new(transport));
    Ok(server)
}
