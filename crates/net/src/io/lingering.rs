//! Closing connections whose peer may still be sending.
//!
//! If a socket with unread input is closed, the kernel resets the connection, and the peer may lose
//! what was sent last. So the sending side is ended first, and what the peer still sends is read and
//! discarded until it closes too (RFC 9112 9.6), within bounds of time, bytes and number.

use std::collections::VecDeque;

use crate::io::ConnId;

/// How long a peer may take to close, ns.
const TIME_NS: u64 = 2_000_000_000;
/// How much of what it sends is read, bytes. Then reading stops, and so flow control stops the
/// peer.
const BYTES_MAX: u64 = 1024 * 1024;

#[derive(Debug)]
struct One {
    conn: ConnId,
    until_ns: u64,
    bytes: u64,
}

/// The connections of an event loop that wait for their peers to close. The caller has sent
/// everything and ended the sending side ([`Io::finish`](crate::Io::finish)).
#[derive(Debug)]
pub struct Lingering {
    /// In the order in which their time ends.
    all: VecDeque<One>,
    most: usize,
}

impl Lingering {
    /// For at most `most` connections at a time.
    pub fn new(most: usize) -> Self {
        Self {
            all: VecDeque::new(),
            most,
        }
    }

    /// Whether no connection waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds a connection. False if there is no place for it: it has to be closed at once.
    pub fn begin(&mut self, conn: ConnId, now_ns: u64) -> bool {
        if self.all.len() >= self.most {
            return false;
        }
        self.all.push_back(One {
            conn,
            until_ns: now_ns + TIME_NS,
            bytes: 0,
        });
        true
    }

    /// Counts discarded input. False if nothing more should be read from the connection
    /// ([`Io::pause`](crate::Io::pause)).
    pub fn discard(&mut self, conn: ConnId, bytes: usize) -> bool {
        let Some(one) = self.all.iter_mut().find(|one| one.conn == conn) else {
            return true;
        };
        one.bytes += bytes as u64;
        one.bytes <= BYTES_MAX
    }

    /// Removes a connection that is closed.
    pub fn end(&mut self, conn: ConnId) {
        // Most close in the order in which they began.
        if let Some(at) = self.all.iter().position(|one| one.conn == conn) {
            self.all.remove(at);
        }
    }

    /// Removes a connection whose time is over, for the caller to close; `None` if no further one
    /// is overdue.
    pub fn overdue(&mut self, now_ns: u64) -> Option<ConnId> {
        let is_over = self.all.front().is_some_and(|one| now_ns >= one.until_ns);
        match is_over {
            true => self.all.pop_front().map(|one| one.conn),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_bytes_and_time_are_bounded() {
        let conn = |slot| ConnId::new(slot, 1);
        let mut lingering = Lingering::new(2);
        assert!(lingering.is_empty());
        assert!(lingering.begin(conn(1), 5) && lingering.begin(conn(2), 6));
        assert!(!lingering.begin(conn(3), 7));
        assert!(lingering.discard(conn(1), 1024 * 1024));
        assert!(!lingering.discard(conn(1), 1));
        assert!(lingering.discard(conn(2), 1));
        assert_eq!(lingering.overdue(TIME_NS + 4), None);
        assert_eq!(lingering.overdue(TIME_NS + 5), Some(conn(1)));
        assert_eq!(lingering.overdue(TIME_NS + 5), None);
        assert!(lingering.begin(conn(3), 7));
        lingering.end(conn(2));
        assert_eq!(lingering.overdue(TIME_NS + 7), Some(conn(3)));
        assert!(lingering.is_empty());
    }
}
