//! How each metric is taken from a trial; quantiles of latency are in `of_trial`.

use readings::{EVENT_ROW_MS, EventsReading, InstructionScope, LoadReading, Reading};

/// A figure and how exact it can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Value {
    pub value: f64,
    /// Half of the step in which it can be told, in its unit.
    pub half_step: f64,
}

/// Half of the step in which memory is counted: a page of 4 KiB.
const PAGE_HALF_BYTES: f64 = 2048.0;
/// Half of the step in which the kernel accounts CPU time, where it does not do so exactly.
const TICK_HALF_US: f64 = 0.5;

pub(super) fn exact(value: f64) -> Option<Value> {
    Some(Value {
        value,
        half_step: 0.0,
    })
}

pub(super) fn requests_per_s(_: &Reading, load: &LoadReading) -> Option<Value> {
    Some(Value {
        value: load.requests_per_s(),
        half_step: 0.5 / load.duration_s.max(f64::MIN_POSITIVE),
    })
}

pub(super) fn cpu_per_request(reading: &Reading, load: &LoadReading) -> Option<Value> {
    let cpu_s = reading.servers.iter().map(|server| server.cpu_s).sum();
    cpu_of_one_load(reading, cpu_s, load.weighted_requests())
}

pub(super) fn cpu_per_request_at_rate(reading: &Reading, _: &LoadReading) -> Option<Value> {
    let seen = reading.latency_probed.as_ref()?;
    let servers = seen.servers.values();
    let cpu_s = servers.map(|server| server.user_s + server.system_s).sum();
    cpu_of_one_load(reading, cpu_s, seen.requests as f64)
}

/// CPU time cannot be attributed to one of several loads.
fn cpu_of_one_load(reading: &Reading, cpu_s: f64, requests: f64) -> Option<Value> {
    let is_alone = reading.beside.is_empty();
    (is_alone && cpu_s > 0.0 && requests > 0.0).then(|| Value {
        value: cpu_s * 1e6 / requests,
        half_step: TICK_HALF_US / requests,
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
    Some(Value {
        value: counted.per_request()?,
        half_step: 0.5 / counted.requests as f64,
    })
}

/// The most resident memory of the servers of a trial together, over both loads.
pub(super) fn memory(reading: &Reading, _: &LoadReading) -> Option<Value> {
    let probed = [&reading.probed, &reading.latency_probed];
    let sums = probed.into_iter().flatten().map(|seen| -> u64 {
        let servers = seen.servers.values();
        servers.map(|server| server.rss_bytes_max).sum()
    });
    let bytes = sums.max().filter(|bytes| *bytes > 0)?;
    Some(Value {
        value: bytes as f64,
        half_step: PAGE_HALF_BYTES,
    })
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

/// A time around events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventTime {
    /// The step in which it is known, s.
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

    /// A trial's time; nothing where it was not recorded.
    pub fn of(self, noticed: &EventsReading) -> Option<f64> {
        (self.time_s)(noticed)
    }
}
