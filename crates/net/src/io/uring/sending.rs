//! Send queues.

use super::{Op, Outgoing, Uring, user_data};
use crate::io::ConnId;

/// Allocations that are kept for reuse: how many, and their size at most.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 32 * 1024;

/// Bytes of sends without a completion, by slot: up to 16 KiB each, and as much again that was
/// outgrown. The kernel may read them until the ring is gone, so no allocation is freed before; each
/// is at least twice as long as the slot's last one.
#[derive(Default)]
pub(super) struct QuietCopies {
    current: Vec<Vec<u8>>,
    outgrown: Vec<Vec<u8>>,
}

impl QuietCopies {
    /// Copies bytes for a slot, in the place of those before.
    pub(super) fn keep(&mut self, slot: usize, bytes: &[u8]) -> *const u8 {
        if self.current.len() <= slot {
            self.current.resize_with(slot + 1, Vec::new);
        }
        let own = &mut self.current[slot];
        if own.capacity() < bytes.len() {
            let length = bytes.len().max(2 * own.capacity());
            self.outgrown
                .push(std::mem::replace(own, Vec::with_capacity(length)));
        }
        own.clear();
        own.extend_from_slice(bytes);
        own.as_ptr()
    }
}

impl Uring {
    /// A copy of bytes, in the allocation of an earlier one if there is any.
    pub(super) fn copied(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut own = self.spare.pop().unwrap_or_default();
        own.extend_from_slice(bytes);
        self.copied_bytes += own.len();
        own
    }

    /// Copies what waits behind the fronts of the queues, to reclaim its receive buffers. The
    /// fronts are being sent and must not move.
    pub(super) fn reclaim(&mut self) {
        if !std::mem::take(&mut self.waiting) {
            return;
        }
        for slot in &mut self.slots {
            for outgoing in slot.sends.iter_mut().skip(1) {
                if let Outgoing::Lent(buf, from) = outgoing {
                    let bytes = self.buffers.bytes(buf)[*from..].to_vec();
                    self.copied_bytes += bytes.len();
                    let lent = std::mem::replace(outgoing, Outgoing::Own(bytes, 0));
                    if let Outgoing::Lent(buf, _) = lent {
                        self.buffers.give(buf);
                    }
                }
            }
        }
    }

    pub(super) fn send_front(&mut self, conn: ConnId) {
        let index = conn.index as usize;
        let (pointer, len) = match self.slots[index].sends.front() {
            None => return,
            Some(Outgoing::Shared(bytes, from)) => (bytes[*from..].as_ptr(), bytes.len() - from),
            Some(Outgoing::Own(bytes, from)) => (bytes[*from..].as_ptr(), bytes.len() - from),
            Some(Outgoing::Lent(buf, from)) => {
                let bytes = &self.buffers.bytes(buf)[*from..];
                (bytes.as_ptr(), bytes.len())
            }
        };
        let entry = self.slots[index]
            .file(conn.index)
            .send(pointer, len)
            .user_data(user_data(Op::Send, conn.generation, conn.index));
        self.slots[index].pending += 1;
        self.push(entry);
    }

    pub(super) fn enqueue(&mut self, conn: ConnId, outgoing: Outgoing) {
        let Some(slot) = self.slot(conn) else {
            self.discard(outgoing);
            return;
        };
        if slot.is_mute() {
            self.discard(outgoing);
            return;
        }
        slot.sends.push_back(outgoing);
        match slot.sends.len() {
            1 => self.send_front(conn),
            _ => self.waiting = true,
        }
    }

    pub(super) fn discard(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Lent(buf, _) => self.buffers.give(buf),
            Outgoing::Own(mut bytes, _) => {
                self.copied_bytes -= bytes.len();
                if self.spare.len() < SPARE_MAX && bytes.capacity() <= SPARE_BYTES_MAX {
                    bytes.clear();
                    self.spare.push(bytes);
                }
            }
            Outgoing::Shared(..) => {}
        }
    }

    pub(super) fn discard_sends(&mut self, index: usize) {
        while let Some(outgoing) = self.slots[index].sends.pop_front() {
            self.discard(outgoing);
        }
    }
}
