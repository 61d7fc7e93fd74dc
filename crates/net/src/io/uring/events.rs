//! Handles completions.

use io_uring::cqueue;

use super::{Op, Outgoing, Uring};
use crate::io::{ConnId, ENDED_BEFORE, Event, Io};
use crate::os;

impl Uring {
    fn fail(&mut self, conn: ConnId, errno: i32) -> Option<Event> {
        let slot = self.slot(conn)?;
        if slot.failed {
            return None;
        }
        slot.failed = true;
        Some(Event::Failed { conn, errno })
    }

    /// Handles a failed send. The peer may have answered before it closed, so all that was received
    /// is reported before the failure: the kernel keeps it beyond a reset. True if that follows.
    fn drains(&mut self, conn: ConnId, errno: i32) -> bool {
        let Some(slot) = self.slot(conn) else {
            return false;
        };
        // After other errors a receive may never complete.
        let is_closed = matches!(errno, libc::EPIPE | libc::ECONNRESET);
        if slot.failed || slot.ended || !is_closed {
            return false;
        }
        if slot.broken == 0 {
            slot.broken = errno;
            self.receive(conn);
        }
        true
    }

    fn connected(&mut self, conn: ConnId) -> Option<Event> {
        if let Some(first) = self.slot(conn)?.first.take() {
            self.send(conn, first);
        }
        // Without a chain, receiving begins only now.
        self.receive(conn);
        Some(Event::Connected { conn })
    }

    fn sent(&mut self, conn: ConnId, result: i32) -> Option<Event> {
        self.slot(conn)?;
        let index = conn.index as usize;
        if result < 0 {
            self.discard_sends(index);
            return match self.drains(conn, -result) {
                // Its user may wait for that before it reads on.
                true => Some(Event::Drained { conn }),
                false => self.fail(conn, -result),
            };
        }
        let done = match self.slots[index].sends.front_mut() {
            None => return None,
            Some(Outgoing::Shared(bytes, from)) => {
                *from += result as usize;
                *from >= bytes.len()
            }
            Some(Outgoing::Own(bytes, from)) => {
                *from += result as usize;
                *from >= bytes.len()
            }
            Some(Outgoing::Lent(buf, from)) => {
                *from += result as usize;
                *from >= buf.len()
            }
        };
        if done && let Some(outgoing) = self.slots[index].sends.pop_front() {
            self.discard(outgoing);
        }
        if !self.slots[index].sends.is_empty() {
            self.send_front(conn);
            return None;
        }
        if std::mem::take(&mut self.slots[index].finish) {
            self.shut_down(conn);
        }
        Some(Event::Drained { conn })
    }

    fn received(&mut self, conn: ConnId, result: i32, flags: u32) -> Option<Event> {
        let more = cqueue::more(flags);
        let buffer = cqueue::buffer_select(flags);
        if buffer.is_some() {
            self.buffers.taken();
        }
        let live = self.slot(conn).is_some_and(|slot| !slot.failed);
        if !live {
            if let Some(id) = buffer {
                self.buffers.take_back(id);
            }
            return None;
        }
        let slot = &mut self.slots[conn.index as usize];
        slot.receiving = more;
        let stamped = slot.stamped;
        let came = match (buffer, &self.stamps) {
            (Some(id), Some(stamps)) if stamped && result > 0 => {
                stamps.read(&self.buffers, id, result as u32)
            }
            (id, _) => self.buffers.lend(id.unwrap_or(0), 0, result.max(0) as u32),
        };
        let slot = &mut self.slots[conn.index as usize];
        if !came.is_empty() {
            slot.quiet = false;
            buffer?;
            let len = came.start + came.len;
            // A single receive of less than a buffer has emptied the socket.
            slot.may_have_more = !more && (len >= self.buffers.size() || !slot.is_single);
            if !more {
                // Its socket is empty again.
                slot.careful &= len >= self.buffers.size();
                self.starved.push(conn);
            }
            return Some(Event::Data { conn, buf: came });
        }
        if let Some(id) = buffer {
            self.buffers.take_back(id);
        }
        let slot = &mut self.slots[conn.index as usize];
        match (-result).max(0) {
            0 if slot.broken == 0 => {
                slot.ended = true;
                Some(Event::Eof { conn })
            }
            // The next receive reports the failure.
            0 if slot.broken == ENDED_BEFORE && !slot.ended => {
                slot.ended = true;
                self.starved.push(conn);
                Some(Event::Eof { conn })
            }
            0 => {
                let broken = slot.broken;
                self.fail(conn, broken)
            }
            libc::ENOBUFS => {
                self.starved.push(conn);
                None
            }
            libc::ECANCELED => {
                // Resumed before the cancellation of the pause completed.
                self.starved.push(conn);
                None
            }
            errno => self.fail(conn, errno),
        }
    }

