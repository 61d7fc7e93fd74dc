//! What would make a run shorter.

use std::collections::{BTreeMap, BTreeSet};

use readings::{LoadReading, Reading, RunHeader, Trial};
use serde::Serialize;

use super::blocks::{Goal, Spread};
use super::slice_length::ShorterSlices;
use super::{Components, PlanRow, of_block, reading};
use crate::metric::of_trial::would_resolve;
use crate::trial::loops::Loop;
use crate::{Metric, Rules};

/// A share of the variance from which on a component dominates.
const MOST: f64 = 0.5;
/// Other windows are proposed if they save this share of the time.
const SAVED: f64 = 0.2;
/// By how much windows may change.
const TIMES: [f64; 5] = [0.25, 0.5, 2.0, 4.0, 8.0];
/// Shortest window that is proposed: ten slices of the shortest length.
const WINDOW_MIN_S: f64 = 1.0;
/// Duration of a load as a multiple of its measured time: the edges of slices are not measured.
const EDGES: f64 = 1.15;
/// CPUs that other programs may take before it is worth telling.
const OTHERS_CPUS: f64 = 0.1;
const STEAL_SHARE: f64 = 0.02;

/// Something that would help.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Remedy {
    /// Other programs took CPU time in the measured windows.
    QuieterMachine {
        /// CPUs that they took on average, at least.
        others_cpus: f64,
    },
    /// The hypervisor took CPU time.
    Steal {
        /// Share of all CPUs' time.
        share: f64,
    },
    /// The client was the limit in some trials.
    ClientCpus { trials: usize },
    /// The ratio changes slowly over blocks.
    Drift {
        metric: Metric,
        subject: String,
        share: f64,
    },
    /// What most of the variance of a throughput or latency comes from.
    Dominant {
        from: Dominant,
        metric: Metric,
        subject: String,
        share: f64,
    },
    /// Other windows of the metric's loop would settle the margin in less time.
    Windows {
        metric: Metric,
        subject: String,
        /// The present window, and the better one.
        window_s: f64,
        better_window_s: f64,
        /// Blocks with the better window.
        blocks: u32,
        /// The time that they take, and the time with the present window.
        time_s: f64,
        present_time_s: f64,
    },
    /// Shorter slices of the closed loop would settle the margin in less time, by an estimate.
    ShorterSlices {
        metric: Metric,
        subject: String,
        /// The present slices, and the shorter ones.
        slice_s: f64,
        shorter_slice_s: f64,
        /// The estimated share of the variance within blocks that is drift of the machine.
        drift_share: f64,
        /// Blocks with the shorter slices.
        blocks: u32,
        /// The time that they take, and the time with the present slices.
        time_s: f64,
        present_time_s: f64,
    },
}

/// A component of variance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dominant {
    Slices,
    Starts,
}

pub(super) fn remedies(
    rows: &[PlanRow],
    rules: &Rules,
    comparisons: usize,
    header: &RunHeader,
    trials: &[&Trial],
    block_s: Option<f64>,
) -> Vec<Remedy> {
    let mut found = of_machine(trials);
    found.extend(of_client(trials));
    for row in rows {
        let Some(components) = row.spread.map(|spread| spread.components) else {
            continue;
        };
        if components.drift_seen {
            found.push(Remedy::Drift {
                metric: row.metric,
                subject: row.subject.clone(),
                share: components.drift / components.total,
            });
        }
    }
    for pacing in [Loop::Closed, Loop::Open] {
        let in_loop = rows.iter().filter(|row| row.metric.load_loop() == pacing);
        let in_loop: Vec<&PlanRow> = in_loop.collect();
        let Some(row) = with_largest_sd(&in_loop) else {
            continue;
        };
        found.extend(dominant(row));
        let Some(windows) = Windows::of(row, &in_loop, header, trials, block_s) else {
            continue;
        };
        found.extend(windows.better(rules, comparisons));
        if pacing == Loop::Closed {
            let shorter = windows.shorter_slices(rules, comparisons, header, trials);
            found.extend(shorter);
        }
    }
    found
}

