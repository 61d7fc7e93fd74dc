//! Per-connection state of a worker.

use std::net::SocketAddr;

use net::{Buf, ConnId};

use super::websocket::FrameEnds;
use crate::engine::external::ExternalChoice;
use crate::engine::http::{Downstream, Upstream};

/// The role of a connection, which decides what its events mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) enum Role {
    /// An empty slot.
    #[default]
    Free,
    /// A client whose PROXY protocol header is not complete.
    Greeting,
    /// A client whose TLS ClientHello is not complete.
    Peeking,
    /// A client of an HTTP service that may speak HTTP/2 and has not sent enough to tell.
    Detecting,
    /// A client of an HTTP service that speaks HTTP/2. Its streams are connections of their own.
    Carrier,
    /// A client whose back end is not connected yet.
    Waiting,
    /// A connection to a back end that is being opened.
    Connecting,
    /// One end of a relayed pair.
    Relaying,
    /// A client of an HTTP service.
    HttpDownstream,
    /// A connection to a back end in an exchange.
    HttpUpstream,
    /// An idle connection to a back end, in the pool.
    HttpIdle,
    /// A client of an HTTP service whose last response is queued.
    HttpClosing,
    /// A former client of an HTTP service that was sent everything and has not closed yet. It does
    /// not count as a client. See [`net::Lingering`].
    Lingering,
    /// A client of an HTTP service whose response was truncated: reset once the queue is empty.
    HttpCut,
    /// A connection whose peer was reset: it gets what is queued, then a reset.
    Ending,
}

/// An entry of the connection table; its index is the slot of the [`ConnId`].
#[derive(Default)]
pub(in crate::engine) struct Connection {
    pub role: Role,
    pub conn: Option<ConnId>,
    pub peer: Option<ConnId>,
    /// End of stream was received.
    pub ended: bool,
    /// Its data is copied to a traffic log.
    pub traced: bool,
    /// Not read for now, as its peer does not drain.
    pub paused: bool,
    /// Index of the service.
    pub service: u32,
    /// Index of the back end, while there is one.
    pub backend: u32,
    /// Buffers queued to it so far. Less what is still queued, this shows whether it drains.
    pub sends: u32,
    /// Bytes received from it.
    pub bytes: u64,
    /// Of `bytes`, those already added to the counters.
    pub counted: u64,
    /// At the last scan: sends it had drained, and since when that has not changed, ns.
    pub taken: u32,
    pub taken_ns: u64,
    /// Bytes that its peer had not acknowledged in such a stall, once that was asked.
    pub unacknowledged: Option<u32>,
    /// Start of the current role, or of the current silence, ns.
    pub since_ns: u64,
    pub client: Option<Box<Client>>,
    /// HTTP only: of a client, and of a connection to a back end.
    pub downstream: Option<Box<Downstream>>,
    pub upstream: Option<Box<Upstream>>,
    /// Of a connection to a back end that carries a WebSocket.
    pub frames: Option<Box<FrameEnds>>,
}

impl Connection {
    /// Whether it is a client of an HTTP service of which this is true.
    #[inline]
    pub fn downstream_is(&self, test: impl Fn(&Downstream) -> bool) -> bool {
        self.downstream.as_deref().is_some_and(test)
    }

    /// Service and back end.
    pub fn indexes(&self) -> (usize, usize) {
        (self.service as usize, self.backend as usize)
    }
}

/// State of a client that relaying does not need.
pub(in crate::engine) struct Client {
    /// From the kernel or the PROXY protocol header; unspecified where nothing needs it.
    pub address: SocketAddr,
    /// Whether the forwarded fields of its requests are believed.
    pub trusted: bool,
    /// The address it connected to, where a PROXY protocol header is sent.
    pub local: SocketAddr,
    /// When it was accepted, ns.
    pub began_ns: u64,
    /// The connection that carries it, of a stream.
    pub carrier: Option<ConnId>,
    /// When a scan last found a stream of it that does not stall, ns.
    pub moving_ns: u64,
    /// The PROXY protocol header so far; later what shows the version of HTTP, and the TLS
    /// ClientHello until it is sent on.
    pub header: Vec<u8>,
    /// Data received before the back end was connected.
    pub held: Vec<Buf>,
    /// Back ends that could not be reached.
    pub tried: Vec<u32>,
    pub external_choice: ExternalChoice,
    /// Retries of the current back end.
    pub again: u32,
    /// When it was queued, ns.
    pub queued_ns: Option<u64>,
}

impl Client {
    pub fn new(address: SocketAddr, local: SocketAddr, began_ns: u64) -> Client {
        Client {
            address,
            trusted: true,
            local,
            began_ns,
            carrier: None,
            moving_ns: began_ns,
            header: Vec::new(),
            held: Vec::new(),
            tried: Vec::new(),
            external_choice: ExternalChoice::NotAsked,
            again: 0,
            queued_ns: None,
        }
    }
}
