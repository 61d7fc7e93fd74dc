//! What a pilot says of a longer run: how many blocks settle a difference, where the variance comes
//! from, and what to change first.
//!
//! A run *settles* a difference if, each nine times in ten, its interval excludes zero where the
//! true difference has that size, and lies within that size where there is no difference.

pub mod words;

mod blocks;
mod components;
mod decides;
mod noise;
mod remedy;
mod slice_length;
mod within;

use std::collections::BTreeMap;

use readings::{Condition, Journal, Outcome, Reading, RunHeader, Trial};
use serde::Serialize;

pub use components::Components;
pub use decides::{Decides, PlannedRun};
pub use noise::{Noise, NoiseFrom};
pub use remedy::{Dominant, Remedy};

use crate::comparison::compare::comparisons;
use crate::comparison::draft::in_run;
use crate::trial::cells::Cells;
use crate::{Comparison, FEWEST_BLOCKS, Metric, NoiseFloor, Rules, latest};
pub(crate) use blocks::Spread;

/// The differences that are planned for, besides the margin.
const DIFFERENCES: [f64; 3] = [0.01, 0.03, 0.10];

/// What a pilot says of a longer run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanAdvice {
    pub pilot_blocks: usize,
    /// Time of a block; absent where it was neither measured nor estimated.
    pub block_s: Option<f64>,
    /// Whether that was measured, and not estimated from the experiment.
    pub block_measured: bool,
    pub matters: f64,
    pub rows: Vec<PlanRow>,
    /// What would help, the most effective first.
    pub remedies: Vec<Remedy>,
}

/// What a comparison needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanRow {
    pub condition: Condition,
    pub metric: Metric,
    pub subject: String,
    /// Blocks of the pilot that could be used.
    pub blocks: usize,
    /// What is known of the spread; absent with fewer than three blocks.
    pub spread: Option<PlanSpread>,
    /// By difference, ascending; empty without a spread.
    pub targets: Vec<Target>,
}

/// The spread of the log ratios over blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PlanSpread {
    /// The standard deviation that the plan uses (0.03 is about 3%): the larger of the comparison's
    /// and the noise floor's.
    pub sd: f64,
    /// Whether `sd` is the noise floor's.
    pub from_noise_floor: bool,
    /// Degrees of freedom of `sd`.
    pub degrees: f64,
    /// Ends of the 80% interval of the true one, by the chi-square distribution.
    pub sd_low: f64,
    pub sd_high: f64,
    pub components: Components,
}

/// The blocks that settle a difference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Target {
    /// As a fraction: 0.01 is 1%.
    pub difference: f64,
    /// Whether it is the smallest one that matters.
    pub is_matters: bool,
    /// Absent where it takes more than [`MOST_BLOCKS`].
    pub needed: Option<Needed>,
}

/// How many blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Needed {
    /// Enough nine times in ten, with the uncertainty of the pilot's standard deviation taken into
    /// account: more than the standard deviation alone would ask for.
    pub blocks: u32,
    /// Enough nine times in ten if the true standard deviation is at the low end.
    pub low: u32,
    /// The same at the high end; absent where that is more than [`MOST_BLOCKS`].
    pub high: Option<u32>,
    pub time_s: Option<f64>,
}

/// More blocks than this are not planned.
pub const MOST_BLOCKS: u32 = 1000;

/// What a pilot says of a longer run like it. `estimated_block_s` is used where the journal does
/// not tell how long a block takes.
pub fn plan(journal: &Journal, estimated_block_s: Option<f64>) -> PlanAdvice {
    let journal = &*journal.by_load();
    let header = &journal.header;
    let trials = latest(header, journal.trials());
    let measured_s = block_s(&trials);
    let block_s = measured_s.or(estimated_block_s);
    let rules = Rules::of(header);
    let cells = Cells::of(header, journal.trials());
    let (floors, compared) = in_run(&rules, &cells, |run| {
        (run.floors.to_vec(), comparisons(run).0)
    });
    let count = compared.len();
    let rows: Vec<PlanRow> = compared
        .iter()
        .map(|one| {
            let floor_sd = floor_sd(&floors, one);
            row(one, floor_sd, &rules, count, header, &trials, block_s)
        })
        .collect();
    let remedies = remedy::remedies(&rows, &rules, count, header, &trials, block_s);
    PlanAdvice {
        pilot_blocks: cells.blocks().0 as usize,
        block_s,
        block_measured: measured_s.is_some(),
        matters: header.matters,
        rows,
        remedies,
    }
}