/// The row that needs most blocks, of those where slices and starts are told apart.
fn with_largest_sd<'r>(rows: &[&'r PlanRow]) -> Option<&'r PlanRow> {
    let is_sliced = |row: &&&PlanRow| {
        let components = row.spread.map(|spread| spread.components);
        components.is_some_and(|one| one.slices.is_some() && one.total > 0.0)
    };
    // The noise floor's standard deviation is the same for all subjects.
    let variance = |row: &PlanRow| row.spread.map_or(0.0, |spread| spread.components.total);
    let rows = rows.iter().filter(is_sliced).copied();
    rows.max_by(|a, b| variance(a).total_cmp(&variance(b)))
}

fn dominant(row: &PlanRow) -> Option<Remedy> {
    let Components {
        total,
        slices,
        starts,
        ..
    } = row.spread?.components;
    let (from, part) = match slices? {
        slices if slices > starts => (Dominant::Slices, slices),
        _ => (Dominant::Starts, starts),
    };
    (part > MOST * total).then(|| Remedy::Dominant {
        from,
        metric: row.metric,
        subject: row.subject.clone(),
        share: part / total,
    })
}

/// How long windows are, and what they cost.
struct Windows<'r> {
    row: &'r PlanRow,
    window_s: f64,
    block_s: f64,
    /// Time of a block that grows with the window.
    growing_s: f64,
    loads: Vec<&'r LoadReading>,
    quantiles: Vec<f64>,
}

