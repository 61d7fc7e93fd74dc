//! Carries a load order out and watches the servers meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{Job, Progress, ReferenceError, Stop};
use readings::Probed;

use super::clock::Window;
use super::probe::Looker;
use super::system_counters::SystemSources;
use super::watch::{self, Watched};
use super::window_sampler::WindowSampler;
use super::wire::{Answer, LoadOrder, Loaded};

/// With more processes than this, servers are looked at only in long windows: looking costs time
/// on their CPUs.
const PROCESSES_FEW: usize = 16;
const LONG_WINDOW: Duration = Duration::from_millis(900);

/// Keeps this thread, which only watches, off the load's CPUs where there are others.
pub(super) fn keep_off(cpus: &[u32]) {
    let mut others = net::os::allowed_cpus().unwrap_or_default();
    others.retain(|cpu| !cpus.contains(cpu));
    if !others.is_empty() {
        // Where it cannot be done the load is disturbed a little, and its lag shows it.
        let _ = net::os::bind_to_cpus(&others);
    }
}

/// Has the load's targets asked for their references; returns those whose answers differ.
fn prepare(job: &mut Job, stop: &AtomicBool) -> Result<Vec<usize>, String> {
    let varying = load::prepare(job, stop).map_err(|e| match e.cause {
        ReferenceError::Varies => format!(
            "{} was expected to answer the same each time, but its answers differ; say \
             body = \"varies\" if that is intended",
            e.address
        ),
        cause => format!("{} cannot be measured: it {cause}", e.address),
    })?;
    Ok(varying.iter().map(|one| one.target).collect())
}

pub(super) fn carry_out(
    order: &LoadOrder,
    servers: &BTreeMap<String, Watched<'_>>,
    stop: &Arc<AtomicBool>,
    mut tell: impl FnMut(Answer),
) -> Result<Loaded, String> {
    let mut job = order.job.clone();
    keep_off(&job.cpus);
    let varying = prepare(&mut job, stop)?;
    let count = job.readings();
    let mut loaded = Loaded {
        cpu_s: vec![BTreeMap::new(); count],
        accepted: vec![Some(0); count],
        windows: vec![Vec::new(); count],
        looked_at: vec![Vec::new(); count],
        segments: vec![Vec::new(); count],
        varying,
        ..Loaded::default()
    };
    let around = SystemSources::of(order.watch.clone(), &order.watch_others);
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
fn take_seen(loaded: &mut Loaded, mut seen: BTreeMap<usize, Probed>) {
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
    let looked_at = order.look.then(|| job.segments.len().saturating_sub(1));
    let readings = load::run(job, stop, |progress| match progress {
        Progress::SegmentBegins { segment } => {
            if let Some(reading) = job.segments[segment].reading {
                loaded.segments[reading].push(Window::begins());
            }
            opens_before = watch::passive_opens(&order.watch_others);
        }
        Progress::SegmentEnds { segment } => {
            if let Some(reading) = job.segments[segment].reading {
                if let Some(window) = loaded.segments[reading].last_mut() {
                    window.ends();
                }
                let sum = loaded.accepted[reading];
                loaded.accepted[reading] = sum
                    .zip(opens_before.zip(watch::passive_opens(&order.watch_others)))
                    .map(|(sum, (before, after))| sum + after.saturating_sub(before));
            }
        }
        Progress::WindowOpens { segment } => {
            if order.tell_windows {
                tell(Answer::WindowOpens { segment });
            }
            if let Some(reading) = job.segments[segment].reading {
                loaded.windows[reading].push(Window::begins());
            }
            let look = effort <= PROCESSES_FEW
                || match job.segments[segment].stop {
                    Stop::After(window) => window >= LONG_WINDOW,
                    Stop::Requests(_) | Stop::EachConnection(_) => true,
                };
            if let Some(reading) = job.segments[segment].reading {
                sampler.open(reading);
            }
            cpu_before = look.then(|| watch::cpu_s(servers));
            if looked_at == Some(segment) {
                look_before = Some(looker.look());
            }
        }
        Progress::WindowCloses { segment } => {
            let reading = job.segments[segment].reading;
            if let Some(window) = reading.and_then(|one| loaded.windows[one].last_mut()) {
                window.ends();
            }
            if let Some(before) = look_before.take() {
                loaded.seen = Some(looker.since(&before));
            }
            if let (Some(before), Some(reading)) =
                (cpu_before.take(), job.segments[segment].reading)
            {
                for (server, after) in watch::cpu_s(servers) {
                    let used = after - before.get(&server).copied().unwrap_or(after);
                    *loaded.cpu_s[reading].entry(server).or_insert(0.0) += used.max(0.0);
                }
            }
            if let Some(reading) = job.segments[segment].reading {
                loaded.looked_at[reading].push(sampler.close());
            }
        }
        Progress::Tick {
            segment,
            requests,
            errors,
            ..
        } => tell(Answer::Progress {
            segment,
            requests,
            errors,
        }),
        Progress::Row(_) => {}
    })
    .map_err(|e| e.to_string())?;
    loaded.readings = readings;
    Ok(())
}
