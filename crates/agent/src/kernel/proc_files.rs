//! What `/proc` has of processes and threads.

use std::fs;
use std::path::Path;
use std::sync::Arc;

/// USER_HZ, on every Linux that Rust supports.
pub(crate) const TICKS_PER_S: f64 = 1.0 / readings::CPU_TICK_S;
pub(crate) const TICK_NS: u64 = 10_000_000;

/// Usage of a thread since it began, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadUsage {
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) switches_voluntary: u64,
    pub(crate) switches_involuntary: u64,
    pub(crate) faults_minor: u64,
    pub(crate) faults_major: u64,
}

impl ThreadUsage {
    pub(crate) fn add(&mut self, more: Self) {
        *self = self.with(more, u64::saturating_add);
    }

    pub(crate) fn since(self, before: Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            user_ns: of(self.user_ns, other.user_ns),
            system_ns: of(self.system_ns, other.system_ns),
            switches_voluntary: of(self.switches_voluntary, other.switches_voluntary),
            switches_involuntary: of(self.switches_involuntary, other.switches_involuntary),
            faults_minor: of(self.faults_minor, other.faults_minor),
            faults_major: of(self.faults_major, other.faults_major),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Thread {
    pub(crate) name: String,
    pub(crate) usage: ThreadUsage,
}

impl Thread {
    /// One of several threads, and its process's resident memory. `None` for one that has ended.
    pub(crate) fn read(pid: i32, tid: i32) -> Option<(Self, u64)> {
        let status = Status::read(&format!("/proc/{pid}/task/{tid}/status"))?;
        let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
        let (name, fields) = fields(&stat).unwrap_or_default();
        let thread = Self {
            name: name.to_owned(),
            usage: Own::of(&fields).with_switches(status.switches),
        };
        Some((thread, status.rss_bytes))
    }

    /// The only thread of a process, and the resident memory. Usage of its exited threads counts as its
    /// own, context switches aside.
    pub(crate) fn only(process: &Process) -> Option<(Self, u64)> {
        let status = Status::read(&format!("/proc/{}/status", process.pid))?;
        let thread = Self {
            name: process.name.to_string(),
            usage: process.own.with_switches(status.switches),
        };
        Some((thread, status.rss_bytes))
    }
}

/// From a `stat` file, of a process or thread without its children: user and system ticks, minor and
/// major faults.
#[derive(Clone, Copy, Debug)]
struct Own([u64; 4]);

impl Own {
    /// From the fields from the state on.
    fn of(fields: &[u64]) -> Self {
        Self([14, 15, 10, 12].map(|n| field(fields, n)))
    }

    fn with_switches(self, (switches_voluntary, switches_involuntary): (u64, u64)) -> ThreadUsage {
        let [user, system, faults_minor, faults_major] = self.0;
        ThreadUsage {
            user_ns: user * TICK_NS,
            system_ns: system * TICK_NS,
            switches_voluntary,
            switches_involuntary,
            faults_minor,
            faults_major,
        }
    }
}

/// A field by its number in proc_pid_stat(5); `fields` begin with the third.
fn field(fields: &[u64], n: usize) -> u64 {
    fields.get(n - 3).copied().unwrap_or(0)
}

/// From `/proc/PID/stat`.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    name: Arc<str>,
    /// User and system ticks, minor and major faults, including children that it has waited for.
    pub(crate) with_children: [u64; 4],
    own: Own,
    pub(crate) threads: u64,
    pub(crate) start_ticks: u64,
    rss_pages: u64,
}

impl Process {
    /// `None` for one that has ended.
    pub(crate) fn read(pid: i32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, fields) = fields(&text)?;
        if matches!(
            text[text.rfind(')')? + 1..].trim_start().get(..1)?,
            "Z" | "X"
        ) {
            return None;
        }
        let field = |n: usize| field(&fields, n);
        let own = Own::of(&fields);
        let of_children = [16, 17, 11, 13].map(field);
        Some(Self {
            pid,
            parent: field(4) as i32,
            name: name.into(),
            with_children: std::array::from_fn(|at| own.0[at] + of_children[at]),
            own,
            threads: field(20),
            start_ticks: field(22),
            rss_pages: field(24),
        })
    }

