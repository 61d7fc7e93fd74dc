//! Carries a load order out and samples the servers meanwhile.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{
    Arrivals, BodyRule, Expect, Job, Lane, Progress, Received, StatusRule, Stint, Stop, Target,
    Wait,
};
use net::IoKind;
use readings::LoadReading;

use super::load_sampler::{LoadSampler, Segment};
use super::timeline::Measured;
use super::watched::WatchedServers;
use super::wire::{Answer, BodyOrder, LaneOrder, LoadOrder, Loaded};

fn ms(value: f64) -> Duration {
    Duration::from_secs_f64((value / 1e3).clamp(0.0, 1e9))
}

/// The engine's form of a lane; learns its reference body. Also whether bodies vary.
fn lane(order: &LaneOrder, timeout: Duration, stop: &AtomicBool) -> Result<(Lane, bool), String> {
    let expect = Expect {
        status: order
            .status
            .map_or(StatusRule::Success, StatusRule::Exactly),
        body: match &order.contains {
            Some(text) => BodyRule::Contains(Arc::from(text.as_bytes())),
            None => BodyRule::Any,
        },
    };
    let mut target = Target::new(order.address, order.request.clone().into_bytes(), expect);
    let mut varies = false;
    if order.body != BodyOrder::Varies && order.contains.is_none() {
        let learned = load::learn_unless_stopped(&target, 0, timeout, stop)
            .map_err(|e| format!("{} cannot be measured: {e}", order.address))?;
        if learned.varies && order.body == BodyOrder::Same {
            return Err(format!(
                "{} was expected to answer the same each time, but its answers differ; say \
                 body = \"varies\" if that is intended",
                order.address
            ));
        }
        varies = learned.varies;
        target.requests[0].expect = learned.expect;
    }
    let lane = Lane {
        target,
        connections: order.connections,
    };
    Ok((lane, varies))
}

/// Keeps this thread, which only waits and samples, off the load's CPUs where there are others.
pub(super) fn keep_off(cpus: &[u32]) {
    let mut others = net::os::allowed_cpus().unwrap_or_default();
    others.retain(|cpu| !cpus.contains(cpu));
    if !others.is_empty() {
        // Otherwise it disturbs the load a little, and the load's lag shows it.
        let _ = net::os::bind_to_cpus(&others);
    }
}

pub(super) fn carry_out(
    order: &LoadOrder,
    servers: WatchedServers,
    stop: &Arc<AtomicBool>,
    mut tell: impl FnMut(Answer),
) -> Result<Loaded, String> {
    let timeout = Duration::from_millis(order.timeout_ms);
    keep_off(&order.cpus);
    let mut lanes = Vec::new();
    let mut varying = Vec::new();
    for (number, one) in order.lanes.iter().enumerate() {
        let (lane, varies) = lane(one, timeout, stop)?;
        lanes.push(lane);
        if varies {
            varying.push(number);
        }
    }
    let io = match &order.io {
        None => IoKind::best(),
        Some(name) => name.parse()?,
    };
    let job = Job {
        lanes,
        stints: order
            .stints
            .iter()
            .map(|stint| Stint {
                lane: stint.lane,
                pacing: stint.pacing,
                stages: Vec::new(),
                cut: ms(stint.cut_ms),
                stop: match stint.requests {
                    Some(count) => Stop::Requests(count),
                    None => Stop::After(ms(stint.window_ms)),
                },
                reading: stint.reading,
            })
            .collect(),
        threads: order.threads,
        requests_per_connection: order.requests_per_connection,
        connect_timeout: timeout,
        timeout,
        arrivals: Arrivals::Even,
        cpus: order.cpus.clone(),
        sources: Vec::new(),
        io,
        wait: if order.spin { Wait::Spin } else { Wait::Sleep },
        received: Received::Auto,
        rows: order.row_ms.map(Duration::from_millis),
        seed: order.seed,
    };
    let bottleneck = order.stints.len().checked_sub(1);
    let bottleneck = bottleneck.filter(|_| order.sample_scheduling);
    let segment = |stint: usize| {
        let order = &order.stints[stint];
        Segment {
            reading: order.reading,
            window_ms: order.requests.is_none().then_some(order.window_ms),
            is_bottleneck: bottleneck == Some(stint),
        }
    };
    let mut sampler = LoadSampler::start(order, servers, job.readings());
    let readings = load::run(&job, stop, |progress| match progress {
        Progress::StintBegins { stint } => sampler.segment_begins(segment(stint)),
        Progress::StintEnds { stint } => sampler.segment_ends(segment(stint)),
        Progress::WindowOpens { stint } => {
            if order.tell_windows {
                tell(Answer::WindowOpens { stint });
            }
            sampler.window_opens(segment(stint));
        }
        Progress::WindowCloses { stint } => sampler.window_closes(segment(stint)),
        Progress::Tick {
            stint,
            requests,
            errors,
            ..
        } => tell(Answer::Progress {
            stint,
            requests,
            errors,
        }),
        Progress::Row(_) => {}
    })
    .map_err(|e| e.to_string())?;
    let (mut measured, seen) = sampler.end();
    for (measured, reading) in measured.iter_mut().zip(&readings) {
        count_requests(measured, reading);
    }
    Ok(Loaded {
        readings,
        measured,
        varying,
        seen,
    })
}

/// Adds the good answers of the windows that were sampled in full.
fn count_requests(measured: &mut Measured, reading: &LoadReading) {
    let Measured { spans, metrics, .. } = measured;
    if let Some(metrics) = metrics {
        let slices = spans.windows.iter().zip(&reading.slices);
        let sampled = slices.filter(|(window, _)| spans.sampled.contains(window));
        metrics.requests = sampled.map(|(_, slice)| slice.requests).sum();
    }
}
