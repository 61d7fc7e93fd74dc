//! Counters that several threads add to without holding each other up.
//!
//! Each worker adds to cells of its own; whoever reads adds the cells up.

use std::array;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Threads beyond this many share cells, which costs them time and nothing else.
const SHARDS: usize = 8;
/// Buckets of [`Times`].
const BUCKETS: usize = 32;

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(0) };
}

/// Says which worker this thread is, so that it gets cells of its own. Threads that are no workers
/// share those of one worker; they add seldom.
pub(super) fn be_worker(number: usize) {
    SHARD.set(number % SHARDS);
}

/// A cell in a cache line that no other thread writes to.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Own<T>(T);

/// A count that only grows.
#[derive(Debug, Default)]
pub struct Counter([Own<AtomicU64>; SHARDS]);

impl Counter {
    /// Adds to it.
    pub fn add(&self, more: u64) {
        self.0[SHARD.get()].0.fetch_add(more, Ordering::Relaxed);
    }

    /// What it is now.
    pub fn get(&self) -> u64 {
        let cells = self.0.iter();
        cells.map(|cell| cell.0.load(Ordering::Relaxed)).sum()
    }
}

/// How often a time fell below each power of two of microseconds: 32 buckets, the first below
/// 1 us, the last without an upper bound.
#[derive(Debug, Default)]
pub struct Times([Own<Cells>; SHARDS]);

#[derive(Debug, Default)]
struct Cells {
    buckets: [AtomicU64; BUCKETS],
    sum_us: AtomicU64,
}

impl Times {
    /// Notes a time, ns.
    pub fn note_ns(&self, time_ns: u64) {
        let us = time_ns / 1_000;
        let bucket = (64 - us.leading_zeros() as usize).min(BUCKETS - 1);
        let cells = &self.0[SHARD.get()].0;
        cells.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        cells.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Counts by bucket; bucket n holds times below 2^n us.
    pub fn counts(&self) -> [u64; BUCKETS] {
        array::from_fn(|n| {
            let cells = self.0.iter();
            cells
                .map(|own| own.0.buckets[n].load(Ordering::Relaxed))
                .sum()
        })
    }

    /// The sum of all times, us.
    pub fn sum_us(&self) -> u64 {
        let cells = self.0.iter();
        cells.map(|own| own.0.sum_us.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_powers_of_two() {
        let times = Times::default();
        for ns in [0, 999, 1_000, 1_999, 2_000, 1_000_000, u64::MAX] {
            times.note_ns(ns);
        }
        let counts = times.counts();
        assert_eq!((counts[0], counts[1], counts[2]), (2, 2, 1));
        assert_eq!((counts[10], counts[31]), (1, 1));
    }

    #[test]
    fn what_all_threads_have_added_is_read() {
        let (counter, times) = (Counter::default(), Times::default());
        std::thread::scope(|scope| {
            for number in 0..SHARDS + 3 {
                let (counter, times) = (&counter, &times);
                scope.spawn(move || {
                    be_worker(number);
                    for _ in 0..1000 {
                        counter.add(2);
                        times.note_ns(5_000);
                    }
                });
            }
        });
        let threads = SHARDS as u64 + 3;
        assert_eq!(counter.get(), threads * 2000);
        assert_eq!(times.counts()[3], threads * 1000);
        assert_eq!(times.sum_us(), threads * 5000);
    }
}
