//! Pairs of subject and baseline, block by block.

use std::collections::BTreeMap;

use readings::{DriverReading, LoadReading, Outcome, Pacing, Quantiles, Slice};

use crate::cells::Cell;
use crate::compare::{BlockRatio, Metric};
use crate::events::{self, Noticed};
use crate::sample::Sample;
use crate::steady::{SteadyState, steady_state};
use crate::validity::late_at;

/// What one trial has to say on one metric.
enum Datum {
    Value(f64),
    /// The load was not part of the trial.
    NotMeasured,
    /// It failed or is invalid; the reason.
    Unusable(String),
    /// Too few requests stand behind the quantile.
    Unresolved,
}

/// Two subjects' trials under one condition, paired by block.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    /// One ratio per block that both can be used of.
    pub ratios: Vec<BlockRatio>,
    /// Blocks in which both were tried.
    pub tried: usize,
    /// Blocks of `tried` that cannot be used.
    pub unusable: usize,
    /// The first reason why the subject cannot be used, else the baseline's, with whose it is.
    pub reason: Option<(Whose, String)>,
    /// Blocks whose quantile is not resolved.
    pub unresolved: usize,
    /// Blocks of `ratios` in which the client was the bottleneck for the subject, the baseline.
    pub client_limited: (usize, usize),
    /// Blocks of `ratios` in which the ratio of the closed loops' slices had no steady state.
    pub unsettled: usize,
    /// The open loop's rate, where it was one for all.
    pub rate_per_s: Option<f64>,
    /// Failures and recovery of the subject and of the baseline, over the blocks of `ratios`.
    pub noticed: (Noticed, Noticed),
    /// The load drivers of the subject and of the baseline, where they are not the engine.
    pub drivers: Option<(String, String)>,
    subject_logs: f64,
    baseline_logs: f64,
}

/// Which side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Subject,
    Baseline,
}

impl Pairs {
    /// Pairs two subjects' trials, given by block.
    pub fn of(
        metric: Metric,
        subject: &BTreeMap<u32, &Cell<'_>>,
        baseline: &BTreeMap<u32, &Cell<'_>>,
    ) -> Self {
        let mut pairs = Pairs::default();
        let mut rates: Vec<f64> = Vec::new();
        for (block, ours) in subject {
            let Some(theirs) = baseline.get(block) else {
                continue;
            };
            let (our_datum, their_datum) = (datum(ours, metric), datum(theirs, metric));
            let their_load = load_of(theirs, metric);
            match (our_datum, their_datum) {
                (Datum::NotMeasured, _) | (_, Datum::NotMeasured) => continue,
                (Datum::Unusable(reason), _) => pairs.spoil(Whose::Subject, reason),
                (_, Datum::Unusable(reason)) => pairs.spoil(Whose::Baseline, reason),
                (Datum::Unresolved, _) | (_, Datum::Unresolved) => pairs.unresolved += 1,
                (Datum::Value(a), Datum::Value(b)) => {
                    pairs.ratios.push(BlockRatio {
                        block: *block,
                        ratio: a / b,
                    });
                    pairs.subject_logs += a.ln();
                    pairs.baseline_logs += b.ln();
                    if metric == Metric::RequestsPerS {
                        let unsettled = is_unsettled(cell_slices(ours), cell_slices(theirs));
                        pairs.unsettled += usize::from(unsettled);
                    }
                    let limited = |l: Option<&LoadReading>| {
                        usize::from(l.is_some_and(|l| l.client.saturated))
                    };
                    pairs.noticed.0.add(ours);
                    pairs.noticed.1.add(theirs);
                    pairs.client_limited.0 += limited(load_of(ours, metric));
                    pairs.client_limited.1 += limited(their_load);
                    rates.extend(load_of(ours, metric).and_then(offered));
                    rates.extend(their_load.and_then(offered));
                    if let Some(drivers) = label(ours).zip(label(theirs)) {
                        pairs.drivers = Some(drivers);
                    }
                }
            }
            pairs.tried += 1;
        }
        if let Some(&first) = rates.first()
            && rates.iter().all(|r| (r / first - 1.0).abs() < 0.005)
        {
            pairs.rate_per_s = Some(first);
        }
        pairs
    }

    fn spoil(&mut self, whose: Whose, reason: String) {
        self.unusable += 1;
        let ours_now = whose == Whose::Subject;
        let better = match &self.reason {
            None => true,
            Some((Whose::Baseline, _)) => ours_now,
            Some((Whose::Subject, _)) => false,
        };
        if better {
            self.reason = Some((whose, reason));
        }
    }

    /// Whether the load drivers differ.
    pub fn drivers_differ(&self) -> bool {
        self.drivers
            .as_ref()
            .is_some_and(|(ours, theirs)| ours != theirs)
    }

    /// The log ratios, summarised.
    pub fn sample(&self) -> Option<Sample> {
        let logs: Vec<f64> = self.ratios.iter().map(|r| r.ratio.ln()).collect();
        Sample::of(&logs)
    }

