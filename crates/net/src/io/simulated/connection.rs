//! A simulated connection.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::io::ConnId;

/// What the program has done with a connection, as its peer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing yet.
    Open,
    /// It shut down its side.
    Finished,
    /// It closed the connection.
    Closed,
    /// It reset the connection.
    Aborted,
}

/// Whether the peer has ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    No,
    /// It shut down its side; the program does not know yet.
    Eof,
    EofTold,
    /// It has reset the connection; the program does not know yet.
    Reset,
    /// The program knows that the connection has failed.
    Told,
}

/// An entry of a send queue.
pub(super) struct Send {
    pub(super) bytes: Vec<u8>,
    pub(super) from: usize,
    /// The receive buffer that it came from.
    pub(super) buffer: Option<u16>,
}

pub(super) struct SimConnection {
    pub(super) id: ConnId,
    pub(super) target: Option<u32>,
    pub(super) address: Option<SocketAddr>,
    /// Whether the program has not closed it.
    pub(super) is_open: bool,
    pub(super) is_opening: bool,
    pub(super) is_paused: bool,
    pub(super) is_finishing: bool,
    /// Whether a send has failed. What was received before is passed on first.
    pub(super) is_broken: bool,
    /// Whether [`Drained`](crate::Event::Drained) follows.
    pub(super) is_tracked: bool,
    pub(super) fate: Fate,
    pub(super) ended: Ended,
    /// Bytes that were received but not read.
    pub(super) inbox: VecDeque<u8>,
    pub(super) sends: VecDeque<Send>,
    /// How many more bytes the peer accepts before sends have to wait.
    pub(super) room: usize,
    /// Bytes that were sent, but not yet taken by the driver.
    pub(super) sent: Vec<u8>,
    /// Where each whole send ends in `sent`.
    pub(super) send_ends: Vec<usize>,
}

impl SimConnection {
    pub(super) fn new(id: ConnId) -> Self {
        Self {
            id,
            target: None,
            address: None,
            is_open: true,
            is_opening: false,
            is_paused: false,
            is_finishing: false,
            is_broken: false,
            is_tracked: false,
            fate: Fate::Open,
            ended: Ended::No,
            inbox: VecDeque::new(),
            sends: VecDeque::new(),
            room: usize::MAX / 2,
            sent: Vec::new(),
            send_ends: Vec::new(),
        }
    }
}
