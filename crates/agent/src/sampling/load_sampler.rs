//! Takes samples at the edges of a load's segments and windows, for its readings.

use std::time::Duration;

use load::{Job, Segment, Stop};
use net::os::StartThreadError;
use readings::BottleneckSample;

use crate::protocol::wire::{LoadOrder, Measured, Spans, Window};
use crate::sampling::sample::Parts;
use crate::sampling::sampler::{Edge, Sampler};
use crate::sampling::server::watched::{Watched, WatchedServers};
use crate::sampling::system_counters::SystemSources;

/// If reading CPU time takes more files than this, it is read only in long windows, since it costs
/// time on the servers' CPUs.
const FILES_FEW: usize = 16;
const LONG_WINDOW: Duration = Duration::from_millis(900);

/// Gets each edge in turn from the thread that waits for the load.
pub(crate) struct LoadSampler<'a> {
    sampler: Sampler,
    segments: &'a [Segment],
    /// The segment in which scheduling is sampled.
    bottleneck: Option<usize>,
    has_few_files: bool,
    readings: Vec<Spans>,
    segment_ns: i64,
    window: Option<Edge>,
}

impl<'a> LoadSampler<'a> {
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start(
        order: &LoadOrder,
        job: &'a Job,
        servers: WatchedServers,
    ) -> Result<Self, StartThreadError> {
        let files: usize = servers.values().map(Watched::files).sum();
        let system = SystemSources::of(order.watch.clone(), &order.watch_others);
        let last = job.segments.len().checked_sub(1);
        Ok(Self {
            sampler: Sampler::in_windows(servers, system)?,
            segments: &job.segments,
            bottleneck: last.filter(|_| order.sample_scheduling),
            has_few_files: files <= FILES_FEW,
            readings: vec![Spans::default(); job.readings()],
            segment_ns: 0,
            window: None,
        })
    }

    pub(crate) fn segment_begins(&mut self, segment: usize) {
        if self.segments[segment].reading.is_some() {
            self.segment_ns = self.segment_edge();
        }
    }

    pub(crate) fn segment_ends(&mut self, segment: usize) {
        if let Some(reading) = self.segments[segment].reading {
            let window = Window {
                from_ns: self.segment_ns,
                to_ns: self.segment_edge(),
            };
            self.readings[reading].segments.push(window);
        }
    }

    fn segment_edge(&self) -> i64 {
        self.sampler.edge(Parts {
            accepted: true,
            ..Parts::default()
        })
    }

    pub(crate) fn window_opens(&mut self, segment: usize) {
        let Some(reading) = self.segments[segment].reading else {
            return;
        };
        // No reading goes without memory and counters, however short its windows are.
        let later = &self.segments[segment + 1..];
        let is_last = later.iter().all(|one| one.reading != Some(reading));
        let parts = Parts {
            counters: is_last && self.readings[reading].sampled.is_empty(),
            ..self.window_parts(segment)
        };
        self.window = Some(self.sampler.open(parts));
    }

    pub(crate) fn window_closes(&mut self, segment: usize) {
        let (Some(reading), Some(open)) = (self.segments[segment].reading, self.window.take())
        else {
            return;
        };
        let close = self.sampler.close(Parts {
            ports: self.bottleneck == Some(segment),
            ..self.window_parts(segment)
        });
        let window = Window {
            from_ns: open.at_ns,
            to_ns: close.at_ns,
        };
        let spans = &mut self.readings[reading];
        spans.windows.push(window);
        if open.is_full && close.is_full {
            spans.sampled.push(window);
        }
    }

    fn window_parts(&self, segment: usize) -> Parts {
        let is_bottleneck = self.bottleneck == Some(segment);
        let is_short =
            matches!(self.segments[segment].stop, Stop::After(window) if window < LONG_WINDOW);
        Parts {
            cpu: self.has_few_files || !is_short || is_bottleneck,
            scheduling: is_bottleneck,
            ..Parts::default()
        }
    }

    /// What was measured in each reading; scheduling, where that was sampled.
    pub(crate) fn end(self) -> (Vec<Measured>, Option<BottleneckSample>) {
        let timeline = self.sampler.end();
        let readings = self.readings.into_iter();
        let measured = readings.map(|spans| timeline.cut(spans)).collect();
        (measured, timeline.bottleneck())
    }
}
