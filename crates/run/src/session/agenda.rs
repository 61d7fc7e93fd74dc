//! What is left to measure, and what follows a group: a retry, the next group, or the end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use agent::wire::without_last_output;
use readings::{Condition, CurveChoice, RunHeader};

use crate::session::deadline::Deadline;
use crate::session::resume::EarlierResults;
use crate::session::retries::RetryTracker;
use crate::session::unusable::Again;
use crate::{RunEvent, RunOptions};
use experiment::plan::{Group, Plan, PlannedTrial};
use experiment::within::Windows;

/// More slow subjects than these are not all named.
const NAMED_MAX: usize = 4;

pub(super) struct Agenda<'a> {
    pub(super) options: &'a RunOptions<'a>,
    /// The groups left to measure, with their blocks.
    pub(super) queue: VecDeque<(u32, Group)>,
    pub(super) rates: BTreeMap<Condition, f64>,
    pub(super) curves: BTreeMap<Condition, CurveChoice>,
    pub(super) retries: RetryTracker<'a>,
    pub(super) deadline: Deadline,
    /// Groups of later blocks for which there is no time.
    pub(super) dropped: Vec<(u32, Group)>,
    /// The measured times of the trials that are left.
    pub(super) windows: Windows,
    /// Time of the last group that only the first block needs.
    pub(super) once: Duration,
    /// Time spent on starting servers in this block, by condition, of its last attempt.
    pub(super) starting: BTreeMap<Condition, Duration>,
    /// Subjects of this block whose closed loops are measured after those of the others.
    pub(super) slow: BTreeSet<String>,
    /// The groups that were measured, with their blocks.
    pub(super) measured: Vec<(u32, Group)>,
    pub(super) again: Again,
    /// Subjects whose bottlenecks an earlier part of the run has searched, by condition.
    searched: Vec<(Condition, String)>,
    /// Subjects that never worked, by condition.
    left_out: Vec<(Condition, String)>,
    /// Whether groups were given up, since nothing was left to compare in them.
    pub(super) nothing_left: bool,
}

impl<'a> Agenda<'a> {
    /// What an earlier part of the run has left of a plan.
    pub(super) fn of(
        options: &'a RunOptions<'a>,
        plan: &Plan,
        header: RunHeader,
        earlier: EarlierResults,
    ) -> Self {
        let within = options.experiment.design.within;
        let left = plan
            .groups()
            .filter(|(block, group)| !earlier.has_all(*block, group));
        let mut agenda = Self {
            options,
            queue: left.map(|(block, group)| (block, group.clone())).collect(),
            rates: earlier.rates,
            curves: earlier.curves,
            retries: RetryTracker::of(options.may_stop, header, earlier.trials),
            deadline: Deadline::of(within.filter(|_| !options.resume)),
            dropped: Vec::new(),
            windows: Windows::of(&options.experiment.design),
            once: Duration::ZERO,
            starting: BTreeMap::new(),
            slow: BTreeSet::new(),
            measured: Vec::new(),
            again: Again::default(),
            searched: earlier.bottlenecks,
            left_out: Vec::new(),
            nothing_left: false,
        };
        // If all is settled, the blocks that an earlier part did not reach are skipped.
        if options.resume && agenda.is_settled() {
            agenda.queue.clear();
        }
        agenda
    }

    /// Blocks of the run, without those for which there is no time.
    pub(super) fn blocks(&self) -> u32 {
        let all = self.options.experiment.design.blocks;
        self.dropped.first().map_or(all, |(block, _)| *block - 1)
    }

    /// Whether the groups that are left need not be measured. An earlier part of the run may have
    /// measured the next group with a failed trial: then it is measured again in any case.
    fn is_settled(&self) -> bool {
        let next = self.queue.front();
        let has_failed = next.is_some_and(|(block, group)| self.retries.has_rows(*block, group));
        !has_failed && self.retries.is_settled()
    }

    /// Decides what follows a group that was measured. Returns what is to be told.
    pub(super) fn group_ends(&mut self, block: u32, group: &Group) -> Vec<RunEvent> {
        let design = &self.options.experiment.design;
        let mut events = Vec::new();
        let once = std::mem::take(&mut self.once);
        self.deadline.attempt_ends(&group.condition, once);
        // After the last block, what is measured again has a count of its own.
        let retries = if self.again.was_told {
            0
        } else {
            design.retries
        };
        let retry = self.retries.retry(block, group, retries);
        // Asked only for a retry, as it counts those for which there is no time.
        let retry = retry.filter(|_| self.deadline.allows_retry(group, &self.queue));
        if let Some((reasons, left)) = retry {
            events.push(RunEvent::Retry { reasons, left });
            self.queue.push_front((block, group.clone()));
        } else {
            let is_it = |(b, one): &(u32, Group)| *b == block && one.condition == group.condition;
            if !self.measured.iter().any(is_it) {
                self.measured.push((block, group.clone()));
            }
            events.extend(self.leave_out(block, group));
        }
        let mut later = self.queue.iter().chain(&self.dropped);
        let next = later.next().map(|(next, _)| *next);
        if next != Some(block) {
            let slow = std::mem::take(&mut self.slow);
            events.extend(slow_warning(&slow).map(warning));
        }
        // What is measured again ends no block.
        let is_over = next.is_some_and(|next| next != block);
        if is_over && !self.again.was_told {
            events.extend(self.block_ends(block));
        }
        if self.queue.is_empty() {
            events.extend(self.measure_again());
        }
        if self.queue.is_empty() {
            events.extend(self.deadline.left_out().map(warning));
        }
        events
    }

