//! A server's processes, of which only those that have run are read again.
//!
//! All that is counted of a process needs it to run: ticks, switches, faults, children, threads.
//! So what was read of it stands as long as none of its threads has run, and that costs a read of
//! an open file for each thread, some 2 us, where reading everything costs 5 to 40. Its resident
//! memory is taken to be the same, too; the kernel may have taken pages away from it meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::proc_files::{Process, Thread, threads_of};
use super::run_times::{self, Descriptors, RunTimes, Since, has_ended};
use super::taskstats::TaskStats;
use super::watch::{Watched, children};

/// What is known of a server's processes.
pub(super) struct Processes {
    known: BTreeMap<i32, Known>,
    reader: Reader,
}

/// A process as it was when it was read last.
pub(super) struct Known {
    pub(super) process: Process,
    pub(super) rss_bytes: u64,
    threads: Vec<KnownThread>,
    /// Its children; only asked for where they make the list of processes.
    children: Option<Vec<i32>>,
    /// Whether it ran since the look before.
    ran: bool,
}

struct KnownThread {
    number: i32,
    times: RunTimes,
    since: Since,
    figures: Arc<Thread>,
}

struct Reader {
    descriptors: Descriptors,
    /// Whether the kernel tells who has run. Where it does not everything is read at each look.
    told: bool,
    /// What tells at once what a thread has had, where this process is told.
    stats: Option<TaskStats>,
    /// Whether each thread's figures are its own alone.
    apart: bool,
    /// How many processes and threads were read.
    #[cfg(test)]
    reads: usize,
}

impl Processes {
    pub(super) fn new(descriptors: Descriptors) -> Self {
        let stats = TaskStats::open();
        Self {
            known: BTreeMap::new(),
            reader: Reader {
                descriptors,
                told: run_times::are_told(),
                apart: stats.is_some(),
                stats,
                #[cfg(test)]
                reads: 0,
            },
        }
    }

