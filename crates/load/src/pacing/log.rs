//! Due times as a log has them.

use crate::job::log::{Cursor, Log};

/// The times of one thread's entries.
#[derive(Debug)]
pub(crate) struct LogPace {
    log: Log,
    at: Cursor,
    /// The thread's number among so many.
    turn: (u64, u64),
    start_ns: u64,
    /// The time of the log at the start.
    offset_ns: u64,
}

impl LogPace {
    /// From a place on that has the entries from `offset_ns` on, which is at `start_ns`.
    pub(crate) fn new(
        log: Log,
        at: Cursor,
        turn: (u64, u64),
        start_ns: u64,
        offset_ns: u64,
    ) -> Self {
        Self {
            log,
            at,
            turn,
            start_ns,
            offset_ns,
        }
    }

    /// When the next request is due; `u64::MAX` after the last.
    pub(super) fn next_ns(&mut self) -> u64 {
        match self.log.next(&mut self.at, self.turn) {
            Some(entry) => {
                let after_ns = entry.due_ns.saturating_sub(self.offset_ns);
                self.start_ns.saturating_add(after_ns)
            }
            None => u64::MAX,
        }
    }
}
