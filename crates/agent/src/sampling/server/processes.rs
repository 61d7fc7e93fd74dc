//! A server's processes, of which a sample reads only those that have run.
//!
//! Ticks, switches, faults, children and threads of a process change only while it runs. So they
//! are read again only when one of its threads has run. A read of an open file shows that in some
//! 2 us per thread; reading everything takes 5 to 40. Resident memory is assumed not to change
//! either, although the kernel may have reclaimed pages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::kernel::netlink::taskstats::TaskStats;
use crate::kernel::proc_files::{Process, Thread, children, threads_of, written_bytes};
use crate::sampling::server::run_times::{self, Descriptors, RunTimes, Since, has_ended};
use crate::sampling::server::watched::Watched;

pub(crate) struct Processes {
    known: BTreeMap<i32, Known>,
    reader: Reader,
}

/// A process as it was when it was read last.
pub(crate) struct Known {
    pub(crate) process: Process,
    pub(crate) rss_bytes: u64,
    /// Bytes that it has written to files so far.
    pub(crate) written_bytes: u64,
    threads: Vec<KnownThread>,
    /// Read only where there is no control group to list the server's processes.
    children: Option<Vec<i32>>,
    /// Whether it ran since the sample before.
    ran: bool,
}

struct KnownThread {
    tid: i32,
    times: RunTimes,
    since: Since,
    last: Arc<Thread>,
}

struct Reader {
    descriptors: Descriptors,
    /// Whether the kernel counts the run time of threads. Otherwise each sample reads everything.
    knows_runs: bool,
    /// Where the kernel answers this process.
    stats: Option<TaskStats>,
    /// Whether the usage of each thread is its own alone.
    apart: bool,
    /// Processes and threads that were read.
    #[cfg(test)]
    reads: usize,
}

impl Processes {
    pub(crate) fn new(descriptors: Descriptors) -> Self {
        let stats = TaskStats::open();
        Self {
            known: BTreeMap::new(),
            reader: Reader {
                descriptors,
                knows_runs: run_times::are_counted(),
                apart: stats.is_some(),
                stats,
                #[cfg(test)]
                reads: 0,
            },
        }
    }

    /// Lists the processes, and reads those that have run.
    pub(crate) fn read(&mut self, watched: &Watched) {
        let begin = watched.pids();
        let mut found: BTreeSet<i32> = begin.iter().copied().collect();
        let is_group = watched.group().is_some();
        let before = self.known.len();
        self.known.retain(|pid, known| {
            (!is_group || found.contains(pid)) && known.is_there_still(&mut self.reader)
        });
        let ended = self.known.len() < before;
        let mut queue = begin;
        let mut at = 0;
        while at < queue.len() {
            let pid = queue[at];
            at += 1;
            if !self.known.contains_key(&pid)
                && let Some(known) = Known::read(pid, &mut self.reader)
            {
                self.known.insert(pid, known);
            }
            if !is_group {
                let children = self.children(pid, ended);
                queue.extend(children.into_iter().filter(|child| found.insert(*child)));
            }
        }
        self.known.retain(|pid, _| found.contains(pid));
    }

    /// Gauges alone: one read for each process that may have run, however many threads it has.
    /// Without a group, of the processes of the last [`read`](Self::read).
    pub(crate) fn read_gauges(&mut self, watched: &Watched) -> ServerGauges {
        let mut now = ServerGauges::default();
        let pids = match watched.group() {
            Some(_) => watched.pids(),
            None => self.known.keys().copied().collect(),
        };
        for pid in pids {
            let known = self.known.get_mut(&pid);
            let idle = known.and_then(|known| known.idle_rss_bytes(&self.reader));
            let (threads, rss_bytes) = match idle {
                Some(rss_bytes) => (1, rss_bytes),
                None => match self.reader.process(pid) {
                    Some(process) => (process.threads, process.rss_bytes()),
                    None => continue,
                },
            };
            now.processes += 1;
            now.threads += u32::try_from(threads).unwrap_or(u32::MAX);
            now.rss_bytes += rss_bytes;
        }
        now
    }

