//! Shares of failed requests against a bound.
//!
//! As in comparisons of failures, two tests have to agree: the exact test of the count, which takes
//! failures as independent, and Student's t test of the shares of blocks, since failures come in
//! clusters. Failures of repeated attempts count too.

use readings::{Condition, LoadReading, Outcome};

use super::tests_of_bound::{BoundSpread, BoundTest};
use crate::comparison::events::{Side, poisson_at_most};
use crate::stats::student::{t_below, t_quantile};
use crate::trial::cells::{Cell, Cells};
use crate::trial::loops::Loop;

/// The failed requests of a subject by block, in the measured windows of all attempts.
pub(super) fn by_block(cells: &Cells<'_>, condition: &Condition, subject: &str) -> Vec<Side> {
    let attempts = cells.attempts(Loop::Closed, condition, subject, false);
    let of_block = |cells: &Vec<&Cell<'_>>| {
        let mut sum = Side::default();
        cells.iter().for_each(|cell| sum.add(of_cell(cell)));
        sum
    };
    let blocks = attempts.values().map(of_block);
    blocks.filter(|side| side.requests > 0).collect()
}

fn of_cell(cell: &Cell<'_>) -> Side {
    let Outcome::Done(reading) = &cell.trial.outcome else {
        return Side::default();
    };
    if let Some(events) = &reading.events {
        return Side {
            failed: events.failed,
            requests: events.requests.max(events.failed),
        };
    }
    let of_load = |load: &LoadReading| {
        let failed = load.errors.total();
        Side {
            failed,
            requests: load.requests.saturating_add(failed),
        }
    };
    let mut sum = Side::default();
    for load in [&reading.throughput, &reading.latency]
        .into_iter()
        .flatten()
    {
        sum.add(of_load(load));
    }
    sum
}

/// How many blocks like these, all without a failure, show that the share is below the bound: with no
/// failure in n requests it is at most ln(1/alpha)/n, which is the rule of three at 95%.
fn clean_blocks(sum: Side, blocks: usize, bound: f64, alpha: f64) -> u32 {
    let per_block = sum.requests as f64 / blocks as f64;
    let needed = (1.0 / alpha).ln() / (bound * per_block);
    // `as` saturates.
    needed.floor() as u32 + 1
}

/// The tests of a share against a bound, over at least two blocks.
pub(super) fn test(blocks: &[Side], bound: f64, alpha: f64) -> Option<BoundTest> {
    if blocks.len() < 2 {
        return None;
    }
    let mut sum = Side::default();
    blocks.iter().for_each(|side| sum.add(*side));
    let (share, count) = (sum.share(), blocks.len() as f64);
    let mean = blocks.iter().map(|side| side.share()).sum::<f64>() / count;
    let squares = blocks.iter().map(|side| (side.share() - mean).powi(2));
    let between = squares.sum::<f64>() / (count - 1.0) / count;
    let independent = bound * (1.0 - bound) / sum.requests as f64;
    let error = between.max(independent).sqrt();
    let degrees = count - 1.0;
    // t is negative below the bound.
    let t = (share - bound) / error;
    let expected = bound * sum.requests as f64;
    let at_least = match sum.failed {
        0 => 1.0,
        failed => 1.0 - poisson_at_most(failed - 1, expected),
    };
    let at_most = poisson_at_most(sum.failed, expected);
    let (low, high) = sum.limits(1.0 - 2.0 * alpha);
    let half = t_quantile(1.0 - alpha, degrees) * between.max(sum.variance()).sqrt();
    Some(BoundTest {
        value: share,
        low: Some(low.min(share - half).max(0.0)),
        high: Some(high.max(share + half).min(1.0)),
        p_breach: at_least.max(1.0 - t_below(t, degrees)),
        // Where nothing failed the blocks show no spread, and the exact test is all there is.
        p_pass: match sum.failed {
            0 => at_most,
            _ => at_most.max(t_below(t, degrees)),
        },
        not_breached: None,
        not_passed: None,
        spread: BoundSpread {
            distance: bound - share,
            sd: error * count.sqrt(),
            degrees,
            blocks: blocks.len(),
            clean_blocks: (sum.failed == 0).then(|| clean_blocks(sum, blocks.len(), bound, alpha)),
        },
    })
}
