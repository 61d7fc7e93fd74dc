//! How each metric is taken from a trial; quantiles of latency are in `of_trial`.

use readings::{
    EVENT_ROW_MS, EventsReading, Histogram, InstructionScope, LoadReading, Reading, ServerStart,
};

/// A figure and how exact it can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Value {
    /// More than zero: where nothing was counted it is half a step.
    pub value: f64,
    /// Half of the step in which it can be told, in its unit.
    pub half_step: f64,
    /// What was counted, zero included, where that is done in steps that fall by chance.
    counted: Option<f64>,
}

/// Fewer half steps than this are few.
const COARSE: f64 = 10.0;
/// Half a step in log units, where a figure may be as good as zero.
const UNBOUNDED: f64 = 15.0;

impl Value {
    pub(super) fn rounded(value: f64, half_step: f64) -> Self {
        Self {
            value,
            half_step,
            counted: None,
        }
    }

    /// What was counted in steps that fall by chance. Without one it is censored: less than a step.
    pub(super) fn of_steps(counted: f64, half_step: f64) -> Self {
        Self {
            value: if counted > 0.0 { counted } else { half_step },
            half_step,
            counted: Some(counted),
        }
    }

    /// The figure that sums are made of.
    pub fn counted(self) -> f64 {
        self.counted.unwrap_or(self.value)
    }

    /// Whether so few steps were counted that the logarithm says little.
    pub fn is_coarse(self) -> bool {
        self.counted
            .is_some_and(|counted| counted < COARSE * self.half_step)
    }

    /// Half of the step in log units: the larger of both directions.
    pub fn half_log(self) -> f64 {
        half_log(self.counted(), self.half_step)
    }
}

/// By how much half a step can shift the logarithm of a figure.
pub(crate) fn half_log(value: f64, half_step: f64) -> f64 {
    match half_step < value {
        true => -(-half_step / value).ln_1p(),
        false => UNBOUNDED,
    }
}

/// The mean of a subject's figures as comparisons take it: geometric, unless steps are coarse.
pub(crate) fn mean(values: &[Value]) -> Option<f64> {
    let count = values.len() as f64;
    let sum_of = |one: fn(&Value) -> f64| values.iter().map(one).sum::<f64>() / count;
    (!values.is_empty()).then(|| match values.iter().any(|value| value.is_coarse()) {
        true => sum_of(|value| value.counted()),
        false => sum_of(|value| value.value.ln()).exp(),
    })
}

/// Half of the step in which memory is counted: a page of 4 KiB.
const PAGE_HALF_BYTES: f64 = 2048.0;
/// Half of the step in which CPU time is counted where that is not done in ticks, us.
const CPU_HALF_US: f64 = 0.5;

pub(super) fn exact(value: f64) -> Option<Value> {
    Some(Value::rounded(value, 0.0))
}

/// Nothing where one request has several messages: their sender sets the pace.
pub(super) fn requests_per_s(_: &Reading, load: &LoadReading) -> Option<Value> {
    if load.messages() > 0 {
        return None;
    }
    let half_step = 0.5 / load.duration_s.max(f64::MIN_POSITIVE);
    Some(Value::rounded(load.requests_per_s(), half_step))
}

pub(super) fn cpu_per_request(reading: &Reading, load: &LoadReading) -> Option<Value> {
    match load.messages() {
        0 => cpu_of_path(reading, load.weighted_requests()),
        _ => None,
    }
}

pub(super) fn cpu_per_message(reading: &Reading, load: &LoadReading) -> Option<Value> {
    cpu_of_path(reading, load.messages() as f64)
}

fn cpu_of_path(reading: &Reading, answered: f64) -> Option<Value> {
    let servers = reading.servers.iter();
    let servers = servers.map(|server| (server.cpu_s, server.cpu_step_s));
    cpu_of_one_load(reading, servers, answered)
}

pub(super) fn messages_per_s(_: &Reading, load: &LoadReading) -> Option<Value> {
    let duration_s = load.duration_s.max(f64::MIN_POSITIVE);
    let messages = Some(load.messages()).filter(|count| *count > 0)?;
    Some(Value::rounded(
        messages as f64 / duration_s,
        0.5 / duration_s,
    ))
}

