//! Loads by the engine: all servers are up, and the load, or several loads together, alternate
//! between the subjects in slices.

use readings::{BesideReading, LoadReading, Reading, ServerReading};

use super::rate::choose_rate;
use super::warm_up::{until_warm, warm_up_slow};
use super::{
    Ending, Findings, GroupSetup, curve, disturbance, instructions, load_of, metrics_of,
    network_warnings, schedule, upstream_connections,
};
use crate::context::Context;
use crate::context::loads::{Loads, OneLoad};
use crate::testbed::ReadySubject;
use crate::testbed::copies::original;
use agent::AgentError;
use agent::wire::Loaded;
use experiment::{LoadRole, ResolvedCondition};

/// Warm-up, closed loop and open loop at the common rate. Of several loads these are the loops of
/// the first one; the others are made with it. A single load also has open loops at the rates of a
/// curve, and a closed loop in which instructions are counted.
///
/// # Errors
/// When all subjects are affected; the failure of one is an outcome.
pub(crate) fn measure(
    cx: &mut Context<'_>,
    setup: &GroupSetup<'_>,
    random: &mut fastrand::Rng,
    found: &mut Findings,
) -> Result<Ending, AgentError> {
    let ready = setup.ready;
    let windows = cx.windows;
    let warmup = cx.warmup(&setup.group.condition);
    let loads = Loads::of(setup.resolved, ready);
    cx.phase("warming up");
    let warm = loads.warm_up(cx, schedule::warm_up(ready.len(), warmup))?;
    if cx.stopped() {
        return Ok(Ending::Complete);
    }
    if let Some(ending) = disturbance::find(cx, setup)? {
        return Ok(ending);
    }
    let mut medians_ms = schedule::medians_ms(&warm[0].readings, warmup);
    if !loads.are_several {
        warm_up_slow(cx, setup, &warm[0], warmup, &mut medians_ms)?;
        until_warm(cx, setup, &medians_ms, random, found)?;
        if cx.stopped() {
            return Ok(Ending::Complete);
        }
    }
    let slowest_ms = medians_ms.iter().copied().fold(0.0, f64::max);
    let beside_ms = slowest_beside_ms(&loads, &warm);
    if loads.all.len() > 1 {
        // Slices of one length, so that all subjects alternate, although a background load alone
        // may make one of them slower.
        medians_ms.fill(slowest_ms.max(beside_ms));
    }
    let mut measured = Loops {
        closed: None,
        open: None,
    };
    if !windows.closed.is_zero() {
        let slices = schedule::throughput(&medians_ms, windows.closed, windows.slice, random);
        let slow = slices.apart.iter().map(|&number| &ready[number].planned);
        let slow = slow.filter(|one| cx.block == 1 && !one.baseline_copy);
        found.slow.extend(slow.map(|one| one.subject.clone()));
        cx.phase(match loads.are_several {
            true => "throughput of several loads",
            false => "throughput",
        });
        measured.closed = Some(loads.make(cx, slices.segments)?);
    }
    let window = setup.latency_window(cx);
    if !window.is_zero() && !cx.stopped() {
        let carried = measured.closed.as_ref();
        let carried = carried.map_or(&[][..], |closed| &closed[0].readings);
        let rate = (setup.wanted.rate).or_else(|| choose_rate(setup, carried, found));
        if let Some(rate_per_s) = rate {
            let medians_ms = (schedule::unsaturated_ms(slowest_ms), beside_ms);
            let replay = setup.resolved.load.replay.as_ref();
            let slices = match replay.and_then(|file| file.set.replay.as_ref()) {
                Some(replay) => schedule::replay(ready.len(), replay, random),
                None => schedule::latency(ready.len(), window, rate_per_s, medians_ms, random),
            };
            cx.phase(&match (replay, loads.are_several) {
                (Some(_), _) => "replaying the log".to_owned(),
                (None, true) => format!("latency of several loads, at {rate_per_s} requests/s"),
                (None, false) => format!("latency at {rate_per_s} requests/s"),
            });
            measured.open = Some(loads.make(cx, slices)?);
        }
    }
    let mut readings = readings(setup.resolved, &loads, &measured);
    if let Some(closed) = measured.closed.as_ref().filter(|_| !loads.are_several) {
        let closed = &closed[0].readings;
        let curves = curve::measure(cx, setup, closed, random, found)?;
        let counts = instructions::count(cx, setup, closed, random, found)?;
        for (reading, (curve, count)) in readings.iter_mut().zip(curves.into_iter().zip(counts)) {
            (reading.curve, reading.instructions) = (curve, count);
        }
    }
    let closed = measured.closed.iter().flatten();
    for (one, closed) in loads.all.iter().zip(closed) {
        if one.role == LoadRole::Compared {
            network_warnings::of_closed_loop(cx, &one.resolved, &one.ready, closed, found);
        }
    }
    for (one, reading) in ready.iter().zip(readings) {
        found.add(&one.planned, reading);
    }
    Ok(Ending::Complete)
}

