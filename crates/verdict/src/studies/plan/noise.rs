//! How much a block's log ratio varies on a machine, by what its windows average out and what they do
//! not.

use std::collections::BTreeMap;

use readings::{Condition, RunHeader, Trial, trials_by_load};

use super::{Components, of_block, within_block};
use crate::comparison::compare::comparisons;
use crate::comparison::draft::in_run;
use crate::trial::cells::Cells;
use crate::{BlockRatio, Metric, Rules, latest};

/// The spread of a machine that nothing is known of: standard deviations of starts, and of the slices
/// of a second. On two CPUs beside other work, runs of the catalogue had 2 to 8% in all.
const ASSUMED_STARTS: f64 = 0.03;
const ASSUMED_SLICES: f64 = 0.04;
/// The correlation of the variances of two log ratios that share their baseline: the square of that of
/// the log ratios, a half.
const SHARED_BASELINE: f64 = 0.25;
/// What is assumed weighs as much as so many degrees of freedom beside a few blocks.
const ASSUMED_DEGREES: f64 = 2.0;
/// Fewer blocks have no spread.
const BLOCKS_MIN: usize = 2;

/// How much the log ratio of a block varies: variances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// What a block has in common, such as what its start does. A longer window leaves it.
    pub starts: f64,
    /// Of the slices of a second; those of a window fall with its length.
    pub slices_of_second: f64,
    /// How many degrees of freedom are behind them; absent where they are assumed.
    pub degrees: Option<f64>,
    pub from: NoiseFrom,
}

/// Where a spread was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseFrom {
    /// Nothing was measured.
    Assumed,
    /// The first blocks of the run itself.
    Pilot { blocks: u32 },
    /// So many earlier runs on this machine, of the same experiment or of others.
    FormerRuns { runs: usize, are_same: bool },
}

impl Noise {
    /// What is assumed before anything was measured.
    pub fn assumed() -> Self {
        Self {
            starts: ASSUMED_STARTS * ASSUMED_STARTS,
            slices_of_second: ASSUMED_SLICES * ASSUMED_SLICES,
            degrees: None,
            from: NoiseFrom::Assumed,
        }
    }

    /// Of the metric that a plan is made for: over all subjects and conditions, and
    /// the baseline against itself. Nothing from fewer than two blocks.
    pub fn of(header: &RunHeader, trials: &[Trial]) -> Option<Self> {
        match trials_by_load(header, trials) {
            Some((header, trials)) => Self::of_rows(&header, &trials),
            None => Self::of_rows(header, trials),
        }
    }

    fn of_rows(header: &RunHeader, trials: &[Trial]) -> Option<Self> {
        let rules = Rules::of(header);
        let cells = Cells::of(header, trials);
        let rows = latest(header, trials);
        let (floors, compared) = in_run(&rules, &cells, |run| {
            (run.floors.to_vec(), comparisons(run).0)
        });
        let metric = planned_metric(rows.iter().any(|one| has_closed_loop(one)));
        let mut pooled: BTreeMap<&Condition, Pooled> = BTreeMap::new();
        for one in compared.iter().filter(|one| one.metric == metric) {
            let of = pooled.entry(&one.condition).or_default();
            of.add(&one.by_block);
            for block in one.by_block.iter().map(|one| one.block) {
                let both = of_block(block, &one.condition, &one.subject, header, &rows);
                let Some((ours, theirs)) = both else { continue };
                let load = match metric {
                    Metric::RequestsPerS => &ours.throughput,
                    _ => &ours.latency,
                };
                let window_s = load.as_ref().map_or(0.0, |load| load.duration_s);
                if let Some(variance) = within_block(metric, ours, theirs) {
                    of.slices.push((variance, window_s));
                }
            }
        }
        for one in floors.iter().filter(|one| one.metric == metric) {
            pooled.entry(&one.condition).or_default().add(&one.by_block);
        }
        let blocks = cells.blocks().0;
        pool(pooled.into_values(), NoiseFrom::Pilot { blocks })
    }