    fn block_ends(&mut self, block: u32) -> Vec<RunEvent> {
        let blocks = self.options.experiment.design.blocks;
        if self.is_settled() {
            self.queue.clear();
            self.dropped.clear();
            return vec![RunEvent::Settled { block, blocks }];
        }
        let starting = std::mem::take(&mut self.starting).into_values().sum();
        let mut events = self.replan(block, starting);
        events.extend(self.starts_take(block, starting));
        if let Some(why) = self.deadline.next_block(&self.queue, blocks) {
            self.queue.clear();
            self.dropped.clear();
            events.push(warning(why));
        } else if !events.iter().any(|one| matches!(one, RunEvent::Decides(_))) {
            events.extend(self.pilot(block));
        }
        events
    }

    /// Leaves subjects that have never worked out of the blocks that follow, and a condition in
    /// which nothing is left to compare.
    fn leave_out(&mut self, block: u32, group: &Group) -> Vec<RunEvent> {
        let condition = &group.condition;
        let trials = group.trials.iter();
        let never: Vec<(&PlannedTrial, String)> = trials
            .filter_map(|one| Some((one, self.retries.never_worked(block, condition, one)?)))
            .collect();
        if never.is_empty() {
            return Vec::new();
        }
        let is_left_out = |one: &PlannedTrial| {
            never.iter().any(|(never, _)| {
                never.subject == one.subject && never.baseline_copy == one.baseline_copy
            })
        };
        let subjects = group.trials.iter().filter(|one| !one.baseline_copy);
        let (gone, left): (Vec<&PlannedTrial>, Vec<_>) = subjects.partition(|one| is_left_out(one));
        let gone: Vec<&str> = gone.into_iter().map(|one| one.subject.as_str()).collect();
        for subject in &gone {
            self.left_out
                .push((condition.clone(), (*subject).to_owned()));
        }
        let baseline = &self.options.experiment.design.baseline;
        let has_baseline = left.iter().any(|one| one.subject == *baseline);
        let is_left = has_baseline && (left.len() > 1 || gone.is_empty());
        let mut is_affected = false;
        for (_, later) in self.queue.iter_mut().chain(&mut self.dropped) {
            if later.condition == *condition {
                is_affected = true;
                later.trials.retain(|one| is_left && !is_left_out(one));
            }
        }
        let is_left_over = |(_, later): &(u32, Group)| !later.trials.is_empty();
        self.queue.retain(is_left_over);
        self.dropped.retain(is_left_over);
        if !is_affected {
            return Vec::new();
        }
        let at: String = condition.iter().map(|(k, v)| format!(" {k}={v}")).collect();
        if !is_left {
            self.nothing_left = true;
            let ends = match self.queue.is_empty() {
                true => "the run ends".to_owned(),
                false => format!("the blocks that follow leave out{at}"),
            };
            return vec![warning(format!(
                "{ends} after block {block}, since nothing is left to compare: `{}` failed in every attempt{}",
                gone.join("`, `"),
                first_reason(&never)
            ))];
        }
        let told = never.into_iter().map(|(one, why)| {
            let what = match one.baseline_copy {
                true => "the second copy of",
                false => "subject",
            };
            warning(format!(
                "{what} `{}`{at} is left out of the blocks that follow, since {why}",
                one.subject
            ))
        });
        told.collect()
    }

    /// The subjects whose bottlenecks are still to be searched, by condition.
    pub(super) fn to_search(&self) -> Vec<(Condition, String)> {
        if self.nothing_left {
            return Vec::new();
        }
        let mut all = self.with_engine();
        all.retain(|one| !self.searched.contains(one));
        all
    }

    /// The subjects under load by the engine that have worked, by condition.
    pub(super) fn with_engine(&self) -> Vec<(Condition, String)> {
        let mut all = self.options.experiment.engine_subjects();
        all.retain(|one| !self.left_out.contains(one));
        all
    }
}

/// The first reason of those that never worked, in a line.
fn first_reason(never: &[(&PlannedTrial, String)]) -> String {
    let why = never.first().and_then(|(_, why)| why.split_once(": "));
    why.map_or_else(String::new, |(_, reason)| {
        format!(": {}", without_last_output(reason))
    })
}

pub(super) fn warning(text: String) -> RunEvent {
    RunEvent::Warning { text }
}

/// One for all subjects that are slow under any condition.
fn slow_warning(slow: &BTreeSet<String>) -> Option<String> {
    let names: Vec<String> = slow.iter().map(|name| format!("`{name}`")).collect();
    let (last, before) = names.split_last()?;
    let named = &before[..before.len().min(NAMED_MAX - 1)];
    let last = match names.len() - named.len() {
        1 => last.clone(),
        more => format!("{more} more"),
    };
    let (of, loops) = match named {
        [] => (last, "its closed loop was"),
        _ => {
            let of = format!("{} and {last}", named.join(", "));
            (of, "their closed loops were")
        }
    };
    Some(format!(
        "the answers of {of} take too long for the slices of the others: {loops} measured after \
         the others' in each block, so machine drift does not cancel between them"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_subjects_are_in_one_warning_and_not_all_named() {
        let begins = |count: usize| {
            let names = ["a", "b", "c", "d", "e"].map(str::to_owned);
            let text = slow_warning(&names.into_iter().take(count).collect()).unwrap();
            text.split(" measured after").next().unwrap().to_owned()
        };
        assert_eq!(slow_warning(&BTreeSet::new()), None);
        assert_eq!(
            begins(1),
            "the answers of `a` take too long for the slices of the others: its closed loop was"
        );
        assert!(begins(2).starts_with("the answers of `a` and `b` take"));
        assert!(begins(4).starts_with("the answers of `a`, `b`, `c` and `d` take"));
        assert_eq!(
            begins(5),
            "the answers of `a`, `b`, `c` and 2 more take too long for the slices of the others: \
             their closed loops were"
        );
    }
}
