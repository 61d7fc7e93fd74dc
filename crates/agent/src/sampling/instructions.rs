//! Counts the instructions that servers retire, with counters of the kernel on each of their threads.
//!
//! Counters take time at each context switch, so they are open only during a load that nothing else
//! is measured of. They are read every few milliseconds, and the counts of a load are the difference
//! of a reading before it and one after it, when the servers had nothing to do: so the edges are
//! exact, also by the clock of another machine.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::perf::{Count, Counter, Event};
use readings::InstructionScope;

use crate::kernel::clock::monotonic_ns;
use crate::kernel::proc_files::threads_of;
use crate::protocol::wire::{IdleTimes, Window};
use crate::sampling::server::watched::{Watched, WatchedServers};

/// Time from one reading of all counters to the next, ...
const PERIOD: Duration = Duration::from_millis(10);
/// ... or so many times what a reading takes, if that is longer.
const PERIOD_IN_READINGS: u32 = 20;
/// Readings that are kept: ten minutes. A caller asks for them after seconds.
const READINGS_MAX: usize = 60_000;
/// The longest wait for the last idle time of a load.
const LAST_IDLE_MAX: Duration = Duration::from_secs(2);
/// More threads, over all servers of a host, are not counted: their counters would take longer to read
/// than a load is idle.
const THREADS_MAX: usize = 500;
/// Turns of a loop in which a counter has to see something.
const PROBED: u64 = 10_000;
/// With the value `task_clock`, CPU time in ns is counted in place of instructions; for tests on
/// machines without counters.
const EVENT_VARIABLE: &str = "WEIGH_COUNTED_EVENT";
const ESRCH: i32 = 3;

/// Why instructions are not counted on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCounted {
    /// The processor has no counters, or the kernel does not see them, as in most virtual machines.
    NoCounters,
    /// The kernel does not permit it, by `kernel.perf_event_paranoid` or a container's filter.
    Forbidden,
    /// The cores are of several kinds, and a counter counts on those of one kind.
    SeveralKinds,
}

/// Which instructions of servers are counted on this machine.
///
/// # Errors
/// When none are, with the reason.
pub fn scope() -> Result<InstructionScope, NotCounted> {
    static SCOPE: OnceLock<Result<InstructionScope, NotCounted>> = OnceLock::new();
    *SCOPE.get_or_init(
        || match kinds_of_cores(Path::new("/sys/bus/event_source/devices")) {
            0 | 1 => probe(),
            _ => Err(NotCounted::SeveralKinds),
        },
    )
}

/// How many kinds of cores have counters of their own: these devices list their CPUs.
fn kinds_of_cores(devices: &Path) -> usize {
    let entries = std::fs::read_dir(devices).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.path().join("cpus").exists())
        .count()
}

/// Counts instructions of this thread, as far as the kernel permits.
fn probe() -> Result<InstructionScope, NotCounted> {
    // The refusal of `User` is reported: `UserAndKernel` is refused to ordinary users on any processor.
    let mut why = NotCounted::NoCounters;
    for scope in [InstructionScope::UserAndKernel, InstructionScope::User] {
        match Counter::open(0, event(), with_kernel(scope)) {
            Ok(counter) => {
                for number in 0..PROBED {
                    std::hint::black_box(number);
                }
                let count = counter.read().ok().and_then(Count::scaled);
                return match count.is_some_and(|count| count > 0) {
                    true => Ok(scope),
                    false => Err(NotCounted::NoCounters),
                };
            }
            Err(e) => {
                why = match e.kind() {
                    io::ErrorKind::PermissionDenied => NotCounted::Forbidden,
                    _ => NotCounted::NoCounters,
                };
            }
        }
    }
    Err(why)
}

fn event() -> Event {
    match std::env::var(EVENT_VARIABLE).as_deref() {
        Ok("task_clock") => Event::TaskClock,
        _ => Event::Instructions,
    }
}

fn with_kernel(scope: InstructionScope) -> bool {
    scope == InstructionScope::UserAndKernel
}

/// Counters of all threads of some servers, which a thread of its own reads.
pub(crate) struct Counting {
    servers: Vec<String>,
    stop: Sender<()>,
    reader: JoinHandle<Vec<Reading>>,
}

/// What all counters had counted at one moment.
struct Reading {
    at_ns: i64,
    /// Of each server; `None` where a counter could not be read.
    counts: Vec<Option<Count>>,
}

impl Counting {
    /// Opens counters on every thread that the servers have now; they also count what these threads
    /// start. A server without processes is left out.
    ///
    /// # Errors
    /// When the kernel refuses one, or there are too many threads.
    pub(crate) fn start(watched: &WatchedServers, scope: InstructionScope) -> Result<Self, String> {
        Self::start_with(watched, event(), scope)
    }

