//! Several loads at the same time, made by the engine. As with one load, all servers are up; the
//! loads alternate between the subjects together.

use readings::{BesideReading, LoadReading, Outcome, Pacing};

use super::rate::choose_rate;
use super::slices::{reading, warn_of_slow};
use super::{GroupSetup, Measurer, schedule};
use crate::context::Context;
use crate::context::several_loads::{OneLoad, SeveralLoads};
use crate::group::sequential;
use crate::group::{GroupResult, ReadySubject};
use crate::measure::network_warnings;
use agent::AgentError;
use agent::wire::Loaded;
use experiment::LoadRole;

/// Warm-up, closed loop and open loop of the first load; the other loads are made with it.
pub(super) struct Several;

impl Measurer for Several {
    fn measure(
        &self,
        cx: &mut Context<'_>,
        setup: &GroupSetup<'_>,
        ready: &[ReadySubject],
        random: &mut fastrand::Rng,
        result: &mut GroupResult,
    ) -> Result<(), AgentError> {
        let (resolved, group) = (setup.resolved, setup.group);
        let design = cx.sequential.design(cx.options.experiment);
        let count = ready.len();
        let mut loads = SeveralLoads::of(resolved, ready);
        cx.phase("warming up");
        let warm = loads.warm_up(cx, &schedule::warm_up(count, design.warmup))?;
        if cx.stopped() || sequential::check_disturbance(cx, resolved, group, result)? {
            return Ok(());
        }
        let mut medians_ms = schedule::medians_ms(&warm[0].readings, design.warmup);
        let beside_ms = slowest_ms(&loads, &warm);
        if !resolved.beside.is_empty() {
            // Slices of one length, so that all subjects alternate, although a background load alone
            // may make one of them slower.
            let slowest_ms = medians_ms.iter().copied().fold(beside_ms, f64::max);
            medians_ms.fill(slowest_ms);
        }
        let slices = schedule::throughput(&medians_ms, design.window, design.slice, random);
        warn_of_slow(cx, ready, &medians_ms, &slices, result);
        cx.phase("throughput of several loads");
        let pacings = loads.all.iter().map(OneLoad::closed_pacing).collect();
        let closed = loads.measure(cx, &slices.segments, pacings)?;
        let mut open = None;
        if !design.latency_window.is_zero() && !cx.stopped() {
            let carried = &closed[0].readings;
            let rate = setup
                .rate
                .or_else(|| choose_rate(group, ready, resolved, carried, result));
            if let Some(rate_per_s) = rate {
                let median_ms = schedule::median_ms(&warm[0].readings).min(40.0);
                let window = design.latency_window;
                let slices =
                    schedule::latency(count, window, rate_per_s, (median_ms, beside_ms), random);
                cx.phase(&format!(
                    "latency of several loads, at {rate_per_s} requests/s"
                ));
                let mut pacings: Vec<Pacing> = loads.all.iter().map(OneLoad::open_pacing).collect();
                pacings[0] = Pacing::Open { rate_per_s };
                open = Some(loads.measure(cx, &slices, pacings)?);
            }
        }
        for (one, closed) in loads.all.iter().zip(&closed) {
            if one.role == LoadRole::Compared {
                network_warnings::of_closed_loop(cx, &one.resolved, &one.ready, closed, result);
            }
        }
        for (number, one) in ready.iter().enumerate() {
            let mut reading = reading(number, one, &closed[0], open.as_ref().map(|it| &it[0]));
            for (at, load) in loads.all.iter().enumerate().skip(1) {
                let Some(place) = load.place_of(number) else {
                    continue;
                };
                let of = |all: &[Loaded]| all[at].readings.get(place).cloned();
                let beside = BesideReading {
                    throughput: of(&closed),
                    latency: open.as_deref().and_then(of),
                };
                reading.beside.insert(load.name.clone(), beside);
            }
            // It is not known for which of the loads they were opened.
            reading.upstream_connections_per_request = None;
            let done = Outcome::Done(Box::new(reading));
            result.outcomes.push((one.planned.clone(), done));
        }
        Ok(())
    }
}

/// The slowest median response time of the loads other than the first one, ms. For a load whose
/// answers all came after the window, the time from the window's end to its last answer.
fn slowest_ms(loads: &SeveralLoads, warm: &[Loaded]) -> f64 {
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
