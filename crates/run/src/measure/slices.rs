//! Loads by the engine: all servers are up, and the load alternates between the subjects in slices.

use std::collections::BTreeMap;

use readings::{LoadReading, Outcome, Reading, ServerReading};

use super::rate::choose_rate;
use super::{GroupSetup, Measurer, curve, load_of, metrics_of, schedule};
use crate::context::Context;
use crate::group::sequential;
use crate::group::{GroupResult, ReadySubject};
use crate::measure::instructions;
use crate::measure::network_warnings;
use crate::measure::upstream_connections;
use crate::testbed::copies::original;
use agent::AgentError;
use agent::wire::Loaded;
use experiment::{Design, ResolvedCondition};

/// How many more warm-ups a subject gets at most that seems too slow for the slices of the others.
const WARM_UPS_MORE: usize = 3;
/// It gets another if its median is less than this share of the last one.
const QUICKER: f64 = 0.8;

/// Warm-up, closed loop, open loop at the common rate, open loops at the rates of a curve, and a
/// closed loop in which instructions are counted.
pub(super) struct Slices;

impl Measurer for Slices {
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
        cx.phase("warming up");
        let warm = cx.load(resolved, ready, schedule::warm_up(count, design.warmup))?;
        if cx.stopped() || sequential::check_disturbance(cx, resolved, group, result)? {
            return Ok(());
        }
        let medians_ms = warm_medians_ms(cx, resolved, ready, &warm, &design)?;
        if cx.stopped() {
            return Ok(());
        }
        let median_ms = medians_ms.iter().copied().fold(0.0, f64::max);
        let slices = schedule::throughput(&medians_ms, design.window, design.slice, random);
        warn_of_slow(cx, ready, &medians_ms, &slices, result);
        let slices = slices.segments;
        cx.phase("throughput");
        let closed = cx.load(resolved, ready, slices)?;
        let mut open = None;
        if !design.latency_window.is_zero() && !cx.stopped() {
            let rate = setup
                .rate
                .or_else(|| choose_rate(group, ready, resolved, &closed.readings, result));
            if let Some(rate_per_s) = rate {
                // A lightly loaded path responds faster than a saturated one.
                let slices = schedule::latency(
                    count,
                    design.latency_window,
                    rate_per_s,
                    (median_ms.min(40.0), 0.0),
                    random,
                );
                cx.phase(&format!("latency at {rate_per_s} requests/s"));
                open = Some(cx.load(resolved, ready, slices)?);
            }
        }
        let mut curves = curve::measure(cx, setup, ready, &closed.readings, random, result)?;
        let mut instructions =
            instructions::count(cx, resolved, ready, &closed.readings, random, result)?;
        network_warnings::of_closed_loop(cx, resolved, ready, &closed, result);
        for (number, one) in ready.iter().enumerate() {
            let mut reading = reading(number, one, &closed, open.as_ref());
            if !upstream_connections::may_be_opened(resolved, &one.subject) {
                reading.upstream_connections_per_request = None;
            }
            reading.curve = std::mem::take(&mut curves[number]);
            reading.instructions = instructions[number].take();
            result
                .outcomes
                .push((one.planned.clone(), Outcome::Done(Box::new(reading))));
        }
        Ok(())
    }
}

/// Each subject's median response time once it is warm, ms.
///
/// A server that compiles its code while it runs answers its first requests slowly. So a subject
/// that seems too slow for the slices of the others is warmed up again, as long as that makes it
/// quicker.
fn warm_medians_ms(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    ready: &[ReadySubject],
    warm: &Loaded,
    design: &Design,
) -> Result<Vec<f64>, AgentError> {
    let mut medians_ms = schedule::medians_ms(&warm.readings, design.warmup);
    let mut slow = schedule::apart(&medians_ms, design.window, design.slice);
    // Without answers there is nothing that becomes quicker.
    let has_answers = |reading: &LoadReading| reading.response.count() > 0;
    slow.retain(|&target| warm.readings.get(target).is_some_and(has_answers));
    for _ in 0..WARM_UPS_MORE {
        if slow.is_empty() || cx.stopped() {
            break;
        }
        let again = cx.load(resolved, ready, schedule::warm_up_of(&slow, design.warmup))?;
        let again_ms = schedule::medians_ms(&again.readings, design.warmup);
        let is_quicker = |&target: &usize| {
            let median_ms = again_ms.get(target).copied().unwrap_or(0.0);
            median_ms > 0.0 && median_ms < QUICKER * medians_ms[target]
        };
        slow.retain(is_quicker);
        for &target in &slow {
            medians_ms[target] = again_ms[target];
        }
        let apart = schedule::apart(&medians_ms, design.window, design.slice);
        slow.retain(|target| apart.contains(target));
    }
    Ok(medians_ms)
}

/// Warns, in the first block, of subjects whose answers take too long for the slices of the others.
pub(super) fn warn_of_slow(
    cx: &Context<'_>,
    ready: &[ReadySubject],
    medians_ms: &[f64],
    slices: &schedule::ClosedSlices,
    result: &mut GroupResult,
) {
    for &number in &slices.apart {
        let one = &ready[number].planned;
        if cx.block == 1 && !one.baseline_copy {
            let warning = too_slow(&one.subject, medians_ms[number]);
            result.warnings.push(warning);
        }
    }
}

fn too_slow(subject: &str, median_ms: f64) -> String {
    format!(
        "`{subject}` takes {median_ms:.0} ms for an answer, too long for the slices of the others: \
         its closed loop was measured after theirs in each block, so machine drift does not cancel \
         between them"
    )
}

/// The reading of one subject, from closed and open loop.
pub(super) fn reading(
    number: usize,
    one: &ReadySubject,
    closed: &Loaded,
    open: Option<&Loaded>,
) -> Reading {
    let throughput = load_of(number, one, closed);
    let latency = open.and_then(|open| load_of(number, one, open));
    let empty = BTreeMap::new();
    let measured = closed.measured.get(number);
    let cpu = measured.map_or(&empty, |measured| &measured.cpu_s);
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
            .map(|server| ServerReading {
                server: original(server).to_owned(),
                cpu_s: cpu.get(server).copied().unwrap_or(0.0),
            })
            .collect(),
        throughput,
        latency,
        upstream_connections_per_request,
        uncounted_upstreams: one.outside.uncounted.clone(),
        probed: metrics_of(number, one, closed),
        latency_probed: open.and_then(|open| metrics_of(number, one, open)),
        ..Reading::default()
    }
}
