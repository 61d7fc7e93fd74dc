//! A connection, as its worker keeps it.

use std::net::SocketAddr;

use net::{Buf, ConnId};

use super::external::ExternalChoice;
use super::http::{Downstream, Upstream};

/// What a connection is, and so what its events mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    /// There is none in this slot.
    #[default]
    Free,
    /// A client whose PROXY protocol header has not come yet.
    Greeting,
    /// A client whose back end is not connected yet.
    Waiting,
    /// A connection to a back end that is not open yet.
    Connecting,
    /// Either side of a pair: what one sends goes to the other.
    Relaying,
    /// A client of an HTTP service.
    HttpDownstream,
    /// A connection to a back end in an exchange.
    HttpUpstream,
    /// A connection to a back end that waits for a request.
    HttpIdle,
    /// A client of an HTTP service that has got its last answer, or will have.
    HttpClosing,
    /// A client of an HTTP service whose answer was cut off: it is reset when it has what there is.
    HttpCut,
    /// A side whose peer was reset: it gets what is still to be sent, then is reset too.
    Ending,
}

/// Place in the table of connections; the slot of its [`ConnId`].
#[derive(Default)]
pub(super) struct Connection {
    pub role: Role,
    pub conn: Option<ConnId>,
    pub peer: Option<ConnId>,
    /// It sends no more.
    pub ended: bool,
    /// What it sends is copied to a traffic log.
    pub traced: bool,
    /// It is not read, as its peer takes nothing.
    pub paused: bool,
    /// The service's place.
    pub service: u32,
    /// The back end's place, while there is one.
    pub backend: u32,
    /// Buffers handed to it to send; with what is still queued this shows whether it takes any.
    pub sends: u32,
    /// Bytes received from it.
    pub bytes: u64,
    /// How many of them the counters have.
    pub counted: u64,
    /// As of the last scan: how many sends it had taken, and since when no more, ns.
    pub taken: u32,
    pub taken_ns: u64,
    /// Since when it is what it is, or has been without traffic, ns.
    pub since_ns: u64,
    /// What only clients have.
    pub client: Option<Box<Client>>,
    /// What only clients of HTTP services have, and connections to their back ends.
    pub downstream: Option<Box<Downstream>>,
    pub upstream: Option<Box<Upstream>>,
}

/// What is known of a client, and is not needed while bytes pass.
pub(super) struct Client {
    /// Its address, as a PROXY protocol header said it or the kernel; unspecified where nobody
    /// needs it.
    pub address: SocketAddr,
    /// What it connected to; where a header is to say so.
    pub local: SocketAddr,
    /// When it came, ns.
    pub began_ns: u64,
    /// The beginning of its PROXY protocol header.
    pub header: Vec<u8>,
    /// What it sent before its back end was connected.
    pub held: Vec<Buf>,
    /// Back ends that could not be reached for it.
    pub tried: Vec<u32>,
    /// What a program says, where one is asked.
    pub external_choice: ExternalChoice,
    /// How often the present one was asked again.
    pub again: u32,
    /// Since when it waits for a place at a back end, ns.
    pub queued_ns: Option<u64>,
}

impl Client {
    pub fn new(address: SocketAddr, local: SocketAddr, began_ns: u64) -> Client {
        Client {
            address,
            local,
            began_ns,
            header: Vec::new(),
            held: Vec::new(),
            tried: Vec::new(),
            external_choice: ExternalChoice::NotAsked,
            again: 0,
            queued_ns: None,
        }
    }
}