    /// Looks which processes there are, and reads those that have run.
    pub(super) fn look(&mut self, watched: &Watched<'_>) {
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

    /// What goes up and down of it, without what its threads have had: a read for each process
    /// that may have run, however many threads it has. Without a group, of those that the last
    /// look has found.
    pub(super) fn glance(&mut self, watched: &Watched<'_>) -> Peak {
        let mut now = Peak::default();
        let pids = match watched.group() {
            Some(_) => watched.pids(),
            None => self.known.keys().copied().collect(),
        };
        for pid in pids {
            let known = self.known.get_mut(&pid);
            let rests = known.and_then(|known| known.resting(&self.reader));
            let (threads, rss_bytes) = match rests {
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

    /// The children of a process. Where one has ended, its own have another parent now, which
    /// need not have run; and a child may beget for its parent (`CLONE_PARENT`).
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

    /// Whether the figures of each thread are its own alone, also of the only one of a process.
    pub(super) fn tell_threads_apart(&self) -> bool {
        self.reader.apart
    }

    /// Those that are there, in the order of their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = &Known> {
        self.known.values()
    }
}

/// What goes up and down of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Peak {
    pub(super) rss_bytes: u64,
    pub(super) processes: u32,
    pub(super) threads: u32,
}

impl Known {
    /// Its resident memory, where it has one thread, which has not run since the last look.
    fn resting(&mut self, reader: &Reader) -> Option<u64> {
        let pid = self.process.pid;
        let [only] = self.threads.as_mut_slice() else {
            return None;
        };
        let idle = reader.told && only.times.is_idle(pid, only.number, &reader.descriptors);
        idle.then_some(self.rss_bytes)
    }

    /// `None` for one that has ended.
    fn read(pid: i32, reader: &mut Reader) -> Option<Self> {
        let mut known = Self {
            process: reader.process(pid)?,
            rss_bytes: 0,
            threads: Vec::new(),
            children: None,
            ran: true,
        };
        known.list_threads(reader);
        known.read_threads(reader);
        Some(known)
    }

    /// Its threads and what each has had.
    pub(super) fn threads(&self) -> impl Iterator<Item = (i32, &Arc<Thread>)> {
        self.threads.iter().map(|one| (one.number, &one.figures))
    }

    /// Reads what has changed. Returns whether it is still there.
    fn is_there_still(&mut self, reader: &mut Reader) -> bool {
        let pid = self.process.pid;
        for thread in &mut self.threads {
            thread.since = reader.since(&mut thread.times, pid, thread.number);
        }
        let did = |since| self.threads.iter().any(|one| one.since == since);
        let gone = did(Since::Gone);
        self.ran = gone || did(Since::Ran) || self.threads.is_empty();
        if !self.ran {
            return true;
        }
        let first = self.threads.iter().find(|one| one.number == pid);
        if first.is_some_and(|one| one.since == Since::Gone) {
            return false;
        }
        match reader.process(pid) {
            Some(process) if process.identity() == self.process.identity() => {
                self.process = process;
            }
            // It has ended; its number may be another's.
            _ => return false,
        }
        // A new thread needs an old one to run.
        if gone || !reader.told || self.process.threads != self.threads.len() as u64 {
            self.list_threads(reader);
        }
        self.read_threads(reader);
        true
    }

    /// Which threads it has now.
    fn list_threads(&mut self, reader: &mut Reader) {
        let pid = self.process.pid;
        let numbers = match self.process.threads {
            ..=1 => vec![pid],
            _ => threads_of(pid),
        };
        self.threads
            .retain(|one| one.since != Since::Gone && numbers.contains(&one.number));
        let known: BTreeSet<i32> = self.threads.iter().map(|one| one.number).collect();
        for number in numbers.into_iter().filter(|one| !known.contains(one)) {
            let mut times = RunTimes::unknown();
            // Asked before its figures are read: what it does in between is seen the next time.
            let since = match reader.since(&mut times, pid, number) {
                Since::Gone => continue,
                _ => Since::Ran,
            };
            self.threads.push(KnownThread {
                number,
                times,
                since,
                figures: Arc::default(),
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
            match reader.thread(process, thread.number, &thread.figures) {
                Some((figures, rss)) => {
                    thread.figures = Arc::new(figures);
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
        match self.told {
            true => times.since(pid, thread, &self.descriptors),
            false => Since::Ran,
        }
    }

    fn process(&mut self, pid: i32) -> Option<Process> {
        self.note();
        Process::read(pid)
    }

    /// What a thread has had and its process's memory; `last` is what it had when that was read
    /// last. `None` for one that has ended.
    fn thread(&mut self, process: &Process, number: i32, last: &Thread) -> Option<(Thread, u64)> {
        self.note();
        if let Some(stats) = &mut self.stats {
            match stats.thread(number, last) {
                Ok(thread) => return Some((thread, process.rss_bytes())),
                Err(error) if has_ended(&error) => return None,
                // The files say it, too.
                Err(_) => self.stats = None,
            }
        }
        match process.threads <= 1 && !self.apart {
            true => Thread::only(process),
            false => Thread::read(process.pid, number),
        }
    }

    #[cfg(test)]
    fn note(&mut self) {
        self.reads += 1;
    }

    #[cfg(not(test))]
    fn note(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc_files::ThreadUsage;
    use crate::told_shell::{Killed, idler, shell, tell};

    fn pids(processes: &Processes) -> Vec<i32> {
        processes.all().map(|one| one.process.pid).collect()
    }

    #[test]
    fn a_glance_counts_and_takes_nothing_from_the_next_look() {
        let mut shell = shell();
        let watched = Watched::Processes(vec![shell.0.id() as i32]);
        let mut processes = Processes::new(Descriptors::at_most(64));
        tell(&mut shell, "sleep 60 & child=$!");
        // Again where the child became another program in its own time.
        let same = (0..100).any(|_| {
            settle(&mut processes, &watched);
            let mut sum = Peak::default();
            for known in processes.all() {
                sum.rss_bytes += known.rss_bytes;
                sum.processes += 1;
                sum.threads += known.threads.len() as u32;
            }
            processes.reader.reads = 0;
            let seen = processes.glance(&watched);
            (seen.processes, seen.threads, processes.reader.reads) == (2, 2, 0) && seen == sum
        });
        assert!(same, "both rest");
        tell(&mut shell, ":");
        assert_eq!(processes.glance(&watched).processes, 2);
        // Seen by the glance, and by the look all the same.
        assert!(look(&mut processes, &watched) > 0);
        tell(&mut shell, "kill $child; wait $child");
        assert_eq!(processes.glance(&watched).processes, 1);
    }

    /// Looks; how many processes and threads were read for that.
    fn look(processes: &mut Processes, watched: &Watched<'_>) -> usize {
        processes.reader.reads = 0;
        processes.look(watched);
        processes.reader.reads
    }

    /// Looks until all have come to rest.
    fn settle(processes: &mut Processes, watched: &Watched<'_>) {
        let mut looks = (0..2000).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            look(processes, watched)
        });
        assert!(looks.any(|reads| reads == 0), "it never rests");
    }

    fn rested(most: usize) -> (Vec<Killed>, Watched<'static>, Processes) {
        let idlers: Vec<Killed> = (0..4).map(|_| idler()).collect();
        let watched = Watched::Processes(idlers.iter().map(Killed::pid).collect());
        let mut processes = Processes::new(Descriptors::at_most(most));
        assert_eq!(look(&mut processes, &watched), 8, "each and its thread");
        settle(&mut processes, &watched);
        (idlers, watched, processes)
    }

    /// What is known of processes, in words. How their time is divided depends on when it was
    /// asked, as no part of it gets less.
    fn figures(processes: &Processes, of: &[i32]) -> Vec<String> {
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
    fn only_those_that_have_run_are_read_and_the_others_are_as_they_were() {
        only_those_that_have_run_are_read(|_| {});
    }

    #[test]
    fn the_same_where_only_the_files_tell() {
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
        let watched = Watched::Processes(all.clone());
        let mut processes = Processes::new(Descriptors::at_most(64));
        prepare(&mut processes);
        tell(&mut shell, ":");
        assert_eq!(look(&mut processes, &watched), 10);
        settle(&mut processes, &watched);
        for _ in 0..5 {
            tell(&mut shell, ":");
            assert_eq!(look(&mut processes, &watched), 2, "the shell alone");
        }
        let mut fresh = Processes::new(Descriptors::at_most(0));
        prepare(&mut fresh);
        settle(&mut processes, &watched);
        assert_eq!(look(&mut fresh, &watched), 10);
        assert_eq!(figures(&processes, &all), figures(&fresh, &all));
        // One of them ends; nobody else is read for that, and its number is no process's.
        drop(idlers.pop());
        assert_eq!(look(&mut processes, &watched), 1);
        assert_eq!(processes.all().count(), 4);
        assert_eq!(processes.reader.descriptors.held(), 4);
    }

    #[test]
    fn children_that_end_and_begin_between_two_looks_are_noticed() {
        let mut shell = shell();
        let watched = Watched::Processes(vec![shell.pid()]);
        let mut processes = Processes::new(Descriptors::at_most(64));
        tell(&mut shell, "sleep 600 & a=$!; sleep 600 & b=$!");
        processes.look(&watched);
        let before = pids(&processes);
        assert_eq!(before.len(), 3);
        tell(&mut shell, "kill $a; wait $a; sleep 600 & c=$!");
        processes.look(&watched);
        let after = pids(&processes);
        let stayed = after.iter().filter(|pid| before.contains(pid));
        assert_eq!(
            (after.len(), stayed.count()),
            (3, 2),
            "{before:?} {after:?}"
        );
        // The child of a child: its parent's list of children is not the shell's.
        tell(&mut shell, "(sleep 600 & sleep 600 & wait) & d=$!");
        let mut looks = (0..2000).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            processes.look(&watched);
            processes.all().count()
        });
        assert!(looks.any(|there| there == 6), "{:?}", pids(&processes));
        settle(&mut processes, &watched);
        // Its children are nobody's here when it has gone.
        tell(&mut shell, "kill $d; wait $d");
        processes.look(&watched);
        assert_eq!(pids(&processes), after);
        assert_eq!(processes.reader.descriptors.held(), 3);
    }

    #[test]
    fn a_thread_that_begins_and_one_that_ends_are_noticed() {
        let watched = Watched::Processes(vec![std::process::id() as i32]);
        let mut processes = Processes::new(Descriptors::at_most(64));
        let mut has = |number: i32| {
            processes.look(&watched);
            let mut threads = processes.all().flat_map(Known::threads);
            threads.any(|(one, _)| one == number)
        };
        assert!(!has(0));
        let (first, ends) = begin_thread();
        // Who has had the CPU all the time is seen at the scheduler's next tick.
        let seen = (0..2000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            has(first)
        });
        assert!(seen);
        // One for the other between two looks: there are as many as before.
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

    /// A thread that waits: its number, and what ends it.
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
            let (mut idlers, watched, mut processes) = rested(most);
            let descriptors = processes.reader.descriptors.clone();
            assert_eq!(descriptors.held(), most.min(4));
            // Without one an idle process is known by what it has run, too.
            assert_eq!(look(&mut processes, &watched), 0);
            // What one leaves another may have.
            drop(idlers.remove(0));
            processes.look(&watched);
            look(&mut processes, &watched);
            assert_eq!(descriptors.held(), most.min(3));
            assert_eq!(processes.all().count(), 3);
            drop(processes);
            assert_eq!(descriptors.held(), 0);
        }
    }

    #[test]
    fn all_are_read_where_the_kernel_does_not_tell_who_has_run() {
        let (mut idlers, watched, mut processes) = rested(64);
        processes.reader.told = false;
        assert_eq!(look(&mut processes, &watched), 8);
        drop(idlers.pop());
        processes.look(&watched);
        assert_eq!(processes.all().count(), 3);
    }
}
