//! Samples in the order of time, which are cut into windows afterwards.
//!
//! At the edges of a window there is either a sample at that very moment, where the load is made on
//! the same machine, or samples before and after it: then CPU time and accepted connections are
//! interpolated, and other counters are taken from the nearest sample.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use readings::{AcceptQueue, BottleneckSample, SystemMetrics};

use crate::kernel::namespace::Namespace;
use crate::protocol::wire::{Measured, Spans, Window};
use crate::sampling::sample::{Gauges, Sample, SampleReader};

/// Bound on samples with gauges or counters, those at edges aside: 40 s at the shortest interval.
const DETAILED_MAX: usize = 2048;
/// Bound on samples of CPU time and accepted connections alone: 20 minutes at the shortest interval.
const BARE_MAX: usize = 1 << 17;

/// Bounded: where there are too many samples every second one is merged into the next.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    servers: Vec<String>,
    namespaces: Vec<Namespace>,
    samples: Vec<Sample>,
    /// Those that were full between the first sample and the last.
    pub(crate) accept_queues: Vec<AcceptQueue>,
    detailed: usize,
    bare: usize,
}

/// The kind of samples that was thinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinned {
    Detailed,
    Bare,
}

impl Timeline {
    pub(crate) fn of(reader: &SampleReader) -> Self {
        Self {
            servers: reader.server_names(),
            namespaces: reader.namespaces().to_vec(),
            ..Self::default()
        }
    }

    /// Appends a sample that is later than all others; returns what had to be thinned for it.
    pub(crate) fn append(&mut self, sample: Sample) -> Option<Thinned> {
        self.count(&sample);
        self.samples.push(sample);
        let thinned = match () {
            () if self.detailed > DETAILED_MAX => Thinned::Detailed,
            () if self.bare > BARE_MAX => Thinned::Bare,
            () => return None,
        };
        self.thin(thinned);
        Some(thinned)
    }

    fn count(&mut self, sample: &Sample) {
        match (sample.edge, &sample.gauges) {
            (true, _) => {}
            (false, Some(_)) => self.detailed += 1,
            (false, None) => self.bare += 1,
        }
    }

    /// Merges every second of those samples into the next one, but not across an edge.
    fn thin(&mut self, which: Thinned) {
        let is_one = |sample: &Sample| {
            let detailed = sample.gauges.is_some();
            !sample.edge && detailed == (which == Thinned::Detailed)
        };
        for run in self.samples.chunk_by_mut(|_, next| !next.edge) {
            let mut earlier: Option<&mut Sample> = None;
            for sample in run.iter_mut().filter(|sample| is_one(sample)) {
                match earlier.take() {
                    None => earlier = Some(sample),
                    Some(earlier) => merge(earlier, sample),
                }
            }
        }
        self.samples.retain(|sample| !sample.is_empty());
        (self.detailed, self.bare) = (0, 0);
        for sample in std::mem::take(&mut self.samples) {
            self.count(&sample);
            self.samples.push(sample);
        }
    }

    /// What was measured in the windows of a reading.
    pub(crate) fn cut(&self, spans: Spans) -> Measured {
        Measured {
            cpu_s: self.cpu_s(&spans.windows),
            cpu_in_ticks: self.in_ticks(),
            accepted: self.accepted(&spans.segments),
            received: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            metrics: self.metrics(&spans.sampled),
            accept_queues: self.accept_queues.clone(),
            spans,
        }
    }

    /// Scheduling between the first and the last sample that has it.
    pub(crate) fn bottleneck(&self) -> Option<BottleneckSample> {
        let mut with = self.samples.iter().filter(|one| one.scheduling.is_some());
        self.scheduling_between(with.next()?, with.next_back()?)
    }

    /// Scheduling between the samples that are nearest to the edges of a window; the ports are
    /// those of the last sample that has them.
    pub(crate) fn bottleneck_in(&self, window: Window) -> Option<BottleneckSample> {
        let with = || self.samples.iter().filter(|one| one.scheduling.is_some());
        let nearest = |ns: i64| with().min_by_key(|one| one.at_ns.abs_diff(ns));
        let (first, last) = (nearest(window.from_ns)?, nearest(window.to_ns)?);
        if first.at_ns >= last.at_ns {
            return None;
        }
        let mut seen = self.scheduling_between(first, last)?;
        let mut ports = with().filter_map(|one| one.scheduling.as_deref()?.ports());
        seen.ports = ports.next_back().map(<[_]>::to_vec).unwrap_or_default();
        Some(seen)
    }