    fn start_with(
        watched: &WatchedServers,
        event: Event,
        scope: InstructionScope,
    ) -> Result<Self, String> {
        // Threads that begin later are counted by the thread that starts them, so all are listed
        // before the first counter is open.
        let threads: Vec<(&String, Vec<i32>)> = watched
            .iter()
            .map(|(server, one)| (server, threads(one)))
            .collect();
        let count: usize = threads.iter().map(|(_, threads)| threads.len()).sum();
        if count > THREADS_MAX {
            return Err(format!(
                "the servers have {count} threads, and at most {THREADS_MAX} are counted"
            ));
        }
        let (mut servers, mut counters) = (Vec::new(), Vec::new());
        for (server, threads) in threads {
            let mut own = Vec::new();
            for thread in threads {
                match Counter::open(thread, event, with_kernel(scope)) {
                    Ok(counter) => own.push(counter),
                    Err(e) if e.raw_os_error() == Some(ESRCH) => {}
                    Err(e) => return Err(format!("no counter on a thread of `{server}`: {e}")),
                }
            }
            if !own.is_empty() {
                servers.push(server.clone());
                counters.push(own);
            }
        }
        let (stop, stopped) = mpsc::channel();
        let reader = net::os::start_thread("which reads counters of instructions", move || {
            let mut readings = Vec::new();
            loop {
                let begun = Instant::now();
                readings.push(Reading::of(&counters));
                let period = PERIOD.max(begun.elapsed() * PERIOD_IN_READINGS);
                match stopped.recv_timeout(period) {
                    Err(RecvTimeoutError::Timeout) if readings.len() < READINGS_MAX => {}
                    _ => break,
                }
            }
            readings.push(Reading::of(&counters));
            readings
        });
        Ok(Self {
            servers,
            stop,
            reader: reader.map_err(|error| error.to_string())?,
        })
    }

    /// Closes the counters after the last of these times. Returns the instructions of each server in
    /// each load; servers without two usable readings are left out.
    pub(crate) fn end(self, loads: &[IdleTimes]) -> Vec<BTreeMap<String, u64>> {
        let last_ns = loads.iter().map(|load| load.after.to_ns).max();
        let left_ns = last_ns.map_or(0, |last_ns| last_ns.saturating_sub(monotonic_ns()));
        let left = Duration::from_nanos(u64::try_from(left_ns).unwrap_or(0));
        std::thread::sleep(left.min(LAST_IDLE_MAX));
        drop(self.stop);
        let readings = self.reader.join().unwrap_or_default();
        let counts = |idle: &IdleTimes| {
            let mut counts = BTreeMap::new();
            let Some((before, after)) = around(&readings, idle) else {
                return counts;
            };
            for (number, server) in self.servers.iter().enumerate() {
                let both = before.counts[number].zip(after.counts[number]);
                if let Some(count) = both.and_then(|(before, after)| (after - before).scaled()) {
                    counts.insert(server.clone(), count);
                }
            }
            counts
        };
        loads.iter().map(counts).collect()
    }
}

impl Reading {
    fn of(counters: &[Vec<Counter>]) -> Self {
        let sum = |own: &Vec<Counter>| {
            let mut sum = Count::default();
            for counter in own {
                sum += counter.read().ok()?;
            }
            Some(sum)
        };
        Self {
            at_ns: monotonic_ns(),
            counts: counters.iter().map(sum).collect(),
        }
    }
}

/// The last reading in the time before a load, and the last one in the time after it.
fn around<'r>(readings: &'r [Reading], idle: &IdleTimes) -> Option<(&'r Reading, &'r Reading)> {
    let last_in = |window: Window| {
        let until = readings.partition_point(|one| one.at_ns <= window.to_ns);
        let last = readings[..until].last()?;
        (last.at_ns >= window.from_ns).then_some(last)
    };
    Some((last_in(idle.before)?, last_in(idle.after)?))
}

