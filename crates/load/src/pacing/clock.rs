//! The clock of a load worker. Tests have a simulated one.

use std::time::Duration;

use net::os::{self, RunQueueWait};

/// Where a worker takes its times from, in ns.
pub(crate) trait Clock {
    /// The time, of a clock that never goes backwards.
    fn now_ns(&self) -> u64;

    /// The CPU time of the calling thread.
    fn thread_cpu_ns(&self) -> u64;

    /// How long the calling thread was ready to run and had no CPU.
    fn thread_waited_ns(&self) -> u64;

    /// Sleeps until a time.
    fn sleep_until(&self, at_ns: u64);
}

/// CLOCK_MONOTONIC, for one thread.
#[derive(Debug)]
pub(crate) struct Monotonic {
    run_queue: Option<RunQueueWait>,
}

impl Monotonic {
    /// For the calling thread.
    pub(crate) fn of_this_thread() -> Self {
        Self {
            run_queue: RunQueueWait::of_this_thread(),
        }
    }
}

impl Clock for Monotonic {
    #[inline]
    fn now_ns(&self) -> u64 {
        os::now_ns()
    }

    fn thread_cpu_ns(&self) -> u64 {
        os::thread_cpu_ns()
    }

    fn thread_waited_ns(&self) -> u64 {
        self.run_queue.as_ref().map_or(0, RunQueueWait::ns)
    }

    fn sleep_until(&self, at_ns: u64) {
        let wait_ns = at_ns.saturating_sub(os::now_ns());
        if wait_ns > 0 {
            std::thread::sleep(Duration::from_nanos(wait_ns));
        }
    }
}
