//! One subject's figures, block by block.

use std::collections::BTreeMap;

use crate::metric::of_trial::{Datum, datum, load_of, offered};
use crate::stats::sample::Sample;
use crate::trial::cells::{Attempts, Cell};
use crate::{Metric, Reason};

/// A subject's figures of a metric under conditions that cannot differ in it.
#[derive(Debug, Default)]
pub(crate) struct Alone {
    /// The logarithms of each block's figures, one for each condition.
    logs: BTreeMap<u32, Vec<f64>>,
    /// Trials that were tried.
    pub tried: usize,
    /// Trials of `tried` that cannot be used.
    pub unusable: usize,
    /// The first reason why.
    pub reason: Option<Reason>,
    /// Trials whose quantile is not resolved.
    pub unresolved: usize,
    /// Trials in which the client was the bottleneck.
    pub client_limited: usize,
    /// The open loop's rate, if it was the same for all.
    pub rate_per_s: Option<f64>,
    half_step: f64,
}

impl Alone {
    /// Of the attempts at a block, the last usable one counts, or else the last.
    pub fn of<'c, 'a: 'c>(
        metric: Metric,
        attempts: impl Iterator<Item = Attempts<'c, 'a>>,
    ) -> Self {
        let mut alone = Alone::default();
        let mut rates = Vec::new();
        for (block, cells) in attempts.flatten() {
            let is_usable = |cell: &&&Cell<'_>| matches!(datum(cell, metric), Datum::Value(_));
            let chosen = cells.iter().rev().find(is_usable).or(cells.last());
            if let Some(cell) = chosen {
                alone.add(metric, block, cell, &mut rates);
            }
        }
        let same = |first: f64| {
            rates
                .iter()
                .all(|rate: &f64| (rate / first - 1.0).abs() < 0.005)
        };
        alone.rate_per_s = rates.first().copied().filter(|first| same(*first));
        alone
    }

    fn add(&mut self, metric: Metric, block: u32, cell: &Cell<'_>, rates: &mut Vec<f64>) {
        match datum(cell, metric) {
            Datum::NotMeasured => return,
            Datum::Unresolved => self.unresolved += 1,
            Datum::Unusable(reason) => {
                self.unusable += 1;
                self.reason.get_or_insert(reason);
            }
            Datum::Value(value) => {
                self.logs.entry(block).or_default().push(value.value.ln());
                self.half_step = self.half_step.max(value.half_log());
                let load = load_of(cell, metric);
                self.client_limited += usize::from(load.is_some_and(|load| load.client.saturated));
                rates.extend(load.and_then(offered));
            }
        }
        self.tried += 1;
    }

    /// Blocks that can be used.
    pub fn blocks(&self) -> usize {
        self.logs.len()
    }

    /// The logarithms of the figures, summarised. A block counts with the mean of its conditions.
    pub fn sample(&self) -> Option<Sample> {
        let of_block = |logs: &Vec<f64>| logs.iter().sum::<f64>() / logs.len() as f64;
        let logs: Vec<f64> = self.logs.values().map(of_block).collect();
        Some(Sample::of(&logs)?.with_resolution(self.half_step))
    }
}
