//! The simulated time of events. It passes while something waits, and while the fake load runs.

use std::cell::Cell;
use std::time::Duration;

thread_local! {
    /// A test's own: it orders events on its thread.
    static NOW_NS: Cell<i64> = const { Cell::new(1_000_000_000) };
}

pub(crate) fn now_ns() -> i64 {
    NOW_NS.get()
}

pub(crate) fn sleep(time: Duration) {
    NOW_NS.set(NOW_NS.get() + time.as_nanos() as i64);
}