    fn scheduling_between(&self, first: &Sample, last: &Sample) -> Option<BottleneckSample> {
        let (then, now) = (first.scheduling.as_deref()?, last.scheduling.as_deref()?);
        let cpu_s = |sample: &Sample, at: usize| Some(sample.cpu.as_ref()?.get(at)?.s);
        let mut servers = Vec::new();
        for (at, name) in self.servers.iter().enumerate() {
            let used = cpu_s(last, at).zip(cpu_s(first, at));
            servers.push((name.as_str(), used.map_or(0.0, |(now, then)| now - then)));
        }
        let duration_s = (last.at_ns - first.at_ns) as f64 / 1e9;
        Some(now.since(then, &servers, duration_s))
    }

    fn cpu_s(&self, windows: &[Window]) -> BTreeMap<String, f64> {
        let servers = self.servers.iter().enumerate();
        servers
            .filter_map(|(at, name)| {
                let used = self.sum(windows, |sample| Some(sample.cpu.as_ref()?.get(at)?.s))?;
                Some((name.clone(), used.max(0.0)))
            })
            .collect()
    }

    /// The servers whose CPU time was counted in ticks: in a sample, or since children of theirs ended
    /// between the first and the last.
    fn in_ticks(&self) -> BTreeSet<String> {
        let servers = self.servers.iter().enumerate();
        let is_it = |(at, _): &(usize, &String)| {
            let mut used = self
                .samples
                .iter()
                .filter_map(|one| one.cpu.as_ref()?.get(*at));
            let Some(first) = used.clone().next() else {
                return false;
            };
            used.any(|now| now.in_ticks || now.faults_of_children != first.faults_of_children)
        };
        servers
            .filter(is_it)
            .map(|(_, name)| name.clone())
            .collect()
    }

    fn accepted(&self, segments: &[Window]) -> Option<u64> {
        let accepted = self.sum(segments, |sample| sample.accepted.map(|count| count as f64))?;
        Some(accepted.round().max(0.0) as u64)
    }

    /// How much a counter grew inside windows. `None` where no sample has it.
    fn sum(&self, windows: &[Window], value: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let grown = windows.iter().map(|window| {
            let (then, now) = (
                self.at(window.from_ns, &value),
                self.at(window.to_ns, &value),
            );
            Some(now? - then?)
        });
        grown.sum()
    }

    /// A counter at a moment, interpolated between the samples before and after.
    fn at(&self, ns: i64, value: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let (before, after) = self.samples.split_at(self.first_from(ns));
        let point = |sample: &Sample| Some((sample.at_ns, value(sample)?));
        let before = before.iter().rev().find_map(point);
        let after = after.iter().find_map(point);
        match (before, after) {
            (None, None) => None,
            (Some((_, only)), None) | (None, Some((_, only))) => Some(only),
            (Some((from_ns, from)), Some((to_ns, to))) => {
                let share = (ns - from_ns) as f64 / (to_ns - from_ns).max(1) as f64;
                Some(from + share * (to - from))
            }
        }
    }

    fn metrics(&self, windows: &[Window]) -> Option<SystemMetrics> {
        let mut all: Option<SystemMetrics> = None;
        for window in windows {
            let ends = self.nearest(window.from_ns).zip(self.nearest(window.to_ns));
            let one = ends.and_then(|(from, to)| self.between(self.samples.get(from..=to)?));
            if let Some(one) = one {
                all.get_or_insert_default().add(&one);
            }
        }
        all
    }

    /// What happened from the first of samples to the last, which both have counters.
    fn between(&self, samples: &[Sample]) -> Option<SystemMetrics> {
        let [first, .., last] = samples else {
            return None;
        };
        let (then, now) = (first.counters.as_deref()?, last.counters.as_deref()?);
        let mut highest = Gauges::default();
        let gauges = samples.iter().filter_map(|sample| sample.gauges.as_ref());
        gauges.for_each(|one| highest.raise(one));
        let mut servers = BTreeMap::new();
        for (at, name) in self.servers.iter().enumerate() {
            let (then, now) = (then.servers.get(at)?, now.servers.get(at)?);
            let mut seen = now.since(then);
            if let Some(gauges) = highest.servers.get(at) {
                seen.rss_bytes_max = gauges.rss_bytes;
                seen.processes_max = gauges.processes;
                seen.threads_max = gauges.threads;
            }
            servers.insert(name.clone(), seen);
        }
        let mut networks = Vec::new();
        for (at, namespace) in self.namespaces.iter().enumerate() {
            let (then, now) = (then.networks.get(at)?, now.networks.get(at)?);
            let mut seen = now.since(then, namespace);
            if let Some(sockets) = highest.sockets.get(at) {
                seen.sockets_max = *sockets;
            }
            networks.push(seen);
        }
        let cost: Duration = samples.iter().map(|sample| sample.cost).sum();
        Some(SystemMetrics {
            from_unix_s: first.unix_s,
            to_unix_s: last.unix_s,
            looked_s: (last.at_ns - first.at_ns) as f64 / 1e9,
            looks: highest.samples,
            cpu_s: cost.as_secs_f64(),
            servers,
            machine: now.system.since(&then.system),
            networks,
            ..SystemMetrics::default()
        })
    }

