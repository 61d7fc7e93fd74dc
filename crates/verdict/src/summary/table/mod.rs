//! A subject's figures over its valid trials.

mod blocks;
mod events;
mod servers;
pub(crate) mod words;

use std::collections::BTreeMap;

use readings::{
    Condition, DriverReading, ErrorCounts, InstructionScope, LoadReading, SystemMetrics,
};
use serde::Serialize;

pub use blocks::{BlockFigure, BlockFigures, block_figures};
pub use events::EventsRow;
pub use servers::ServerRow;

use crate::Metric;
use crate::Starts;
use crate::metric::figures::mean as mean_of_values;
use crate::metric::of_trial::{enough, value};
use crate::metric::quantile::{QuantileBound, QuantileEvidence, QuantileFigure};
use crate::trial::cells::{Cell, Cells};
use crate::trial::lag::late_at;
use crate::trial::loops::Loop;

/// One subject's figures under one condition, over its valid trials (the baseline's second copy
/// left out).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubjectRow {
    pub condition: Condition,
    pub subject: String,
    /// Trials measured, valid or not.
    pub trials: usize,
    /// Its starts that say something about it, and how many failed through its own doing.
    pub starts: Starts,
    /// Geometric mean of the closed loop's throughput.
    pub requests_per_s: Option<f64>,
    /// Whether the client was the bottleneck in a trial, so that the throughput is a lower bound.
    pub at_least: bool,
    /// The rate at which latency was measured: geometric mean of what was offered.
    pub rate_per_s: Option<f64>,
    /// Geometric mean of the trials' median response latencies in the open loop.
    pub latency_us_p50: Option<f64>,
    /// The 99th percentile of response latency in the open loop: geometric mean of the trials' where
    /// each resolves it, else that of all their answers; absent where these do not resolve it either,
    /// or most trials cannot be used.
    pub latency_us_p99: Option<f64>,
    /// What is known of a 99th percentile that is not resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us_p99_bound: Option<QuantileBound>,
    /// Failures inside the measured windows of all trials, valid or not.
    pub errors: ErrorCounts,
    /// Mean number of connections to upstreams per request, where it could be counted.
    pub upstream_connections_per_request: Option<f64>,
    /// Mean number of connections per answer that the load opened beyond those that it began with, in
    /// the closed loop, or in the open one where there is no other, of all trials, valid or not: near
    /// one where the subject closes each after its answer.
    pub reconnects_per_request: Option<f64>,
    /// Answers per connection that the load opened, likewise. If none was reopened, this only reflects
    /// the length of the load.
    pub requests_per_connection: Option<f64>,
    /// Bytes received per answer, head included: mean over the valid trials, of the closed loop,
    /// or of the open one where there is no other.
    pub bytes_per_answer: Option<f64>,
    /// Each server of the path, the one that the load addresses first.
    pub servers: Vec<ServerRow>,
    /// Mean CPU time of each server per request of the closed loop, in microseconds.
    pub server_cpu_us_per_request: BTreeMap<String, f64>,
    /// The user part of it, in microseconds.
    pub server_cpu_user_us_per_request: BTreeMap<String, f64>,
    /// The system part of it, in microseconds.
    pub server_cpu_system_us_per_request: BTreeMap<String, f64>,
    /// Mean number of instructions that each server retired per request, in its own code and in the
    /// kernel; empty where the kernel does not count them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub server_instructions_per_request: BTreeMap<String, f64>,
    /// The same in its own code only, where the kernel counts no others.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub server_user_instructions_per_request: BTreeMap<String, f64>,
    /// Mean number of context switches of each server per request of the closed loop, of both
    /// kinds.
    pub server_switches_per_request: BTreeMap<String, f64>,
    /// Mean number of page faults of each server per request of the closed loop, of both kinds.
    pub server_faults_per_request: BTreeMap<String, f64>,
    /// Mean bytes that each server wrote to files per request of the closed loop; of those that wrote any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub server_written_bytes_per_request: BTreeMap<String, f64>,
    /// Geometric mean over the valid trials of the most resident memory of each server in any
    /// sample, in bytes; memory that its processes share counts for each of them.
    pub server_rss_bytes_max: BTreeMap<String, u64>,
    /// Mean share of a core that a client thread used in the closed loop, 0 to 1.
    pub client_cpu: Option<f64>,
    /// The load driver, where it was not the built-in engine.
    pub driver: Option<String>,
    /// Geometric mean of the driver's CPU time per complete answer of the closed loop, in
    /// microseconds.
    pub driver_cpu_us_per_request: Option<f64>,
    /// Geometric mean of the driver's peak memory, in bytes.
    pub driver_max_rss_bytes: Option<f64>,
    /// Geometric means of the metrics that are neither latencies nor of events, in their units, over
    /// the valid trials.
    #[serde(skip)]
    pub figures: BTreeMap<Metric, f64>,
    /// Failures and recovery around events, over the valid trials.
    pub events: Option<EventsRow>,
    /// Metrics of servers, machine and networks in the closed loops of the valid trials, added up;
    /// of threads the busiest of all trials.
    pub probed: Option<SystemMetrics>,
}

