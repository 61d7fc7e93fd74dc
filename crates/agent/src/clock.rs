//! A machine's clocks, and stretches of time by them.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Since 1970, by the clock that is set, ns.
pub(super) fn wall_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_nanos() as i64)
}

/// By the clock that nobody sets, ns.
pub(super) fn monotonic_ns() -> i64 {
    net::os::now_ns() as i64
}

/// A stretch of time by a machine's clock that nobody sets, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// When it begins.
    pub from_ns: i64,
    /// When it ends.
    pub to_ns: i64,
}

impl Window {
    /// One that begins now.
    pub(super) fn begins() -> Self {
        let now = monotonic_ns();
        Self {
            from_ns: now,
            to_ns: now,
        }
    }

    /// It ends now.
    pub(super) fn ends(&mut self) {
        self.to_ns = monotonic_ns();
    }

    /// The same by a clock that is ahead by so much.
    pub fn shifted(self, by_ns: i64) -> Self {
        Self {
            from_ns: self.from_ns + by_ns,
            to_ns: self.to_ns + by_ns,
        }
    }
}
