//! A thread that samples servers and machine, and lets others sample at moments that they choose.
//!
//! Where the load is made on this machine, windows are known when they begin: there is a sample at
//! each edge and five a second within. Where it is made on another one, samples are taken all the
//! time, and which of them fall into windows is known afterwards.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::os::{StartThreadError, start_thread};

use crate::sampling::network::accept_queues::AcceptQueueCounter;
use crate::sampling::sample::{Parts, SampleReader};
use crate::sampling::server::watched::WatchedServers;
use crate::sampling::system_counters::SystemSources;
use crate::sampling::timeline::{Thinned, Timeline};

/// The longest time between two samples within a window.
const WINDOW_INTERVAL: Duration = Duration::from_millis(180);
/// The share of a CPU that sampling counters at the edges of windows, or all the time, may take.
const SHARE: f64 = 0.02;
/// What it may take before its share is checked.
const FREE: Duration = Duration::from_millis(5);
/// A window that begins so long after the last full sample is always sampled: with its two edges
/// that makes five samples a second.
const WINDOW_GAP: Duration = Duration::from_millis(400);
/// The share of a CPU that five samples a second may take: 5.4 ms each, in which dozens of processes
/// that ran are read and hundreds that did not are skipped. Where they take longer there are fewer,
/// and gauges are sampled in between.
const WINDOW_SHARE: f64 = 0.03;

/// Time between samples of CPU time where there are no known windows: a small part of the shortest
/// slice.
const INTERVAL: Duration = Duration::from_millis(10);
/// The same where many files have to be read.
const INTERVAL_LONG: Duration = Duration::from_millis(100);
const FILES_FEW: usize = 4;
/// The same of counters: the edges of a window are known to half of it.
const COUNTERS_INTERVAL: Duration = Duration::from_millis(20);

const BARE: Parts = Parts {
    accepted: true,
    cpu: true,
    gauges: false,
    counters: false,
    scheduling: false,
    ports: false,
};
const FULL: Parts = Parts {
    counters: true,
    ..BARE
};

/// Ends when it is dropped.
pub(crate) struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    reader: SampleReader,
    timeline: Timeline,
    accept_queues: AcceptQueueCounter,
    pace: Pace,
    began: Instant,
    /// CPU time that samples of counters and gauges have taken.
    spent: Duration,
    counters: Last,
    gauges: Last,
    /// When the last sample of any kind was complete.
    last_ended: Instant,
    ended: bool,
}

/// The last sample of a kind. Where servers have the CPU it may last much longer than it cost.
struct Last {
    at: Instant,
    cost: Duration,
}

impl Last {
    fn next(&self, interval: Duration, share: f64) -> Instant {
        self.at + interval.max(self.cost.div_f64(share))
    }
}

enum Pace {
    /// Only while a window is open that is sampled.
    Windows { is_open: bool },
    Always {
        interval: Duration,
        counters_interval: Duration,
        /// Whether samples of counters have scheduling as well.
        scheduling: bool,
    },
}

/// A sample at the edge of a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) at_ns: i64,
    /// Whether it has counters.
    pub(crate) is_full: bool,
}