impl SubjectRow {
    /// Its figure of a metric, in the metric's unit.
    pub fn figure(&self, metric: Metric) -> Option<f64> {
        let events = self.events.as_ref();
        match metric {
            Metric::RequestsPerS => self.requests_per_s,
            Metric::LatencyUsP50 => self.latency_us_p50,
            Metric::LatencyUsP99 => self.latency_us_p99,
            Metric::FailedShare => events.map(|events| events.failed_share),
            Metric::FailuresPerEvent => events?.failures_per_event,
            Metric::FullRateAfterS => events?.full_rate_after_s,
            Metric::LongestSilenceS => events?.longest_silence_s,
            Metric::LongestResponseS => events?.longest_response_s,
            _ => self.figures.get(&metric).copied(),
        }
    }
}

/// The table: one row for each subject under each condition that was measured at all.
pub(crate) fn table(cells: &Cells<'_>) -> Vec<SubjectRow> {
    let mut rows = Vec::new();
    for condition in &cells.conditions {
        for subject in &cells.subjects {
            let trials = Trials {
                counted: values(cells.of_subject(condition, subject, false)),
                closed: values(cells.judged(Loop::Closed, condition, subject, false)),
                open: values(cells.judged(Loop::Open, condition, subject, false)),
            };
            if trials.counted.iter().any(|c| c.reading().is_some()) {
                let starts = Starts::of(&cells.attempts(Loop::Closed, condition, subject, false));
                let mut row = row(condition, subject, &trials, starts);
                row.figures.retain(|metric, _| cells.shows(*metric));
                rows.push(row);
            }
        }
    }
    rows
}

/// One subject's trials under one condition, one for each block.
struct Trials<'c, 'a> {
    counted: Vec<&'c Cell<'a>>,
    /// Those that the figures of closed loops rest on.
    closed: Vec<&'c Cell<'a>>,
    /// Those that the figures of open loops rest on.
    open: Vec<&'c Cell<'a>>,
}

fn values<'c, 'a>(trials: BTreeMap<u32, &'c Cell<'a>>) -> Vec<&'c Cell<'a>> {
    trials.into_values().collect()
}