    /// The sample with counters that is nearest to a moment.
    fn nearest(&self, ns: i64) -> Option<usize> {
        let after = self.first_from(ns);
        let has = |at: &usize| self.samples[*at].counters.is_some();
        let before = (0..after).rev().find(has);
        let later = (after..self.samples.len()).find(has);
        let both = before.into_iter().chain(later);
        both.min_by_key(|at| self.samples[*at].at_ns.abs_diff(ns))
    }

    /// The first sample that is not before a moment.
    fn first_from(&self, ns: i64) -> usize {
        self.samples.partition_point(|sample| sample.at_ns < ns)
    }
}

/// Moves what can be kept of a sample into the next. A sample with gauges keeps its CPU time and
/// accepted connections; any other becomes empty.
fn merge(earlier: &mut Sample, later: &mut Sample) {
    later.cost += std::mem::take(&mut earlier.cost);
    (earlier.counters, earlier.scheduling) = (None, None);
    match (earlier.gauges.take(), &mut later.gauges) {
        (Some(gauges), Some(later)) => later.raise(&gauges),
        _ => (earlier.cpu, earlier.accepted) = (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::proc_files::CpuUsed;
    use crate::sampling::network::counters::NetworkCounters;
    use crate::sampling::sample::Counters;
    use crate::sampling::server::counters::ServerCounters;
    use crate::sampling::server::processes::ServerGauges;

    fn window(from_ns: i64, to_ns: i64) -> Window {
        Window { from_ns, to_ns }
    }

    fn timeline(samples: impl IntoIterator<Item = Sample>) -> Timeline {
        let mut timeline = Timeline {
            servers: vec!["a".to_owned()],
            namespaces: Namespace::all(Vec::new(), &[]),
            ..Timeline::default()
        };
        for sample in samples {
            timeline.append(sample);
        }
        timeline
    }

    fn bare(at_ns: i64, cpu_s: f64, accepted: u64) -> Sample {
        Sample {
            at_ns,
            cpu: Some(vec![CpuUsed::exactly(cpu_s)]),
            accepted: Some(accepted),
            ..Sample::default()
        }
    }

    fn gauges(at_ns: i64, rss_bytes: u64) -> Sample {
        let server = ServerGauges {
            rss_bytes,
            ..ServerGauges::default()
        };
        Sample {
            at_ns,
            cost: Duration::from_millis(1),
            gauges: Some(Gauges {
                samples: 1,
                servers: vec![server],
                sockets: Vec::new(),
            }),
            ..Sample::default()
        }
    }

    fn full(at_ns: i64, rss_bytes: u64, switches: u64) -> Sample {
        let counters = Counters {
            servers: vec![ServerCounters::made_up(switches)],
            networks: vec![NetworkCounters {
                accepted: switches,
                ..NetworkCounters::default()
            }],
            ..Counters::default()
        };
        Sample {
            counters: Some(Box::new(counters)),
            ..gauges(at_ns, rss_bytes)
        }
    }

    fn edge(sample: Sample) -> Sample {
        Sample {
            edge: true,
            ..sample
        }
    }

    #[test]
    fn cpu_time_and_connections_inside_windows_are_interpolated() {
        let samples = [
            bare(100, 1.0, 10),
            // Has neither, and is no point of theirs.
            full(150, 1, 1),
            bare(200, 1.0, 10),
            bare(300, 3.0, 30),
            bare(400, 3.5, 30),
        ];
        let timeline = timeline(samples);
        let used = |windows: &[Window]| timeline.cpu_s(windows)["a"];
        assert_eq!(used(&[window(200, 300)]), 2.0);
        assert_eq!(used(&[window(250, 300)]), 1.0);
        assert_eq!(used(&[window(100, 200), window(300, 400)]), 0.5);
        assert_eq!(used(&[window(0, 1_000)]), 2.5);
        assert_eq!(used(&[window(0, 50), window(500, 600)]), 0.0);
        assert_eq!(used(&[window(50, 150).shifted(100)]), 1.0);
        assert_eq!(timeline.accepted(&[window(200, 250)]), Some(10));
    }

    #[test]
    fn a_server_whose_children_or_threads_ended_is_counted_in_ticks() {
        let of = |seen: &[(bool, u64)]| {
            let samples = (0..)
                .zip(seen)
                .map(|(at, (in_ticks, faults_of_children))| Sample {
                    cpu: Some(vec![CpuUsed {
                        s: at as f64,
                        in_ticks: *in_ticks,
                        faults_of_children: *faults_of_children,
                    }]),
                    ..bare(at, 0.0, 0)
                });
            !timeline(samples).in_ticks().is_empty()
        };
        // Children that ended before the load were counted in both samples.
        assert!(!of(&[(false, 7), (false, 7)]));
        assert!(of(&[(false, 7), (false, 7), (false, 8)]));
        assert!(of(&[(false, 0), (true, 0)]));
    }

    #[test]
    fn what_no_sample_has_is_unknown() {
        let spans = Spans::of_one(window(10, 20), true);
        let of = |samples: Vec<Sample>| timeline(samples).cut(spans.clone());
        let measured = of(vec![gauges(10, 1), gauges(20, 1)]);
        assert!(measured.cpu_s.is_empty() && measured.metrics.is_none());
        assert_eq!((measured.accepted, &measured.spans), (None, &spans));
        // A single sample has no time.
        assert!(of(vec![full(10, 1, 1)]).metrics.is_none());
        assert_eq!(of(vec![bare(10, 1.0, 1)]).cpu_s["a"], 0.0);
        // No windows, and so nothing in them.
        assert_eq!(timeline([]).cut(Spans::default()).accepted, Some(0));
    }

    #[test]
    fn counters_are_differences_and_gauges_the_highest_between_the_edges() {
        let timeline = timeline([
            edge(full(100, 1, 10)),
            gauges(150, 7),
            gauges(160, 3),
            edge(full(200, 2, 14)),
            edge(full(210, 9, 20)),
            edge(full(300, 1, 21)),
        ]);
        let seen = timeline.metrics(&[window(100, 200)]).unwrap();
        let server = &seen.servers["a"];
        assert_eq!((server.switches_voluntary, server.rss_bytes_max), (4, 7));
        assert_eq!((seen.looks, seen.cpu_s, seen.looked_s), (4, 4e-3, 1e-7));
        assert_eq!(seen.networks[0].accepted, 4);
        let both = timeline.metrics(&[window(100, 200), window(210, 300)]);
        let both = both.unwrap();
        assert_eq!(both.servers["a"].switches_voluntary, 5);
        assert_eq!((both.servers["a"].rss_bytes_max, both.looks), (9, 6));
        // Without an edge of its own a window ends at the nearest sample.
        let near = timeline.metrics(&[window(60, 204)]).unwrap();
        assert_eq!(near.servers["a"].switches_voluntary, 4);
    }

    #[test]
    fn too_many_samples_are_merged_and_edges_stay() {
        let many = DETAILED_MAX as i64;
        let mut timeline = timeline([edge(full(0, 1, 0))]);
        for at in 1..=many {
            let mut sample = full(at, at as u64 % 2, at as u64);
            sample.cpu = Some(vec![CpuUsed::exactly(at as f64)]);
            assert_eq!(timeline.append(sample), None);
        }
        let before = timeline.metrics(&[window(0, many)]).unwrap();
        let thinned = timeline.append(full(many + 1, 0, many as u64 + 1));
        assert_eq!(thinned, Some(Thinned::Detailed));
        let after = timeline.metrics(&[window(0, many)]).unwrap();
        assert_eq!(before, after);
        // Their CPU time stays; the last, which had none, is the only one without.
        let with_cpu = timeline.samples.iter().filter(|one| one.cpu.is_some());
        assert_eq!(with_cpu.count(), many as usize);
        assert_eq!(timeline.cpu_s(&[window(3, 4)])["a"], 1.0);
        // Samples of two windows are not merged.
        let windows = (0..=many).flat_map(|at| {
            let at = 10 * (at + many);
            [
                edge(full(at, 1, 1)),
                gauges(at + 1, 1),
                edge(full(at + 2, 1, 1)),
            ]
        });
        for sample in windows {
            timeline.append(sample);
        }
        let last = 10 * (many + many);
        let seen = timeline.metrics(&[window(last, last + 2)]).unwrap();
        assert_eq!(seen.looks, 3);
    }

    #[test]
    fn bare_samples_are_bounded_too() {
        let mut timeline = timeline([]);
        let mut thinned = 0;
        for at in 0..2 * BARE_MAX as i64 {
            let sample = bare(at, at as f64, 0);
            thinned += usize::from(timeline.append(sample) == Some(Thinned::Bare));
        }
        assert!(thinned >= 2 && timeline.samples.len() <= BARE_MAX);
        let used = timeline.cpu_s(&[window(100, 1_100)])["a"];
        assert!((used - 1_000.0).abs() < 1e-6, "{used}");
    }
}
