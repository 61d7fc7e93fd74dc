//! Times for quinn-proto, and timers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// Converts between the event loop's clock (ns) and the `Instant`s of quinn-proto.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Instant,
    base_ns: u64,
}

impl Clock {
    /// A clock that reads `now_ns` now.
    pub fn at(now_ns: u64) -> Self {
        Self {
            base: Instant::now(),
            base_ns: now_ns,
        }
    }

    #[inline]
    pub(crate) fn instant(&self, at_ns: u64) -> Instant {
        match at_ns.checked_sub(self.base_ns) {
            Some(after_ns) => self.base + Duration::from_nanos(after_ns),
            None => self.base,
        }
    }

    #[inline]
    pub(crate) fn ns(&self, at: Instant) -> u64 {
        let after = at.saturating_duration_since(self.base).as_nanos();
        self.base_ns
            .saturating_add(u64::try_from(after).unwrap_or(u64::MAX))
    }
}

/// When connections, by number, need attention. Almost every packet moves a timer to a later time;
/// that costs nothing here, as the connection is looked at once at the earlier time.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Timers {
    /// The earliest time, ns.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Sets a connection's timer. `registered` is the time it has been registered for so far,
    /// `u64::MAX` for none.
    #[inline]
    pub fn set(&mut self, number: u32, registered: &mut u64, at_ns: Option<u64>) {
        if let Some(at) = at_ns
            && at < *registered
        {
            *registered = at;
            self.heap.push(Reverse((at, number)));
        }
    }

    /// Takes a connection whose time has come, with the time it was registered for. The caller
    /// ignores it if the connection has been registered for another time since.
    #[inline]
    pub fn take_due(&mut self, now_ns: u64) -> Option<(u64, u32)> {
        match self.heap.peek() {
            Some(Reverse((at, _))) if *at <= now_ns => self.heap.pop().map(|Reverse(due)| due),
            _ => None,
        }
    }
}