/// The standard deviation of the log ratios of the baseline against itself, and its degrees of
/// freedom.
///
/// A pilot has few blocks, so a comparison's own standard deviation often misses disturbances of the
/// machine. The baseline's second copy may have caught them.
fn floor_sd(floors: &[NoiseFloor], comparison: &Comparison) -> Option<(f64, f64)> {
    // The floor of figures of events is a difference, not a ratio.
    if comparison.metric.is_of_events() {
        return None;
    }
    let is_it = |floor: &&NoiseFloor| {
        floor.condition == comparison.condition && floor.metric == comparison.metric
    };
    let floor = floors.iter().find(is_it)?;
    if floor.by_block.len() < FEWEST_BLOCKS {
        return None;
    }
    let logs: Vec<f64> = floor.by_block.iter().map(|one| one.ratio.ln()).collect();
    let sd = Components::of(&logs, None).total.sqrt();
    Some((sd, logs.len() as f64 - 1.0))
}

fn row(
    comparison: &Comparison,
    floor_sd: Option<(f64, f64)>,
    rules: &Rules,
    comparisons: usize,
    header: &RunHeader,
    trials: &[&Trial],
    block_s: Option<f64>,
) -> PlanRow {
    let ratios: BTreeMap<u32, f64> = comparison
        .by_block
        .iter()
        .map(|one| (one.block, one.ratio.ln()))
        .collect();
    let mut row = PlanRow {
        condition: comparison.condition.clone(),
        metric: comparison.metric,
        subject: comparison.subject.clone(),
        blocks: ratios.len(),
        spread: None,
        targets: Vec::new(),
    };
    if ratios.len() < FEWEST_BLOCKS {
        return row;
    }
    let logs: Vec<f64> = ratios.values().copied().collect();
    let within = ratios.keys().filter_map(|block| {
        let (condition, subject) = (&comparison.condition, &comparison.subject);
        let (ours, theirs) = of_block(*block, condition, subject, header, trials)?;
        within_block(comparison.metric, ours, theirs)
    });
    let within: Vec<f64> = within.collect();
    let slices = (!within.is_empty()).then(|| within.iter().sum::<f64>() / within.len() as f64);
    let components = Components::of(&logs, slices);
    let own_sd = (components.total.sqrt(), logs.len() as f64 - 1.0);
    let floor_sd = floor_sd.filter(|(sd, _)| *sd > own_sd.0);
    let (sd, degrees) = floor_sd.unwrap_or(own_sd);
    let spread = Spread::new(sd, degrees);
    let (sd_low, sd_high) = spread.range;
    row.spread = Some(PlanSpread {
        sd: spread.sd,
        from_noise_floor: floor_sd.is_some(),
        degrees,
        sd_low,
        sd_high,
        components,
    });
    let mut differences: Vec<f64> = DIFFERENCES.to_vec();
    if !differences.iter().any(|one| is_same(*one, rules.matters)) {
        differences.push(rules.matters);
    }
    differences.sort_by(f64::total_cmp);
    let target = |difference: f64| Target {
        difference,
        is_matters: is_same(difference, rules.matters),
        needed: needed(&spread, difference, rules, comparisons, block_s),
    };
    row.targets = differences.into_iter().map(target).collect();
    row
}