impl<'r> Windows<'r> {
    fn of(
        row: &'r PlanRow,
        in_loop: &[&PlanRow],
        header: &RunHeader,
        trials: &[&'r Trial],
        block_s: Option<f64>,
    ) -> Option<Self> {
        let of_metric = row.metric.load_loop();
        let loads = trials.iter().filter_map(reading);
        let loads: Vec<&LoadReading> = loads.filter_map(|one| of_metric.load(one)).collect();
        let lengths: Vec<f64> = loads.iter().map(|load| load.duration_s).collect();
        let window_s = lengths.iter().sum::<f64>() / lengths.len() as f64;
        let per_block = (header.subjects.len() + 1) * header.conditions.len().max(1);
        let growing_s = per_block as f64 * window_s * EDGES;
        let block_s = block_s?.max(growing_s);
        let quantiles = in_loop.iter().filter_map(|row| row.metric.quantile());
        (window_s > 0.0).then_some(Self {
            row,
            window_s,
            block_s,
            growing_s,
            loads,
            quantiles: quantiles.collect(),
        })
    }

    /// Whether windows that are so many times as long have enough requests for each quantile that the
    /// present ones resolve; others take those of all blocks.
    fn would_resolve(&self, times: f64) -> bool {
        let each = |q: f64, times| self.loads.iter().all(|load| would_resolve(load, q, times));
        let mut quantiles = self.quantiles.iter();
        quantiles.all(|q| each(*q, times) || !each(*q, 1.0))
    }

    /// The blocks that settle the margin if the variance of slices changes by this factor.
    fn blocks(&self, rules: &Rules, comparisons: usize, factor: f64) -> Option<u32> {
        let spread = self.row.spread?;
        let slices = spread.components.slices?;
        let total = spread.components.total;
        // The planned standard deviation may be the noise floor's. Its components are taken to have
        // the same shares.
        let scale = spread.sd / total.sqrt();
        let goal = Goal {
            delta: rules.delta(),
            alpha: 1.0 - rules.confidence,
            comparisons,
        };
        let known = Spread::new(spread.sd, spread.degrees);
        let spread = known.with_sd(scale * (total - slices + slices * factor).sqrt());
        goal.blocks(|chance| spread.expected(chance))
    }

    /// Shorter slices, if they are estimated to save time.
    fn shorter_slices(
        &self,
        rules: &Rules,
        comparisons: usize,
        header: &RunHeader,
        trials: &[&Trial],
    ) -> Option<Remedy> {
        let (condition, subject) = (&self.row.condition, &self.row.subject);
        let blocks: BTreeSet<u32> = trials.iter().map(|one| one.block).collect();
        let readings = blocks
            .into_iter()
            .filter_map(|block| of_block(block, condition, subject, header, trials));
        let readings: Vec<(&Reading, &Reading)> = readings.collect();
        let shorter = ShorterSlices::of(&readings)?;
        let present_time_s = f64::from(self.blocks(rules, comparisons, 1.0)?) * self.block_s;
        let blocks = self.blocks(rules, comparisons, shorter.factor())?;
        let time_s = f64::from(blocks) * self.block_s;
        (time_s < (1.0 - SAVED) * present_time_s).then(|| Remedy::ShorterSlices {
            metric: self.row.metric,
            subject: subject.clone(),
            slice_s: shorter.slice_s,
            shorter_slice_s: shorter.shorter_s,
            drift_share: shorter.drift_share,
            blocks,
            time_s,
            present_time_s,
        })
    }

    /// Other windows, if they save time.
    fn better(&self, rules: &Rules, comparisons: usize) -> Option<Remedy> {
        let at = |times: f64| {
            let blocks = self.blocks(rules, comparisons, 1.0 / times)?;
            let block_s = self.block_s + (times - 1.0) * self.growing_s;
            Some((blocks, f64::from(blocks) * block_s))
        };
        let (_, present_time_s) = at(1.0)?;
        let allowed = TIMES.into_iter().filter(|times| {
            let window_s = times * self.window_s;
            window_s >= WINDOW_MIN_S && (*times >= 1.0 || self.would_resolve(*times))
        });
        let best = allowed
            .filter_map(|times| Some((times, at(times)?)))
            .min_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let (times, (blocks, time_s)) = best?;
        (time_s < (1.0 - SAVED) * present_time_s).then(|| Remedy::Windows {
            metric: self.row.metric,
            subject: self.row.subject.clone(),
            window_s: self.window_s,
            better_window_s: times * self.window_s,
            blocks,
            time_s,
            present_time_s,
        })
    }
}

fn of_client(trials: &[&Trial]) -> Option<Remedy> {
    let is_limit = |trial: &&&Trial| {
        let load = reading(trial).and_then(|one| one.throughput.as_ref());
        load.is_some_and(|load| load.client.saturated)
    };
    let trials = trials.iter().filter(is_limit).count();
    (trials > 0).then_some(Remedy::ClientCpus { trials })
}

/// What others took of this machine's CPUs in closed loops.
fn of_machine(trials: &[&Trial]) -> Vec<Remedy> {
    // Trials of a block share the samples of their servers, so each counts its own windows.
    let (mut others_s, mut steal_s, mut looked_s, mut cpu_time_s) = (0.0, 0.0, 0.0, 0.0);
    for reading in trials.iter().filter_map(reading) {
        let (Some(load), Some(probed)) = (&reading.throughput, &reading.probed) else {
            continue;
        };
        if load.duration_s <= 0.0 || probed.looked_s <= 0.0 {
            continue;
        }
        let servers_s: BTreeMap<&str, f64> = probed
            .servers
            .iter()
            .map(|(name, one)| (name.as_str(), one.user_s + one.system_s))
            .collect();
        let machine = &probed.machine;
        steal_s += machine.steal_s;
        looked_s += probed.looked_s;
        cpu_time_s += probed.looked_s * f64::from(machine.cpus);
        let Some(busy_s) = machine.busy_s else {
            continue;
        };
        // Threads with CPUs of their own poll in vain, and that is busy as well.
        let share = probed.looked_s / load.duration_s;
        let client_s = match load.client.cpus.is_empty() {
            true => load.client.cpu_s * share,
            false => load.client.threads.len() as f64 * probed.looked_s,
        };
        // Where the kernel accounts interrupts apart, what the load causes of them is nobody's.
        let known_s = servers_s.values().sum::<f64>() + client_s + probed.cpu_s + machine.softirq_s;
        others_s += (busy_s - known_s).max(0.0);
    }
    let mut found = Vec::new();
    if looked_s > 0.0 && others_s / looked_s > OTHERS_CPUS {
        found.push(Remedy::QuieterMachine {
            others_cpus: others_s / looked_s,
        });
    }
    if cpu_time_s > 0.0 && steal_s / cpu_time_s > STEAL_SHARE {
        found.push(Remedy::Steal {
            share: steal_s / cpu_time_s,
        });
    }
    found
}
