//! Carries a load order out and watches the servers meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{
    Arrivals, BodyRule, Expect, Job, Lane, Progress, Received, StatusRule, Stint, Stop, Target,
    Wait,
};
use net::IoKind;
use readings::SystemMetrics;

use super::clock::Window;
use super::probe::Looker;
use super::surroundings::Surroundings;
use super::watch::{self, Watched};
use super::window_sampler::WindowSampler;
use super::wire::{Answer, BodyOrder, LaneOrder, LoadOrder, Loaded};

/// With more processes than this, servers are looked at only in long windows: looking costs time
/// on their CPUs.
const PROCESSES_FEW: usize = 16;
const LONG_WINDOW_MS: f64 = 900.0;

fn ms(value: f64) -> Duration {
    Duration::from_secs_f64((value / 1e3).clamp(0.0, 1e9))
}

/// Turns a lane into what the engine takes; learns its reference body.
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

/// Keeps this thread, which only watches, off the load's CPUs where there are others.
pub(super) fn keep_off(cpus: &[u32]) {
    let mut others = net::os::allowed_cpus().unwrap_or_default();
    others.retain(|cpu| !cpus.contains(cpu));
    if !others.is_empty() {
        // Where it cannot be done the load is disturbed a little, and its lag shows it.
        let _ = net::os::bind_to_cpus(&others);
    }
}

pub(super) fn carry_out(
    order: &LoadOrder,
    servers: &BTreeMap<String, Watched<'_>>,
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
    let count = job.readings();
    let mut loaded = Loaded {
        cpu_s: vec![BTreeMap::new(); count],
        accepted: vec![Some(0); count],
        windows: vec![Vec::new(); count],
        looked_at: vec![Vec::new(); count],
        stints: vec![Vec::new(); count],
        varying,
        ..Loaded::default()
    };
    let around = Surroundings::of(order.watch.clone(), &order.watch_others);
    let sampler = WindowSampler::new(servers, around);
    std::thread::scope(|scope| {
        scope.spawn(|| sampler.tick());
        let run = watched_run(order, &job, servers, &sampler, stop, &mut loaded, &mut tell);
        // Also after a failure, or the scope would wait for ever.
        let seen = sampler.end();
        run.map(|()| take_seen(&mut loaded, seen))
    })?;
    Ok(loaded)
}

/// Puts what was seen to its readings, with the answers of the windows that were looked at.
fn take_seen(loaded: &mut Loaded, mut seen: BTreeMap<usize, SystemMetrics>) {
    loaded.probed = (0..loaded.readings.len())
        .map(|number| seen.remove(&number))
        .collect();
    for (number, probed) in loaded.probed.iter_mut().enumerate() {
        if let Some(probed) = probed {
            probed.requests = loaded.readings[number]
                .slices
                .iter()
                .zip(&loaded.looked_at[number])
                .filter(|(_, looked_at)| **looked_at)
                .map(|(slice, _)| slice.requests)
                .sum();
        }
    }
}

/// Makes the load.
fn watched_run(
    order: &LoadOrder,
    job: &Job,
    servers: &BTreeMap<String, Watched<'_>>,
    sampler: &WindowSampler<'_>,
    stop: &Arc<AtomicBool>,
    loaded: &mut Loaded,
    tell: &mut impl FnMut(Answer),
) -> Result<(), String> {
    let effort: usize = servers.values().map(Watched::effort).sum();
    let mut cpu_before = None;
    let mut opens_before = None;
    let mut look_before = None;
    let looker = Looker::at(servers, order.watch.clone(), &order.watch_others);
    let looked_at = order.look.then(|| order.stints.len().saturating_sub(1));
    let readings = load::run(job, stop, |progress| match progress {
        Progress::StintBegins { stint } => {
            if let Some(reading) = order.stints[stint].reading {
                loaded.stints[reading].push(Window::begins());
            }
            opens_before = watch::passive_opens(&order.watch_others);
        }
        Progress::StintEnds { stint } => {
            if let Some(reading) = order.stints[stint].reading {
                if let Some(window) = loaded.stints[reading].last_mut() {
                    window.ends();
                }
                let sum = loaded.accepted[reading];
                loaded.accepted[reading] = sum
                    .zip(opens_before.zip(watch::passive_opens(&order.watch_others)))
                    .map(|(sum, (before, after))| sum + after.saturating_sub(before));
            }
        }
        Progress::WindowOpens { stint } => {
            if order.tell_windows {
                tell(Answer::WindowOpens { stint });
            }
            if let Some(reading) = order.stints[stint].reading {
                loaded.windows[reading].push(Window::begins());
            }
            let look = effort <= PROCESSES_FEW
                || order.stints[stint].window_ms >= LONG_WINDOW_MS
                || order.stints[stint].requests.is_some();
            if let Some(reading) = order.stints[stint].reading {
                sampler.open(reading);
            }
            cpu_before = look.then(|| watch::cpu_s(servers));
            if looked_at == Some(stint) {
                look_before = Some(looker.look());
            }
        }
        Progress::WindowCloses { stint } => {
            let reading = order.stints[stint].reading;
            if let Some(window) = reading.and_then(|one| loaded.windows[one].last_mut()) {
                window.ends();
            }
            if let Some(before) = look_before.take() {
                loaded.seen = Some(looker.since(&before));
            }
            if let (Some(before), Some(reading)) = (cpu_before.take(), order.stints[stint].reading)
            {
                for (server, after) in watch::cpu_s(servers) {
                    let used = after - before.get(&server).copied().unwrap_or(after);
                    *loaded.cpu_s[reading].entry(server).or_insert(0.0) += used.max(0.0);
                }
            }
            if let Some(reading) = order.stints[stint].reading {
                loaded.looked_at[reading].push(sampler.close());
            }
        }
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
    loaded.readings = readings;
    Ok(())
}
