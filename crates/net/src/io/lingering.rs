//! Closing connections whose peer may still be sending.
//!
//! If a socket with unread input is closed, the kernel resets the connection, and the peer may lose
//! what was sent last. So the sending side is ended first, and what the peer still sends is read and
//! discarded until it closes too (RFC 9112 9.6), within bounds of time, bytes and number.

use std::collections::VecDeque;

use crate::io::ConnId;

/// How long a peer may send nothing and not close either, ns. While all places are taken, also how
/// long it may take to close.
const SILENCE_NS: u64 = 2_000_000_000;
/// How long a peer that keeps sending may take to close, ns.
const TIME_NS: u64 = 30_000_000_000;

#[derive(Debug)]
struct One {
    conn: ConnId,
    began_ns: u64,
    /// When it was last heard, ns.
    heard_ns: u64,
    bytes: u64,
}

/// The connections of an event loop that wait for their peers to close. The caller has sent
/// everything and ended the sending side ([`Io::finish`](crate::Io::finish)).
#[derive(Debug)]
pub struct Lingering {
    /// The one that began first is at the front.
    all: VecDeque<One>,
    most: usize,
}

impl Lingering {
    /// How much of what a peer sends is read, bytes. Then reading stops, and so flow control stops
    /// the peer. A client may send the whole body of a request before it reads the answer that
    /// came early, so this is as much as most bodies have.
    pub const BYTES_MAX: u64 = 64 * 1024 * 1024;

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
            began_ns: now_ns,
            heard_ns: now_ns,
            bytes: 0,
        });
        true
    }

    /// Counts discarded input. False if nothing more should be read from the connection
    /// ([`Io::pause`](crate::Io::pause)).
    pub fn discard(&mut self, conn: ConnId, bytes: usize, now_ns: u64) -> bool {
        let Some(one) = self.all.iter_mut().find(|one| one.conn == conn) else {
            return true;
        };
        one.heard_ns = now_ns;
        one.bytes += bytes as u64;
        one.bytes <= Self::BYTES_MAX
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
        let time_ns = match self.all.len() < self.most {
            true => TIME_NS,
            false => SILENCE_NS,
        };
        let is_over = |one: &One| {
            now_ns.saturating_sub(one.heard_ns) >= SILENCE_NS
                || now_ns.saturating_sub(one.began_ns) >= time_ns
        };
        let at = self.all.iter().position(is_over)?;
        self.all.remove(at).map(|one| one.conn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conn(slot: u32) -> ConnId {
        ConnId::new(slot, 1)
    }

    #[test]
    fn number_bytes_and_silence_are_bounded() {
        let mut lingering = Lingering::new(3);
        assert!(lingering.is_empty());
        assert!(lingering.begin(conn(1), 5) && lingering.begin(conn(2), 6));
        assert!(lingering.discard(conn(1), Lingering::BYTES_MAX as usize, 5));
        assert!(!lingering.discard(conn(1), 1, 5));
        assert_eq!(lingering.overdue(SILENCE_NS + 4), None);
        assert_eq!(lingering.overdue(SILENCE_NS + 5), Some(conn(1)));
        assert_eq!(lingering.overdue(SILENCE_NS + 5), None);
        assert!(lingering.begin(conn(3), 7) && lingering.begin(conn(4), 7));
        assert!(!lingering.begin(conn(5), 7));
        lingering.end(conn(2));
        assert_eq!(lingering.overdue(SILENCE_NS + 7), Some(conn(3)));
        lingering.end(conn(4));
        assert!(lingering.is_empty());
    }

    /// A peer that never stops sending cannot keep the place of another.
    #[test]
    fn the_time_of_one_that_keeps_sending_is_bounded() {
        for (most, limit_ns) in [(2, TIME_NS), (1, SILENCE_NS)] {
            let mut lingering = Lingering::new(most);
            assert!(lingering.begin(conn(1), 0));
            for now_ns in (0..limit_ns).step_by(SILENCE_NS as usize / 4) {
                assert!(lingering.discard(conn(1), 1, now_ns));
                assert_eq!(lingering.overdue(now_ns), None);
            }
            assert_eq!(lingering.overdue(limit_ns), Some(conn(1)));
        }
    }
}
