//! The rate at which the 99th percentile passes a bound, from one sweep.
//!
//! Per block the logarithm of the 99th percentile is made monotone over the rate and interpolated
//! in two ways: linear in the logarithms, which for a queue lies too high between two rates, and
//! linear in the reciprocal, which is exact for M/M/1. The interval spans both, and half of their
//! distance beyond, and never goes further than from measured rate to measured rate. Where slices were
//! too short for the queue to settle, latencies are too low: the interval then reaches down to the last
//! rate at which it settled.
//!
//! Where some blocks never passed the bound, or were above it from the first rate on, their rates are
//! censored. Then the rates are tested one by one: from the lowest on as long as p99 is surely within
//! the bound, and from the highest down as long as it is surely above. Such a fixed sequence needs no
//! correction.
//!
//! Source: W. Maurer, L. A. Hothorn, W. Lehmacher, Multiple comparisons in drug clinical trials and
//! preclinical assays: a-priori ordered hypotheses (1995).

use serde::Serialize;

use super::{BLOCKS_MIN, CONFIDENCE, Level, close, interval};
use crate::stats::sample::Sample;

/// The number of the 99th percentile among the quantiles.
pub(super) const QUANTILE: usize = 1;

/// The rate at which the 99th percentile passes a bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BoundRate {
    pub quantile: f64,
    pub bound_us: f64,
    pub passes: Passes,
    /// Requests per second: where it passes, or the limit that `passes` is about.
    pub rate_per_s: f64,
    /// The lower end of the interval; absent with fewer than three blocks, and where none is known.
    pub low_per_s: Option<f64>,
    /// Its upper end.
    pub high_per_s: Option<f64>,
    pub blocks: usize,
    /// Blocks that did not pass it at the highest rate measured.
    pub beyond: usize,
}

/// Where a bound lies against what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Passes {
    /// Between two rates, in more than half of the blocks.
    Within,
    /// At a rate that is surely no higher.
    AtMost,
    /// At a rate that is surely no lower.
    AtLeast,
}

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

pub(super) fn bounds(blocks: &[Vec<Level>], bounds_us: &[f64]) -> Vec<BoundRate> {
    let fitted: Vec<Vec<Level>> = blocks.iter().map(|levels| monotone(levels)).collect();
    let each = bounds_us.iter();
    each.filter_map(|bound_us| bound(blocks, &fitted, *bound_us))
        .collect()
}

fn bound(blocks: &[Vec<Level>], fitted: &[Vec<Level>], bound_us: f64) -> Option<BoundRate> {
    let passes = fitted.iter().filter_map(|levels| pass(levels, bound_us));
    let passes: Vec<Pass> = passes.collect();
    let count = passes.len();
    let of = |is: fn(&Pass) -> bool| passes.iter().filter(|one| is(one)).count();
    let below = of(|one| matches!(one, Pass::Below(_)));
    let beyond = of(|one| matches!(one, Pass::Beyond(_)));
    let found = |passes, rate_per_s, (low_per_s, high_per_s)| {
        Some(BoundRate {
            quantile: super::QUANTILES[QUANTILE],
            bound_us,
            passes,
            rate_per_s,
            low_per_s,
            high_per_s,
            blocks: count,
            beyond,
        })
    };
    if below + beyond == 0 {
        let at = |rates: fn(&Pass) -> f64| -> Vec<f64> {
            passes.iter().map(|one| rates(one).ln()).collect()
        };
        let low = interval(&at(|one| one.span().0), CONFIDENCE).map(|(low, _)| low);
        let high = interval(&at(|one| one.span().1), CONFIDENCE).map(|(_, high)| high);
        let best = Sample::of(&at(Pass::best))?.mean.exp();
        return found(Passes::Within, best, (low, high));
    }
    let ends = (at_least(blocks, bound_us), at_most(blocks, bound_us));
    if 2 * below.max(beyond) < count && ends != (None, None) {
        let mut rates: Vec<f64> = passes.iter().map(Pass::best).collect();
        rates.sort_by(f64::total_cmp);
        let median = (rates[(count - 1) / 2] + rates[count / 2]) / 2.0;
        let median = median.max(ends.0.unwrap_or(0.0));
        let median = median.min(ends.1.unwrap_or(f64::INFINITY));
        return found(Passes::Within, median, ends);
    }
    match ends {
        (Some(low), None) => found(Passes::AtLeast, low, ends),
        (None, Some(high)) => found(Passes::AtMost, high, ends),
        _ => None,
    }
}

impl Pass {
    fn best(&self) -> f64 {
        match self {
            Pass::Below(rate) | Pass::Beyond(rate) => *rate,
            Pass::At { best, .. } => *best,
        }
    }

    fn span(&self) -> (f64, f64) {
        match self {
            Pass::Below(rate) | Pass::Beyond(rate) => (*rate, *rate),
            Pass::At { low, high, .. } => (*low, *high),
        }
    }
}

