//! What a server's threads had that have ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::proc_files::{Thread, ThreadUsage};
use super::taskstats::Exit;

/// So many that ended, and may be a server's, are kept until the next look.
const STRANGERS_MAX: usize = 4096;

/// Adds up what threads had that have ended.
///
/// Of those that the last look has seen it is what they had then, or, where the kernel
/// [tells](super::exits), what they had in the end. Those that no look has seen are known only from
/// the kernel: they are a server's when their process is, or the one that began it.
#[derive(Default)]
pub(super) struct ExitedThreads {
    sum: ThreadUsage,
    /// What those had in the end of which the end was told, by number, until they are missed.
    finals: BTreeMap<i32, ThreadUsage>,
    /// What was added for those that were missed before their end was told: at the last look, and
    /// at the one before it.
    missed: [BTreeMap<i32, ThreadUsage>; 2],
    /// Of whom nobody knew at the last look whose they are.
    unattributed: Vec<Exit>,
}

impl ExitedThreads {
    /// What they had.
    pub(super) fn sum(&self) -> ThreadUsage {
        self.sum
    }

    /// Notes ends that were told since the last look, which saw those processes and threads.
    pub(super) fn told(
        &mut self,
        exits: &[Exit],
        processes: &BTreeSet<i32>,
        threads: &BTreeMap<i32, Arc<Thread>>,
    ) {
        let mut fresh = Vec::new();
        for exit in exits {
            let last = threads.get(&exit.number).map(|thread| thread.usage);
            let mut missed = self.missed.iter_mut();
            if last.is_some_and(|last| is_same(exit.usage, last)) {
                self.finals.insert(exit.number, exit.usage);
            } else if let Some(added) = missed.find_map(|of| of.remove(&exit.number)) {
                self.sum.add(exit.usage.since(added));
            } else if fresh.len() < STRANGERS_MAX {
                fresh.push(*exit);
            }
        }
        // A child may end before the one that began it, and no look has seen either; or at the
        // end of the time before the last look, which was the first to see the other.
        let mut before = std::mem::take(&mut self.unattributed);
        let mut own = BTreeSet::new();
        let mut found = true;
        while std::mem::take(&mut found) {
            for unattributed in [&mut before, &mut fresh] {
                unattributed.retain(|exit| {
                    let knows = |one: &i32| processes.contains(one) || own.contains(one);
                    let is_own = knows(&exit.process) || knows(&exit.parent);
                    if is_own {
                        self.sum.add(exit.usage);
                        own.insert(exit.process);
                        found = true;
                    }
                    !is_own
                });
            }
        }
        self.unattributed = fresh;
    }

    /// Notes which threads the look before had seen, and which there are now.
    pub(super) fn look(
        &mut self,
        last: &BTreeMap<i32, Arc<Thread>>,
        now: &BTreeMap<i32, Arc<Thread>>,
    ) {
        let mut missed = BTreeMap::new();
        for (number, last) in last {
            let is_there = now.get(number).map(|now| now.usage);
            if is_there.is_some_and(|now| is_same(now, last.usage)) {
                continue;
            }
            match self.finals.remove(number) {
                Some(all) => self.sum.add(all),
                None => {
                    self.sum.add(last.usage);
                    missed.insert(*number, last.usage);
                }
            }
        }
        self.finals.retain(|number, _| now.contains_key(number));
        self.missed.swap(0, 1);
        self.missed[0] = missed;
    }
}

/// Whether it can be the same thread: a number that counts less than before is another's.
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

    fn exit((number, process, parent): (i32, i32, i32), figure: u64) -> Exit {
        Exit {
            number,
            process,
            parent,
            usage: usage(figure),
        }
    }

    /// What was told before a look, and the threads that it sees.
    type Looked<'a> = (&'a [Exit], &'a [(i32, u64)]);

    /// What is counted after looks at one process, 10.
    fn counted(looks: &[Looked<'_>]) -> u64 {
        let processes = BTreeSet::from([10]);
        let mut departed = ExitedThreads::default();
        let mut last = BTreeMap::from([(10, thread(5))]);
        for (exits, threads) in looks {
            departed.told(exits, &processes, &last);
            let now = threads
                .iter()
                .map(|(n, usage)| (*n, thread(*usage)))
                .collect();
            departed.look(&last, &now);
            last = now;
        }
        let figure = departed.sum().user_ns;
        assert_eq!(departed.sum(), usage(figure));
        figure
    }

    #[test]
    fn without_being_told_it_is_what_was_seen_last() {
        assert_eq!(counted(&[(&[], &[(10, 6), (11, 7)]), (&[], &[(10, 8)])]), 7);
        // The number is another's now.
        assert_eq!(
            counted(&[(&[], &[(10, 6), (11, 7)]), (&[], &[(11, 1)])]),
            13
        );
    }

    #[test]
    fn what_one_had_in_the_end_counts_once_whenever_it_is_told() {
        let end = &[exit((11, 10, 1), 9)][..];
        let (both, one): (&[_], &[_]) = (&[(10, 6), (11, 7)], &[(10, 8)]);
        // Before it is missed, as it is missed, after it was missed.
        assert_eq!(counted(&[(&[], both), (end, both), (&[], one)]), 9);
        assert_eq!(counted(&[(&[], both), (end, one), (&[], one)]), 9);
        assert_eq!(counted(&[(&[], both), (&[], one), (end, one)]), 9);
        assert_eq!(
            counted(&[(&[], both), (&[], one), (&[], one), (end, one)]),
            9
        );
    }

    #[test]
    fn those_that_no_look_has_seen_are_counted_where_they_belong() {
        let only: &[_] = &[(10, 6)];
        let thread = exit((11, 10, 1), 2);
        let child = exit((12, 12, 10), 4);
        let childs_child = exit((13, 13, 12), 8);
        let of_another = exit((20, 20, 1), 16);
        let told = [of_another, childs_child, thread, child];
        assert_eq!(counted(&[(&told, only)]), 14);
        // It ended before the one that began it, and that at the next look.
        let first = [childs_child, of_another];
        assert_eq!(counted(&[(&first, only), (&[child], only)]), 12);
        assert_eq!(counted(&[(&first, only), (&[], only), (&[child], only)]), 4);
    }
}
