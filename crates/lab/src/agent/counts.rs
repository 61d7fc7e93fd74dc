//! What the kernel has counted of a server so far: all its processes and threads.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use readings::{ServerProbed, ThreadProbed};

use super::watch::Watched;

/// The kernel's unit of time in `/proc`, on every Linux that Rust knows.
pub(super) const TICKS_PER_S: f64 = 100.0;
/// A process that was younger than this when the load began may have been there for one request.
const SETTLED_S: f64 = 0.2;

/// What a server had at a look, counted from some time before the load. Every figure but the
/// memory only grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    user_s: f64,
    system_s: f64,
    faults_minor: u64,
    faults_major: u64,
    switches: Switches,
    threads: BTreeMap<i32, Thread>,
    pub(super) rss_bytes: u64,
    pub(super) processes: u32,
    ended: bool,
    restarted: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Switches {
    voluntary: u64,
    involuntary: u64,
}

/// What a thread has had since it began.
#[derive(Clone, Debug, Default)]
struct Thread {
    name: String,
    user_ticks: u64,
    system_ticks: u64,
    switches: Switches,
}

/// Keeps a server's counts growing where processes and threads end.
#[derive(Default)]
pub(super) struct Counter {
    last: Counts,
    /// What threads had that have ended since.
    gone: Switches,
    /// Sums of the last look over the processes that were there: user and system ticks, minor and
    /// major faults.
    sums: [u64; 4],
    /// The same, grown.
    grown: [u64; 4],
    /// Processes when the load began, by number and start: the one that was started first, and
    /// those below it.
    first: Vec<(i32, u64)>,
    below: Vec<(i32, u64)>,
    begun: bool,
}

impl Counter {
    /// Looks. What ends between two looks takes with it what it did since the last one, as far
    /// as its parent does not inherit it.
    pub(super) fn look(&mut self, watched: &Watched<'_>) -> Counts {
        let processes: Vec<Process> = watched
            .pids_now()
            .into_iter()
            .filter_map(Process::read)
            .collect();
        let mut now = Counts {
            processes: processes.len() as u32,
            ..Counts::default()
        };
        let mut sums = [0; 4];
        for process in &processes {
            for (sum, figure) in sums.iter_mut().zip(process.with_children) {
                *sum += figure;
            }
            process.look_at_threads(&mut now);
        }
        for (at, sum) in sums.iter().enumerate() {
            self.grown[at] += sum.saturating_sub(self.sums[at]);
        }
        self.sums = sums;
        let [user, system, minor, major] = self.grown;
        (now.faults_minor, now.faults_major) = (minor, major);
        (now.user_s, now.system_s) = watched
            .group()
            .and_then(of_group)
            .unwrap_or((user as f64 / TICKS_PER_S, system as f64 / TICKS_PER_S));
        for (number, last) in &self.last.threads {
            let still = now.threads.get(number);
            // A number that counts less than before is another thread's.
            if still.is_none_or(|now| now.switches.voluntary < last.switches.voluntary) {
                self.gone.voluntary += last.switches.voluntary;
                self.gone.involuntary += last.switches.involuntary;
            }
        }
        now.switches = self.gone;
        for thread in now.threads.values() {
            now.switches.voluntary += thread.switches.voluntary;
            now.switches.involuntary += thread.switches.involuntary;
        }
        self.judge(&processes, &mut now);
        self.last = now.clone();
        now
    }

    /// Whether the server has ended or been started again since the first look.
    fn judge(&mut self, processes: &[Process], now: &mut Counts) {
        let is_there = |one: &(i32, u64)| processes.iter().any(|p| p.identity() == *one);
        if !self.begun {
            self.begun = true;
            let uptime_s = uptime_s();
            let has = |pid: i32| processes.iter().any(|p| p.pid == pid);
            for process in processes {
                let age_s = uptime_s - process.start_ticks as f64 / TICKS_PER_S;
                match has(process.parent) {
                    false => self.first.push(process.identity()),
                    true if age_s >= SETTLED_S => self.below.push(process.identity()),
                    true => {}
                }
            }
            return;
        }
        let began = !self.first.is_empty();
        now.ended = self.last.ended || (began && processes.is_empty());
        let replaced = |before: &[(i32, u64)]| {
            !before.is_empty()
                && !before.iter().any(is_there)
                && processes
                    .iter()
                    .any(|p| !self.first.contains(&p.identity()))
        };
        now.restarted = self.last.restarted || replaced(&self.below) || replaced(&self.first);
    }
}

