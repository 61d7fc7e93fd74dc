//! What waits to be sent, and what becomes of it.

use std::sync::Arc;

use super::Uring;
use crate::io::Buf;

/// So many copies' room is kept, of so many bytes at most.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 32 * 1024;

pub(super) enum Outgoing {
    Shared(Arc<[u8]>, usize),
    Own(Vec<u8>, usize),
    Lent(Buf, usize),
}

impl Uring {
    /// A copy of bytes, in room that an earlier one has left where there is any.
    pub(super) fn copied(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut own = self.spare.pop().unwrap_or_default();
        own.extend_from_slice(bytes);
        own
    }

    pub(super) fn discard(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Lent(buf, _) => self.buffers.give(buf),
            Outgoing::Own(mut bytes, _)
                if self.spare.len() < SPARE_MAX && bytes.capacity() <= SPARE_BYTES_MAX =>
            {
                bytes.clear();
                self.spare.push(bytes);
            }
            Outgoing::Own(..) | Outgoing::Shared(..) => {}
        }
    }

    pub(super) fn discard_sends(&mut self, index: usize) {
        while let Some(outgoing) = self.slots[index].sends.pop_front() {
            self.discard(outgoing);
        }
    }

    /// Lets go of what a closed connection was sending.
    pub(super) fn leave_limbo(&mut self, data: u64) {
        if let Some(at) = self.limbo.iter().position(|(key, _)| *key == data) {
            let (_, sends) = self.limbo.swap_remove(at);
            for outgoing in sends {
                self.discard(outgoing);
            }
        }
    }
}