/// All threads of a server.
fn threads(watched: &Watched) -> Vec<i32> {
    watched.pids().into_iter().flat_map(threads_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fixtures::{Killed, TemporaryFolder, busy, shell, tell};
    use crate::kernel::proc_files::{process_cpu_s, tree};

    fn watched(processes: &[(&str, &Killed)]) -> WatchedServers {
        let one = |(name, process): &(&str, &Killed)| {
            let watched = Watched::processes(tree(process.pid()));
            ((*name).to_owned(), watched)
        };
        processes.iter().map(one).collect()
    }

    /// Counts CPU time instead of instructions. `None` where a container forbids it.
    fn start(processes: &[(&str, &Killed)]) -> Option<Counting> {
        match Counter::open(0, Event::TaskClock, false) {
            Ok(_) => {
                let scope = InstructionScope::User;
                Some(Counting::start_with(&watched(processes), Event::TaskClock, scope).unwrap())
            }
            Err(e) => {
                testing::skip(&format!("the kernel refuses perf_event_open: {e}"));
                None
            }
        }
    }

    /// A time in which nothing happens but, also on a busy machine, a reading.
    fn pause() -> Window {
        let from_ns = monotonic_ns();
        std::thread::sleep(Duration::from_millis(400));
        Window {
            from_ns,
            to_ns: monotonic_ns(),
        }
    }

    /// A command that keeps the shell itself busy, then starts another program.
    const WORK: &str = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; \
                        perl -e 'for (1 .. 1_000_000) { }'";

    #[test]
    fn the_work_of_a_load_and_of_the_programs_that_it_starts_is_counted_to_its_server() {
        let (mut a, mut b) = (shell(), shell());
        let Some(counting) = start(&[("a", &a), ("b", &b)]) else {
            return;
        };
        let first = pause();
        tell(&mut a, WORK);
        let between = pause();
        tell(&mut b, WORK);
        let last = pause();
        // Its child was waited for, so the kernel adds its time.
        let used_ms = process_cpu_s(a.pid()) * 1e3;
        let passed_ms = (last.from_ns - first.to_ns) as f64 / 1e6;
        let load = |before, after| IdleTimes { before, after };
        let counts = counting.end(&[load(first, between), load(between, last), load(first, last)]);
        let ms = |load: usize, server: &str| counts[load][server] as f64 / 1e6;
        // Ended children are known by the tick of 10 ms; a task's clock also runs while a hypervisor
        // has the CPU, its usage may not.
        assert!(
            (used_ms - 15.0..passed_ms).contains(&ms(0, "a")),
            "{counts:?}, used {used_ms} ms of {passed_ms}"
        );
        assert!(ms(0, "b") < 5.0 && ms(1, "a") < 5.0, "{counts:?}");
        assert!(ms(1, "b") > 10.0, "{counts:?}");
        let sum = counts[0]["a"] + counts[1]["a"];
        assert!(counts[2]["a"].abs_diff(sum) < 10, "{counts:?}");
    }

    #[test]
    fn a_load_without_a_reading_on_both_sides_has_no_count() {
        let process = busy();
        let Some(counting) = start(&[("a", &process)]) else {
            return;
        };
        let known = pause();
        let unknown = Window {
            from_ns: 1,
            to_ns: 2,
        };
        let load = |before, after| IdleTimes { before, after };
        let counts = counting.end(&[
            load(unknown, known),
            load(known, unknown),
            load(known, known),
        ]);
        assert!(counts[0].is_empty() && counts[1].is_empty(), "{counts:?}");
        assert_eq!(counts[2]["a"], 0, "one reading is both");
    }

    #[test]
    fn a_server_without_processes_is_left_out() {
        let process = busy();
        if start(&[("a", &process)]).is_none() {
            return;
        }
        let mut watched = watched(&[("a", &process)]);
        watched.insert("gone".to_owned(), Watched::processes(Vec::new()));
        watched.insert("never".to_owned(), Watched::processes(vec![i32::MAX]));
        let counting =
            Counting::start_with(&watched, Event::TaskClock, InstructionScope::User).unwrap();
        let (before, after) = (pause(), pause());
        let counts = counting.end(&[IdleTimes { before, after }]);
        assert_eq!(counts[0].keys().collect::<Vec<_>>(), ["a"]);
        assert!(counts[0]["a"] > 0, "{counts:?}");
    }

    #[test]
    fn what_is_said_to_be_counted_can_be_counted() {
        let opens = |with_kernel| Counter::open(0, Event::Instructions, with_kernel).is_ok();
        match scope() {
            Ok(InstructionScope::UserAndKernel) => assert!(opens(true)),
            Ok(InstructionScope::User) => assert!(opens(false) && !opens(true)),
            Err(NotCounted::Forbidden) => assert!(!opens(false)),
            Err(_) => {}
        }
    }

    #[test]
    fn cores_of_several_kinds_are_told_by_their_devices() {
        let folder = TemporaryFolder::new();
        let device = |name: &str, file: &str| {
            std::fs::create_dir_all(folder.0.join(name)).unwrap();
            std::fs::write(folder.0.join(name).join(file), "0-3\n").unwrap();
        };
        assert_eq!(kinds_of_cores(&folder.0), 0);
        device("cpu", "type");
        device("uncore_imc", "cpumask");
        assert_eq!(kinds_of_cores(&folder.0), 0);
        device("cpu_core", "cpus");
        device("cpu_atom", "cpus");
        assert_eq!(kinds_of_cores(&folder.0), 2);
    }
}
