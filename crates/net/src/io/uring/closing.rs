//! The end of a connection: half-closed, closed, its slot freed.

use io_uring::types::Fixed;
use io_uring::{opcode, squeue};

use super::{Op, Uring, user_data};
use crate::io::ConnId;

impl Uring {
    /// Frees a slot once it is closed and its last completion has come.
    pub(super) fn settle(&mut self, index: u32) {
        let slot = &self.slots[index as usize];
        if !slot.open && slot.pending == 0 {
            if slot.outgoing {
                self.free.push(index);
            } else if self.files {
                self.free_accepted.push(index);
            }
        }
    }

    /// Releases the sends of a closed connection.
    pub(super) fn leave_limbo(&mut self, data: u64) {
        if let Some(at) = self.limbo.iter().position(|(key, _)| *key == data) {
            let (_, sends) = self.limbo.swap_remove(at);
            for outgoing in sends {
                self.discard(outgoing);
            }
        }
    }

    pub(super) fn shut_down(&mut self, conn: ConnId) {
        let slot = &mut self.slots[conn.index as usize];
        if let Some(fd) = slot.descriptor {
            // The queue is empty, so there is nothing to wait for.
            // SAFETY: takes numbers, touches no memory.
            unsafe { libc::shutdown(fd, libc::SHUT_WR) };
            return;
        }
        let entry = opcode::Shutdown::new(Fixed(conn.index), libc::SHUT_WR)
            .build()
            .user_data(user_data(Op::Shutdown, conn.generation, conn.index));
        slot.pending += 1;
        slot.shutting = true;
        self.push(entry);
    }

    /// Cancels the operations of a slot and closes it.
    pub(super) fn close_slot(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let busy = slot.pending > 0 || slot.quiet;
        slot.pending += 1;
        let generation = slot.generation;
        let file = slot.file(index);
        // The kernel closes it now.
        slot.descriptor = None;
        self.room_for(2);
        if busy {
            self.push(
                file.cancel_all()
                    .flags(squeue::Flags::IO_HARDLINK)
                    .user_data(user_data(Op::Cancel, 0, 0)),
            );
        }
        self.push(
            file.close()
                .user_data(user_data(Op::Close, generation, index)),
        );
    }
}