pub(super) fn first_message_p50(_: &Reading, load: &LoadReading) -> Option<Value> {
    quantile_of(&load.lasting.as_ref()?.first_message, 0.5)
}

pub(super) fn gap_p99(_: &Reading, load: &LoadReading) -> Option<Value> {
    quantile_of(&load.lasting.as_ref()?.gap, 0.99)
}

pub(super) fn answer_p99(_: &Reading, load: &LoadReading) -> Option<Value> {
    quantile_of(&load.lasting.as_ref()?.answer, 0.99)
}

pub(super) fn lag_p99(_: &Reading, load: &LoadReading) -> Option<Value> {
    quantile_of(&load.lasting.as_ref()?.lag, 0.99)
}

pub(super) fn reach_share(_: &Reading, load: &LoadReading) -> Option<Value> {
    let lasting = load.lasting.as_ref()?;
    let half_step = 0.5 / lasting.expected as f64;
    Some(Value::rounded(lasting.reach()?.max(half_step), half_step))
}

/// Less than this cannot be told from nothing, us.
const MESSAGE_HALF_US: f64 = 0.5;

/// So many messages beyond a quantile resolve it.
const BEYOND_MIN: f64 = 20.0;

/// A quantile of times of messages, if enough of them stand behind it.
fn quantile_of(times: &Histogram, q: f64) -> Option<Value> {
    let value = times.quantile_us(q).max(2.0 * MESSAGE_HALF_US);
    let is_resolved = times.count() as f64 * (1.0 - q) >= BEYOND_MIN * (1.0 - 1e-9);
    is_resolved.then(|| Value::rounded(value, MESSAGE_HALF_US))
}

/// That of the server that the load addresses, where others stand behind it.
pub(super) fn first_server_cpu_per_request(reading: &Reading, load: &LoadReading) -> Option<Value> {
    let ([first, _, ..], 0) = (reading.servers.as_slice(), load.messages()) else {
        return None;
    };
    let first = (first.cpu_s, first.cpu_step_s);
    cpu_of_one_load(reading, std::iter::once(first), load.weighted_requests())
}

pub(super) fn cpu_per_request_at_rate(reading: &Reading, _: &LoadReading) -> Option<Value> {
    let seen = reading.latency_probed.as_ref()?;
    let servers = seen.servers.values();
    let servers = servers.map(|server| (server.user_s + server.system_s, server.cpu_step_s));
    cpu_of_one_load(reading, servers, seen.requests as f64)
}

/// The CPU time of servers, each with the step in which it was counted, s. It cannot be attributed
/// to one of several loads.
fn cpu_of_one_load(
    reading: &Reading,
    servers: impl Iterator<Item = (f64, f64)>,
    requests: f64,
) -> Option<Value> {
    let (cpu_s, step_s) = servers.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let is_told = reading.beside.is_empty() && requests > 0.0 && (cpu_s > 0.0 || step_s > 0.0);
    let (value, half_step_us) = (cpu_s * 1e6 / requests, step_s * 1e6 / 2.0);
    is_told.then(|| match step_s > 0.0 {
        true => Value::of_steps(value, half_step_us / requests),
        false => Value::rounded(value, CPU_HALF_US / requests),
    })
}

pub(super) fn instructions(reading: &Reading, _: &LoadReading) -> Option<Value> {
    instructions_in(reading, InstructionScope::UserAndKernel)
}

pub(super) fn user_instructions(reading: &Reading, _: &LoadReading) -> Option<Value> {
    instructions_in(reading, InstructionScope::User)
}

/// Instructions per request; `None` where others were counted, or none.
fn instructions_in(reading: &Reading, scope: InstructionScope) -> Option<Value> {
    let counted = reading.instructions.as_ref();
    let counted = counted.filter(|counted| counted.scope == scope)?;
    let half_step = 0.5 / counted.requests as f64;
    Some(Value::rounded(counted.per_request()?, half_step))
}

/// The most resident memory of the servers of a trial together, over both loads.
pub(super) fn memory(reading: &Reading, _: &LoadReading) -> Option<Value> {
    let probed = [&reading.probed, &reading.latency_probed];
    let sums = probed.into_iter().flatten().map(|seen| -> u64 {
        let servers = seen.servers.values();
        servers.map(|server| server.rss_bytes_max).sum()
    });
    let bytes = sums.max().filter(|bytes| *bytes > 0)?;
    Some(Value::rounded(bytes as f64, PAGE_HALF_BYTES))
}