/// What each load measured in the closed and the open loop of the first one.
struct Loops {
    /// `None` where only the open loop is wanted.
    closed: Option<Vec<Loaded>>,
    open: Option<Vec<Loaded>>,
}

/// The slowest median response time of the loads other than the first one, ms. For a load whose
/// answers all came after the window, the time from the window's end to its last answer.
fn slowest_beside_ms(loads: &Loads, warm: &[Loaded]) -> f64 {
    let beside = loads.all.iter().zip(warm).skip(1);
    let of_load = |(load, loaded): (&OneLoad, &Loaded)| {
        let median_ms = |reading: &LoadReading| match reading.response.count() {
            0 => loaded.drain_ns as f64 / 1e6,
            _ => reading.response.quantile_us(0.5) / 1e3,
        };
        let own = loaded.readings.iter().take(load.ready.len());
        own.map(median_ms).fold(0.0, f64::max)
    };
    beside.map(of_load).fold(0.0, f64::max)
}

/// The readings of the subjects, without curve and instructions.
fn readings(resolved: &ResolvedCondition, loads: &Loads, measured: &Loops) -> Vec<Reading> {
    let (first, beside) = (&loads.all[0], &loads.all[1..]);
    let mut all = Vec::new();
    for (number, one) in first.ready.iter().enumerate() {
        let closed = measured.closed.as_ref().map(|closed| &closed[0]);
        let open = measured.open.as_ref().map(|open| &open[0]);
        let mut reading = reading(number, one, closed, open);
        // Of several loads it is not known for which of them connections were opened.
        if loads.are_several || !upstream_connections::may_be_opened(resolved, &one.subject) {
            reading.upstream_connections_per_request = None;
        }
        for (at, load) in beside.iter().enumerate() {
            if let Some(place) = load.place_of(number) {
                let of = |all: &Vec<Loaded>| all[at + 1].readings.get(place).cloned();
                let beside = BesideReading {
                    throughput: measured.closed.as_ref().and_then(of),
                    latency: measured.open.as_ref().and_then(of),
                };
                reading.beside.insert(load.name.clone(), beside);
            }
        }
        all.push(reading);
    }
    all
}

/// What a server did in the closed loop.
pub(super) fn server_reading(server: &str, measured: Option<&agent::Measured>) -> ServerReading {
    let cpu_s = measured.and_then(|all| all.cpu_s.get(server));
    let in_ticks = measured.is_some_and(|all| all.cpu_in_ticks.contains(server));
    ServerReading {
        server: original(server).to_owned(),
        cpu_s: cpu_s.copied().unwrap_or(0.0),
        cpu_step_s: if in_ticks { readings::CPU_TICK_S } else { 0.0 },
    }
}

/// The reading of one subject, from closed and open loop.
fn reading(
    number: usize,
    one: &ReadySubject,
    closed: Option<&Loaded>,
    open: Option<&Loaded>,
) -> Reading {
    let throughput = closed.and_then(|closed| load_of(number, one, closed));
    let latency = open.and_then(|open| load_of(number, one, open));
    let measured = closed.and_then(|closed| closed.measured.get(number));
    let upstream_connections_per_request = throughput.as_ref().and_then(|load| {
        let accepted = measured?.accepted?;
        let answered = load.requests_all + load.errors_all.wrong_answers();
        (answered > 0).then(|| accepted.saturating_sub(load.connects) as f64 / answered as f64)
    });
    Reading {
        servers: one
            .subject
            .through
            .iter()
            .map(|server| server_reading(server, measured))
            .collect(),
        throughput,
        latency,
        upstream_connections_per_request,
        uncounted_upstreams: one.outside.uncounted.clone(),
        probed: closed.and_then(|closed| metrics_of(number, one, closed)),
        latency_probed: open.and_then(|open| metrics_of(number, one, open)),
        ..Reading::default()
    }
}
