//! Operations of the ring.

/// Operations, as the top byte of a completion's user data.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Op {
    Accept = 1,
    Socket = 2,
    Connect = 3,
    Recv = 4,
    /// A send whose success is not reported.
    QuietSend = 5,
    /// A send of the queue's front.
    Send = 6,
    ChainSend = 7,
    Shutdown = 8,
    Close = 9,
    Cancel = 10,
    /// The readiness of a UDP socket.
    Watch = 11,
}

impl Op {
    pub(super) fn from_u8(value: u8) -> Option<Op> {
        Some(match value {
            1 => Op::Accept,
            2 => Op::Socket,
            3 => Op::Connect,
            4 => Op::Recv,
            5 => Op::QuietSend,
            6 => Op::Send,
            7 => Op::ChainSend,
            8 => Op::Shutdown,
            9 => Op::Close,
            10 => Op::Cancel,
            11 => Op::Watch,
            _ => return None,
        })
    }
}