    /// Geometric means over the blocks used: subject, baseline.
    pub fn values(&self) -> Option<(f64, f64)> {
        let n = self.ratios.len() as f64;
        (n > 0.0).then(|| {
            (
                (self.subject_logs / n).exp(),
                (self.baseline_logs / n).exp(),
            )
        })
    }
}

fn cell_slices<'a>(cell: &Cell<'a>) -> &'a [Slice] {
    cell.throughput().map_or(&[], |load| &load.slices)
}

/// Whether two subjects' slices, taken in turns, show a ratio that never settles. What the machine
/// does to both of them cancels; where their numbers of slices differ they were not taken in turns.
fn is_unsettled(ours: &[Slice], theirs: &[Slice]) -> bool {
    if ours.len() != theirs.len() {
        return false;
    }
    let ratios: Vec<f64> = ours
        .iter()
        .zip(theirs)
        .map(|(a, b)| a.requests_per_s() / b.requests_per_s())
        .collect();
    ratios.iter().all(|r| r.is_finite())
        && matches!(steady_state(&ratios), SteadyState::Never { .. })
}

fn offered(load: &LoadReading) -> Option<f64> {
    match load.pacing {
        Pacing::Closed => None,
        Pacing::Open { rate_per_s } => Some(rate_per_s),
    }
}

/// The load that a metric is about. An outside driver may report latency of its closed loop.
fn load_of<'a>(cell: &Cell<'a>, metric: Metric) -> Option<&'a LoadReading> {
    match loop_of(cell, metric) {
        Loop::Closed => cell.throughput(),
        Loop::Open => cell.latency(),
    }
}

enum Loop {
    Closed,
    Open,
}

fn loop_of(cell: &Cell<'_>, metric: Metric) -> Loop {
    let driver = cell.reading().and_then(|reading| reading.driver.as_ref());
    match (metric.quantile(), driver) {
        (None, _) if metric.is_of_events() => Loop::Open,
        (None, _) => Loop::Closed,
        (Some(_), Some(driver)) if driver.latency_loop() == Pacing::Closed => Loop::Closed,
        (Some(_), _) => Loop::Open,
    }
}

fn label(cell: &Cell<'_>) -> Option<String> {
    Some(cell.reading()?.driver.as_ref()?.label())
}

/// What a driver cost, on one metric.
fn of_driver(metric: Metric, driver: &DriverReading) -> Option<f64> {
    match metric {
        Metric::DriverCpuUsPerRequest => driver.cpu_us_per_request(),
        Metric::DriverMaxRssBytes => driver.max_rss_bytes().map(|bytes| bytes as f64),
        _ => None,
    }
}

/// Whether enough answers stand behind a quantile of the response latency.
pub(crate) fn resolves(load: &LoadReading, quantile: f64) -> bool {
    enough(load.response.count(), quantile)
}

pub(crate) fn enough(count: u64, quantile: f64) -> bool {
    let count_alone = Quantiles {
        count,
        ..Quantiles::default()
    };
    count_alone.resolves(quantile)
}

fn datum(cell: &Cell<'_>, metric: Metric) -> Datum {
    let reading = match &cell.trial.outcome {
        Outcome::Failed { reason, .. } => return Datum::Unusable(reason.clone()),
        Outcome::Done(reading) => reading,
    };
    let (measured, flaws) = match loop_of(cell, metric) {
        Loop::Closed => (&reading.throughput, &cell.throughput_flaws),
        Loop::Open => (&reading.latency, &cell.latency_flaws),
    };
    // A flaw of the whole trial also spoils a load that was then never begun.
    if let Some(reason) = flaws.first() {
        return Datum::Unusable(reason.clone());
    }
    let Some(load) = measured else {
        return Datum::NotMeasured;
    };
    let value = match metric.quantile() {
        Some(_) if reading.events.is_some() => return Datum::NotMeasured,
        None => match (metric, &reading.driver) {
            (Metric::RequestsPerS, _) => load.requests_per_s(),
            (metric, _) if metric.is_of_events() => match &reading.events {
                Some(noticed) => match events::value(metric, noticed) {
                    Some(value) => value,
                    None => return Datum::NotMeasured,
                },
                None => return Datum::NotMeasured,
            },
            (_, None) => return Datum::NotMeasured,
            (metric, Some(driver)) => match of_driver(metric, driver) {
                Some(value) => value,
                None => return Datum::NotMeasured,
            },
        },
        Some(q) if reading.driver.is_some() => {
            let driver = reading.driver.as_ref();
            match driver.and_then(|driver| Some((driver, driver.latency_us(q)?))) {
                None => return Datum::NotMeasured,
                Some((driver, _)) if !enough(driver.latency_requests(), q) => {
                    return Datum::Unresolved;
                }
                Some((_, us)) => us,
            }
        }
        Some(q) if !resolves(load, q) => return Datum::Unresolved,
        Some(q) => match late_at(load, q) {
            Some(reason) => return Datum::Unusable(reason),
            None => load.response.quantile_us(q),
        },
    };
    if value > 0.0 && value.is_finite() {
        Datum::Value(value)
    } else {
        Datum::Unusable("nothing was measured in its windows".to_owned())
    }
}
