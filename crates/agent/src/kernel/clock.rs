//! A machine's clocks, and windows of time.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// CLOCK_REALTIME, ns.
pub(crate) fn wall_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_nanos() as i64)
}

/// CLOCK_MONOTONIC, ns.
pub(crate) fn monotonic_ns() -> i64 {
    net::os::now_ns() as i64
}

/// A window of time by a machine's CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// When it begins.
    pub from_ns: i64,
    /// When it ends.
    pub to_ns: i64,
}

impl Window {
    /// The same by a clock that is ahead by `by_ns`.
    pub fn shifted(self, by_ns: i64) -> Self {
        Self {
            from_ns: self.from_ns.saturating_add(by_ns),
            to_ns: self.to_ns.saturating_add(by_ns),
        }
    }
}