    /// Drawn towards what is assumed: two blocks alone estimate a deviation within a factor of ten.
    pub fn beside_assumed(self) -> Self {
        let own = self.degrees.unwrap_or(0.0);
        let assumed = Self::assumed();
        let mean = |own_variance: f64, assumed: f64| {
            (own * own_variance + ASSUMED_DEGREES * assumed) / (own + ASSUMED_DEGREES)
        };
        Self {
            starts: mean(self.starts, assumed.starts),
            slices_of_second: mean(self.slices_of_second, assumed.slices_of_second),
            degrees: Some(own + ASSUMED_DEGREES),
            from: self.from,
        }
    }

    /// The mean of several runs, each weighed by its degrees of freedom; nothing of none.
    pub fn of_former_runs(runs: &[Self], are_same: bool) -> Option<Self> {
        let degrees: f64 = runs.iter().filter_map(|run| run.degrees).sum();
        let mean = |of: fn(&Self) -> f64| {
            let sum = runs.iter().map(|run| of(run) * run.degrees.unwrap_or(0.0));
            sum.sum::<f64>() / degrees
        };
        (degrees > 0.0).then(|| Self {
            starts: mean(|run| run.starts),
            slices_of_second: mean(|run| run.slices_of_second),
            degrees: Some(degrees),
            from: NoiseFrom::FormerRuns {
                runs: runs.len(),
                are_same,
            },
        })
    }

    /// The standard deviation of a block's log ratio with this window.
    pub fn sd(&self, window_s: f64) -> f64 {
        (self.starts + self.slices_of_second / window_s.max(1e-3)).sqrt()
    }
}

/// The metric that plans are made for: the throughput; without closed loops the median latency.
pub(super) fn planned_metric(has_closed_loop: bool) -> Metric {
    match has_closed_loop {
        true => Metric::RequestsPerS,
        false => Metric::LatencyUsP50,
    }
}

fn has_closed_loop(trial: &Trial) -> bool {
    trial
        .reading()
        .is_some_and(|reading| reading.throughput.is_some())
}

/// The spreads of the comparisons of one condition.
#[derive(Default)]
struct Pooled {
    /// Variances over blocks, and their degrees of freedom.
    spreads: Vec<(f64, f64)>,
    /// Variances within blocks, with their windows.
    slices: Vec<(f64, f64)>,
}

impl Pooled {
    /// Adds the spread of a comparison over its blocks.
    fn add(&mut self, by_block: &[BlockRatio]) {
        if by_block.len() >= BLOCKS_MIN {
            let logs: Vec<f64> = by_block.iter().map(|one| one.ratio.ln()).collect();
            let total = Components::of(&logs, None).total;
            self.spreads.push((total, logs.len() as f64 - 1.0));
        }
    }

    /// Degrees of freedom of the mean of variances of which each pair shares the baseline.
    fn degrees(&self) -> f64 {
        let sum: f64 = self.spreads.iter().map(|(_, degrees)| degrees).sum();
        let others = self.spreads.len().saturating_sub(1) as f64;
        sum / (1.0 + SHARED_BASELINE * others)
    }
}

fn pool(conditions: impl Iterator<Item = Pooled>, from: NoiseFrom) -> Option<Noise> {
    let (mut degrees, mut weights, mut total) = (0.0, 0.0, 0.0);
    let (mut slices, mut slices_of_second, mut of_slices) = (0.0, 0.0, 0.0);
    for one in conditions {
        degrees += one.degrees();
        for (variance, weight) in &one.spreads {
            total += variance * weight;
            weights += weight;
        }
        for (variance, window_s) in &one.slices {
            slices += variance;
            slices_of_second += variance * window_s;
            of_slices += 1.0;
        }
    }
    if weights <= 0.0 {
        return None;
    }
    let total = total / weights;
    let (slices, slices_of_second) = match of_slices > 0.0 {
        true => (slices / of_slices, slices_of_second / of_slices),
        false => (0.0, 0.0),
    };
    Some(Noise {
        starts: (total - slices).max(0.0),
        slices_of_second,
        degrees: Some(degrees),
        from,
    })
}
