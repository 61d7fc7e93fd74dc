//! The clock of events: this process's CLOCK_MONOTONIC. Tests of the crate simulate it, so that a
//! busy machine does not make their events late.

#[cfg(not(test))]
mod real {
    use std::time::Duration;

    /// The time, ns.
    pub(crate) fn now_ns() -> i64 {
        net::os::now_ns() as i64
    }

    pub(crate) fn sleep(time: Duration) {
        std::thread::sleep(time);
    }
}

#[cfg(not(test))]
pub(super) use real::{now_ns, sleep};

#[cfg(test)]
pub(super) use crate::tests::fake::time::{now_ns, sleep};