impl Counts {
    /// What happened between an earlier look and this one.
    pub(super) fn since(&self, before: &Counts) -> ServerProbed {
        let none = Thread::default();
        let busiest = self.threads.iter().map(|(number, now)| {
            let then = before.threads.get(number).unwrap_or(&none);
            let s = |now: u64, then: u64| now.saturating_sub(then) as f64 / TICKS_PER_S;
            let switches = now.switches.since(then.switches);
            ThreadProbed {
                thread: *number,
                name: now.name.clone(),
                user_s: s(now.user_ticks, then.user_ticks),
                system_s: s(now.system_ticks, then.system_ticks),
                switches_voluntary: switches.voluntary,
                switches_involuntary: switches.involuntary,
            }
        });
        let switches = self.switches.since(before.switches);
        let mut seen = ServerProbed {
            user_s: (self.user_s - before.user_s).max(0.0),
            system_s: (self.system_s - before.system_s).max(0.0),
            switches_voluntary: switches.voluntary,
            switches_involuntary: switches.involuntary,
            faults_minor: self.faults_minor - before.faults_minor,
            faults_major: self.faults_major - before.faults_major,
            rss_bytes_max: self.rss_bytes.max(before.rss_bytes),
            processes_max: self.processes.max(before.processes),
            threads_max: self.threads.len().max(before.threads.len()) as u32,
            busiest: busiest.collect(),
            ended: self.ended,
            restarted: self.restarted,
        };
        seen.keep_busiest();
        seen
    }

    pub(super) fn threads(&self) -> u32 {
        self.threads.len() as u32
    }
}

impl Switches {
    fn since(self, before: Switches) -> Switches {
        Switches {
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}

/// What `/proc/PID/stat` tells.
struct Process {
    pid: i32,
    parent: i32,
    name: String,
    /// User and system ticks, minor and major faults, those of children that it has waited for
    /// with them.
    with_children: [u64; 4],
    own_ticks: (u64, u64),
    threads: u64,
    start_ticks: u64,
}

impl Process {
    /// `None` for one that has ended.
    fn read(pid: i32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, fields) = fields(&text)?;
        if matches!(
            text[text.rfind(')')? + 1..].trim_start().get(..1)?,
            "Z" | "X"
        ) {
            return None;
        }
        // Counted from the state, which is the third field of the file.
        let field = |n: usize| fields.get(n - 3).copied().unwrap_or(0);
        Some(Self {
            pid,
            parent: field(4) as i32,
            name: name.to_owned(),
            with_children: [
                field(14) + field(16),
                field(15) + field(17),
                field(10) + field(11),
                field(12) + field(13),
            ],
            own_ticks: (field(14), field(15)),
            threads: field(20),
            start_ticks: field(22),
        })
    }

    fn identity(&self) -> (i32, u64) {
        (self.pid, self.start_ticks)
    }

    fn look_at_threads(&self, now: &mut Counts) {
        let pid = self.pid;
        if self.threads <= 1 {
            let Some(status) = Status::read(&format!("/proc/{pid}/status")) else {
                return;
            };
            now.rss_bytes += status.rss_bytes;
            let thread = Thread {
                name: self.name.clone(),
                user_ticks: self.own_ticks.0,
                system_ticks: self.own_ticks.1,
                switches: status.switches,
            };
            now.threads.insert(pid, thread);
            return;
        }
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
            return;
        };
        for task in tasks.flatten() {
            let Some(number) = task.file_name().to_str().and_then(|n| n.parse().ok()) else {
                continue;
            };
            let Some(status) = Status::read(&format!("/proc/{pid}/task/{number}/status")) else {
                continue;
            };
            if number == pid {
                now.rss_bytes += status.rss_bytes;
            }
            let text = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            let (name, fields) = fields(&text).unwrap_or_default();
            let thread = Thread {
                name: name.to_owned(),
                user_ticks: fields.get(11).copied().unwrap_or(0),
                system_ticks: fields.get(12).copied().unwrap_or(0),
                switches: status.switches,
            };
            now.threads.insert(number, thread);
        }
    }
}

/// The name, and the fields from the state on; what is no whole number without a sign is 0.
fn fields(stat: &str) -> Option<(&str, Vec<u64>)> {
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let rest = stat[close + 1..].split_whitespace().take(20);
    let fields = rest.map(|field| field.parse().unwrap_or(0)).collect();
    Some((stat.get(open + 1..close)?, fields))
}

struct Status {
    rss_bytes: u64,
    switches: Switches,
}