    /// The children of a process. They are read again where it ran; where any process ended, whose
    /// children have another parent now; and where a child ran: `CLONE_PARENT` creates a sibling.
    fn children(&mut self, pid: i32, ended: bool) -> Vec<i32> {
        let ran = |pid: &i32| self.known.get(pid).is_some_and(|one| one.ran);
        let last = self.known.get(&pid).and_then(|one| one.children.as_ref());
        match last {
            Some(last) if !ended && !ran(&pid) && !last.iter().any(ran) => last.clone(),
            _ => {
                let now = children(pid);
                if let Some(known) = self.known.get_mut(&pid) {
                    known.children = Some(now.clone());
                }
                now
            }
        }
    }

    /// Whether the usage of each thread is its own alone, also of the only one of a process.
    pub(crate) fn tell_threads_apart(&self) -> bool {
        self.reader.apart
    }

    /// In the order of pids.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Known> {
        self.known.values()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerGauges {
    pub(crate) rss_bytes: u64,
    pub(crate) processes: u32,
    pub(crate) threads: u32,
}

impl ServerGauges {
    pub(crate) fn raise(&mut self, other: Self) {
        self.rss_bytes = self.rss_bytes.max(other.rss_bytes);
        self.processes = self.processes.max(other.processes);
        self.threads = self.threads.max(other.threads);
    }
}

impl Known {
    /// Its resident memory, where its only thread has not run since the last read.
    fn idle_rss_bytes(&mut self, reader: &Reader) -> Option<u64> {
        let pid = self.process.pid;
        let [only] = self.threads.as_mut_slice() else {
            return None;
        };
        let idle = reader.knows_runs && only.times.is_idle(pid, only.tid, &reader.descriptors);
        idle.then_some(self.rss_bytes)
    }

    /// `None` for one that has ended.
    fn read(pid: i32, reader: &mut Reader) -> Option<Self> {
        // Before anything else is read, so that what the thread does meanwhile shows in the next
        // sample.
        let mut times = RunTimes::unknown();
        let threads = match reader.since(&mut times, pid, pid) {
            Since::Gone => Vec::new(),
            _ => vec![KnownThread {
                tid: pid,
                times,
                since: Since::Ran,
                last: Arc::default(),
            }],
        };
        let mut known = Self {
            process: reader.process(pid)?,
            rss_bytes: 0,
            written_bytes: written_bytes(pid).unwrap_or(0),
            threads,
            children: None,
            ran: true,
        };
        known.list_threads(reader);
        known.read_threads(reader);
        Some(known)
    }

    /// By tid.
    pub(crate) fn threads(&self) -> impl Iterator<Item = (i32, &Arc<Thread>)> {
        self.threads.iter().map(|one| (one.tid, &one.last))
    }

    /// Reads what has changed. Returns whether it is still there.
    fn is_there_still(&mut self, reader: &mut Reader) -> bool {
        let pid = self.process.pid;
        for thread in &mut self.threads {
            thread.since = reader.since(&mut thread.times, pid, thread.tid);
        }
        let did = |since| self.threads.iter().any(|one| one.since == since);
        let gone = did(Since::Gone);
        self.ran = gone || did(Since::Ran) || self.threads.is_empty();
        if !self.ran {
            return true;
        }
        let first = self.threads.iter().find(|one| one.tid == pid);
        if first.is_some_and(|one| one.since == Since::Gone) {
            return false;
        }
        match reader.process(pid) {
            Some(process) if process.identity() == self.process.identity() => {
                self.process = process;
                self.written_bytes = written_bytes(pid).unwrap_or(self.written_bytes);
            }
            // It has ended; its pid may be another's.
            _ => return false,
        }
        // Only a running thread creates another.
        if gone || !reader.knows_runs || self.process.threads != self.threads.len() as u64 {
            self.list_threads(reader);
        }
        self.read_threads(reader);
        true
    }

