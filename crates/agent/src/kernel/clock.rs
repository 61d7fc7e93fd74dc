//! A machine's clocks.

use std::time::{SystemTime, UNIX_EPOCH};

/// CLOCK_REALTIME, ns.
pub(crate) fn wall_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_nanos() as i64)
}

/// CLOCK_MONOTONIC, ns.
pub(crate) fn monotonic_ns() -> i64 {
    net::os::now_ns() as i64
}
