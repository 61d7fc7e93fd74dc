//! Usage of a server's threads that have exited.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::kernel::netlink::taskstats::ThreadExit;
use crate::kernel::proc_files::{Thread, ThreadUsage};

/// Most unattributed exits that are kept until the next sample.
const UNATTRIBUTED_MAX: usize = 4096;

/// Adds up the usage of threads that have exited.
///
/// For threads of the last sample it is their usage in it, or, where the kernel
/// [reports exits](crate::sampling::server::thread_exits), their final usage. Threads that no sample has seen are
/// known from those reports only: they belong to a server when their process or its parent does.
#[derive(Default)]
pub(crate) struct ExitedThreads {
    sum: ThreadUsage,
    /// Final usage by tid, until a sample misses the thread.
    finals: BTreeMap<i32, ThreadUsage>,
    /// Usage that was added for threads that a sample missed before their exit was reported, by tid:
    /// of the last sample, and of the one before.
    missed: [BTreeMap<i32, ThreadUsage>; 2],
    /// Exits that belonged to no server at the last sample.
    unattributed: Vec<ThreadExit>,
}

impl ExitedThreads {
    pub(crate) fn sum(&self) -> ThreadUsage {
        self.sum
    }

    /// Takes exits since the last sample, which saw those processes and threads.
    pub(crate) fn take_exits(
        &mut self,
        exits: &[ThreadExit],
        processes: &BTreeSet<i32>,
        threads: &BTreeMap<i32, Arc<Thread>>,
    ) {
        let mut fresh = Vec::new();
        for exit in exits {
            let last = threads.get(&exit.tid).map(|thread| thread.usage);
            let mut missed = self.missed.iter_mut();
            if last.is_some_and(|last| is_same(exit.usage, last)) {
                self.finals.insert(exit.tid, exit.usage);
            } else if let Some(added) = missed.find_map(|of| of.remove(&exit.tid)) {
                self.sum.add(exit.usage.since(added));
            } else if fresh.len() < UNATTRIBUTED_MAX {
                fresh.push(*exit);
            }
        }
        // A child may exit before its parent, and no sample has seen either; or just before the
        // last sample, which was the first to see the parent.
        let mut before = std::mem::take(&mut self.unattributed);
        let mut own = BTreeSet::new();
        let mut found = true;
        while std::mem::take(&mut found) {
            for unattributed in [&mut before, &mut fresh] {
                unattributed.retain(|exit| {
                    let knows = |one: &i32| processes.contains(one) || own.contains(one);
                    let is_own = knows(&exit.pid) || knows(&exit.parent_pid);
                    if is_own {
                        self.sum.add(exit.usage);
                        own.insert(exit.pid);
                        found = true;
                    }
                    !is_own
                });
            }
        }
        self.unattributed = fresh;
    }

    /// Takes the threads of the last sample and of this one.
    pub(crate) fn take_threads(
        &mut self,
        last: &BTreeMap<i32, Arc<Thread>>,
        now: &BTreeMap<i32, Arc<Thread>>,
    ) {
        let mut missed = BTreeMap::new();
        for (tid, last) in last {
            let is_there = now.get(tid).map(|now| now.usage);
            if is_there.is_some_and(|now| is_same(now, last.usage)) {
                continue;
            }
            match self.finals.remove(tid) {
                Some(all) => self.sum.add(all),
                None => {
                    self.sum.add(last.usage);
                    missed.insert(*tid, last.usage);
                }
            }
        }
        self.finals.retain(|tid, _| now.contains_key(tid));
        self.missed.swap(0, 1);
        self.missed[0] = missed;
    }
}

/// Whether it can be the same thread: where a counter is lower than before, its tid was reused.
fn is_same(now: ThreadUsage, before: ThreadUsage) -> bool {
    now.switches_voluntary >= before.switches_voluntary && now.faults_minor >= before.faults_minor
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(figure: u64) -> Arc<Thread> {
        Arc::new(Thread {
            usage: usage(figure),
            ..Thread::default()
        })
    }

    /// All figures are multiples of one.
    fn usage(figure: u64) -> ThreadUsage {
        ThreadUsage {
            user_ns: figure,
            system_ns: 2 * figure,
            switches_voluntary: 3 * figure,
            switches_involuntary: 4 * figure,
            faults_minor: 5 * figure,
            faults_major: 6 * figure,
        }
    }

    fn exit((tid, pid, parent_pid): (i32, i32, i32), figure: u64) -> ThreadExit {
        ThreadExit {
            tid,
            pid,
            parent_pid,
            usage: usage(figure),
        }
    }

    /// Exits before a sample, and its threads.
    type Sampled<'a> = (&'a [ThreadExit], &'a [(i32, u64)]);

    /// Usage after samples of one process, 10.
    fn counted(samples: &[Sampled<'_>]) -> u64 {
        let processes = BTreeSet::from([10]);
        let mut exited = ExitedThreads::default();
        let mut last = BTreeMap::from([(10, thread(5))]);
        for (exits, threads) in samples {
            exited.take_exits(exits, &processes, &last);
            let now = threads
                .iter()
                .map(|(n, usage)| (*n, thread(*usage)))
                .collect();
            exited.take_threads(&last, &now);
            last = now;
        }
        let figure = exited.sum().user_ns;
        assert_eq!(exited.sum(), usage(figure));
        figure
    }

    #[test]
    fn without_reports_it_is_the_usage_in_the_last_sample() {
        assert_eq!(counted(&[(&[], &[(10, 6), (11, 7)]), (&[], &[(10, 8)])]), 7);
        // The tid was reused.
        assert_eq!(
            counted(&[(&[], &[(10, 6), (11, 7)]), (&[], &[(11, 1)])]),
            13
        );
    }

    #[test]
    fn final_usage_counts_once_whenever_it_is_reported() {
        let end = &[exit((11, 10, 1), 9)][..];
        let (both, one): (&[_], &[_]) = (&[(10, 6), (11, 7)], &[(10, 8)]);
        // Reported before a sample misses it, with it, and after it.
        assert_eq!(counted(&[(&[], both), (end, both), (&[], one)]), 9);
        assert_eq!(counted(&[(&[], both), (end, one), (&[], one)]), 9);
        assert_eq!(counted(&[(&[], both), (&[], one), (end, one)]), 9);
        assert_eq!(
            counted(&[(&[], both), (&[], one), (&[], one), (end, one)]),
            9
        );
    }

    #[test]
    fn threads_that_no_sample_has_seen_are_counted_where_they_belong() {
        let only: &[_] = &[(10, 6)];
        let thread = exit((11, 10, 1), 2);
        let child = exit((12, 12, 10), 4);
        let childs_child = exit((13, 13, 12), 8);
        let of_another = exit((20, 20, 1), 16);
        let all = [of_another, childs_child, thread, child];
        assert_eq!(counted(&[(&all, only)]), 14);
        // It exits before its parent, which exits before the next sample.
        let first = [childs_child, of_another];
        assert_eq!(counted(&[(&first, only), (&[child], only)]), 12);
        assert_eq!(counted(&[(&first, only), (&[], only), (&[child], only)]), 4);
    }
}