    fn list_threads(&mut self, reader: &mut Reader) {
        let pid = self.process.pid;
        let tids = match self.process.threads {
            ..=1 => vec![pid],
            _ => threads_of(pid),
        };
        self.threads
            .retain(|one| one.since != Since::Gone && tids.contains(&one.tid));
        let known: BTreeSet<i32> = self.threads.iter().map(|one| one.tid).collect();
        for tid in tids.into_iter().filter(|one| !known.contains(one)) {
            let mut times = RunTimes::unknown();
            // Before its usage is read: what it does in between shows in the next sample.
            let since = match reader.since(&mut times, pid, tid) {
                Since::Gone => continue,
                _ => Since::Ran,
            };
            self.threads.push(KnownThread {
                tid,
                times,
                since,
                last: Arc::default(),
            });
        }
    }

    /// Reads the threads that have run.
    fn read_threads(&mut self, reader: &mut Reader) {
        let process = &self.process;
        let is_only = process.threads <= 1;
        let mut rss_bytes = 0;
        self.threads.retain_mut(|thread| {
            if thread.since == Since::Idle && !is_only {
                return true;
            }
            match reader.thread(process, thread.tid, &thread.last) {
                Some((now, rss)) => {
                    thread.last = Arc::new(now);
                    rss_bytes = rss.max(rss_bytes);
                    true
                }
                None => false,
            }
        });
        // All threads have the same memory.
        if rss_bytes > 0 {
            self.rss_bytes = rss_bytes;
        }
    }
}

impl Reader {
    fn since(&self, times: &mut RunTimes, pid: i32, thread: i32) -> Since {
        match self.knows_runs {
            true => times.since(pid, thread, &self.descriptors),
            false => Since::Ran,
        }
    }

    fn process(&mut self, pid: i32) -> Option<Process> {
        self.count_read();
        Process::read(pid)
    }

    /// A thread and its process's resident memory; `last` is what was read before. `None` for one
    /// that has ended.
    fn thread(&mut self, process: &Process, tid: i32, last: &Thread) -> Option<(Thread, u64)> {
        self.count_read();
        if let Some(stats) = &mut self.stats {
            match stats.thread(tid, last) {
                Ok(thread) => return Some((thread, process.rss_bytes())),
                Err(error) if has_ended(&error) => return None,
                // Read from `/proc` from now on.
                Err(_) => self.stats = None,
            }
        }
        match process.threads <= 1 && !self.apart {
            true => Thread::only(process),
            false => Thread::read(process.pid, tid),
        }
    }

    #[cfg(test)]
    fn count_read(&mut self) {
        self.reads += 1;
    }

    #[cfg(not(test))]
    fn count_read(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fixtures::{Killed, idler, shell, tell};
    use crate::kernel::proc_files::ThreadUsage;

    fn pids(processes: &Processes) -> Vec<i32> {
        processes.all().map(|one| one.process.pid).collect()
    }

    #[test]
    fn reading_gauges_takes_nothing_from_the_next_read() {
        let mut shell = shell();
        let watched = Watched::processes(vec![shell.0.id() as i32]);
        let mut processes = Processes::new(Descriptors::at_most(64));
        tell(&mut shell, "sleep 60 & child=$!");
        // Again where the child had not executed its program yet.
        let same = (0..100).any(|_| {
            settle(&mut processes, &watched);
            let mut sum = ServerGauges::default();
            for known in processes.all() {
                sum.rss_bytes += known.rss_bytes;
                sum.processes += 1;
                sum.threads += known.threads.len() as u32;
            }
            processes.reader.reads = 0;
            let seen = processes.read_gauges(&watched);
            (seen.processes, seen.threads, processes.reader.reads) == (2, 2, 0) && seen == sum
        });
        assert!(same, "both are idle");
        tell(&mut shell, ":");
        assert_eq!(processes.read_gauges(&watched).processes, 2);
        // It ran before the gauges were read, and is read all the same.
        assert!(reads(&mut processes, &watched) > 0);
        tell(&mut shell, "kill $child; wait $child");
        assert_eq!(processes.read_gauges(&watched).processes, 1);
    }

    /// Reads; returns how many processes and threads that took.
    fn reads(processes: &mut Processes, watched: &Watched) -> usize {
        processes.reader.reads = 0;
        processes.read(watched);
        processes.reader.reads
    }

    /// Reads until all are idle.
    fn settle(processes: &mut Processes, watched: &Watched) {
        let mut rounds = (0..2000).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            reads(processes, watched)
        });
        assert!(rounds.any(|reads| reads == 0), "it is never idle");
    }