    /// Closes accepted connections whose events were not delivered.
    pub(super) fn close_unheard(&mut self) {
        for entry in self.batch.drain(..).skip(self.next) {
            let accepted = Op::from_u8((entry.user_data() >> 56) as u8) == Some(Op::Accept);
            if self.files && accepted && entry.result() >= 0 {
                // SAFETY: the descriptor came with this completion and has no other owner.
                unsafe { libc::close(entry.result()) };
            }
        }
        self.next = 0;
    }

    /// Whether a connection has failed, or has received something in this turn that was not taken
    /// yet.
    pub(super) fn is_unread(&self, conn: ConnId) -> bool {
        let slot = self.slots.get(conn.index as usize);
        slot.is_some_and(|slot| {
            let has_more = || slot.descriptor.is_some_and(os::is_receivable);
            slot.generation == conn.generation
                && (slot.unread > 0 || slot.is_mute() || (slot.may_have_more && has_more()))
        })
    }

    /// Records which connections have received something in this turn ([`Io::has_unread`]).
    pub(super) fn count_unread(&mut self) {
        for entry in &self.batch {
            let data = entry.user_data();
            if (data >> 56) as u8 != Op::Recv as u8 {
                continue;
            }
            let slot = &mut self.slots[data as u32 as usize];
            if u64::from(slot.generation) == (data >> 32) & 0xff_ffff {
                slot.unread = slot.unread.saturating_add(1);
            }
        }
    }

    pub(super) fn translate(&mut self, entry: &cqueue::Entry) -> Option<Event> {
        let data = entry.user_data();
        let op = Op::from_u8((data >> 56) as u8)?;
        let index = data as u32;
        let generation = ((data >> 32) & 0xff_ffff) as u32;
        let (result, flags) = (entry.result(), entry.flags());
        if op == Op::Accept {
            return self.accepted(index as usize, result, flags);
        }
        if op == Op::Cancel {
            return None;
        }
        let conn = ConnId { index, generation };
        let slot = &mut self.slots[index as usize];
        let current = slot.generation == generation;
        if current && op == Op::Recv {
            slot.unread = slot.unread.saturating_sub(1);
        }
        if current && op != Op::QuietSend && !cqueue::more(flags) {
            slot.pending = slot.pending.saturating_sub(1);
        }
        if op == Op::Send && !self.limbo.is_empty() {
            self.leave_limbo(data);
        }
        if op == Op::Shutdown && current {
            let slot = &mut self.slots[index as usize];
            slot.shutting = false;
            if std::mem::take(&mut slot.close_after_shutdown) {
                self.close_slot(index);
            }
        }
        let event = match op {
            Op::Connect if result == 0 => self.connected(conn),
            Op::Socket | Op::Connect if result < 0 => match self.slot(conn) {
                Some(slot) if !slot.failed => {
                    slot.failed = true;
                    Some(Event::ConnectFailed {
                        conn,
                        errno: -result,
                    })
                }
                _ => None,
            },
            Op::Recv => self.received(conn, result, flags),
            Op::Watch if self.slot(conn).is_none() => None,
            Op::Watch if result < 0 => self.fail(conn, -result),
            Op::Watch => {
                if !cqueue::more(flags) {
                    self.watch_again(conn);
                }
                Some(Event::Readable { conn })
            }
            Op::Send => self.sent(conn, result),
            Op::QuietSend | Op::ChainSend if result < 0 && result != -libc::ECANCELED => {
                match self.drains(conn, -result) {
                    true => None,
                    false => self.fail(conn, -result),
                }
            }
            Op::Close => {
                if self.pausing.is_paused() {
                    self.retry_accepts();
                }
                None
            }
            _ => None,
        };
        if current {
            self.settle(index);
        }
        event
    }
}
