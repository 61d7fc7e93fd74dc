//! Counters that threads add to, and times that they count.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// What it is now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Each power of two is divided into so many buckets of the same width.
const PARTS: usize = 4;
/// Powers of two; the last has no upper bound.
const POWERS: usize = 32;

/// How often times occurred: 4 buckets for each power of two of microseconds, so that a quantile
/// is exact to an eighth of its value.
#[derive(Debug)]
pub struct Times {
    buckets: [Counter; PARTS * POWERS],
    sum_us: Counter,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            buckets: std::array::from_fn(|_| Counter::default()),
            sum_us: Counter::default(),
        }
    }
}

/// The bucket that a time falls into.
fn bucket(us: u64) -> usize {
    if us == 0 {
        return 0;
    }
    // The power that it is below, from 1: 1 us is below 2.
    let power = 64 - us.leading_zeros() as usize;
    if power >= POWERS {
        return PARTS * POWERS - 1;
    }
    let below = 1_u64 << (power - 1);
    let part = ((us - below) * PARTS as u64 / below) as usize;
    power * PARTS + part
}

/// Where a bucket begins and ends, us.
fn bounds(bucket: usize) -> (f64, f64) {
    let (power, part) = (bucket / PARTS, bucket % PARTS);
    if power == 0 {
        return (0.0, 1.0);
    }
    let below = f64::from(1_u32 << (power - 1));
    let width = below / PARTS as f64;
    let from = below + part as f64 * width;
    (from, from + width)
}

impl Times {
    /// Notes a time, ns.
    pub fn note_ns(&self, time_ns: u64) {
        let us = time_ns / 1_000;
        self.buckets[bucket(us)].add(1);
        self.sum_us.add(us);
    }

    /// Counts by powers of two; number n holds times below 2^n us and not below half of that.
    pub fn counts(&self) -> [u64; POWERS] {
        std::array::from_fn(|power| {
            let from = power * PARTS;
            self.buckets[from..from + PARTS]
                .iter()
                .map(Counter::get)
                .sum()
        })
    }

    /// The sum of all times, us.
    pub fn sum_us(&self) -> u64 {
        self.sum_us.get()
    }

    /// The time that this share of all times, 0 to 1, is not above, us; `None` where there are
    /// none. Exact to an eighth, as it is taken from the middle of a bucket.
    pub fn quantile_us(&self, share: f64) -> Option<f64> {
        let counts: Vec<u64> = self.buckets.iter().map(Counter::get).collect();
        let all: u64 = counts.iter().sum();
        let rank = ((all as f64 * share).ceil() as u64).clamp(1, all.max(1));
        let mut seen = 0;
        counts.iter().enumerate().find_map(|(number, count)| {
            seen += count;
            let (from, to) = bounds(number);
            (*count > 0 && seen >= rank).then_some((from + to) / 2.0)
        })
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
    fn quantiles_are_exact_to_an_eighth() {
        let times = Times::default();
        assert_eq!(times.quantile_us(0.5), None);
        for us in 1..=10_000_u64 {
            times.note_ns(us * 1_000);
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
}