    fn idle(most: usize) -> (Vec<Killed>, Watched, Processes) {
        let idlers: Vec<Killed> = (0..4).map(|_| idler()).collect();
        let watched = Watched::processes(idlers.iter().map(Killed::pid).collect());
        let mut processes = Processes::new(Descriptors::at_most(most));
        assert_eq!(reads(&mut processes, &watched), 8, "each and its thread");
        settle(&mut processes, &watched);
        (idlers, watched, processes)
    }

    /// What is known of processes, as text. User and system time are summed: how they are divided
    /// depends on when they were read.
    fn shown(processes: &Processes, of: &[i32]) -> Vec<String> {
        let those = processes
            .all()
            .filter(|one| of.contains(&one.process.pid))
            .map(|one| {
                let threads = one.threads().map(|(number, thread)| {
                    let time_ns = thread.usage.user_ns + thread.usage.system_ns;
                    let usage = ThreadUsage {
                        user_ns: 0,
                        system_ns: 0,
                        ..thread.usage
                    };
                    format!("{number} {} {time_ns} {usage:?}", thread.name)
                });
                let threads: Vec<_> = threads.collect();
                format!("{:?} {} {threads:?}", one.process, one.rss_bytes)
            });
        those.collect()
    }

    #[test]
    fn only_processes_that_have_run_are_read_again() {
        only_those_that_have_run_are_read(|_| {});
    }

    #[test]
    fn the_same_without_taskstats() {
        only_those_that_have_run_are_read(|processes| {
            (processes.reader.stats, processes.reader.apart) = (None, false);
        });
        only_those_that_have_run_are_read(|processes| processes.reader.stats = None);
    }

    fn only_those_that_have_run_are_read(prepare: impl Fn(&mut Processes)) {
        let mut idlers: Vec<Killed> = (0..4).map(|_| idler()).collect();
        let idle: Vec<i32> = idlers.iter().map(Killed::pid).collect();
        let mut shell = shell();
        let all = [&idle[..], &[shell.pid()]].concat();
        let watched = Watched::processes(all.clone());
        let mut processes = Processes::new(Descriptors::at_most(64));
        prepare(&mut processes);
        tell(&mut shell, ":");
        assert_eq!(reads(&mut processes, &watched), 10);
        settle(&mut processes, &watched);
        for _ in 0..5 {
            tell(&mut shell, ":");
            assert_eq!(reads(&mut processes, &watched), 2, "the shell alone");
        }
        let mut fresh = Processes::new(Descriptors::at_most(0));
        prepare(&mut fresh);
        settle(&mut processes, &watched);
        assert_eq!(reads(&mut fresh, &watched), 10);
        assert_eq!(shown(&processes, &all), shown(&fresh, &all));
        // One of them ends, which takes no read of others.
        drop(idlers.pop());
        assert_eq!(reads(&mut processes, &watched), 1);
        assert_eq!(processes.all().count(), 4);
        assert_eq!(processes.reader.descriptors.held(), 4);
    }

