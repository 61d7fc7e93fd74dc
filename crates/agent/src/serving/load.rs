//! Carries a load order out and samples the servers meanwhile.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use load::Progress;
use readings::LoadReading;

use crate::kernel::clock;
use crate::protocol::wire::{Answer, LoadOrder, Loaded, Measured};
use crate::sampling::load_sampler::LoadSampler;
use crate::sampling::segment_counts::SegmentCounts;
use crate::sampling::server::watched::WatchedServers;

/// Keeps this thread, which only waits and samples, off the load's CPUs where there are others.
pub(crate) fn keep_off(cpus: &[u32]) {
    let mut others = net::os::allowed_cpus().unwrap_or_default();
    others.retain(|cpu| !cpus.contains(cpu));
    if !others.is_empty() {
        // Otherwise it disturbs the load a little, and the load's lag shows it.
        let _ = net::os::bind_to_cpus(&others);
    }
}

pub(crate) fn carry_out(
    order: &LoadOrder,
    servers: WatchedServers,
    stop: &Arc<AtomicBool>,
    mut tell: impl FnMut(Answer),
) -> Result<Loaded, String> {
    let begun = Instant::now();
    let mut job = order.job.clone();
    keep_off(&job.cpus);
    let varying = load::prepare(&mut job, stop).map_err(|e| e.to_string())?;
    let mut expectations = Vec::new();
    if order.report_expectations {
        let requests = job.targets.iter().take(1).flat_map(|one| &one.requests);
        expectations.extend(requests.map(|one| one.expect.clone()));
    }
    let counts = Arc::new(SegmentCounts::of(&servers, &order.count_others));
    let reads = Arc::clone(&counts);
    let between: load::Between = Arc::new(move || reads.read());
    let sampler = LoadSampler::start(order, &job, servers);
    let mut sampler = sampler.map_err(|error| error.to_string())?;
    let mut late_ns = 0;
    let mut timing = LoadTiming::default();
    let readings = load::run_between(&job, stop, between, |progress| match progress {
        Progress::SegmentBegins { segment } => {
            timing.ready_ns.get_or_insert_with(|| ns_since(begun));
            sampler.segment_begins(segment);
        }
        Progress::SegmentEnds { segment } => {
            if job.segments[segment].reading.is_some() {
                timing.recorded_segment_ends();
            }
            sampler.segment_ends(segment);
        }
        Progress::WindowOpens { segment } => {
            if order.report_windows {
                let at_ns = clock::monotonic_ns();
                tell(Answer::WindowOpens { segment, at_ns });
            }
            sampler.window_opens(segment);
        }
        Progress::WindowCloses { segment } => {
            timing.closed = Some(Instant::now());
            if order.report_windows {
                tell(Answer::WindowCloses { segment });
            }
            sampler.window_closes(segment);
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
        Progress::StartsLate {
            segment,
            late_ns: by,
        } => {
            if job.segments[segment].reading.is_some() {
                late_ns = late_ns.max(by);
            }
        }
        Progress::Row(row) if order.report_rows => tell(Answer::Row(row)),
        Progress::Row(_) => {}
    })
    .map_err(|e| e.to_string())?;
    counts.read();
    let (mut measured, seen) = sampler.end();
    let received = counts.in_readings(&job.segments, measured.len());
    for (measured, received) in measured.iter_mut().zip(received) {
        measured.received = received;
        measured.arrivals = counts.arrivals_in(&measured.spans);
    }
    for (measured, reading) in measured.iter_mut().zip(&readings) {
        count_requests(measured, reading);
    }
    Ok(Loaded {
        readings,
        measured,
        varying: varying.iter().map(|one| one.target).collect(),
        expectations,
        seen,
        profiles: Vec::new(),
        late_ns,
        ready_ns: timing.ready_ns.unwrap_or_default(),
        drain_ns: timing.drain_ns,
    })
}

fn ns_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Times from which a later load learns how long to wait before and between its segments.
#[derive(Default)]
struct LoadTiming {
    ready_ns: Option<u64>,
    /// When the last window closed.
    closed: Option<Instant>,
    drain_ns: u64,
}

impl LoadTiming {
    fn recorded_segment_ends(&mut self) {
        let drained = self.closed.take().map_or(0, ns_since);
        self.drain_ns = self.drain_ns.max(drained);
    }
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