/// Half of the time between two requests that ask a starting server whether it is ready, us.
const START_HALF_US: f64 = 5_000.0;
const RELOAD_HALF_US: f64 = 2_500.0;

/// The start time of the server that the load addresses.
pub(super) fn start(reading: &Reading, _: &LoadReading) -> Option<Value> {
    let start_us = first_start(reading)?.start_ms * 1e3;
    Some(Value::rounded(start_us, START_HALF_US.min(start_us / 2.0)))
}

/// Its memory when it was ready.
pub(super) fn rest_memory(reading: &Reading, _: &LoadReading) -> Option<Value> {
    let bytes = first_start(reading)?.rest_bytes?;
    Some(Value::rounded(bytes as f64, PAGE_HALF_BYTES))
}

fn first_start(reading: &Reading) -> Option<&ServerStart> {
    reading.starts.get(&reading.servers.first()?.server)
}

/// The longest time until a reload was in effect.
pub(super) fn reload(reading: &Reading, _: &LoadReading) -> Option<Value> {
    let events = reading.events.as_ref()?.events.iter();
    let times = events.filter_map(|event| event.in_effect_after_s);
    let longest_us = times.max_by(f64::total_cmp)? * 1e6;
    Some(Value::rounded(
        longest_us,
        RELOAD_HALF_US.min(longest_us / 2.0),
    ))
}

pub(super) fn memory_after(reading: &Reading, _: &LoadReading) -> Option<Value> {
    let bytes = reading.events.as_ref()?.memory_after_bytes?;
    Some(Value::rounded(bytes as f64, PAGE_HALF_BYTES))
}

/// What reached the back ends, of what the rate limit allows.
pub(super) fn accepted_share(_: &Reading, load: &LoadReading) -> Option<Value> {
    let (share, allowed) = crate::studies::shares::limit::accepted(load)?;
    Some(Value::rounded(share, 0.5 / allowed))
}

pub(super) fn driver_cpu_per_request(reading: &Reading, _: &LoadReading) -> Option<Value> {
    exact(reading.driver.as_ref()?.cpu_us_per_request()?)
}

pub(super) fn driver_memory(reading: &Reading, _: &LoadReading) -> Option<Value> {
    exact(reading.driver.as_ref()?.max_rss_bytes()? as f64)
}

/// The share of requests that failed around events, with half a failure added, so that there is a
/// ratio even if nothing failed: as in the ratio over all blocks.
pub(super) fn failed_share(noticed: &EventsReading) -> f64 {
    (noticed.failed as f64 + 0.5) / (noticed.requests as f64 + 1.0)
}

/// The failures for each event, likewise. What happened to nobody counts as one event.
pub(super) fn failures_per_event(noticed: &EventsReading) -> f64 {
    (noticed.failed as f64 + 0.5) / noticed.events.len().max(1) as f64
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct EventTime {
    pub step_s: f64,
    time_s: fn(&EventsReading) -> Option<f64>,
}

impl EventTime {
    /// By rows. A time that was not over at the window's end counts up to that end.
    pub(super) const FULL_RATE_AFTER: Self = Self {
        step_s: EVENT_ROW_MS as f64 / 1e3,
        time_s: |noticed| Some(noticed.full_rate_after_s.unwrap_or(noticed.observed_s)),
    };
    /// Counted from when the run knew that the event had happened.
    pub(super) const LONGEST_SILENCE: Self = Self {
        step_s: 0.01,
        time_s: |noticed| noticed.longest_silence_s,
    };
    /// To the resolution of the histogram and of the two clocks.
    pub(super) const LONGEST_RESPONSE: Self = Self {
        step_s: 0.002,
        time_s: |noticed| noticed.longest_response_s,
    };

    /// A trial's time; nothing where it was not recorded, or nothing happened.
    pub fn of(self, noticed: &EventsReading) -> Option<f64> {
        (self.time_s)(noticed).filter(|_| noticed.has_events())
    }
}
