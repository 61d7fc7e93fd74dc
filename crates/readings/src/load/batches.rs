//! How the answers of an open loop lie around the quantiles of the whole load, batch by batch.

use serde::{Deserialize, Serialize};

use crate::Histogram;

/// A few slices of an open loop that follow each other, or one.
///
/// The counts say how much a quantile of the whole load varies from batch to batch, without a
/// histogram for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Good answers to requests that were due in it.
    pub requests: u64,
    /// Those of them whose response took longer than the median of the whole load, ...
    pub above_p50: u64,
    /// ... and longer than its 99th percentile.
    pub above_p99: u64,
}

impl Batch {
    /// The batches of a load, from the response times of each.
    pub fn of(batches: &[Histogram]) -> Vec<Self> {
        let mut whole = Histogram::empty();
        for one in batches {
            whole.merge(one);
        }
        let (p50, p99) = (whole.quantile_us(0.5), whole.quantile_us(0.99));
        let counts = batches.iter().map(|one| Self {
            requests: one.count(),
            above_p50: one.count_above_us(p50),
            above_p99: one.count_above_us(p99),
        });
        counts.collect()
    }

    /// The answers above a quantile of the whole load; nothing for one that is not counted.
    pub fn above(&self, quantile: f64) -> Option<u64> {
        match quantile {
            0.5 => Some(self.above_p50),
            0.99 => Some(self.above_p99),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_counts_what_is_above_the_quantiles_of_all() {
        let batch = |from: u64| {
            let mut one = Histogram::empty();
            for us in from..from + 100 {
                one.record_ns(us * 1_000);
            }
            one
        };
        let found = Batch::of(&[batch(100), batch(200)]);
        // The median is 199 us, the 99th percentile 297 us.
        let counts = |one: &Batch| (one.requests, one.above_p50, one.above_p99);
        let counts: Vec<_> = found.iter().map(counts).collect();
        assert_eq!(counts, [(100, 0, 0), (100, 100, 2)]);
        assert_eq!(Batch::of(&[]), []);
    }
}