fn row(
    condition: &Condition,
    subject: &str,
    trials_of: &Trials<'_, '_>,
    starts: Starts,
) -> SubjectRow {
    let trials = &trials_of.closed;
    let counted = &trials_of.counted;
    let closed: Vec<&LoadReading> = trials.iter().filter_map(|c| c.throughput()).collect();
    let open = trials_of.open.iter();
    let open: Vec<&LoadReading> = open.filter_map(|c| c.latency()).collect();
    let mut errors = ErrorCounts::default();
    for reading in counted.iter().filter_map(|c| c.reading()) {
        for load in [&reading.throughput, &reading.latency]
            .into_iter()
            .flatten()
        {
            errors.add(&load.errors);
        }
    }
    let limited = closed.iter().filter(|l| l.client.saturated).count();
    let upstream: Vec<f64> = trials
        .iter()
        .filter(|c| c.throughput().is_some())
        .filter_map(|c| c.reading()?.upstream_connections_per_request)
        .collect();
    let client: Vec<f64> = closed
        .iter()
        .flat_map(|l| l.client.threads.iter().map(|t| t.cpu))
        .collect();
    let drivers: Vec<&DriverReading> = trials
        .iter()
        .filter(|c| c.throughput().is_some())
        .filter_map(|c| c.reading()?.driver.as_ref())
        .collect();
    // Outside drivers do not tell.
    let told = counted.iter().filter_map(|c| c.reading());
    let told = told.filter(|reading| reading.driver.is_none());
    let told = told.filter_map(|one| one.throughput.as_ref().or(one.latency.as_ref()));
    let connections: Vec<Connections> = told.filter_map(Connections::of).collect();
    let valid = if closed.is_empty() { &open } else { &closed };
    let of_answers = valid.iter().filter(|_| drivers.is_empty());
    let of_answers: Vec<f64> = of_answers
        .filter_map(|load| bytes_per_answer(load))
        .collect();
    // A quantile that most trials cannot be used for is left out.
    let in_time = |q: f64| {
        let usable = open.iter().copied().filter(|l| late_at(l, q).is_none());
        let usable: Vec<&LoadReading> = usable.filter(|l| l.response.count() > 0).collect();
        (!usable.is_empty() && usable.len() * 2 >= open.len()).then_some(usable)
    };
    // So is one that a driver does not report.
    let of_drivers = |q: f64| {
        let told: Option<Vec<f64>> = drivers.iter().map(|d| d.latency_us(q)).collect();
        geometric_mean(told?.into_iter())
    };
    let p50 = match drivers.as_slice() {
        [] => in_time(0.5)
            .and_then(|usable| geometric_mean(usable.iter().map(|l| l.response.quantile_us(0.5)))),
        _ => of_drivers(0.5),
    };
    let p99: Option<QuantileFigure> = match drivers.as_slice() {
        [] => in_time(0.99).map(|usable| QuantileEvidence::of(0.99, usable).figure()),
        some if some.iter().all(|d| enough(d.latency_requests(), 0.99)) => of_drivers(0.99).map(Ok),
        _ => None,
    };
    let cpu = server_cpu(trials);
    let user_share = per_server(trials, |probed, server| {
        probed.servers.get(server)?.user_share()
    });
    let part = |of: fn(f64) -> f64| {
        let parts = cpu.iter().filter_map(|(server, us)| {
            let share = user_share.get(server)?;
            Some((server.clone(), us * of(*share)))
        });
        parts.collect()
    };
    let mut row = SubjectRow {
        condition: condition.clone(),
        subject: subject.to_owned(),
        trials: counted.iter().filter(|c| c.reading().is_some()).count(),
        starts,
        requests_per_s: geometric_mean(closed.iter().map(|l| l.requests_per_s())),
        at_least: limited > 0,
        rate_per_s: geometric_mean(open.iter().filter_map(|l| match l.pacing {
            readings::Pacing::Open { rate_per_s } => Some(rate_per_s),
            readings::Pacing::Closed => None,
        })),
        latency_us_p50: p50,
        latency_us_p99: p99.and_then(Result::ok),
        latency_us_p99_bound: p99.and_then(Result::err),
        errors,
        upstream_connections_per_request: mean(&upstream),
        reconnects_per_request: mean_over(&connections, Connections::reconnects),
        requests_per_connection: mean_over(&connections, Connections::requests),
        bytes_per_answer: mean(&of_answers),
        servers: Vec::new(),
        server_cpu_user_us_per_request: part(|share| share),
        server_cpu_system_us_per_request: part(|share| 1.0 - share),
        server_cpu_us_per_request: cpu,
        server_instructions_per_request: instructions(trials, InstructionScope::UserAndKernel),
        server_user_instructions_per_request: instructions(trials, InstructionScope::User),
        server_switches_per_request: per_server(trials, SystemMetrics::switches_per_request),
        server_faults_per_request: per_server(trials, SystemMetrics::faults_per_request),
        server_written_bytes_per_request: per_server(
            trials,
            SystemMetrics::written_bytes_per_request,
        ),
        server_rss_bytes_max: memory(trials_of),
        client_cpu: mean(&client),
        driver: trials
            .iter()
            .find_map(|c| c.reading()?.driver.as_ref())
            .map(DriverReading::label),
        driver_cpu_us_per_request: geometric_mean(
            drivers.iter().filter_map(|d| d.cpu_us_per_request()),
        ),
        driver_max_rss_bytes: geometric_mean(
            drivers
                .iter()
                .filter_map(|d| d.max_rss_bytes())
                .map(|bytes| bytes as f64),
        ),
        figures: figures(trials_of),
        events: EventsRow::of(trials),
        probed: probed(trials),
    };
    let mut readings = counted.iter().filter_map(|c| c.reading());
    if let Some(reading) = readings.find(|reading| !reading.servers.is_empty()) {
        let names = reading.servers.iter().map(|one| one.server.clone());
        row.servers = servers::of_row(&row, &names.collect::<Vec<_>>());
    }
    row
}

/// What a load's connections carried.
struct Connections {
    answers: f64,
    opened: f64,
    /// Of `opened`, those beyond the first ones.
    again: f64,
}

impl Connections {
    fn of(load: &LoadReading) -> Option<Self> {
        let answers = load.requests_all + load.errors_all.wrong_answers();
        let again = load.connects.checked_sub(load.connections)?;
        (answers > 0 && load.connects > 0).then_some(Self {
            answers: answers as f64,
            opened: load.connects as f64,
            again: again as f64,
        })
    }

    fn reconnects(&self) -> f64 {
        self.again / self.answers
    }

    fn requests(&self) -> f64 {
        self.answers / self.opened
    }
}

fn mean_over<T>(all: &[T], figure: fn(&T) -> f64) -> Option<f64> {
    mean(&all.iter().map(figure).collect::<Vec<_>>())
}

