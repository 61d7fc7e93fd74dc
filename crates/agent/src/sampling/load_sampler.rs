//! Takes samples at the edges of a load's segments and windows, for its readings.

use std::time::Duration;

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

/// What is needed of a segment's window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SampledSegment {
    /// Number of the reading; `None` for a warm-up.
    pub(crate) reading: Option<usize>,
    /// Length of its window; `None` where it ends after a number of requests.
    pub(crate) window: Option<Duration>,
    /// Whether scheduling is sampled in it.
    pub(crate) is_bottleneck: bool,
}

/// Gets each edge in turn from the thread that waits for the load.
pub(crate) struct LoadSampler {
    sampler: Sampler,
    has_few_files: bool,
    readings: Vec<Spans>,
    segment_ns: i64,
    window: Option<Edge>,
}

impl LoadSampler {
    pub(crate) fn start(order: &LoadOrder, servers: WatchedServers, readings: usize) -> Self {
        let files: usize = servers.values().map(Watched::files).sum();
        let system = SystemSources::of(order.watch.clone(), &order.watch_others);
        Self {
            sampler: Sampler::in_windows(servers, system),
            has_few_files: files <= FILES_FEW,
            readings: vec![Spans::default(); readings],
            segment_ns: 0,
            window: None,
        }
    }

    pub(crate) fn segment_begins(&mut self, segment: SampledSegment) {
        if segment.reading.is_some() {
            self.segment_ns = self.segment_edge();
        }
    }

    pub(crate) fn segment_ends(&mut self, segment: SampledSegment) {
        if let Some(reading) = segment.reading {
            let to_ns = self.segment_edge();
            let from_ns = self.segment_ns;
            let segment = Window { from_ns, to_ns };
            self.readings[reading].segments.push(segment);
        }
    }

    fn segment_edge(&self) -> i64 {
        self.sampler.edge(Parts {
            accepted: true,
            ..Parts::default()
        })
    }

    pub(crate) fn window_opens(&mut self, segment: SampledSegment) {
        if segment.reading.is_some() {
            self.window = Some(self.sampler.open(self.window_parts(segment)));
        }
    }

    pub(crate) fn window_closes(&mut self, segment: SampledSegment) {
        let (Some(reading), Some(open)) = (segment.reading, self.window.take()) else {
            return;
        };
        let parts = Parts {
            ports: segment.is_bottleneck,
            ..self.window_parts(segment)
        };
        let close = self.sampler.close(parts);
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

    fn window_parts(&self, segment: SampledSegment) -> Parts {
        let is_long = segment.window.is_none_or(|ms| ms >= LONG_WINDOW);
        Parts {
            cpu: self.has_few_files || is_long || segment.is_bottleneck,
            scheduling: segment.is_bottleneck,
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
