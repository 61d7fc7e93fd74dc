//! What the kernel has counted of a server so far, all its processes and threads together.

use std::collections::BTreeMap;
use std::sync::Arc;

use readings::{CPU_TICK_S, ServerMetrics, ThreadMetrics};

use crate::kernel::netlink::taskstats::ThreadExit;
use crate::kernel::proc_files::{
    GroupTime, Process, TICK_NS, TICKS_PER_S, Thread, ThreadUsage, group_time, ignores_sigchld,
    uptime_s,
};
use crate::sampling::server::exited_threads::ExitedThreads;
use crate::sampling::server::processes::{Processes, ServerGauges};
use crate::sampling::server::run_times::Descriptors;
use crate::sampling::server::watched::Watched;

/// A process that was younger than this when sampling began may serve a single request.
const SETTLED_S: f64 = 0.2;

/// Counters of a server, from some time before the load. They only grow, resident memory aside.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerCounters {
    usage: ThreadUsage,
    /// CPU time of its control group, unless its threads have it more precisely.
    group: Option<GroupTime>,
    threads: BTreeMap<i32, Arc<Thread>>,
    pub(crate) rss_bytes: u64,
    written_bytes: u64,
    pub(crate) processes: u32,
    ended: bool,
    restarted: bool,
    children_uncounted: bool,
    /// Whether its CPU time is told in ticks.
    in_ticks: bool,
}

/// Reads a server's counters, and keeps them growing where processes and threads end.
pub(crate) struct ServerCounterReader {
    processes: Processes,
    last: ServerCounters,
    exited: ExitedThreads,
    /// Over the processes of the last sample: user and system ticks, minor and major faults,
    /// including children that they have waited for.
    sums: [u64; 4],
    /// The same, but never less than before.
    grown: [u64; 4],
    /// Bytes written over the processes of the last sample, and never less than before.
    written: (u64, u64),
    /// Processes of the first sample, by pid and start: those without a parent among them, and
    /// the others.
    first: Vec<(i32, u64)>,
    below: Vec<(i32, u64)>,
    begun: bool,
    /// Whether the usage of some children is lost, since their parent ignores SIGCHLD.
    children_uncounted: bool,
}

impl ServerCounterReader {
    pub(crate) fn new(descriptors: Descriptors) -> Self {
        Self {
            processes: Processes::new(descriptors),
            last: ServerCounters::default(),
            exited: ExitedThreads::default(),
            sums: [0; 4],
            grown: [0; 4],
            written: (0, 0),
            first: Vec::new(),
            below: Vec::new(),
            begun: false,
            children_uncounted: false,
        }
    }

    /// `exits` are those since the last sample, where the kernel reports them. There everything is
    /// counted by thread. Elsewhere the cgroup gives CPU time, and each process the faults of itself
    /// and of children that it waited for; context switches since the last sample are lost where a
    /// thread exits, and so are faults where nobody waits for it.
    pub(crate) fn read(
        &mut self,
        watched: &Watched,
        exits: Option<&[ThreadExit]>,
    ) -> ServerCounters {
        let before = self.processes.all().map(|known| known.process.pid);
        let new_exits = exits.unwrap_or_default();
        self.exited
            .take_exits(new_exits, &before.collect(), &self.last.threads);
        self.processes.read(watched);
        let mut now = ServerCounters::default();
        let mut sums = [0; 4];
        let mut written = 0_u64;
        let mut processes = Vec::with_capacity(self.last.processes as usize);
        for known in self.processes.all() {
            for (sum, figure) in sums.iter_mut().zip(known.process.with_children) {
                *sum += figure;
            }
            now.rss_bytes += known.rss_bytes;
            written += known.written_bytes;
            let threads = known.threads();
            now.threads
                .extend(threads.map(|(tid, thread)| (tid, Arc::clone(thread))));
            processes.push(known.process.clone());
        }
        now.processes = processes.len() as u32;
        self.exited.take_threads(&self.last.threads, &now.threads);
        now.usage = self.exited.sum();
        for thread in now.threads.values() {
            now.usage.add(thread.usage);
        }
        for (at, sum) in sums.iter().enumerate() {
            self.grown[at] += sum.saturating_sub(self.sums[at]);
        }
        self.sums = sums;
        let (last, grown) = self.written;
        self.written = (written, grown + written.saturating_sub(last));
        now.written_bytes = self.written.1;
        let by_thread = exits.is_some() && self.processes.tell_threads_apart();
        if !by_thread {
            let [user, system, minor, major] = self.grown;
            (now.usage.user_ns, now.usage.system_ns) = (user * TICK_NS, system * TICK_NS);
            (now.usage.faults_minor, now.usage.faults_major) = (minor, major);
        }
        let group = watched.group().and_then(group_time);
        now.group = group.filter(|group| !(by_thread && group.in_ticks));
        now.in_ticks = now.group.map_or(!by_thread, |group| group.in_ticks);
        if !self.begun && group.is_none() {
            self.children_uncounted = processes.iter().any(|p| ignores_sigchld(p.pid));
        }
        now.children_uncounted = self.children_uncounted;
        self.note_restart(&processes, &mut now);
        self.last = now.clone();
        now
    }