    pub(crate) fn rss_bytes(&self) -> u64 {
        self.rss_pages * net::os::page_bytes()
    }

    /// Pid and start, which no two processes share.
    pub(crate) fn identity(&self) -> (i32, u64) {
        (self.pid, self.start_ticks)
    }
}

/// Whether a process ignores SIGCHLD: then the kernel discards its children's usage.
pub(crate) fn ignores_sigchld(pid: i32) -> bool {
    /// On all machines that Rust's std supports, MIPS and SPARC aside.
    const SIGCHLD: u32 = 17;
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    word_after(&text, "SigIgn:")
        .and_then(|mask| u64::from_str_radix(mask, 16).ok())
        .is_some_and(|mask| mask & (1 << (SIGCHLD - 1)) != 0)
}

/// The tids of a process; none when it has ended.
pub(crate) fn threads_of(pid: i32) -> Vec<i32> {
    numbers_in(&format!("/proc/{pid}/task"))
}

/// The numbers among the names in a folder of `/proc`.
pub(crate) fn numbers_in(folder: &str) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Time of a thread on a CPU, and time that it was runnable without one, ns.
pub(crate) fn schedstat(pid: i32, tid: i32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    let mut figures = text.split_whitespace();
    Some((figures.next()?.parse().ok()?, figures.next()?.parse().ok()?))
}

/// CPU time of processes so far, and how exact it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuUsed {
    pub(crate) s: f64,
    /// Whether it is counted in ticks.
    pub(crate) in_ticks: bool,
    /// Page faults of children that were waited for: where they grow, the time of these children
    /// was added, in ticks.
    pub(crate) faults_of_children: u64,
}

impl CpuUsed {
    pub(crate) fn exactly(s: f64) -> Self {
        Self {
            s,
            ..Self::default()
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            s: self.s + other.s,
            in_ticks: self.in_ticks || other.in_ticks,
            faults_of_children: self.faults_of_children + other.faults_of_children,
        }
    }
}

/// CPU time of a process: its live threads to the nanosecond, its ended children by the tick. Where
/// threads have ended, all of its own time is by the tick.
pub(crate) fn process_cpu(pid: i32) -> CpuUsed {
    let threads = threads_of(pid).into_iter();
    let on_cpu_ns = threads.filter_map(|tid| Some(schedstat(pid, tid)?.0));
    let live_s = on_cpu_ns.sum::<u64>() as f64 / 1e9;
    let fields = stat_fields(pid).unwrap_or_default();
    let both = |n: usize, next: usize| field(&fields, n) + field(&fields, next);
    let ticks_s = |n: usize| both(n, n + 1) as f64 / TICKS_PER_S;
    CpuUsed {
        s: live_s.max(ticks_s(14)) + ticks_s(16),
        // They were read a moment later than the threads, which may have run meanwhile.
        in_ticks: ticks_s(14) > live_s + 1.0 / TICKS_PER_S,
        faults_of_children: both(11, 13),
    }
}

#[cfg(test)]
pub(crate) fn process_cpu_s(pid: i32) -> f64 {
    process_cpu(pid).s
}

/// The most memory that a process has held since its program began. `None` when it has ended.
pub(crate) fn peak_rss_bytes(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(word_after(&status, "VmHWM:")?.parse::<u64>().ok()? * 1024)
}

/// The children of a process, where the kernel lists them.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let mut pids = Vec::new();
    for tid in threads_of(pid) {
        let path = format!("/proc/{pid}/task/{tid}/children");
        let list = fs::read_to_string(path).unwrap_or_default();
        pids.extend(
            list.split_whitespace()
                .filter_map(|pid| pid.parse::<i32>().ok()),
        );
    }
    pids
}