/// The rates with the levels of all blocks, ascending.
fn columns(blocks: &[Vec<Level>]) -> Vec<Vec<Level>> {
    let mut all: Vec<Level> = blocks.iter().flatten().copied().collect();
    all.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    let same = |a: &Level, b: &Level| close(a.rate_per_s, b.rate_per_s);
    all.chunk_by(same).map(<[Level]>::to_vec).collect()
}

/// The band of the 99th percentile over blocks; none with an overloaded one.
fn band(column: &[Level]) -> Option<(f64, f64)> {
    let logs: Option<Vec<f64>> = column.iter().map(|one| Some(one.us?.ln())).collect();
    interval(&logs?, CONFIDENCE)
}

/// The highest rate up to which the 99th percentile is surely within the bound.
fn at_least(blocks: &[Vec<Level>], bound_us: f64) -> Option<f64> {
    let columns = columns(blocks).into_iter();
    let within = columns.take_while(|column| {
        let is_settled = column.iter().all(|one| one.settled);
        is_settled && band(column).is_some_and(|(_, high)| high <= bound_us)
    });
    within.last().map(|column| column[0].rate_per_s)
}

/// The lowest rate from which on it is surely above, or the subject overloaded.
fn at_most(blocks: &[Vec<Level>], bound_us: f64) -> Option<f64> {
    let columns = columns(blocks).into_iter().rev();
    let above = columns.take_while(|column| {
        let is_overloaded = column.iter().all(|one| one.us.is_none());
        is_overloaded && column.len() >= BLOCKS_MIN
            || band(column).is_some_and(|(low, _)| low > bound_us)
    });
    above.last().map(|column| column[0].rate_per_s)
}

fn pass(levels: &[Level], bound_us: f64) -> Option<Pass> {
    let first = levels.first()?;
    if first.us.is_none_or(|us| us > bound_us) {
        return Some(Pass::Below(first.rate_per_s));
    }
    let mut settled = first.settled.then_some(first.rate_per_s)?;
    for pair in levels.windows(2) {
        let (Some(before_us), (r0, r1)) = (pair[0].us, (pair[0].rate_per_s, pair[1].rate_per_s))
        else {
            break;
        };
        let passes = match pair[1].us {
            Some(us) if us <= bound_us => {
                if pair[1].settled && pair[0].rate_per_s == settled {
                    settled = r1;
                }
                continue;
            }
            Some(us) => between((r0, before_us), (r1, us), bound_us),
            // Towards what was carried the latency grows without bound: the reciprocal goes to 0.
            None => {
                let carried = pair[1].carried_per_s.unwrap_or(r1).clamp(r0, r1);
                let best = r0 + (carried - r0) * (1.0 - before_us / bound_us);
                Pass::At {
                    best,
                    low: r0,
                    high: r1,
                }
            }
        };
        return Some(match passes {
            Pass::At { best, low, high } if settled < r0 || !pair[1].settled => Pass::At {
                best,
                low: settled.min(low),
                high,
            },
            other => other,
        });
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
                settled: *rate_per_s <= 9_000.0,
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
        assert_eq!(found[0].passes, Passes::AtMost);
        assert_eq!((found[0].rate_per_s, found[0].high_per_s), (1e3, Some(1e3)));
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
    fn what_is_never_reached_has_a_rate_that_it_surely_carries() {
        let short: Vec<Level> = sweep()[..3].to_vec();
        let found = bounds(&vec![short.clone(); 4], &[10e3])[0];
        assert_eq!((found.passes, found.rate_per_s), (Passes::AtLeast, 5e3));
        assert_eq!((found.low_per_s, found.high_per_s), (Some(5e3), None));
        // Blocks that differ by more than the bound is away say less.
        let mut blocks = vec![short.clone(); 4];
        for (block, factor) in blocks.iter_mut().zip([0.5, 0.8, 1.25, 2.0]) {
            block[2].us = block[2].us.map(|us| us * factor);
        }
        let found = bounds(&blocks, &[2e3])[0];
        assert_eq!((found.passes, found.rate_per_s), (Passes::AtLeast, 3e3));
        // And slices that were too short for the queue to settle nothing.
        for block in &mut blocks {
            block[0].settled = false;
        }
        assert_eq!(bounds(&blocks, &[2e3]), []);
        // Where one block of four never passes it, there is a lower end.
        let mut blocks = vec![sweep(); 4];
        blocks[0].truncate(3);
        let found = bounds(&blocks, &[2e3])[0];
        assert_eq!((found.passes, found.beyond), (Passes::Within, 1));
        assert_eq!(found.low_per_s, Some(7e3));
    }

    #[test]
    fn an_interval_reaches_down_to_the_last_rate_at_which_the_queue_settled() {
        let mut levels = sweep();
        for level in &mut levels[5..] {
            level.settled = false;
        }
        let found = bounds(&vec![levels; 4], &[4e3])[0];
        let truth = 10_000.0 - 100_f64.ln() * 1e6 / 4e3;
        assert!((8e3..9e3).contains(&truth) && found.passes == Passes::Within);
        assert!(
            found.low_per_s.is_some_and(|low| low < 8_001.0),
            "{found:?}"
        );
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