impl Status {
    fn read(path: &str) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let figure = |name: &str| -> u64 {
            text.lines()
                .find_map(|line| line.strip_prefix(name))
                .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
                .unwrap_or(0)
        };
        Some(Self {
            rss_bytes: figure("VmRSS:") * 1024,
            switches: Switches {
                voluntary: figure("voluntary_ctxt_switches:"),
                involuntary: figure("nonvoluntary_ctxt_switches:"),
            },
        })
    }
}

/// User and system time of all that ever ran in a control group, s.
fn of_group(folder: &Path) -> Option<(f64, f64)> {
    let read = |file: &str, user: &str, system: &str, per_s: f64| {
        let text = fs::read_to_string(folder.join(file)).ok()?;
        let figure = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse::<f64>().ok()
        };
        Some((figure(user)? / per_s, figure(system)? / per_s))
    };
    read("cpu.stat", "user_usec ", "system_usec ", 1e6)
        .or_else(|| read("cpuacct.stat", "user ", "system ", TICKS_PER_S))
}

fn uptime_s() -> f64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|s| s.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            // Its process group: what it has started goes with it.
            let _ = net::os::kill(-(self.0.id() as i32), 9);
            let _ = self.0.wait();
        }
    }

    /// A shell that does what it is told, a line at a time, and says `done` after each.
    fn shell() -> Killed {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "while read -r line; do eval \"$line\"; echo done; done",
        ]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::null());
        command.process_group(0);
        Killed(command.spawn().unwrap())
    }

    fn tell(shell: &mut Killed, line: &str) {
        writeln!(shell.0.stdin.as_mut().unwrap(), "{line}").unwrap();
        let mut said = String::new();
        let mut output = BufReader::with_capacity(1, shell.0.stdout.as_mut().unwrap());
        output.read_line(&mut said).unwrap();
        assert_eq!(said, "done\n");
    }

    #[test]
    fn each_wait_of_a_thread_is_a_switch_and_what_ended_is_not_taken_back() {
        let mut shell = shell();
        let watched = Watched::Processes(vec![shell.0.id() as i32]);
        let mut counter = Counter::default();
        tell(&mut shell, ":");
        let before = counter.look(&watched);
        for _ in 0..50 {
            tell(&mut shell, ":");
        }
        let seen = counter.look(&watched).since(&before);
        // Each line is a wait for input, and one for each byte at the most. Where others want the
        // CPU, it may be taken away in the moment in which the shell begins to wait.
        let switches = seen.switches_voluntary + seen.switches_involuntary;
        assert!((50..500).contains(&switches), "{seen:?}");
        assert!(seen.rss_bytes_max > 100_000, "{seen:?}");
        assert_eq!((seen.processes_max, seen.threads_max), (1, 1));
        // A child of it is seen while it is there, and its switches stay when it has gone.
        tell(&mut shell, "sleep 60 & child=$!");
        let with_child = counter.look(&watched);
        assert_eq!(with_child.processes, 2);
        tell(&mut shell, "kill $child; wait $child");
        let after = counter.look(&watched);
        assert_eq!(after.processes, 1);
        let all = after.since(&before);
        assert!(all.switches_voluntary >= with_child.since(&before).switches_voluntary);
        assert!(all.faults_minor > 0);
        assert!(!all.ended && !all.restarted);
        shell.0.kill().unwrap();
        shell.0.wait().unwrap();
        assert!(counter.look(&watched).since(&before).ended);
    }

    #[test]
    fn a_child_that_was_replaced_is_a_restart_and_one_that_came_late_is_none() {
        let mut shell = shell();
        let watched = Watched::Processes(vec![shell.0.id() as i32]);
        tell(&mut shell, "sleep 60 & child=$!");
        // Old enough to be a part of the server.
        let born = std::time::Instant::now();
        while born.elapsed().as_secs_f64() < SETTLED_S + 0.05 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let mut counter = Counter::default();
        let before = counter.look(&watched);
        tell(&mut shell, "sleep 60 & late=$!");
        assert!(!counter.look(&watched).since(&before).restarted);
        tell(&mut shell, "kill $child; wait $child");
        assert!(counter.look(&watched).since(&before).restarted);
        tell(&mut shell, "kill $late; wait $late");
    }

    #[test]
    fn names_with_brackets_and_negative_figures_are_borne() {
        let (name, fields) = fields("7 (a ) b) S 1 2 3 4 -1 5 6").unwrap();
        assert_eq!(name, "a ) b");
        assert_eq!(fields, [0, 1, 2, 3, 4, 0, 5, 6]);
    }
}
