//! The send queue of a connection.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use super::Epoll;
use crate::io::{Buf, ConnId, Event, Io};

/// An entry of the queue, and how much of it was sent.
pub(super) enum Outgoing {
    Shared(Arc<[u8]>, usize),
    Own(Vec<u8>, usize),
    Lent(Buf, usize),
}

pub(super) enum SendResult {
    All,
    Part(usize),
    Error(i32),
}

/// Sends what the kernel takes without blocking.
pub(super) fn send_now(fd: i32, bytes: &[u8]) -> SendResult {
    loop {
        // SAFETY: pointer and length describe `bytes`.
        let n = unsafe {
            libc::send(
                fd,
                bytes.as_ptr().cast(),
                bytes.len(),
                libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
            )
        };
        if n >= 0 {
            let n = n as usize;
            return if n == bytes.len() {
                SendResult::All
            } else {
                SendResult::Part(n)
            };
        }
        match io::Error::last_os_error().raw_os_error().unwrap_or(0) {
            libc::EINTR => {}
            libc::EAGAIN => return SendResult::Part(0),
            errno => return SendResult::Error(errno),
        }
    }
}

impl Epoll {
    pub(super) fn discard_sends(&mut self, index: usize) {
        while let Some(outgoing) = self.slots[index].sends.pop_front() {
            self.discard(outgoing);
        }
    }

    fn discard(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Lent(buf, _) => self.give_back(buf.id),
            Outgoing::Own(bytes, _) => self.copied_bytes -= bytes.len(),
            Outgoing::Shared(..) => {}
        }
    }

    /// Sends bytes, and copies what the kernel does not take at once; [`Event::Drained`] follows if it
    /// is `tracked`.
    #[inline]
    pub(super) fn send_bytes(&mut self, conn: ConnId, bytes: &[u8], tracked: bool) {
        let Some(slot) = self.slot(conn) else { return };
        let ready = slot.sends.is_empty() && !slot.connecting && !slot.is_mute() && !slot.finish;
        let mut sent = 0;
        if ready && let Some(socket) = &slot.socket {
            match send_now(socket.as_raw_fd(), bytes) {
                SendResult::All => {
                    if tracked {
                        self.events.push_back(Event::Drained { conn });
                    }
                    return;
                }
                SendResult::Part(n) => sent = n,
                SendResult::Error(errno) => {
                    slot.tracked |= tracked;
                    return self.send_failed(conn, errno);
                }
            }
        }
        let own = bytes[sent..].to_vec();
        self.copied_bytes += own.len();
        self.enqueue(conn, Outgoing::Own(own, 0), tracked);
    }

    /// Sends as much of the queue as the kernel takes.
    pub(super) fn flush(&mut self, conn: ConnId) {
        let index = conn.index as usize;
        loop {
            let Some(slot) = self.slot(conn) else { return };
            if slot.connecting || slot.is_mute() {
                return;
            }
            let Some(fd) = slot.socket.as_ref().map(|s| s.as_raw_fd()) else {
                return;
            };
            let result = match self.slots[index].sends.front() {
                None => break,
                Some(Outgoing::Shared(bytes, from)) => send_now(fd, &bytes[*from..]),
                Some(Outgoing::Own(bytes, from)) => send_now(fd, &bytes[*from..]),
                Some(Outgoing::Lent(buf, from)) => send_now(fd, &self.bytes(buf)[*from..]),
            };
            match result {
                SendResult::All => {
                    if let Some(outgoing) = self.slots[index].sends.pop_front() {
                        self.discard(outgoing);
                    }
                }
                SendResult::Part(n) => {
                    if let Some(
                        Outgoing::Shared(_, from)
                        | Outgoing::Own(_, from)
                        | Outgoing::Lent(_, from),
                    ) = self.slots[index].sends.front_mut()
                    {
                        *from += n;
                    }
                    return;
                }
                SendResult::Error(errno) => return self.send_failed(conn, errno),
            }
        }
        let Some(slot) = self.slot(conn) else { return };
        if slot.finish {
            slot.finish = false;
            if let Some(socket) = &slot.socket {
                // SAFETY: takes numbers, touches no memory.
                unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_WR) };
            }
        }
        if let Some(slot) = self.slot(conn)
            && std::mem::take(&mut slot.tracked)
        {
            self.events.push_back(Event::Drained { conn });
        }
    }

    pub(super) fn enqueue(&mut self, conn: ConnId, outgoing: Outgoing, tracked: bool) {
        match self.slot(conn) {
            Some(slot) if !slot.is_mute() => {
                slot.tracked |= tracked;
                slot.sends.push_back(outgoing);
                if slot.sends.len() == 1 {
                    self.flush(conn);
                }
            }
            _ => self.discard(outgoing),
        }
    }
}
