//! Counters that several threads add to without holding each other up.
//!
//! Each worker adds to cells of its own; whoever reads adds the cells up.

use std::array;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Threads beyond this many share cells, which costs them time and nothing else.
const SHARDS: usize = 8;
/// Powers of two of microseconds that [`DurationHistogram`] tells apart; the last has no upper bound.
const POWERS: usize = 32;
/// Each is divided into so many buckets of the same width.
const PARTS: usize = 4;
const BUCKETS: usize = POWERS * PARTS;

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(0) };
}

/// Says which worker this thread is, so that it gets cells of its own. Threads that are no workers
/// share those of one worker; they add seldom.
pub(super) fn set_worker_shard(number: usize) {
    SHARD.set(number % SHARDS);
}

/// A cell in a cache line that no other thread writes to.
#[derive(Debug, Default)]
#[repr(align(64))]
struct CacheLine<T>(T);

/// A count that only grows.
#[derive(Debug, Default)]
pub struct Counter([CacheLine<AtomicU64>; SHARDS]);

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

/// How often times occurred: 4 buckets for each power of two of microseconds, the first below
/// 1 us, the last without an upper bound. A quantile is exact to an eighth of its value.
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

/// The bucket that a time falls into.
fn bucket(us: u64) -> usize {
    // 1 us is below the first power.
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

/// Where a bucket begins and ends, us.
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
    /// Notes a time, ns.
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

    /// Counts by power of two; number n holds times below 2^n us, and not below half of that.
    pub fn counts(&self) -> [u64; POWERS] {
        let all = self.all();
        array::from_fn(|power| all[power * PARTS..][..PARTS].iter().sum())
    }

    /// The time that this share of all times, 0 to 1, is not above, us; `None` where there are
    /// none. It is the middle of a bucket.
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

    /// The sum of all times, us.
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