    #[test]
    fn children_that_end_and_begin_between_two_reads_are_noticed() {
        let mut shell = shell();
        let watched = Watched::processes(vec![shell.pid()]);
        let mut processes = Processes::new(Descriptors::at_most(64));
        tell(&mut shell, "sleep 600 & a=$!; sleep 600 & b=$!");
        processes.read(&watched);
        let before = pids(&processes);
        assert_eq!(before.len(), 3);
        tell(&mut shell, "kill $a; wait $a; sleep 600 & c=$!");
        processes.read(&watched);
        let after = pids(&processes);
        let stayed = after.iter().filter(|pid| before.contains(pid));
        assert_eq!(
            (after.len(), stayed.count()),
            (3, 2),
            "{before:?} {after:?}"
        );
        // The child of a child: its parent's list of children is not the shell's.
        tell(&mut shell, "(sleep 600 & sleep 600 & wait) & d=$!");
        let mut counts = (0..2000).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            processes.read(&watched);
            processes.all().count()
        });
        assert!(counts.any(|there| there == 6), "{:?}", pids(&processes));
        settle(&mut processes, &watched);
        // Its children are adopted by a process outside when it has gone.
        tell(&mut shell, "kill $d; wait $d");
        processes.read(&watched);
        assert_eq!(pids(&processes), after);
        assert_eq!(processes.reader.descriptors.held(), 3);
    }

    #[test]
    fn a_thread_that_begins_and_one_that_ends_are_noticed() {
        let watched = Watched::processes(vec![std::process::id() as i32]);
        let mut processes = Processes::new(Descriptors::at_most(64));
        let mut has = |number: i32| {
            processes.read(&watched);
            let mut threads = processes.all().flat_map(Known::threads);
            threads.any(|(one, _)| one == number)
        };
        assert!(!has(0));
        let (first, ends) = begin_thread();
        // A thread that keeps its CPU shows at the scheduler's next tick.
        let seen = (0..2000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            has(first)
        });
        assert!(seen);
        // One replaces the other between two reads: there are as many as before.
        ends();
        while std::path::Path::new(&format!("/proc/self/task/{first}")).exists() {
            std::thread::yield_now();
        }
        let (second, ends) = begin_thread();
        assert!(has(second));
        assert!(!has(first));
        ends();
        let gone = (0..2000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            !has(second)
        });
        assert!(gone);
    }

    /// A thread that waits: its tid, and what ends it.
    fn begin_thread() -> (i32, impl FnOnce()) {
        let (says, said) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let own = std::fs::read_link("/proc/thread-self").unwrap();
            let number = own.file_name().unwrap().to_str().unwrap().parse::<i32>();
            says.send(number.unwrap()).unwrap();
            ended.recv().unwrap_err();
        });
        let ends = move || {
            drop(end);
            thread.join().unwrap();
        };
        (said.recv().unwrap(), ends)
    }

    #[test]
    fn no_more_descriptors_are_held_than_may_be() {
        for most in [0, 2, 64] {
            let (mut idlers, watched, mut processes) = idle(most);
            let descriptors = processes.reader.descriptors.clone();
            assert_eq!(descriptors.held(), most.min(4));
            // Without one an idle process is recognised as well.
            assert_eq!(reads(&mut processes, &watched), 0);
            // A descriptor that is closed makes room for another.
            drop(idlers.remove(0));
            processes.read(&watched);
            reads(&mut processes, &watched);
            assert_eq!(descriptors.held(), most.min(3));
            assert_eq!(processes.all().count(), 3);
            drop(processes);
            assert_eq!(descriptors.held(), 0);
        }
    }

    #[test]
    fn all_are_read_where_the_kernel_does_not_count_runs() {
        let (mut idlers, watched, mut processes) = idle(64);
        processes.reader.knows_runs = false;
        assert_eq!(reads(&mut processes, &watched), 8);
        drop(idlers.pop());
        processes.read(&watched);
        assert_eq!(processes.all().count(), 3);
    }
}