/// What was measured of a subject and of the baseline in a block.
fn of_block<'t>(
    block: u32,
    condition: &Condition,
    subject: &str,
    header: &RunHeader,
    trials: &[&'t Trial],
) -> Option<(&'t Reading, &'t Reading)> {
    let of = |subject: &str| {
        let is_it = |one: &&&'t Trial| {
            one.block == block
                && one.condition == *condition
                && one.subject == subject
                && !one.baseline_copy
        };
        reading(trials.iter().find(is_it)?)
    };
    Some((of(subject)?, of(&header.baseline)?))
}

/// The variance of a block's log ratio within the block; nothing where slices do not tell.
fn within_block(metric: Metric, ours: &Reading, theirs: &Reading) -> Option<f64> {
    match metric.quantile() {
        Some(quantile) => {
            let (ours, theirs) = (ours.latency.as_ref()?, theirs.latency.as_ref()?);
            within::of_quantile(ours, theirs, quantile)
        }
        None if metric == Metric::RequestsPerS => {
            let (ours, theirs) = (ours.throughput.as_ref()?, theirs.throughput.as_ref()?);
            within::of_throughput(&ours.slices, &theirs.slices)
        }
        None => None,
    }
}

fn needed(
    spread: &Spread,
    difference: f64,
    rules: &Rules,
    comparisons: usize,
    block_s: Option<f64>,
) -> Option<Needed> {
    let goal = blocks::Goal {
        delta: difference.ln_1p(),
        alpha: 1.0 - rules.confidence,
        comparisons,
    };
    let blocks = goal.blocks(|chance| spread.expected(chance))?;
    let (sd_low, sd_high) = spread.range;
    Some(Needed {
        blocks,
        low: goal.blocks(|chance| chance(sd_low)).unwrap_or(blocks),
        high: goal.blocks(|chance| chance(sd_high)),
        time_s: block_s.map(|block_s| block_s * f64::from(blocks)),
    })
}

/// The blocks after which a figure that lies `distance` from a bound, as a log ratio, is found beyond
/// it at the one-sided error rate `alpha`.
pub(crate) fn one_sided_needed(
    spread: &Spread,
    distance: f64,
    alpha: f64,
    block_s: Option<f64>,
) -> Option<Needed> {
    let goal = blocks::OneSided { distance, alpha };
    let blocks = goal.blocks(|chance| spread.expected(chance))?;
    let (sd_low, sd_high) = spread.range;
    Some(Needed {
        blocks,
        low: goal.blocks(|chance| chance(sd_low)).unwrap_or(blocks),
        high: goal.blocks(|chance| chance(sd_high)),
        time_s: block_s.map(|block_s| block_s * f64::from(blocks)),
    })
}

fn is_same(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

pub(crate) fn reading<'a>(trial: &&'a Trial) -> Option<&'a Reading> {
    match &trial.outcome {
        Outcome::Done(reading) => Some(reading),
        Outcome::Failed { .. } => None,
    }
}

/// The median time from the first sample of a block to that of the next one.
pub(crate) fn block_s(trials: &[&Trial]) -> Option<f64> {
    let mut begins: BTreeMap<u32, f64> = BTreeMap::new();
    for trial in trials {
        let reading = reading(trial);
        let probed = reading.and_then(|one| one.probed.as_ref().or(one.latency_probed.as_ref()));
        let Some(from_s) = probed.map(|one| one.from_unix_s).filter(|s| *s > 0.0) else {
            continue;
        };
        let begin = begins.entry(trial.block).or_insert(from_s);
        *begin = begin.min(from_s);
    }
    let begins: Vec<(u32, f64)> = begins.into_iter().collect();
    let mut lengths: Vec<f64> = begins
        .windows(2)
        .filter(|pair| pair[1].0 == pair[0].0 + 1)
        .map(|pair| pair[1].1 - pair[0].1)
        .filter(|length| *length > 0.0)
        .collect();
    lengths.sort_by(f64::total_cmp);
    lengths.get(lengths.len() / 2).copied()
}

#[cfg(test)]
mod tests;
