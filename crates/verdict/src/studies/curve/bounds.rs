//! The rate at which the 99th percentile passes a bound, from one sweep.
//!
//! Per block the logarithm of the 99th percentile is made monotone over the rate and interpolated
//! in two ways: linear in the logarithms, which for a queue lies too high between two rates, and
//! linear in the reciprocal, which is exact for M/M/1. The interval spans both, and half of their
//! distance beyond, and never goes further than from measured rate to measured rate.

use serde::Serialize;

use super::{CONFIDENCE, Level, interval};
use crate::stats::sample::Sample;

/// The number of the 99th percentile among the quantiles.
pub(super) const QUANTILE: usize = 1;

/// The rate at which the 99th percentile passes a bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BoundRate {
    pub quantile: f64,
    pub bound_us: f64,
    pub passes: Passes,
    /// Requests per second: where it passes, or the rate that `passes` is about.
    pub rate_per_s: f64,
    /// The lower end of the interval; absent with fewer than three blocks.
    pub low_per_s: Option<f64>,
    /// Its upper end; absent too where some blocks never passed the bound.
    pub high_per_s: Option<f64>,
    /// Blocks used.
    pub blocks: usize,
    /// Blocks that did not pass it at the highest rate measured.
    pub beyond: usize,
}

/// Where a bound lies against what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Passes {
    /// Between two rates.
    Within,
    /// Below the lowest rate measured, in half of the blocks or more.
    BelowLowest,
    /// Beyond the highest rate measured, in half of the blocks or more.
    BeyondHighest,
}

/// Where one block passes a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pass {
    /// Above the bound at the lowest rate already.
    Below(f64),
    At {
        best: f64,
        low: f64,
        high: f64,
    },
    /// Not above it at the highest rate.
    Beyond(f64),
}

/// The rates for all bounds; none without a block.
pub(super) fn bounds(blocks: &[Vec<Level>], bounds_us: &[f64]) -> Vec<BoundRate> {
    let blocks: Vec<Vec<Level>> = blocks.iter().map(|levels| monotone(levels)).collect();
    let each = bounds_us.iter();
    each.filter_map(|bound_us| bound(&blocks, *bound_us))
        .collect()
}

fn bound(blocks: &[Vec<Level>], bound_us: f64) -> Option<BoundRate> {
    let passes: Vec<Pass> = blocks
        .iter()
        .filter_map(|levels| pass(levels, bound_us))
        .collect();
    let count = passes.len();
    let is_below = |one: &&Pass| matches!(one, Pass::Below(_));
    let is_beyond = |one: &&Pass| matches!(one, Pass::Beyond(_));
    let below = passes.iter().filter(is_below).count();
    let beyond = passes.iter().filter(is_beyond).count();
    let (logs, ends) = logs(&passes);
    let mut found = BoundRate {
        quantile: super::QUANTILES[QUANTILE],
        bound_us,
        passes: Passes::Within,
        rate_per_s: Sample::of(&logs)?.mean.exp(),
        low_per_s: None,
        high_per_s: None,
        blocks: count,
        beyond,
    };
    let end = |rates: &dyn Fn(&Pass) -> Option<f64>| passes.iter().filter_map(rates).collect();
    if 2 * below >= count {
        found.passes = Passes::BelowLowest;
        let rates: Vec<f64> = end(&|one| match one {
            Pass::Below(rate) => Some(*rate),
            _ => None,
        });
        found.rate_per_s = rates.into_iter().fold(f64::INFINITY, f64::min);
        return Some(found);
    }
    if 2 * beyond >= count {
        found.passes = Passes::BeyondHighest;
        let rates: Vec<f64> = end(&|one| match one {
            Pass::Beyond(rate) => Some(*rate),
            _ => None,
        });
        found.rate_per_s = rates.into_iter().fold(f64::INFINITY, f64::min);
        return Some(found);
    }
    let (lows, highs): (Vec<f64>, Vec<f64>) = ends.into_iter().unzip();
    let low = interval(&lows, CONFIDENCE).map(|(low, _)| low);
    let high = interval(&highs, CONFIDENCE).map(|(_, high)| high);
    found.low_per_s = low.filter(|_| below == 0);
    found.high_per_s = high.filter(|_| beyond == 0);
    Some(found)
}

/// The logarithms of the best rates, and of the ends; a block outside counts with its last rate.
fn logs(passes: &[Pass]) -> (Vec<f64>, Vec<(f64, f64)>) {
    let each = passes.iter().map(|one| match one {
        Pass::Below(rate) | Pass::Beyond(rate) => (rate.ln(), (rate.ln(), rate.ln())),
        Pass::At { best, low, high } => (best.ln(), (low.ln(), high.ln())),
    });
    each.unzip()
}

fn pass(levels: &[Level], bound_us: f64) -> Option<Pass> {
    let first = levels.first()?;
    if first.us.is_none_or(|us| us > bound_us) {
        return Some(Pass::Below(first.rate_per_s));
    }
    for pair in levels.windows(2) {
        let (Some(before_us), (r0, r1)) = (pair[0].us, (pair[0].rate_per_s, pair[1].rate_per_s))
        else {
            break;
        };
        match pair[1].us {
            Some(us) if us <= bound_us => {}
            Some(us) => return Some(between((r0, before_us), (r1, us), bound_us)),
            // Towards what was carried the latency grows without bound: the reciprocal goes to 0.
            None => {
                let carried = pair[1].carried_per_s.unwrap_or(r1).clamp(r0, r1);
                let best = r0 + (carried - r0) * (1.0 - before_us / bound_us);
                return Some(Pass::At {
                    best,
                    low: r0,
                    high: r1,
                });
            }
        }
    }
    levels.last().map(|last| Pass::Beyond(last.rate_per_s))
}

