//! Connections that open 1, 3 or 7 s late.

use readings::{Tool, ToolLatency, ToolReading};

use super::{Diagnosis, Finding, LateConnects};

/// When a connection opens whose first SYNs were lost: after the first, the second, the third
/// retransmission.
const STEPS_S: [u32; 3] = [1, 3, 7];
/// A step is met within so many microseconds, and as much more as the latencies below it are spread:
/// the kernel's timers are late by some milliseconds, and what follows takes its time.
const TOLERANCE_US: f64 = 50e3;
/// A step has to be narrow against the distribution: the median and the tolerance are at most this
/// share of the step each. What is slower or broader meets a step by the way.
const NARROW: f64 = 0.2;

/// Steps in a reading's latency, or in the time that its connections took to open.
pub(super) fn finding(readings: &[ToolReading], i: usize) -> Option<Finding> {
    let r = &readings[i];
    // A step by which no connection was late in opening, the latency has from something else.
    let may_be = |step: u32| {
        let step_us = f64::from(step) * 1e6;
        r.connect
            .max_us
            .is_none_or(|us| us >= step_us - TOLERANCE_US)
    };
    let latency = holds_connecting(r.tool).then_some((false, &r.latency));
    let (in_connecting, found) = [(true, &r.connect)]
        .into_iter()
        .chain(latency)
        .find_map(|(in_connecting, latency)| Some((in_connecting, steps(latency, &may_be)?)))?;
    let is_met =
        |step: &u32| may_be(*step) && found.jumps_to.iter().any(|(_, us)| found.meets(*step, *us));
    let late = LateConnects {
        in_connecting,
        typical_us: found.typical_us,
        steps_s: STEPS_S.into_iter().filter(is_met).collect(),
        without: without_steps(readings, r),
        jumps_to: found.jumps_to,
    };
    Some(Finding::new(vec![i], Diagnosis::SynRetransmission(late)))
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

struct Steps {
    typical_us: f64,
    /// How far the values below the jump lie above the median.
    spread_us: f64,
    /// The quantiles from the first that met a step on.
    jumps_to: Quantiles,
}

impl Steps {
    fn meets(&self, step_s: u32, us: f64) -> bool {
        let step_us = f64::from(step_s) * 1e6;
        let tolerance_us = TOLERANCE_US + self.spread_us;
        (us - self.typical_us - step_us).abs() <= tolerance_us
            && f64::max(self.typical_us, tolerance_us) <= NARROW * step_us
    }
}

fn steps(latency: &ToolLatency, may_be: &dyn Fn(u32) -> bool) -> Option<Steps> {
    let quantiles = &latency.quantiles_us;
    let median = quantiles.iter().find(|(q, _)| (*q - 0.5).abs() < 1e-9);
    let typical_us = median.map(|(_, us)| *us)?;
    let mut values: Quantiles = quantiles
        .iter()
        .filter(|(q, _)| *q > 0.5 && *q < 1.0)
        .map(|(q, us)| (Some(*q), *us))
        .collect();
    let last = quantiles.last().filter(|(q, _)| *q >= 1.0);
    let most = latency.max_us.or(last.map(|(_, us)| *us));
    values.extend(most.map(|us| (None, us)));
    let mut found = Steps {
        typical_us,
        spread_us: 0.0,
        jumps_to: Vec::new(),
    };
    for (at, (_, us)) in values.iter().enumerate() {
        let mut possible = STEPS_S.into_iter().filter(|step| may_be(*step));
        if possible.any(|step| found.meets(step, *us)) {
            found.jumps_to = values.split_off(at);
            return Some(found);
        }
        found.spread_us = us - typical_us;
    }
    None
}

/// A reading of the same target with keep-alive, whose latency shows no steps.
fn without_steps(readings: &[ToolReading], r: &ToolReading) -> Option<usize> {
    if r.keepalive == Some(true) {
        return None;
    }
    readings.iter().position(|o| {
        let same = o.url.is_some() && o.url == r.url && o.connections == r.connections;
        let known = o.latency.quantiles_us.iter().any(|(q, _)| *q >= 0.99);
        same && o.keepalive == Some(true) && known && steps(&o.latency, &|_| true).is_none()
    })
}
