//! Connections that open 1, 3 or 7 s late.

use readings::{Tool, ToolLatency, ToolReading};

use super::{Diagnosis, Finding, LateConnects};

/// When a connection opens whose first SYNs were lost: after the first, the second, the third
/// retransmission.
const STEPS_S: [u32; 3] = [1, 3, 7];
/// A step is met from so much before it, in microseconds, to as much and twice the typical time
/// after it: the kernel's timers are late by some milliseconds, and what follows takes its time.
const TOLERANCE_US: f64 = 50e3;
/// A step has to stand clear of what is usual: values below it lie within this share of the step.
const CLEAR: f64 = 0.4;

/// Steps in a reading's latency, or in the time that its connections took to open.
pub(super) fn finding(readings: &[ToolReading], i: usize) -> Option<Finding> {
    let r = &readings[i];
    let latency = holds_connecting(r.tool).then_some((false, &r.latency));
    let (in_connecting, (typical_us, jumps_to)) =
        [(true, &r.connect)]
            .into_iter()
            .chain(latency)
            .find_map(|(in_connecting, latency)| Some((in_connecting, steps(latency)?)))?;
    let is_met = |step: &u32| jumps_to.iter().any(|(_, us)| meets(*step, *us, typical_us));
    Some(Finding {
        readings: vec![i],
        diagnosis: Diagnosis::SynRetransmission(LateConnects {
            in_connecting,
            typical_us,
            steps_s: STEPS_S.into_iter().filter(is_met).collect(),
            jumps_to,
            without: without_steps(readings, r),
        }),
    })
}

/// Whether a tool's latency runs from before a connection is opened, so that a lost SYN can be in
/// it. That of wrk and wrk2 runs from the first write on a connection that is open; h2load, httperf
/// and k6 time connecting on its own, and redis-benchmark connects beforehand.
fn holds_connecting(tool: Tool) -> bool {
    match tool {
        Tool::Ab | Tool::Hey | Tool::Oha | Tool::Siege => true,
        Tool::Autocannon
        | Tool::Vegeta
        | Tool::Bombardier
        | Tool::Locust
        | Tool::Gatling
        | Tool::Jmeter => true,
        Tool::Wrk
        | Tool::Wrk2
        | Tool::H2load
        | Tool::Httperf
        | Tool::K6
        | Tool::RedisBenchmark
        | Tool::Artillery
        | Tool::Ghz
        | Tool::Weigh
        | Tool::Time => false,
    }
}

/// Quantiles with their values, the maximum without a share.
type Quantiles = Vec<(Option<f64>, f64)>;

/// The typical value, and the quantiles from the first that met a step on.
fn steps(latency: &ToolLatency) -> Option<(f64, Quantiles)> {
    let quantiles = &latency.quantiles_us;
    let median = quantiles.iter().find(|(q, _)| (*q - 0.5).abs() < 1e-9);
    let typical = median.map(|(_, us)| *us)?;
    let mut values: Quantiles = quantiles
        .iter()
        .filter(|(q, _)| *q > 0.5 && *q < 1.0)
        .map(|(q, us)| (Some(*q), *us))
        .collect();
    let last = quantiles.last().filter(|(q, _)| *q >= 1.0);
    let most = latency.max_us.or(last.map(|(_, us)| *us));
    values.extend(most.map(|us| (None, us)));
    let mut before = typical;
    for (at, (_, us)) in values.iter().enumerate() {
        let step = STEPS_S.into_iter().find(|s| meets(*s, *us, typical));
        if let Some(step) = step
            && before - typical < CLEAR * f64::from(step) * 1e6
        {
            return Some((typical, values.split_off(at)));
        }
        before = *us;
    }
    None
}

fn meets(step_s: u32, us: f64, typical_us: f64) -> bool {
    let late_us = us - typical_us - f64::from(step_s) * 1e6;
    -TOLERANCE_US <= late_us && late_us <= TOLERANCE_US + 2.0 * typical_us
}

/// A reading of the same target with keep-alive, whose latency shows no steps.
fn without_steps(readings: &[ToolReading], r: &ToolReading) -> Option<usize> {
    if r.keepalive == Some(true) {
        return None;
    }
    readings.iter().position(|o| {
        let same = o.url.is_some() && o.url == r.url && o.connections == r.connections;
        let known = o.latency.quantiles_us.iter().any(|(q, _)| *q >= 0.99);
        same && o.keepalive == Some(true) && known && steps(&o.latency).is_none()
    })
}
