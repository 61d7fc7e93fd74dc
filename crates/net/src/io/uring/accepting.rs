//! Accepting connections.

use std::os::fd::AsRawFd;

use io_uring::types::Fd;
use io_uring::{cqueue, opcode, squeue};

use super::{Op, Slot, Uring, user_data};
use crate::io::accepting::is_of_one_client;
use crate::io::{ConnId, Event, SLOTS_FULL};

impl Uring {
    pub(super) fn accept(&mut self, listener: usize) {
        let Some(fd) = self.listeners.get(listener).map(|one| Fd(one.as_raw_fd())) else {
            return;
        };
        #[cfg(test)]
        if self.accept_errors.inject(listener) {
            return;
        }
        let entry = opcode::AcceptMulti::new(fd)
            .allocate_file_index(!self.files)
            .flags(if self.files { libc::SOCK_CLOEXEC } else { 0 })
            .build()
            .user_data(user_data(Op::Accept, 0, listener as u32));
        self.push(entry);
    }

    pub(super) fn cancel_accepts(&mut self) {
        for listener in 0..self.listeners.len() {
            let accept = user_data(Op::Accept, 0, listener as u32);
            let entry = opcode::AsyncCancel::new(accept)
                .build()
                .flags(squeue::Flags::SKIP_SUCCESS)
                .user_data(user_data(Op::Cancel, 0, 0));
            self.push(entry);
        }
    }

    /// Makes the next turn try paused listeners again.
    pub(super) fn retry_accepts(&mut self) {
        self.relisten.extend(self.pausing.resume());
    }

    /// Tries paused listeners again if it is time. Otherwise shortens a wait to the next attempt.
    pub(super) fn until_retry(&mut self, wait_ns: Option<u64>) -> Option<u64> {
        let Some(left_ns) = self.pausing.left_ns() else {
            return wait_ns;
        };
        if left_ns == 0 {
            self.retry_accepts();
        }
        Some(wait_ns.map_or(left_ns, |wait_ns| wait_ns.min(left_ns)))
    }

    pub(super) fn accepted(&mut self, listener: usize, result: i32, flags: u32) -> Option<Event> {
        if result < 0 {
            return self.accept_failed(listener, -result);
        }
        self.pausing.accepted();
        if !cqueue::more(flags) {
            self.relisten.push(listener);
        }
        let (index, descriptor) = if self.files {
            let Some(index) = self.free_accepted.pop() else {
                // SAFETY: the descriptor is new and has no other owner.
                unsafe { libc::close(result) };
                return Some(Event::AcceptFailed { errno: SLOTS_FULL });
            };
            (index, Some(result))
        } else {
            (result as u32, None)
        };
        self.accepted_open += 1;
        let slot = &mut self.slots[index as usize];
        let generation = slot.generation.wrapping_add(1) & 0xff_ffff;
        *slot = Slot {
            generation,
            open: true,
            descriptor,
            ..Slot::default()
        };
        let conn = ConnId { index, generation };
        self.receive(conn);
        Some(Event::Accepted {
            conn,
            listener: listener as u32,
        })
    }

    fn accept_failed(&mut self, listener: usize, errno: i32) -> Option<Event> {
        if listener >= self.listeners.len() {
            return None;
        }
        // No slot was free: the kernel has closed the client.
        let full = errno == libc::ENFILE && !self.files && self.accepted_open >= self.accepted_max;
        if full || errno == libc::ECANCELED || is_of_one_client(errno) {
            self.relisten.push(listener);
            return full.then_some(Event::AcceptFailed { errno: SLOTS_FULL });
        }
        let first = self.pausing.pause(listener);
        first.then_some(Event::AcceptFailed { errno })
    }
}
