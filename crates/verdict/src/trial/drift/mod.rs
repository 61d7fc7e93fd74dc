//! Subjects whose rate still changed while it was measured: a server that compiles its code while it
//! runs answers faster and faster, one whose memory fills slower and slower.
//!
//! Each block compares the last third of a subject's closed-loop slices with the first, and the blocks
//! are the sample. The spread of few blocks is uncertain, so it is averaged with that of the slices,
//! which has the weight of a few blocks and is never taken as smaller (moderated variances: G. K. Smyth,
//! Linear models and empirical Bayes methods, Statistical Applications in Genetics and Molecular
//! Biology 3 (2004)). The noise of slices is taken from how neighbours differ, so that a change over
//! the block is no part of it.

pub(crate) mod words;

#[cfg(test)]
mod tests;

use readings::Slice;

use crate::stats::sample::FEWEST_BLOCKS;
use crate::stats::student::t_quantile;
use crate::trial::cells::Cell;

/// Fewer slices than this are not judged: a third has two at least.
pub(crate) const SLICES_MIN: usize = 6;
/// The chance that a subject of a steady run is reported.
const CHANCE: f64 = 0.05;
/// The spread of slices has the weight of so many blocks.
const SLICES_COUNT_AS: f64 = 4.0;
/// How often servers that are all steady are warmed up for longer, for one check.
const CHANCE_OF_CHECK: f64 = 0.1;
/// A server whose rate grows by less within a check is warm; the logarithm of a ratio.
const WARM: f64 = 0.05;

/// A subject whose rate changed while it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The rate of a block's last third of slices over that of its first, geometric mean of the
    /// blocks.
    pub late_over_early: f64,
    /// The 95% interval of that, by the blocks.
    pub interval: (f64, f64),
    pub blocks: usize,
}

/// What one block shows.
#[derive(Clone, Copy, Debug)]
struct Change {
    /// The logarithm of the late rate over the early one.
    log: f64,
    /// Its variance, by the noise of the slices.
    variance: f64,
    slices: usize,
}

impl Change {
    /// Nothing of fewer than [`SLICES_MIN`] slices, or where one of them has no answer.
    fn of(slices: &[Slice]) -> Option<Self> {
        let logs: Vec<f64> = slices.iter().map(|s| s.requests_per_s().ln()).collect();
        if logs.len() < SLICES_MIN || !logs.iter().all(|log| log.is_finite()) {
            return None;
        }
        let third = logs.len() / 3;
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let squares: f64 = logs.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum();
        let noise = squares / (2.0 * (logs.len() as f64 - 1.0));
        Some(Self {
            log: mean(&logs[logs.len() - third..]) - mean(&logs[..third]),
            variance: noise * 2.0 / third as f64,
            slices: logs.len(),
        })
    }
}

/// The subject's change over its closed loops, if there is one beyond chance and twice the margin: the
/// figure is off by about half of it. `searched` is how many subjects are searched for one.
pub(crate) fn drift(trials: &[&Cell<'_>], matters_log: f64, searched: usize) -> Option<Drift> {
    let loads = trials.iter().filter_map(|cell| cell.throughput());
    let changes: Vec<Change> = loads.filter_map(|load| Change::of(&load.slices)).collect();
    beyond_chance(&changes, matters_log, searched)
}

fn beyond_chance(changes: &[Change], matters_log: f64, searched: usize) -> Option<Drift> {
    if changes.len() < FEWEST_BLOCKS {
        return None;
    }
    let n = changes.len() as f64;
    let mean = changes.iter().map(|one| one.log).sum::<f64>() / n;
    let of_slices = changes.iter().map(|one| one.variance).sum::<f64>() / n;
    let squares: f64 = changes.iter().map(|one| (one.log - mean).powi(2)).sum();
    let of_blocks = squares / (n - 1.0);
    let degrees = n - 1.0 + SLICES_COUNT_AS;
    let variance = (squares + SLICES_COUNT_AS * of_slices.max(of_blocks)) / degrees;
    let error = (variance / n).sqrt();
    let t = |chance: f64| t_quantile(1.0 - chance / 2.0, degrees);
    let is_change = mean.abs() > t(CHANCE / searched.max(1) as f64) * error;
    let half = t(0.05) * error;
    (is_change && mean.abs() > 2.0 * matters_log).then(|| Drift {
        late_over_early: mean.exp(),
        interval: ((mean - half).exp(), (mean + half).exp()),
        blocks: changes.len(),
    })
}

/// By what factor a server became faster within these slices, if it did: it is not warm yet. Of one
/// block alone this is a guess, good enough to warm up for longer. `looked_at` is how many servers are
/// checked together.
pub fn still_warming(slices: &[Slice], looked_at: usize) -> Option<f64> {
    let change = Change::of(slices)?;
    // Neighbours that differ tell two thirds of what independent values would.
    let degrees = (change.slices as f64 - 1.0) * 2.0 / 3.0;
    let chance = CHANCE_OF_CHECK / looked_at.max(1) as f64;
    let limit = t_quantile(1.0 - chance, degrees) * change.variance.sqrt();
    (change.log > limit && change.log > WARM).then(|| change.log.exp())
}

/// Whether subjects with so many slices in so many blocks are judged.
pub(crate) fn is_checked(slices: usize, blocks: usize) -> bool {
    slices >= SLICES_MIN && blocks >= FEWEST_BLOCKS
}