/// A process and all its descendants.
pub(crate) fn tree(root: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = numbers_in("/proc")
        .into_iter()
        .filter_map(|pid| Some((pid, field(&stat_fields(pid)?, 4) as i32)))
        .collect();
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        let children = parents.iter().filter(|(_, its)| *its == parent);
        found.extend(children.map(|(pid, _)| *pid));
        at += 1;
    }
    found
}

/// The children of a process, zombies included, in sessions of these leaders.
pub(crate) fn children_in_sessions(parent: i32, leaders: &[i32]) -> Vec<i32> {
    let mut all = numbers_in("/proc");
    all.retain(|pid| {
        stat_fields(*pid).is_some_and(|fields| {
            field(&fields, 4) as i32 == parent && leaders.contains(&(field(&fields, 6) as i32))
        })
    });
    all
}

fn stat_fields(pid: i32) -> Option<Vec<u64>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    fields(&text).map(|(_, fields)| fields)
}

/// The name, and the fields from the state on; 0 where one is no unsigned integer.
fn fields(stat: &str) -> Option<(&str, Vec<u64>)> {
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let rest = stat[close + 1..].split_whitespace().take(22);
    let fields = rest.map(|field| field.parse().unwrap_or(0)).collect();
    Some((stat.get(open + 1..close)?, fields))
}

struct Status {
    rss_bytes: u64,
    /// Voluntary and involuntary.
    switches: (u64, u64),
}

impl Status {
    fn read(path: &str) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let figure = |name| -> u64 {
            let word = word_after(&text, name);
            word.and_then(|word| word.parse().ok()).unwrap_or(0)
        };
        Some(Self {
            rss_bytes: figure("VmRSS:") * 1024,
            switches: (
                figure("voluntary_ctxt_switches:"),
                figure("nonvoluntary_ctxt_switches:"),
            ),
        })
    }
}

/// The first word of the rest of a line that begins with `name`.
pub(crate) fn word_after<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()
}

/// Bytes that a process has written to files on storage, as far as they were not in memory yet; `None`
/// where the kernel does not tell.
pub(crate) fn written_bytes(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    word_after(&text, "write_bytes:")?.parse().ok()
}

/// CPU time of all that ever ran in a control group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupTime {
    pub(crate) user_s: f64,
    pub(crate) system_s: f64,
    /// To the tick only, as in cgroup v1.
    pub(crate) in_ticks: bool,
}

pub(crate) fn group_time(folder: &Path) -> Option<GroupTime> {
    let read = |file: &str, user: &str, system: &str, per_s: f64| {
        let text = fs::read_to_string(folder.join(file)).ok()?;
        let figure = |name| word_after(&text, name)?.parse::<f64>().ok();
        Some(GroupTime {
            user_s: figure(user)? / per_s,
            system_s: figure(system)? / per_s,
            in_ticks: per_s == TICKS_PER_S,
        })
    };
    read("cpu.stat", "user_usec ", "system_usec ", 1e6)
        .or_else(|| read("cpuacct.stat", "user ", "system ", TICKS_PER_S))
}

pub(crate) fn uptime_s() -> f64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|s| s.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_and_negative_fields_are_read() {
        let (name, fields) = fields("7 (a ) b) S 1 2 3 4 -1 5 6").unwrap();
        assert_eq!(name, "a ) b");
        assert_eq!(fields, [0, 1, 2, 3, 4, 0, 5, 6]);
    }

    #[test]
    fn cpu_time_descendants_and_memory_of_a_process_are_read() {
        let busy = crate::kernel::fixtures::busy();
        let before_s = process_cpu_s(busy.pid());
        let used = (0..5000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            process_cpu_s(busy.pid()) > before_s + 0.02
        });
        assert!(used);
        let idler = crate::kernel::fixtures::idler();
        let pid = idler.pid();
        assert!(tree(std::process::id() as i32).contains(&pid));
        // It has just begun, and is about to load its library.
        let grown = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            peak_rss_bytes(pid).unwrap() > 500_000
        });
        assert!(grown, "{:?}", peak_rss_bytes(pid));
    }
}
