//! The shift function: how much a subject's latency differs at each quantile, not at the median
//! alone.
//!
//! Each block gives a log ratio, of its own quantiles or of what it contributes to those of all
//! answers, and the interval over blocks is that of any comparison. The intervals hold one by one, not all of them together; no verdict is taken from
//! them.
//!
//! Source: K. A. Doksum, Empirical probability plots and statistical inference for nonlinear models
//! in the two-sample case, Annals of Statistics 2 (1974).

use readings::{Condition, LoadReading};
use serde::Serialize;

use crate::Rules;
use crate::metric::quantile::log_ratios;
use crate::stats::sample::Sample;
use crate::trial::cells::{Cell, Cells};
use crate::trial::lag::late_at;
use crate::trial::loops::Loop;

/// The quantiles that are compared.
pub const SHIFT_QUANTILES: [f64; 8] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

/// A subject's latency in the open loop against the baseline's, quantile by quantile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shift {
    pub condition: Condition,
    pub subject: String,
    pub baseline: String,
    /// Ascending; a quantile that the answers do not resolve is absent.
    pub quantiles: Vec<ShiftAt>,
}

/// The difference at one quantile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShiftAt {
    /// The quantile, 0 to 1.
    pub quantile: f64,
    /// The ratio, subject over baseline: as in a comparison.
    pub ratio: f64,
    /// Lower end of the interval of the ratio.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    pub blocks: usize,
}

/// The shift functions of a run: of every subject whose latency was measured in an open loop by the
/// engine's clock.
pub(crate) fn shifts(rules: &Rules, cells: &Cells<'_>) -> Vec<Shift> {
    let mut found = Vec::new();
    for condition in &cells.conditions {
        let baseline = cells.judged(Loop::Open, condition, &rules.baseline, false);
        for subject in cells.subjects.iter().filter(|s| **s != rules.baseline) {
            let ours = cells.judged(Loop::Open, condition, subject, false);
            let at = |quantile: f64| {
                let both = ours.iter().filter_map(|(block, ours)| {
                    let theirs = baseline.get(block)?;
                    Some((load(ours, quantile)?, load(theirs, quantile)?))
                });
                let (ours, theirs) = both.unzip();
                let sample = Sample::of(&log_ratios(quantile, ours, theirs)?)?;
                let (low, high) = sample.interval(rules.look_confidence())?;
                Some(ShiftAt {
                    quantile,
                    ratio: sample.mean.exp(),
                    low: low.exp(),
                    high: high.exp(),
                    blocks: sample.blocks,
                })
            };
            let quantiles: Vec<ShiftAt> = SHIFT_QUANTILES.into_iter().filter_map(at).collect();
            if !quantiles.is_empty() {
                found.push(Shift {
                    condition: condition.clone(),
                    subject: subject.clone(),
                    baseline: rules.baseline.clone(),
                    quantiles,
                });
            }
        }
    }
    found
}

/// A trial's open loop, where its latency at a quantile can be used.
fn load<'a>(cell: &Cell<'a>, quantile: f64) -> Option<&'a LoadReading> {
    let reading = cell.reading()?;
    if reading.driver.is_some() || reading.events.is_some() {
        return None;
    }
    let load = cell.latency()?;
    let is_usable = load.response.count() > 0 && late_at(load, quantile).is_none();
    is_usable.then_some(load)
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{analyse, done, header, open, trial};
    use readings::{LoadReading, Trial};

    /// A loop whose answers take 100 to 200 us, and the slowest tenth `tail` times as long.
    fn spread(block: u32, tail: f64) -> LoadReading {
        let mut load = open(1000.0, 100.0);
        load.response.clear();
        for i in 0..20_000_u32 {
            let us = 100.0 + f64::from(i) / 200.0 + f64::from(block % 3);
            let factor = if i >= 18_000 { tail } else { 1.0 };
            load.response.record_ns((us * factor * 1e3) as u64);
        }
        load
    }

    #[test]
    fn a_subject_that_is_slower_in_the_tail_only_shows_it_there() {
        let mut trials: Vec<Trial> = Vec::new();
        for block in 1..=6 {
            let of = |tail| done(None, Some(spread(block, tail)));
            trials.push(trial(block, "direct", false, of(1.0)));
            trials.push(trial(block, "balance", false, of(2.0)));
        }
        let analysis = analyse(&header(6), &trials);
        let [shift] = &analysis.shifts[..] else {
            panic!("{analysis:?}");
        };
        let at = |q: f64| shift.quantiles.iter().find(|at| at.quantile == q);
        let middle = at(0.5).unwrap();
        assert!(middle.low < 1.0 && 1.0 < middle.high, "{middle:?}");
        let tail = at(0.95).unwrap();
        assert!(tail.low > 1.9 && tail.high < 2.1, "{tail:?}");
        assert_eq!(tail.blocks, 6);
        // No block's 20,000 answers resolve it, and the 120,000 of all do.
        assert!(at(0.999).unwrap().low > 1.9);
    }
}