impl Sampler {
    /// For a load of this machine.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn in_windows(
        servers: WatchedServers,
        system: SystemSources,
    ) -> Result<Self, StartThreadError> {
        let reader = SampleReader::new(servers, system);
        Self::start(reader, Pace::Windows { is_open: false })
    }

    /// For a load of another machine.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn always(
        servers: WatchedServers,
        system: SystemSources,
        scheduling: bool,
    ) -> Result<Self, StartThreadError> {
        let reader = SampleReader::new(servers, system);
        let interval = match reader.cpu_files() {
            ..=FILES_FEW => INTERVAL,
            _ => INTERVAL_LONG,
        };
        let pace = Pace::Always {
            interval,
            counters_interval: COUNTERS_INTERVAL,
            scheduling,
        };
        Self::start(reader, pace)
    }

    fn start(reader: SampleReader, pace: Pace) -> Result<Self, StartThreadError> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(reader, pace)),
            wake: Condvar::new(),
        });
        let its = Arc::clone(&shared);
        let thread = Some(start_thread("which samples", move || its.run())?);
        Ok(Self { shared, thread })
    }

    /// Samples at an edge of a segment.
    pub(crate) fn edge(&self, parts: Parts) -> i64 {
        self.shared.locked().read(parts, true)
    }

    /// A window begins. The sample has counters if they are asked for, or if they do not take too
    /// much time; then that at its end has them too.
    pub(crate) fn open(&self, parts: Parts) -> Edge {
        let mut state = self.shared.locked();
        let counters = parts.counters || state.may_sample();
        let at_ns = state.read(Parts { counters, ..parts }, true);
        state.pace = Pace::Windows { is_open: counters };
        drop(state);
        self.shared.wake.notify_one();
        Edge {
            at_ns,
            is_full: counters,
        }
    }

    /// The window ends. The sample has counters as well if that of its beginning had them.
    pub(crate) fn close(&self, parts: Parts) -> Edge {
        let mut state = self.shared.locked();
        let is_full = matches!(state.pace, Pace::Windows { is_open: true });
        let counters = parts.counters || is_full;
        let at_ns = state.read(Parts { counters, ..parts }, true);
        state.pace = Pace::Windows { is_open: false };
        Edge { at_ns, is_full }
    }

    /// Ends the thread; returns all samples.
    pub(crate) fn end(self) -> Timeline {
        let mut state = self.shared.locked();
        if let Pace::Always { scheduling, .. } = state.pace {
            // The load has ended before.
            let parts = Parts {
                scheduling,
                ports: scheduling,
                ..FULL
            };
            state.read(parts, false);
        }
        state.ended = true;
        let state = &mut *state;
        state.timeline.accept_queues = state.reader.accept_queues(&mut state.accept_queues);
        std::mem::take(&mut state.timeline)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.shared.locked().ended = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // One that panicked has left its samples.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.locked();
        while !state.ended {
            let now = Instant::now();
            state = match state.due_at() {
                Some(due_at) if due_at <= now => {
                    state.sample_due(now);
                    state
                }
                Some(due_at) => {
                    let waited = self.wake.wait_timeout(state, due_at - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.wake.wait(state);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }
}

impl State {
    fn new(reader: SampleReader, pace: Pace) -> Self {
        let now = Instant::now();
        let last = || Last {
            at: now,
            cost: Duration::ZERO,
        };
        let mut state = Self {
            timeline: Timeline::of(&reader),
            accept_queues: AcceptQueueCounter::start(reader.namespaces()),
            reader,
            pace,
            began: now,
            spent: Duration::ZERO,
            counters: last(),
            gauges: last(),
            last_ended: now,
            ended: false,
        };
        // Lists the servers' processes before the load. That reads all of them, so its cost says
        // nothing about later samples.
        state.read(FULL, false);
        (state.spent, state.counters.cost) = (Duration::ZERO, Duration::ZERO);
        state
    }

    fn read(&mut self, parts: Parts, edge: bool) -> i64 {
        let at = Instant::now();
        let mut sample = self.reader.read(parts);
        sample.edge = edge;
        let (at_ns, cost) = (sample.at_ns, sample.cost);
        self.last_ended = Instant::now();
        if parts.counters {
            self.counters = Last { at, cost };
            self.gauges.at = at;
        } else if parts.gauges {
            self.gauges = Last { at, cost };
        }
        if parts.counters || parts.gauges {
            self.spent += cost;
        }
        let thinned = self.timeline.append(sample);
        if let Pace::Always {
            interval,
            counters_interval,
            ..
        } = &mut self.pace
        {
            match thinned {
                None => {}
                Some(Thinned::Bare) => *interval *= 2,
                Some(Thinned::Detailed) => *counters_interval *= 2,
            }
        }
        at_ns
    }

    /// Whether a window that begins now may be sampled in full.
    fn may_sample(&self) -> bool {
        let gap = WINDOW_GAP.max(self.counters.cost.div_f64(WINDOW_SHARE) * 2);
        self.spent <= FREE + self.began.elapsed().mul_f64(SHARE)
            || self.counters.at.elapsed() >= gap
    }

    /// When the next sample is due by itself.
    fn due_at(&self) -> Option<Instant> {
        match self.pace {
            Pace::Windows { is_open: false } => None,
            Pace::Windows { is_open: true } => {
                Some(self.gauges.next(WINDOW_INTERVAL, WINDOW_SHARE))
            }
            Pace::Always { interval, .. } => Some(self.last_ended + interval),
        }
    }

    fn sample_due(&mut self, now: Instant) {
        let parts = match self.pace {
            // Between its edges a window needs no more than gauges. Counters also catch what
            // threads did that exit before the next sample.
            Pace::Windows { .. } => Parts {
                gauges: true,
                counters: self.counters.next(Duration::ZERO, WINDOW_SHARE) <= now,
                ..Parts::default()
            },
            Pace::Always {
                counters_interval,
                scheduling,
                ..
            } => match self.counters.next(counters_interval, SHARE) <= now {
                true => Parts { scheduling, ..FULL },
                false => BARE,
            },
        };
        self.read(parts, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::proc_files::process_cpu_s;
    use crate::protocol::wire::{OtherServer, Spans, Window};
    use crate::sampling::server::watched::Watched;
    use std::collections::BTreeMap;

    #[test]
    fn a_window_is_sampled_at_both_edges_and_five_times_a_second_within() {
        let me = std::process::id() as i32;
        let watched = BTreeMap::from([("me".to_owned(), Watched::processes(vec![me]))]);
        let system = SystemSources::of(vec!["me".to_owned()], &[]);
        let sampler = Sampler::in_windows(watched, system).unwrap();
        let open = sampler.open(BARE);
        let begin = Instant::now();
        let mut sum = 0_u64;
        while begin.elapsed() < Duration::from_millis(1100) {
            sum = std::hint::black_box(sum + 1);
        }
        let close = sampler.close(BARE);
        assert!(open.is_full && close.is_full);
        assert!(!sampler.close(BARE).is_full, "it is closed");
        let window = Window {
            from_ns: open.at_ns,
            to_ns: close.at_ns,
        };
        let measured = sampler.end().cut(Spans::of_one(window, true));
        let seen = measured.metrics.unwrap();
        assert!(seen.looked_s > 1.0);
        // Two edges, and one for each 180 ms but the last; on a busy machine the thread may be late.
        assert!((5..=8).contains(&seen.looks), "{}", seen.looks);
        assert!(seen.cpu_s > 0.0 && seen.cpu_s < seen.looked_s, "{seen:?}");
        let me = &seen.servers["me"];
        assert!(me.user_s + me.system_s > 0.1, "{me:?}");
        assert!(me.threads_max >= 2 && !me.ended && me.rss_bytes_max > 0);
        assert!(measured.cpu_s["me"] > 0.1 && measured.accepted.is_some());
        assert_eq!(seen.networks.len(), 1);
    }

    #[test]
    fn the_time_that_sampling_takes_is_bounded() {
        let system = SystemSources::of(Vec::new(), &[]);
        let sampler = Sampler::in_windows(BTreeMap::new(), system).unwrap();
        let set = |cost, ago| {
            let mut state = sampler.shared.locked();
            state.spent = Duration::from_secs(3600);
            let at = Instant::now() - ago;
            state.counters = Last { at, cost };
        };
        let long = WINDOW_INTERVAL.mul_f64(WINDOW_SHARE);
        set(long, Duration::ZERO);
        assert!(!sampler.open(BARE).is_full, "an hour was spent already");
        assert!(!sampler.close(BARE).is_full);
        assert!(sampler.open(FULL).is_full, "it is asked for");
        assert!(sampler.close(BARE).is_full);
        set(3 * long, WINDOW_GAP);
        assert!(!sampler.open(BARE).is_full, "a sample takes too long");
        set(long, WINDOW_GAP);
        assert!(sampler.open(BARE).is_full, "it is time");
        assert!(sampler.close(BARE).is_full);
    }

    #[test]
    fn windows_that_are_known_afterwards_are_cut_from_all_samples() {
        let busy = crate::kernel::fixtures::busy();
        let other = OtherServer {
            server: "busy".to_owned(),
            pid: busy.pid(),
            also: Vec::new(),
            group: None,
            counts: None,
        };
        let watched = BTreeMap::from([("busy".to_owned(), Watched::of_another(&other))]);
        let used_s = || process_cpu_s(other.pid);
        let system = SystemSources::remote(std::slice::from_ref(&other));
        let sampler = Sampler::always(watched, system, true).unwrap();
        let (from_ns, before_s) = (crate::kernel::clock::monotonic_ns(), used_s());
        // Other tests may keep it from the CPU for as long as they like.
        while used_s() - before_s < 0.2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let to_ns = crate::kernel::clock::monotonic_ns();
        let window = Window { from_ns, to_ns };
        let true_s = used_s() - before_s;
        let timeline = sampler.end();
        drop(busy);
        let measured = timeline.cut(Spans::of_one(window, true));
        let is_near = |s: f64| s > 0.1 && s <= true_s + 0.1;
        assert!(is_near(measured.cpu_s["busy"]), "{measured:?} of {true_s}");
        let seen = measured.metrics.unwrap();
        let server = &seen.servers["busy"];
        assert!(
            is_near(server.user_s + server.system_s),
            "{server:?} of {true_s}"
        );
        assert!(seen.looks >= 2 && server.rss_bytes_max > 0);
        assert!(seen.networks.iter().all(|network| !network.load));
        assert_eq!(timeline.cut(Spans::default()).metrics, None);
        let seen = timeline.bottleneck_in(window).unwrap();
        let server = &seen.servers["busy"];
        assert!(
            is_near(server.cpus * seen.duration_s) && server.wanted[0] > 0.0,
            "{server:?} of {true_s} s in {} s",
            seen.duration_s
        );
        // Ports are read once, at the end.
        assert!(!seen.cpus.is_empty() && seen.ports.len() == 1);
    }
}
