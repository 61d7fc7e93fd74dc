//! Handles readiness: accepts, connects, reads.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::net::sockopt;

use super::{Epoll, LISTENER, STREAM_FLAGS};
use crate::io::accepting;
use crate::io::stamps;
use crate::io::{ConnId, ENDED_BEFORE, Event, Io, SLOTS_FULL};
use crate::os;

impl Epoll {
    fn connected(&mut self, conn: ConnId) {
        let Some(slot) = self.slot(conn) else { return };
        let Some(socket) = &slot.socket else { return };
        let errno = match sockopt::socket_error(socket) {
            Ok(Ok(())) => None,
            Ok(Err(errno)) => Some(errno.raw_os_error()),
            Err(_) => Some(libc::EIO),
        };
        slot.connecting = false;
        if let Some(errno) = errno {
            slot.failed = true;
            self.events.push_back(Event::ConnectFailed { conn, errno });
            return;
        }
        let first = slot.first.take();
        self.events.push_back(Event::Connected { conn });
        if let Some(payload) = first {
            self.send(conn, payload);
        } else {
            self.flush(conn);
        }
    }

    pub(super) fn handle(&mut self, event: libc::epoll_event) {
        let (bits, data) = (event.events as i32, event.u64);
        let index = data as u32;
        if index == LISTENER {
            let listener = (data >> 32) as usize;
            if listener < self.listeners.len() {
                self.to_accept.push_back(listener);
            }
            return;
        }
        let conn = ConnId {
            index,
            generation: (data >> 32) as u32,
        };
        let Some(slot) = self.slot(conn) else { return };
        if slot.is_watched {
            return self.events.push_back(Event::Readable { conn });
        }
        if slot.connecting {
            if bits & (libc::EPOLLOUT | libc::EPOLLERR | libc::EPOLLHUP) == 0 {
                return;
            }
            self.connected(conn);
        } else if bits & libc::EPOLLOUT != 0 {
            self.flush(conn);
        }
        if bits & (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLERR | libc::EPOLLHUP) != 0 {
            if bits & (libc::EPOLLRDHUP | libc::EPOLLERR | libc::EPOLLHUP) != 0
                && let Some(slot) = self.slot(conn)
            {
                slot.ending = true;
            }
            self.mark_readable(conn);
        }
    }

    pub(super) fn read_one(&mut self, conn: ConnId) -> Option<Event> {
        let slot = self.slot(conn)?;
        slot.queued_to_read = false;
        if slot.paused || slot.failed || !slot.readable {
            return None;
        }
        let fd = slot.socket.as_ref()?.as_raw_fd();
        let Some(id) = self.buffers.take() else {
            // It stays readable, and is read once a buffer is free.
            self.starved.push(conn);
            return None;
        };
        let buffer = self.buffers.get_mut(id);
        let size = buffer.len();
        let (received, arrived_ns) = match self.stamps {
            true => stamps::receive(fd, buffer, self.ahead_ns),
            false => (os::receive(fd, buffer), 0),
        };
        if let Ok(n @ 1..) = received {
            let slot = self.slot(conn)?;
            if n < size && !slot.ending {
                // A short read has emptied the socket; the next edge reports more.
                slot.readable = false;
            } else {
                slot.queued_to_read = true;
                self.to_read.push_back(conn);
            }
            let mut buf = self.id.lend(id, 0, n as u32);
            buf.arrived_ns = arrived_ns;
            return Some(Event::Data { conn, buf });
        }
        self.give_back(id);
        let slot = self.slot(conn)?;
        slot.readable = false;
        let broken = slot.broken;
        match received {
            Ok(_) if broken == 0 || broken == ENDED_BEFORE => {
                slot.ended = true;
                if broken != 0 {
                    self.fail(conn, broken);
                }
                return Some(Event::Eof { conn });
            }
            Ok(_) | Err(libc::EAGAIN) if broken != 0 => self.fail(conn, broken),
            Ok(_) | Err(libc::EAGAIN) => {}
            Err(errno) => self.fail(conn, errno),
        }
        None
    }

    /// The next connection of a listener, or the `errno`; `None` if there is no such listener.
    fn accept_socket(&mut self, listener: usize) -> Option<Result<OwnedFd, i32>> {
        let fd = self.listeners.get(listener)?.as_raw_fd();
        #[cfg(test)]
        if let Some(errno) = self.accept_errors.pop_front() {
            return Some(Err(errno));
        }
        // SAFETY: null pointers mean that the peer's address is not returned.
        let got = unsafe {
            libc::accept4(
                fd,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
            )
        };
        Some(match os::check(got) {
            // SAFETY: the descriptor is new and has no other owner.
            Ok(fd) => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
            Err(error) => Err(error.raw_os_error().unwrap_or(libc::EIO)),
        })
    }

    pub(super) fn accept_one(&mut self, listener: usize) -> Option<Event> {
        let socket = match self.accept_socket(listener)? {
            Ok(socket) => socket,
            Err(libc::EAGAIN) => return None,
            Err(errno) if accepting::is_of_one_client(errno) => {
                self.to_accept.push_front(listener);
                return None;
            }
            Err(errno) => {
                let first = self.pausing.pause(listener);
                return first.then_some(Event::AcceptFailed { errno });
            }
        };
        self.pausing.accepted();
        self.to_accept.push_front(listener);
        let Some(index) = self.free_accepted.pop() else {
            return Some(Event::AcceptFailed { errno: SLOTS_FULL });
        };
        let conn = self.occupy(index, socket, false);
        match self.register(conn, STREAM_FLAGS) {
            Ok(()) => Some(Event::Accepted {
                conn,
                listener: listener as u32,
            }),
            Err(e) => {
                self.close(conn);
                Some(Event::AcceptFailed {
                    errno: e.raw_os_error().unwrap_or(libc::EIO),
                })
            }
        }
    }
}
