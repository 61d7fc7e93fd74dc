//! One subject's figures, block by block.

use std::collections::BTreeMap;

use crate::metric::of_trial::{Datum, datum, histograms_of, load_of, offered};
use crate::metric::quantile::QuantileEvidence;
use crate::stats::sample::Sample;
use crate::trial::cells::{Attempts, Cell};
use crate::{Metric, Reason};
use readings::LoadReading;

/// A subject's figures of a metric under conditions that cannot differ in it.
#[derive(Debug, Default)]
pub(crate) struct Alone<'a> {
    /// The logarithms of each block's figures, one for each condition.
    logs: BTreeMap<u32, Vec<f64>>,
    pub tried: usize,
    /// Trials of `tried` that cannot be used.
    pub unusable: usize,
    /// The first reason why.
    pub reason: Option<Reason>,
    /// Trials whose quantile is not resolved, where all of them together do not resolve it either.
    pub unresolved: usize,
    /// All that is known of it then; nothing of an outside driver.
    pub quantile: Option<QuantileEvidence<'a>>,
    /// Trials in which the client was the bottleneck.
    pub client_limited: usize,
    /// The open loop's rate, if it was the same for all.
    pub rate_per_s: Option<f64>,
    half_step: f64,
}

impl<'a> Alone<'a> {
    /// Of the attempts at a block, the last usable one counts, or else the last.
    pub fn of<'c>(metric: Metric, attempts: impl Iterator<Item = Attempts<'c, 'a>>) -> Self
    where
        'a: 'c,
    {
        let mut alone = Alone::default();
        let (mut rates, mut loads) = (Vec::new(), Vec::new());
        for (block, cells) in attempts.flatten() {
            let is_usable = |cell: &&&Cell<'_>| datum(cell, metric).is_usable();
            let chosen = cells.iter().rev().find(is_usable).or(cells.last());
            if let Some(cell) = chosen {
                alone.add(metric, block, cell, &mut rates, &mut loads);
            }
        }
        alone.pool(metric, loads);
        let same = |first: f64| {
            rates
                .iter()
                .all(|rate: &f64| (rate / first - 1.0).abs() < 0.005)
        };
        alone.rate_per_s = rates.first().copied().filter(|first| same(*first));
        alone
    }

    fn add(
        &mut self,
        metric: Metric,
        block: u32,
        cell: &Cell<'a>,
        rates: &mut Vec<f64>,
        loads: &mut Vec<&'a LoadReading>,
    ) {
        let datum = datum(cell, metric);
        self.unresolved += usize::from(matches!(datum, Datum::Unresolved(_)));
        match datum {
            Datum::NotMeasured => return,
            Datum::Unusable(reason) => {
                self.unusable += 1;
                self.reason.get_or_insert(reason);
            }
            Datum::Value(value) | Datum::Unresolved(value) => {
                self.logs.entry(block).or_default().push(value.value.ln());
                self.half_step = self.half_step.max(value.half_log());
                let load = load_of(cell, metric);
                self.client_limited += usize::from(load.is_some_and(|load| load.client.saturated));
                rates.extend(load.and_then(offered));
                loads.extend(histograms_of(cell, metric).filter(|_| metric.quantile().is_some()));
            }
        }
        self.tried += 1;
    }

    /// Takes a quantile that not all blocks resolve from all of them together.
    fn pool(&mut self, metric: Metric, loads: Vec<&'a LoadReading>) {
        let Some(quantile) = metric.quantile().filter(|_| self.unresolved > 0) else {
            return;
        };
        // No two conditions have their latencies in common.
        if loads.len() != self.logs.len() {
            return;
        }
        let evidence = QuantileEvidence::of(quantile, loads);
        if evidence.resolves() {
            let logs = self.logs.values_mut().zip(evidence.contributions());
            logs.for_each(|(logs, contributed)| *logs = vec![contributed]);
            self.unresolved = 0;
        } else {
            self.quantile = Some(evidence);
        }
    }

    /// Blocks that can be used.
    pub fn blocks(&self) -> usize {
        self.logs.len()
    }

    /// The logarithms of the figures, summarised; nothing where they are not resolved. A block counts
    /// with the mean of its conditions.
    pub fn sample(&self) -> Option<Sample> {
        if self.unresolved > 0 {
            return None;
        }
        let of_block = |logs: &Vec<f64>| logs.iter().sum::<f64>() / logs.len() as f64;
        let logs: Vec<f64> = self.logs.values().map(of_block).collect();
        Some(Sample::of(&logs)?.with_resolution(self.half_step))
    }
}
