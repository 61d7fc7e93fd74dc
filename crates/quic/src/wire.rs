//! Moves datagrams between connections and sockets.

use std::net::{IpAddr, SocketAddr};
use std::ops::AddAssign;

use bytes::BytesMut;
use net::{Arrival, Datagrams, Received, SendError};
use quinn_proto::{Connection, Transmit};

use crate::time::Clock;

/// The most datagrams of a connection in one send.
const BATCH: usize = 32;
/// After this time, a socket whose buffer was full is tried again.
pub(crate) const RETRY_NS: u64 = 1_000_000;

/// Memory that the connections of a thread share.
pub struct Scratch {
    pub(crate) clock: Clock,
    pub(crate) received: Received,
    pub(crate) out: Vec<u8>,
}

impl Scratch {
    /// Memory for this many receives per system call. `now_ns` is the time of the event loop.
    pub fn new(now_ns: u64, messages: usize) -> Self {
        Self {
            clock: Clock::at(now_ns),
            received: Received::new(messages),
            out: Vec::new(),
        }
    }
}

/// Counts of packets and datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams, and the system calls that sent them.
    pub datagrams_sent: u64,
    pub sends: u64,
    pub datagrams_received: u64,
    pub packets_sent: u64,
    pub packets_lost: u64,
    /// Bytes of lost packets, whose frames are sent again.
    pub bytes_lost: u64,
    /// Bytes of all datagrams.
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub congestion_events: u64,
}

impl Counts {
    /// The counts of one connection so far.
    pub fn of(connection: &Connection) -> Self {
        let stats = connection.stats();
        Self {
            datagrams_sent: stats.udp_tx.datagrams,
            sends: stats.udp_tx.ios,
            datagrams_received: stats.udp_rx.datagrams,
            packets_sent: stats.path.sent_packets,
            packets_lost: stats.path.lost_packets,
            bytes_lost: stats.path.lost_bytes,
            bytes_sent: stats.udp_tx.bytes,
            bytes_received: stats.udp_rx.bytes,
            congestion_events: stats.path.congestion_events,
        }
    }

    /// What has been added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        let less = u64::saturating_sub;
        Counts {
            datagrams_sent: less(self.datagrams_sent, earlier.datagrams_sent),
            sends: less(self.sends, earlier.sends),
            datagrams_received: less(self.datagrams_received, earlier.datagrams_received),
            packets_sent: less(self.packets_sent, earlier.packets_sent),
            packets_lost: less(self.packets_lost, earlier.packets_lost),
            bytes_lost: less(self.bytes_lost, earlier.bytes_lost),
            bytes_sent: less(self.bytes_sent, earlier.bytes_sent),
            bytes_received: less(self.bytes_received, earlier.bytes_received),
            congestion_events: less(self.congestion_events, earlier.congestion_events),
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.datagrams_sent += other.datagrams_sent;
        self.sends += other.sends;
        self.datagrams_received += other.datagrams_received;
        self.packets_sent += other.packets_sent;
        self.packets_lost += other.packets_lost;
        self.bytes_lost += other.bytes_lost;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.congestion_events += other.congestion_events;
    }
}

/// Datagrams that the socket has not taken yet.
#[derive(Debug)]
pub(crate) struct Unsent {
    bytes: Vec<u8>,
    segment: Option<usize>,
    to: Option<(SocketAddr, Option<IpAddr>)>,
}

impl Unsent {
    /// Tries again. Returns whether the datagrams are sent or lost.
    pub(crate) fn is_sent(&self, socket: &Datagrams) -> bool {
        socket.send(self.to, &self.bytes, self.segment) != Err(SendError::Full)
    }
}

/// The datagrams of an arrival, in shared memory of which quinn-proto can keep parts.
pub(crate) fn split(arrival: &Arrival<'_>) -> impl Iterator<Item = BytesMut> + use<> {
    let mut all = BytesMut::from(arrival.bytes);
    let segment = arrival.segment;
    std::iter::from_fn(move || {
        let len = segment.min(all.len());
        (len > 0).then(|| all.split_to(len))
    })
}

/// Sends the datagrams of a connection. Returns those that the socket did not take.
pub(crate) fn transmit(
    connection: &mut Connection,
    socket: &Datagrams,
    is_client: bool,
    now_ns: u64,
    scratch: &mut Scratch,
) -> Option<Unsent> {
    let now = scratch.clock.instant(now_ns);
    loop {
        scratch.out.clear();
        let most = socket.segments_max().min(BATCH);
        let transmit = connection.poll_transmit(now, most, &mut scratch.out)?;
        let to = (!is_client).then_some((transmit.destination, transmit.src_ip));
        if let Some(unsent) = send(socket, &transmit, to, &scratch.out) {
            return Some(unsent);
        }
    }
}

/// Sends datagrams. QUIC deals with those that are lost, including those too long for the network.
pub(crate) fn send(
    socket: &Datagrams,
    transmit: &Transmit,
    to: Option<(SocketAddr, Option<IpAddr>)>,
    out: &[u8],
) -> Option<Unsent> {
    let bytes = &out[..transmit.size];
    match socket.send(to, bytes, transmit.segment_size) {
        Err(SendError::Full) => Some(Unsent {
            bytes: bytes.to_vec(),
            segment: transmit.segment_size,
            to,
        }),
        _ => None,
    }
}