    pub(crate) fn read_gauges(&mut self, watched: &Watched) -> ServerGauges {
        self.processes.read_gauges(watched)
    }

    /// Notes whether the server has ended or restarted since the first sample.
    fn note_restart(&mut self, processes: &[Process], now: &mut ServerCounters) {
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

impl ServerCounters {
    /// The difference to an earlier sample.
    pub(crate) fn since(&self, before: &ServerCounters) -> ServerMetrics {
        let none = Arc::default();
        let s = |ns: u64| ns as f64 / 1e9;
        let busiest = self.threads.iter().map(|(tid, now)| {
            let usage = now
                .usage
                .since(before.threads.get(tid).unwrap_or(&none).usage);
            ThreadMetrics {
                thread: *tid,
                name: now.name.clone(),
                user_s: s(usage.user_ns),
                system_s: s(usage.system_ns),
                switches_voluntary: usage.switches_voluntary,
                switches_involuntary: usage.switches_involuntary,
            }
        });
        let usage = self.usage.since(before.usage);
        let (user_s, system_s) = match (self.group, before.group) {
            (Some(now), Some(then)) => (
                (now.user_s - then.user_s).max(0.0),
                (now.system_s - then.system_s).max(0.0),
            ),
            _ => (s(usage.user_ns), s(usage.system_ns)),
        };
        // What the kernel does itself has no processes, and no time of its own.
        let is_in_ticks = self.in_ticks && self.processes.max(before.processes) > 0;
        let mut seen = ServerMetrics {
            user_s,
            system_s,
            cpu_step_s: if is_in_ticks { CPU_TICK_S } else { 0.0 },
            switches_voluntary: usage.switches_voluntary,
            switches_involuntary: usage.switches_involuntary,
            faults_minor: usage.faults_minor,
            faults_major: usage.faults_major,
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            rss_bytes_max: self.rss_bytes.max(before.rss_bytes),
            processes_max: self.processes.max(before.processes),
            threads_max: self.threads.len().max(before.threads.len()) as u32,
            busiest: busiest.collect(),
            ended: self.ended,
            restarted: self.restarted,
            children_uncounted: self.children_uncounted,
        };
        seen.keep_busiest();
        seen
    }

    #[cfg(test)]
    pub(crate) fn made_up(switches_voluntary: u64) -> Self {
        let usage = ThreadUsage {
            switches_voluntary,
            ..ThreadUsage::default()
        };
        Self {
            usage,
            ..Self::default()
        }
    }

    pub(crate) fn gauges(&self) -> ServerGauges {
        ServerGauges {
            rss_bytes: self.rss_bytes,
            processes: self.processes,
            threads: self.threads.len() as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fixtures::{careless_parent, shell, tell, wait_until_asleep};
    use crate::sampling::server::thread_exits::ThreadExits;

    fn reader() -> ServerCounterReader {
        ServerCounterReader::new(Descriptors::at_most(64))
    }

    /// Reads counters, with the exits that the kernel reports, where it does.
    fn sampler(watched: &Watched) -> impl FnMut() -> (ServerCounters, Option<Vec<ThreadExit>>) {
        let (mut exits, mut reader) = (ThreadExits::open(), reader());
        move || {
            let exits = exits.as_mut().map(ThreadExits::take);
            (reader.read(watched, exits.as_deref()), exits)
        }
    }

    #[test]
    fn each_wait_of_a_thread_is_a_switch_and_usage_outlives_its_thread() {
        let mut shell = shell();
        let watched = Watched::processes(vec![shell.0.id() as i32]);
        let mut reader = reader();
        tell(&mut shell, ":");
        let before = reader.read(&watched, None);
        for _ in 0..50 {
            wait_until_asleep(&shell);
            tell(&mut shell, ":");
        }
        let seen = reader.read(&watched, None).since(&before);
        // Each line is a wait for input, and one for each byte at the most. Where others want the
        // CPU, it may be taken away in the moment in which the shell begins to wait, and a line that
        // comes in that moment ends the wait before it begins.
        let switches = seen.switches_voluntary + seen.switches_involuntary;
        assert!((40..500).contains(&switches), "{seen:?}");
        assert!(seen.rss_bytes_max > 100_000, "{seen:?}");
        assert_eq!((seen.processes_max, seen.threads_max), (1, 1));
        // A child of it is seen while it is there, and its switches stay when it has gone.
        tell(&mut shell, "sleep 60 & child=$!");
        let with_child = reader.read(&watched, None);
        assert_eq!(with_child.processes, 2);
        tell(&mut shell, "kill $child; wait $child");
        let after = reader.read(&watched, None);
        assert_eq!(after.processes, 1);
        let all = after.since(&before);
        assert!(all.switches_voluntary >= with_child.since(&before).switches_voluntary);
        assert!(all.faults_minor > 0);
        assert!(!all.ended && !all.restarted);
        shell.0.kill().unwrap();
        shell.0.wait().unwrap();
        assert!(reader.read(&watched, None).since(&before).ended);
    }

    #[test]
    fn processes_between_two_samples_are_counted_where_the_kernel_reports_exits() {
        let mut shell = shell();
        let watched = Watched::processes(vec![shell.pid()]);
        let mut sample = sampler(&watched);
        let (before, _) = sample();
        // Each of them sleeps, and is slept for.
        let asleep = "while [ $i -lt 50 ]; do i=$((i+1)); sleep 0.001; done";
        tell(&mut shell, &format!("i=0; {asleep}"));
        let (after, exits) = sample();
        let seen = after.since(&before).switches_voluntary;
        match exits {
            Some(exits) => {
                let own = exits.iter().filter(|exit| exit.parent_pid == shell.pid());
                assert_eq!(own.clone().count(), 50);
                let of_children: u64 = own.map(|exit| exit.usage.switches_voluntary).sum();
                // One that was preempted for longer than its sleep did not sleep.
                assert!(of_children >= 25, "{of_children}");
                assert!(seen >= of_children + 40, "{seen} of them {of_children}");
            }
            None => assert!(seen >= 20, "the shell's own: {seen}"),
        }
    }

    #[test]
    fn usage_of_children_that_nobody_waits_for_is_counted_where_the_kernel_reports_exits() {
        const CHILDREN: u64 = 50;
        let mut parent = careless_parent();
        let watched = Watched::processes(vec![parent.pid()]);
        // What it does the first time only is not counted.
        tell(&mut parent, "1");
        let mut sample = sampler(&watched);
        let (before, _) = sample();
        tell(&mut parent, &CHILDREN.to_string());
        let (after, exits) = sample();
        let seen = after.since(&before);
        let all = after.usage.since(before.usage);
        assert!(seen.children_uncounted, "it has no group");
        let Some(exits) = exits else {
            assert!(seen.faults_minor > 0, "the parent's own");
            return;
        };
        let own = exits.iter().filter(|exit| exit.parent_pid == parent.pid());
        let mut of_children = ThreadUsage::default();
        own.for_each(|exit| of_children.add(exit.usage));
        // Each loads a program and its library.
        assert!(of_children.faults_minor > 50 * CHILDREN, "{exits:?}");
        assert!(seen.faults_minor >= of_children.faults_minor, "{seen:?}");
        let time_ns = |usage: ThreadUsage| usage.user_ns + usage.system_ns;
        assert!(time_ns(of_children) > 100_000 * CHILDREN, "{exits:?}");
        assert!(time_ns(all) > time_ns(of_children), "{all:?}");
    }

    #[test]
    fn time_is_told_in_ticks_where_nothing_more_exact_is_known() {
        let mut shell = shell();
        let watched = Watched::processes(vec![shell.pid()]);
        let before = watched.cpu();
        tell(&mut shell, "sleep 0");
        let after = watched.cpu();
        assert!(after.faults_of_children > before.faults_of_children);
        let mut reader = reader();
        let first = reader.read(&watched, None);
        let seen = reader.read(&watched, None).since(&first);
        assert_eq!(seen.cpu_step_s, CPU_TICK_S);
        let nothing = Watched::processes(Vec::new());
        let first = reader.read(&nothing, None);
        let seen = reader.read(&nothing, None).since(&first);
        assert_eq!(seen.cpu_step_s, 0.0, "there is none");
    }

    #[test]
    fn what_a_parent_waits_for_counts_once() {
        let mut shell = shell();
        let watched = Watched::processes(vec![shell.pid()]);
        let mut sample = sampler(&watched);
        tell(&mut shell, ":");
        let file = || Process::read(watched.pids()[0]).unwrap().with_children;
        let (before, first) = (sample().0, file());
        tell(
            &mut shell,
            "i=0; while [ $i -lt 50 ]; do i=$((i+1)); sleep 0; done",
        );
        let (after, last) = (sample().0, file());
        let seen = after.since(&before).faults_minor;
        let by_file = last[2] - first[2];
        assert!(!after.since(&before).children_uncounted);
        // A process has a few more after its exit was reported: it frees its memory.
        assert!(seen > 50 * 50, "{seen}");
        assert!(
            seen <= by_file && by_file < seen + seen / 10,
            "{seen} {by_file}"
        );
    }

    #[test]
    fn a_child_that_was_replaced_is_a_restart_and_one_that_came_late_is_none() {
        let mut shell = shell();
        let watched = Watched::processes(vec![shell.0.id() as i32]);
        tell(&mut shell, "sleep 60 & child=$!");
        // Old enough to be a part of the server.
        let born = std::time::Instant::now();
        while born.elapsed().as_secs_f64() < SETTLED_S + 0.05 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let mut reader = reader();
        let before = reader.read(&watched, None);
        tell(&mut shell, "sleep 60 & late=$!");
        assert!(!reader.read(&watched, None).since(&before).restarted);
        tell(&mut shell, "kill $child; wait $child");
        assert!(reader.read(&watched, None).since(&before).restarted);
        tell(&mut shell, "kill $late; wait $late");
    }
}
