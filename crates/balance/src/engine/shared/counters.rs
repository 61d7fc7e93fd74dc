//! Counters that threads add to without contention.
//!
//! Each worker adds to its own cells; a reader sums them.

use std::array;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// More threads than this share cells, which costs them time only.
const SHARDS: usize = 8;
/// Powers of two of microseconds in a [`DurationHistogram`]; the last is unbounded.
const POWERS: usize = 32;
/// Linear buckets per power of two.
const PARTS: usize = 4;
const BUCKETS: usize = POWERS * PARTS;

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(0) };
}

/// Gives the calling worker thread its own cells. Other threads share those of worker 0; they
/// rarely add.
pub(in crate::engine) fn set_worker_shard(number: usize) {
    SHARD.set(number % SHARDS);
}

/// A value alone on its cache line, against false sharing.
#[derive(Debug, Default)]
#[repr(align(64))]
struct CacheLine<T>(T);

/// A monotonic counter.
#[derive(Debug, Default)]
pub struct Counter([CacheLine<AtomicU64>; SHARDS]);

impl Counter {
    /// Adds to the calling thread's cell.
    pub fn add(&self, more: u64) {
        self.0[SHARD.get()].0.fetch_add(more, Ordering::Relaxed);
    }

    /// The sum of all cells.
    pub fn get(&self) -> u64 {
        let cells = self.0.iter();
        cells.map(|cell| cell.0.load(Ordering::Relaxed)).sum()
    }
}

/// A histogram of durations: 4 buckets per power of two of microseconds; the first is below 1 us,
/// the last is unbounded. Quantiles are exact to 1/8.
#[derive(Debug, Default)]
pub struct DurationHistogram([CacheLine<Cells>; SHARDS]);

#[derive(Debug)]
struct Cells {
    buckets: [AtomicU64; BUCKETS],
    sum_us: AtomicU64,
}

impl Default for Cells {
    fn default() -> Cells {
        Cells {
            buckets: array::from_fn(|_| AtomicU64::new(0)),
            sum_us: AtomicU64::new(0),
        }
    }
}

fn bucket(us: u64) -> usize {
    // 0 us is in the first power, 1 us in the second.
    let power = 64 - us.leading_zeros() as usize;
    if power == 0 {
        return 0;
    }
    if power >= POWERS {
        return BUCKETS - 1;
    }
    let from = 1_u64 << (power - 1);
    power * PARTS + ((us - from) * PARTS as u64 / from) as usize
}

/// Lower and upper bound of a bucket, us.
fn bounds(bucket: usize) -> (f64, f64) {
    let (power, part) = (bucket / PARTS, bucket % PARTS);
    if power == 0 {
        return (0.0, 1.0);
    }
    let from = (power as f64 - 1.0).exp2();
    let width = from / PARTS as f64;
    let from = from + part as f64 * width;
    (from, from + width)
}

impl DurationHistogram {
    pub fn record_ns(&self, time_ns: u64) {
        let us = time_ns / 1_000;
        let cells = &self.0[SHARD.get()].0;
        cells.buckets[bucket(us)].fetch_add(1, Ordering::Relaxed);
        cells.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    fn all(&self) -> [u64; BUCKETS] {
        array::from_fn(|n| {
            let cells = self.0.iter();
            cells
                .map(|line| line.0.buckets[n].load(Ordering::Relaxed))
                .sum()
        })
    }

    /// Counts by power of two: entry n has durations of at least 2^(n-1) and below 2^n us.
    pub fn counts(&self) -> [u64; POWERS] {
        let all = self.all();
        array::from_fn(|power| all[power * PARTS..][..PARTS].iter().sum())
    }

    /// The quantile, 0 to 1, as the middle of its bucket; `None` while empty.
    pub fn quantile_us(&self, share: f64) -> Option<f64> {
        let all = self.all();
        let rank = ((all.iter().sum::<u64>() as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        all.iter().enumerate().find_map(|(number, count)| {
            seen += count;
            let (from, to) = bounds(number);
            (seen >= rank).then_some((from + to) / 2.0)
        })
    }

    /// The sum of all durations, us.
    pub fn sum_us(&self) -> u64 {
        let cells = self.0.iter();
        cells
            .map(|line| line.0.sum_us.load(Ordering::Relaxed))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_powers_of_two() {
        let times = DurationHistogram::default();
        for ns in [0, 999, 1_000, 1_999, 2_000, 1_000_000, u64::MAX] {
            times.record_ns(ns);
        }
        let counts = times.counts();
        assert_eq!((counts[0], counts[1], counts[2]), (2, 2, 1));
        assert_eq!((counts[10], counts[31]), (1, 1));
    }

    #[test]
    fn quantiles_are_exact_to_an_eighth() {
        let times = DurationHistogram::default();
        assert_eq!(times.quantile_us(0.5), None);
        for us in 1..=10_000_u64 {
            times.record_ns(us * 1_000);
        }
        for (share, us) in [(0.5, 5_000.0), (0.99, 9_900.0), (0.01, 100.0)] {
            let found = times.quantile_us(share).unwrap();
            assert!((found / us - 1.0).abs() < 0.125, "{share}: {found}");
        }
    }

    #[test]
    fn each_time_lies_in_its_bucket() {
        for us in (0..5_000).chain([1 << 20, (1 << 30) - 1, 1 << 30]) {
            let (from, to) = bounds(bucket(us));
            assert!(
                from <= us as f64 && (us as f64) < to,
                "{us}: {from} to {to}"
            );
        }
    }

    #[test]
    fn what_all_threads_have_added_is_read() {
        let (counter, times) = (Counter::default(), DurationHistogram::default());
        std::thread::scope(|scope| {
            for number in 0..SHARDS + 3 {
                let (counter, times) = (&counter, &times);
                scope.spawn(move || {
                    set_worker_shard(number);
                    for _ in 0..1000 {
                        counter.add(2);
                        times.record_ns(5_000);
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