/// Bytes of an answer, heads and wrong answers included.
fn bytes_per_answer(load: &LoadReading) -> Option<f64> {
    let answers = load.requests + load.errors.wrong_answers();
    (answers > 0 && load.bytes_read > 0).then(|| load.bytes_read as f64 / answers as f64)
}

fn probed(trials: &[&Cell<'_>]) -> Option<SystemMetrics> {
    let valid = trials.iter().filter(|cell| cell.throughput().is_some());
    valid
        .filter_map(|cell| cell.reading()?.probed.as_ref())
        .fold(None, |sum: Option<SystemMetrics>, one| {
            let mut sum = sum.unwrap_or_default();
            sum.add(one);
            Some(sum)
        })
}

fn server_cpu(trials: &[&Cell<'_>]) -> BTreeMap<String, f64> {
    let mut per_server: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for cell in trials {
        let (Some(load), Some(reading)) = (cell.throughput(), cell.reading()) else {
            continue;
        };
        // CPU time cannot be attributed to one of several loads.
        let requests = load.weighted_requests();
        if requests <= 0.0 || !reading.beside.is_empty() {
            continue;
        }
        for server in &reading.servers {
            per_server
                .entry(server.server.clone())
                .or_default()
                .push(server.cpu_s * 1e6 / requests);
        }
    }
    per_server
        .into_iter()
        .filter_map(|(name, values)| Some((name, mean(&values)?)))
        .collect()
}

/// Mean instructions of each server per request over the valid trials.
fn instructions(trials: &[&Cell<'_>], scope: InstructionScope) -> BTreeMap<String, f64> {
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let valid = trials.iter().filter(|cell| cell.throughput().is_some());
    let counted = valid.filter_map(|cell| cell.reading()?.instructions.as_ref());
    for reading in counted.filter(|reading| reading.scope == scope) {
        for (server, count) in reading.per_request_by_server() {
            found.entry(server.clone()).or_default().push(count);
        }
    }
    found
        .into_iter()
        .filter_map(|(name, values)| Some((name, mean(&values)?)))
        .collect()
}

/// The mean of a figure of each server over the closed loops of the trials.
fn per_server(
    trials: &[&Cell<'_>],
    figure: impl Fn(&SystemMetrics, &str) -> Option<f64>,
) -> BTreeMap<String, f64> {
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for cell in trials.iter().filter(|cell| cell.throughput().is_some()) {
        let alone = cell.reading().filter(|reading| reading.beside.is_empty());
        let Some(probed) = alone.and_then(|reading| reading.probed.as_ref()) else {
            continue;
        };
        for server in probed.servers.keys() {
            if let Some(value) = figure(probed, server) {
                found.entry(server.clone()).or_default().push(value);
            }
        }
    }
    found
        .into_iter()
        .filter_map(|(name, values)| Some((name, mean(&values)?)))
        .collect()
}

fn figures(of: &Trials<'_, '_>) -> BTreeMap<Metric, f64> {
    let metrics = Metric::ALL.into_iter();
    let metrics = metrics.filter(|metric| !metric.is_of_events() && metric.quantile().is_none());
    let figure = |metric: Metric| {
        let trials = match metric.load_loop() {
            Loop::Closed => &of.closed,
            Loop::Open => &of.open,
        };
        let values = trials.iter().filter_map(|cell| value(cell, metric));
        Some((metric, mean_of_values(&values.collect::<Vec<_>>())?))
    };
    metrics.filter_map(figure).collect()
}

/// The peak memory of each server, as its comparison takes it: of the trials whose closed loop can
/// be used, or whose open loop where there is no other.
fn memory(trials: &Trials<'_, '_>) -> BTreeMap<String, u64> {
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let closed = trials.closed.iter().filter(|c| c.throughput().is_some());
    let open = trials.open.iter().filter(|c| {
        let alone = c
            .reading()
            .is_some_and(|reading| reading.throughput.is_none());
        alone && c.latency().is_some()
    });
    for reading in closed.chain(open).filter_map(|cell| cell.reading()) {
        let mut most: BTreeMap<&String, u64> = BTreeMap::new();
        let probed = [&reading.probed, &reading.latency_probed];
        for (server, seen) in probed.into_iter().flatten().flat_map(|one| &one.servers) {
            let peak = most.entry(server).or_default();
            *peak = (*peak).max(seen.rss_bytes_max);
        }
        for (server, bytes) in most {
            found.entry(server.clone()).or_default().push(bytes as f64);
        }
    }
    let means = found.into_iter().filter_map(|(server, bytes)| {
        Some((server, geometric_mean(bytes.into_iter())?.round() as u64))
    });
    means.collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = values.filter(|v| *v > 0.0).map(f64::ln).collect();
    mean(&logs).map(f64::exp)
}

#[cfg(test)]
mod tests;
