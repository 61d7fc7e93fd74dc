//! A barrier between segments, with a common start.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::run::Between;

/// A barrier that a thread can abort, so that the others do not wait for it.
pub(crate) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    /// The common start of the round, set by the last to arrive, ns.
    start_ns: AtomicU64,
    broken: AtomicBool,
    /// Done by the last to arrive, before the start.
    between: Between,
}

impl Barrier {
    pub(crate) fn new(threads: usize, between: Between) -> Self {
        Self {
            threads,
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            start_ns: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            between,
        }
    }

    /// Waits for all threads; returns the common start, or `None` once a thread has aborted.
    pub(crate) fn wait(&self) -> Option<u64> {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Release);
            (self.between)();
            let lead = if self.threads > 1 { 200_000 } else { 0 };
            self.start_ns
                .store(net::os::now_ns() + lead, Ordering::Release);
            self.round.store(round + 1, Ordering::Release);
        } else {
            while self.round.load(Ordering::Acquire) == round {
                if self.broken.load(Ordering::Acquire) {
                    return None;
                }
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        (!self.broken.load(Ordering::Acquire)).then(|| self.start_ns.load(Ordering::Acquire))
    }

    /// Releases all threads that wait, now and later.
    pub(crate) fn abort(&self) {
        self.broken.store(true, Ordering::Release);
    }
}
