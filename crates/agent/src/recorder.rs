//! What servers use, noted all the time while a load is made on another machine: which of it fell
//! into the load's windows is worked out afterwards, from both clocks.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use readings::Probed;
use serde::{Deserialize, Serialize};

use super::clock::{Window, monotonic_ns};
use super::look::{Look, Looker, Peaks};
use super::system_counters::SystemSources;
use super::watch::{self, Watched};
use super::window_sampler::SHARE;
use super::wire::OtherServer;

/// How often is looked: a small part of the shortest slice.
const OFTEN: Duration = Duration::from_millis(10);
/// Where many processes have to be looked at, so that it does not cost them much.
const SELDOM: Duration = Duration::from_millis(100);
const PROCESSES_FEW: usize = 4;
/// How often everything is looked at that a server's CPU time is a part of, unless that would take
/// too much time: the ends of a window are known to half of it.
const ALL: Duration = Duration::from_millis(20);
/// So many looks are kept; with more of them every second one is dropped, and it is looked half as
/// often.
const LOOKS_MAX: usize = 2048;

/// What was noted: of each moment the same place in every list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// When, by the machine's clock that nobody sets, ns.
    pub at_ns: Vec<i64>,
    /// CPU time that each server had used by then, s.
    pub cpu_s: BTreeMap<String, Vec<f64>>,
    /// Connections that the machine had accepted by then; empty where that cannot be read.
    pub accepted: Vec<u64>,
    /// What was seen in the windows of each reading that was asked for; no requests are counted
    /// here.
    #[serde(default)]
    pub probed: Vec<Probed>,
}

impl Samples {
    /// CPU time of each server inside windows, s. Between two moments it is taken to have been
    /// used evenly.
    pub fn cpu_s_in(&self, windows: &[Window]) -> BTreeMap<String, f64> {
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
    pub fn accepted_in(&self, windows: &[Window]) -> Option<u64> {
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
pub(super) struct Recorder {
    /// Takes the windows of each reading, and ends it.
    windows: Sender<Vec<Vec<Window>>>,
    thread: JoinHandle<Samples>,
}

impl Recorder {
    /// Starts it; the first moment is noted when this returns. When it is dropped the thread ends
    /// by itself.
    pub(super) fn start(servers: Vec<OtherServer>) -> Self {
        let (noted, first) = mpsc::channel();
        let (windows, asked) = mpsc::channel::<Vec<Vec<Window>>>();
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
            let mut looks = Looks::new(&watched, SystemSources::far(&servers));
            loop {
                note(&mut samples, &watched);
                looks.look_if_due();
                // Nobody listens after the first.
                let _ = noted.send(());
                match asked.recv_timeout(pause) {
                    Err(RecvTimeoutError::Timeout) => {}
                    // Nobody wants to know any more.
                    Err(RecvTimeoutError::Disconnected) => return samples,
                    Ok(readings) => {
                        // The last moment is after the end was asked for.
                        note(&mut samples, &watched);
                        looks.look();
                        samples.probed = readings.iter().map(|one| looks.seen_in(one)).collect();
                        return samples;
                    }
                }
            }
        });
        // It ends without a word only when the thread has panicked: then nothing is noted.
        let _ = first.recv();
        Self { windows, thread }
    }

    /// Ends it; `windows` are those of each reading, by this machine's clock.
    pub(super) fn end(self, windows: Vec<Vec<Window>>) -> Samples {
        // A thread that has panicked takes nothing, and has noted nothing.
        let _ = self.windows.send(windows);
        self.thread.join().unwrap_or_default()
    }
}

/// Looks at everything, kept until it is known which windows they fall into.
struct Looks<'a> {
    looker: Looker<'a>,
    kept: Vec<(Look, Duration)>,
    pause: Duration,
    due: Instant,
}

impl<'a> Looks<'a> {
    fn new(servers: &'a BTreeMap<String, Watched<'a>>, around: SystemSources) -> Self {
        Self {
            looker: Looker::new(servers, around),
            kept: Vec::new(),
            pause: ALL,
            due: Instant::now(),
        }
    }

    fn look_if_due(&mut self) {
        if Instant::now() >= self.due {
            self.look();
        }
    }

    fn look(&mut self) {
        let (look, cost) = self.looker.look();
        self.due = Instant::now() + self.pause.max(cost.div_f64(SHARE));
        self.kept.push((look, cost));
        if self.kept.len() > LOOKS_MAX {
            let mut odd = false;
            self.kept.retain(|_| {
                odd = !odd;
                odd
            });
            self.pause *= 2;
        }
    }

    /// What happened in windows, their ends taken to be at the nearest looks.
    fn seen_in(&self, windows: &[Window]) -> Probed {
        let mut all = Probed::default();
        for window in windows {
            let (from, to) = (self.nearest(window.from_ns), self.nearest(window.to_ns));
            let Some(looks) = self.kept.get(from..=to) else {
                continue;
            };
            let [(before, _), within @ .., (after, _)] = looks else {
                continue;
            };
            let mut peaks = Peaks::default();
            for (look, _) in within {
                peaks.note(look);
            }
            let mut seen = self.looker.between(before, after, &peaks);
            let cost: Duration = looks.iter().map(|(_, cost)| *cost).sum();
            seen.cpu_s = cost.as_secs_f64();
            all.add(&seen);
        }
        all
    }

    /// The place of the look that is nearest to a moment.
    fn nearest(&self, ns: i64) -> usize {
        let at = |place: usize| self.kept[place].0.at_ns() as i64;
        let after = self
            .kept
            .partition_point(|(look, _)| (look.at_ns() as i64) < ns);
        match after {
            0 => 0,
            after if after == self.kept.len() => after - 1,
            after if at(after) - ns < ns - at(after - 1) => after,
            after => after - 1,
        }
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
            probed: Vec::new(),
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
    fn a_recorder_sees_what_a_process_uses() {
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
        let recorder = Recorder::start(vec![busy.clone()]);
        let before = used();
        let mut window = Window::begins();
        // Other tests may keep it from the CPU for as long as they like.
        while used() - before < 0.2 {
            thread::sleep(Duration::from_millis(1));
        }
        window.ends();
        let truly = used() - before;
        let samples = recorder.end(vec![vec![window], Vec::new()]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(samples.at_ns.len() > 1, "{}", samples.at_ns.len());
        let noted = samples.cpu_s_in(&[window])["busy"];
        assert!(noted > 0.1 && noted <= truly + 0.1, "{noted} of {truly}");
        let [seen, nothing] = &samples.probed[..] else {
            panic!("{:?}", samples.probed);
        };
        let used = seen.servers["busy"].user_s + seen.servers["busy"].system_s;
        assert!(used > 0.1 && used <= truly + 0.1, "{used} of {truly}");
        assert!(seen.looks >= 2 && seen.servers["busy"].rss_bytes_max > 0);
        assert!(seen.networks.iter().all(|network| !network.load));
        assert_eq!(nothing, &Probed::default());
    }
}
