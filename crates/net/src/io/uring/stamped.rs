//! Receiving with kernel timestamps.
//!
//! A multishot `recvmsg` puts a header, the control messages and the data into one buffer; the
//! operation's `msghdr` says how much room the control messages have.

use io_uring::types::RecvMsgOut;

use super::buffers::BufferRing;
use crate::io::Buf;
use crate::io::stamps;
use crate::io::stamps::{CONTROL_BYTES, Kept};

/// The state that receiving with timestamps needs.
pub(super) struct Stamps {
    room: Box<libc::msghdr>,
    _kept: Option<Kept>,
    /// See [`stamps::ahead_ns`]; as of this turn's events.
    pub(super) ahead_ns: i64,
}

impl Stamps {
    pub(super) fn new() -> Self {
        // SAFETY: a msghdr is plain numbers and pointers, all zero is valid.
        let mut room: Box<libc::msghdr> = Box::new(unsafe { std::mem::zeroed() });
        room.msg_controllen = CONTROL_BYTES as _;
        Self {
            room,
            _kept: Kept::begin(),
            ahead_ns: 0,
        }
    }

    /// The operation's `msghdr`; it does not move while this lives.
    pub(super) fn room(&self) -> *const libc::msghdr {
        &raw const *self.room
    }

    /// The data in a buffer that the kernel has filled so far, with its timestamp; empty at the end
    /// of the stream.
    pub(super) fn read(&self, buffers: &BufferRing, id: u16, filled: u32) -> Buf {
        let whole = buffers.lend(id, 0, filled);
        let all = buffers.bytes(&whole);
        let Ok(message) = RecvMsgOut::parse(all, &self.room) else {
            return buffers.lend(id, 0, 0);
        };
        let len = message.payload_data().len() as u32;
        let mut buf = buffers.lend(id, filled - len, len);
        buf.arrived_ns = stamps::arrival_ns(message.control_data(), self.ahead_ns).unwrap_or(0);
        buf
    }
}