fn between((r0, us0): (f64, f64), (r1, us1): (f64, f64), bound_us: f64) -> Pass {
    let in_logs = (bound_us / us0).ln() / (us1 / us0).ln();
    let in_logs = (r0.ln() + in_logs * (r1 / r0).ln()).exp();
    let reciprocal = (1.0 / us0 - 1.0 / bound_us) / (1.0 / us0 - 1.0 / us1);
    let reciprocal = r0 + reciprocal * (r1 - r0);
    let apart = (reciprocal - in_logs).abs() / 2.0;
    Pass::At {
        best: reciprocal,
        low: (in_logs.min(reciprocal) - apart).clamp(r0, r1),
        high: (in_logs.max(reciprocal) + apart).clamp(r0, r1),
    }
}

/// Up to the first overloaded level, with latencies that never fall: neighbours that do are pooled
/// (isotonic regression of the logarithms).
fn monotone(levels: &[Level]) -> Vec<Level> {
    let end = levels.iter().position(|one| one.us.is_none());
    let end = end.map_or(levels.len(), |at| at + 1);
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for us in levels[..end].iter().filter_map(|one| one.us) {
        let mut pool = (us.ln(), 1);
        while let Some(last) = pools.last().filter(|last| last.0 > pool.0).copied() {
            let count = last.1 + pool.1;
            let sum = last.0 * last.1 as f64 + pool.0 * pool.1 as f64;
            pool = (sum / count as f64, count);
            pools.pop();
        }
        pools.push(pool);
    }
    let mut fitted = pools
        .into_iter()
        .flat_map(|(log, count)| std::iter::repeat_n(log.exp(), count));
    let mut out = levels[..end].to_vec();
    for level in out.iter_mut().filter(|one| one.us.is_some()) {
        level.us = fitted.next();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(all: &[(f64, f64)]) -> Vec<Level> {
        all.iter()
            .map(|(rate_per_s, us)| Level {
                rate_per_s: *rate_per_s,
                us: us.is_finite().then_some(*us),
                carried_per_s: (!us.is_finite()).then_some(10_000.0),
            })
            .collect()
    }

    /// The 99th percentile of M/M/1 at 10,000/s.
    fn mm1(rate: f64) -> f64 {
        match rate < 10_000.0 {
            true => 100_f64.ln() / (10_000.0 - rate) * 1e6,
            false => f64::INFINITY,
        }
    }

    fn sweep() -> Vec<Level> {
        let rates = [1e3, 3e3, 5e3, 7e3, 8e3, 9e3, 11e3];
        levels(&rates.map(|rate| (rate, mm1(rate))))
    }

    #[test]
    fn a_bound_is_passed_where_the_queue_passes_it() {
        let blocks = vec![sweep(); 5];
        let found = bounds(&blocks, &[100.0, 1e3, 2e3, 10e3, 50e3]);
        assert_eq!(found[0].passes, Passes::BelowLowest);
        assert_eq!(found[0].rate_per_s, 1e3);
        for one in &found[1..] {
            let truth = 10_000.0 - 100_f64.ln() * 1e6 / one.bound_us;
            assert_eq!(one.passes, Passes::Within, "{one:?}");
            assert!(
                (one.rate_per_s / truth - 1.0).abs() < 0.002,
                "{one:?}: {truth}"
            );
            let (low, high) = (one.low_per_s.unwrap(), one.high_per_s.unwrap());
            assert!(low < truth && truth < high, "{one:?}: {truth}");
        }
    }

    #[test]
    fn what_is_never_reached_has_no_rate() {
        let short: Vec<Level> = sweep()[..3].to_vec();
        let found = bounds(&vec![short; 4], &[10e3])[0];
        assert_eq!(
            (found.passes, found.rate_per_s),
            (Passes::BeyondHighest, 5e3)
        );
        assert_eq!((found.low_per_s, found.high_per_s), (None, None));
        // Where one block of four never passes it, there is no upper end.
        let mut blocks = vec![sweep(); 4];
        blocks[0].truncate(3);
        let found = bounds(&blocks, &[2e3])[0];
        assert_eq!((found.passes, found.beyond), (Passes::Within, 1));
        assert!(found.low_per_s.is_some() && found.high_per_s.is_none());
    }

    #[test]
    fn two_blocks_give_no_interval() {
        let found = bounds(&vec![sweep(); 2], &[2e3])[0];
        assert_eq!((found.low_per_s, found.high_per_s), (None, None));
    }

    #[test]
    fn latencies_that_fall_are_pooled() {
        let found = monotone(&levels(&[
            (1.0, 100.0),
            (2.0, 400.0),
            (3.0, 100.0),
            (4.0, 900.0),
        ]));
        let us: Vec<f64> = found.iter().map(|one| one.us.unwrap().round()).collect();
        assert_eq!(us, [100.0, 200.0, 200.0, 900.0]);
    }
}
