//! What servers use, noted all the time while a load is made on another machine: which of it fell
//! into the load's windows is worked out afterwards, from both clocks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::watch::{self, Watched};
use super::wire::OtherServer;

/// How often is looked: a small part of the shortest slice.
const OFTEN: Duration = Duration::from_millis(10);
/// Where many processes have to be looked at, so that it does not cost them much.
const SELDOM: Duration = Duration::from_millis(100);
const PROCESSES_FEW: usize = 4;

/// Since 1970, by the clock that is set, ns.
pub(super) fn wall_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_nanos() as i64)
}

/// By the clock that nobody sets, ns.
pub(super) fn monotonic_ns() -> i64 {
    net::os::now_ns() as i64
}

/// A stretch of time by a machine's clock that nobody sets, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// When it begins.
    pub from_ns: i64,
    /// When it ends.
    pub to_ns: i64,
}

impl Window {
    /// One that begins now.
    pub(super) fn begins() -> Self {
        let now = monotonic_ns();
        Self {
            from_ns: now,
            to_ns: now,
        }
    }

    /// It ends now.
    pub(super) fn ends(&mut self) {
        self.to_ns = monotonic_ns();
    }

    /// The same by a clock that is ahead by so much.
    pub(crate) fn shifted(self, by_ns: i64) -> Self {
        Self {
            from_ns: self.from_ns + by_ns,
            to_ns: self.to_ns + by_ns,
        }
    }
}

/// What was noted: of each moment the same place in every list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// When, by the machine's clock that nobody sets, ns.
    pub at_ns: Vec<i64>,
    /// CPU time that each server had used by then, s.
    pub cpu_s: BTreeMap<String, Vec<f64>>,
    /// Connections that the machine had accepted by then; empty where that cannot be read.
    pub accepted: Vec<u64>,
}

impl Samples {
    /// CPU time of each server inside windows, s. Between two moments it is taken to have been
    /// used evenly.
    pub(crate) fn cpu_s_in(&self, windows: &[Window]) -> BTreeMap<String, f64> {
        self.cpu_s
            .iter()
            .map(|(server, used)| {
                let at = |ns| self.at(used, ns);
                let used = windows.iter().map(|one| at(one.to_ns) - at(one.from_ns));
                (server.clone(), used.sum::<f64>().max(0.0))
            })
            .collect()
    }

    /// Connections that were accepted inside windows, to the nearest.
    pub(crate) fn accepted_in(&self, windows: &[Window]) -> Option<u64> {
        if self.accepted.len() != self.at_ns.len() || self.at_ns.is_empty() {
            return None;
        }
        let counts: Vec<f64> = self.accepted.iter().map(|count| *count as f64).collect();
        let at = |ns| self.at(&counts, ns);
        let all: f64 = windows
            .iter()
            .map(|one| at(one.to_ns) - at(one.from_ns))
            .sum();
        Some(all.round().max(0.0) as u64)
    }

    /// A count at a moment, from the moments before and after.
    fn at(&self, counts: &[f64], ns: i64) -> f64 {
        let after = self.at_ns.partition_point(|at| *at < ns);
        let value = |place: usize| counts.get(place).copied().unwrap_or(0.0);
        match (after.checked_sub(1), self.at_ns.get(after)) {
            (None, _) => value(0),
            (Some(before), None) => value(before),
            (Some(before), Some(end)) => {
                let start = self.at_ns[before];
                let share = (ns - start) as f64 / (end - start).max(1) as f64;
                value(before) + share * (value(after) - value(before))
            }
        }
    }
}

/// A thread that notes.
pub(super) struct Sampler {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Samples>>,
}

impl Sampler {
    /// Starts it; the first moment is noted when this returns.
    pub(super) fn start(servers: Vec<OtherServer>) -> Self {
        let (noted, first) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let ends = stop.clone();
        let thread = thread::spawn(move || {
            let watched: BTreeMap<String, Watched<'_>> = servers
                .iter()
                .map(|one| (one.server.clone(), Watched::of_another(one)))
                .collect();
            let effort: usize = watched.values().map(Watched::effort).sum();
            let pause = if effort <= PROCESSES_FEW {
                OFTEN
            } else {
                SELDOM
            };
            let mut samples = Samples::default();
            loop {
                // Seen before the look, so that the last one is after the end was asked for.
                let last = ends.load(Ordering::Relaxed);
                note(&mut samples, &watched);
                // Nobody listens after the first.
                let _ = noted.send(());
                if last {
                    return samples;
                }
                thread::park_timeout(pause);
            }
        });
        // It ends without a word only when the thread has panicked: then nothing is noted.
        let _ = first.recv();
        Self {
            stop,
            thread: Some(thread),
        }
    }

    pub(super) fn end(mut self) -> Samples {
        self.join().unwrap_or_default()
    }

    fn join(&mut self) -> Option<Samples> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.join();
    }
}

fn note(samples: &mut Samples, watched: &BTreeMap<String, Watched<'_>>) {
    samples.at_ns.push(monotonic_ns());
    for (server, used) in watch::cpu_s(watched) {
        samples.cpu_s.entry(server).or_default().push(used);
    }
    samples.accepted.extend(watch::passive_opens(&[]));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(from_ns: i64, to_ns: i64) -> Window {
        Window { from_ns, to_ns }
    }

    #[test]
    fn what_falls_into_windows_is_counted() {
        let samples = Samples {
            at_ns: vec![100, 200, 300, 400],
            cpu_s: BTreeMap::from([("a".to_owned(), vec![1.0, 1.0, 3.0, 3.5])]),
            accepted: vec![10, 10, 30, 30],
        };
        let used = |windows: &[Window]| samples.cpu_s_in(windows)["a"];
        assert_eq!(used(&[window(200, 300)]), 2.0);
        assert_eq!(used(&[window(250, 300)]), 1.0);
        assert_eq!(used(&[window(100, 200), window(300, 400)]), 0.5);
        assert_eq!(used(&[window(0, 1_000)]), 2.5);
        assert_eq!(used(&[window(0, 50), window(500, 600)]), 0.0);
        assert_eq!(samples.accepted_in(&[window(200, 250)]), Some(10));
        assert_eq!(samples.cpu_s_in(&[window(50, 150).shifted(100)])["a"], 1.0);
        assert_eq!(Samples::default().accepted_in(&[window(1, 2)]), None);
    }

    #[test]
    fn a_sampler_sees_what_a_process_uses() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let busy = OtherServer {
            server: "busy".to_owned(),
            pid: child.id() as i32,
            group: None,
        };
        let watched = BTreeMap::from([("busy".to_owned(), Watched::of_another(&busy))]);
        let used = || watch::cpu_s(&watched)["busy"];
        let sampler = Sampler::start(vec![busy.clone()]);
        let before = used();
        let mut window = Window::begins();
        // Other tests may keep it from the CPU for as long as they like.
        while used() - before < 0.2 {
            thread::sleep(Duration::from_millis(1));
        }
        window.ends();
        let truly = used() - before;
        let samples = sampler.end();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(samples.at_ns.len() > 1, "{}", samples.at_ns.len());
        let noted = samples.cpu_s_in(&[window])["busy"];
        assert!(noted > 0.1 && noted <= truly + 0.1, "{noted} of {truly}");
    }
}
