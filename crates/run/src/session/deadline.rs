//! The time budget of a run: a block that would not end within it is not begun, and nothing is
//! repeated at the expense of a planned block.

use std::collections::{BTreeMap, VecDeque};
use std::iter;
use std::time::{Duration, Instant};

use experiment::plan::Group;
use readings::Condition;

/// The fewest blocks that a verdict is made from.
const VERDICT_BLOCKS: u32 = verdict::FEWEST_BLOCKS as u32;

/// The groups left to measure, with their blocks.
type Queue = VecDeque<(u32, Group)>;

/// The end of a run's time, and how long its groups take.
pub(crate) struct Deadline {
    within: Option<Duration>,
    started: Instant,
    attempt_began: Instant,
    /// How long attempts took so far, by condition. Retries are attempts of their own: how often a
    /// group was repeated says nothing about how long the next block takes.
    attempts: BTreeMap<Condition, Vec<Duration>>,
    /// Retries for which there was no time.
    left_out: usize,
}

impl Deadline {
    /// `within` from now; without it there is no end.
    pub(crate) fn of(within: Option<Duration>) -> Self {
        let now = Instant::now();
        Self {
            within,
            started: now,
            attempt_began: now,
            attempts: BTreeMap::new(),
            left_out: 0,
        }
    }

    /// The first group begins: what came before is no part of it.
    pub(crate) fn first_attempt_begins(&mut self) {
        self.attempt_began = Instant::now();
    }

    /// An attempt at a group has ended, and what follows begins. Others do not need the part `once` of
    /// its time.
    pub(crate) fn attempt_ends(&mut self, condition: &Condition, once: Duration) {
        let now = Instant::now();
        let took = now.saturating_duration_since(self.attempt_began);
        self.attempt_began = now;
        self.took(condition, took.saturating_sub(once));
    }

    fn took(&mut self, condition: &Condition, took: Duration) {
        let attempts = self.attempts.entry(condition.clone()).or_default();
        attempts.push(took);
    }

    /// Windows were changed: an attempt takes so much instead, for each condition.
    pub(crate) fn changed(&mut self, from: Duration, to: Duration) {
        for took in self.attempts.values_mut().flatten() {
            *took = (*took + to).saturating_sub(from);
        }
    }

    /// What one attempt at each of these groups takes: the longest so far of its condition, the first
    /// left out once there are others, since files are read and programs are cached then. Where the
    /// condition has not been measured, the longest of all.
    pub(crate) fn time_of<'g>(&self, groups: impl Iterator<Item = &'g Group>) -> Duration {
        let longest = |attempts: &Vec<Duration>| match attempts.as_slice() {
            [_, later @ ..] if !later.is_empty() => later.iter().max().copied(),
            all => all.first().copied(),
        };
        let of_all = self.attempts.values().filter_map(longest).max();
        let of_all = of_all.unwrap_or_default();
        let of_group = |group: &Group| self.attempts.get(&group.condition).and_then(longest);
        groups.map(|group| of_group(group).unwrap_or(of_all)).sum()
    }

    /// The time so far.
    pub(crate) fn spent(&self) -> Duration {
        self.started.elapsed()
    }

    /// The time that is left; nothing without an end.
    pub(crate) fn left(&self) -> Option<Duration> {
        Some(self.within?.saturating_sub(self.started.elapsed()))
    }

    /// The time that the run may take in all.
    pub(crate) fn within(&self) -> Option<Duration> {
        self.within
    }

    /// Whether a group may be repeated: after that, one attempt at each planned group has to fit.
    pub(crate) fn allows_retry(&mut self, group: &Group, planned: &Queue) -> bool {
        let groups = iter::once(group).chain(planned.iter().map(|(_, later)| later));
        let allows = self.allows(self.time_of(groups));
        self.left_out += usize::from(!allows);
        allows
    }

    /// What to say of the retries that were left out, at the end of the blocks.
    pub(crate) fn left_out(&self) -> Option<String> {
        let within = self.within?.as_secs_f64();
        let were = match self.left_out {
            0 => return None,
            1 => "1 retry was".to_owned(),
            more => format!("{more} retries were"),
        };
        Some(format!(
            "{were} left out for lack of time: within the time budget of {within} s the planned \
             blocks come first"
        ))
    }

    /// Why the next block of the queue must not begin.
    pub(crate) fn next_block(&self, queue: &Queue, planned: u32) -> Option<String> {
        let (next, _) = queue.front()?;
        let of_next = queue.iter().filter(|(block, _)| block == next);
        let mut takes = self.time_of(of_next.map(|(_, group)| group));
        if self.attempts.values().all(|all| all.len() == 1) {
            // The first block is often the slowest.
            takes /= 2;
        }
        self.judge(self.started.elapsed(), takes, next - 1, planned)
    }

    /// Without a third block there is no verdict: for it, half a block more than the time is allowed.
    fn judge(&self, spent: Duration, takes: Duration, done: u32, planned: u32) -> Option<String> {
        let within = self.within?;
        let missing = VERDICT_BLOCKS.saturating_sub(done);
        let reaches_verdict = missing > 0 && spent + takes * missing <= within + takes / 2;
        (spent + takes > within && !reaches_verdict).then(|| {
            format!(
                "the time budget of {} s allowed {done} of {planned} blocks: a block takes up to \
                 {:.0} s, so another would have exceeded it",
                within.as_secs_f64(),
                takes.as_secs_f64().max(1.0)
            )
        })
    }

    /// Whether this much further work would end in time.
    pub(crate) fn allows(&self, more: Duration) -> bool {
        let allows = |within| self.started.elapsed() + more <= within;
        self.within.is_none_or(allows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn group(size: &str) -> Group {
        Group {
            condition: [("size".to_owned(), size.to_owned())].into(),
            trials: Vec::new(),
        }
    }

    #[test]
    fn no_block_begins_that_would_end_after_the_time() {
        let deadline = Deadline::of(Some(s(60)));
        assert_eq!(deadline.judge(s(30), s(20), 2, 8), None);
        let just_in_time = deadline.judge(s(40), s(20), 3, 8);
        assert_eq!(just_in_time, None);
        let why = deadline.judge(s(41), s(20), 4, 8).unwrap();
        assert!(why.contains("60 s allowed 4 of 8 blocks"), "{why}");
        assert!(why.contains("up to 20 s"), "{why}");
        // The third block may take half a block more than there is.
        assert_eq!(deadline.judge(s(45), s(20), 2, 8), None);
        assert!(deadline.judge(s(51), s(20), 2, 8).is_some());
        assert_eq!(deadline.judge(s(30), s(20), 1, 8), None);
        assert!(deadline.judge(s(41), s(20), 1, 8).is_some());
        let endless = Deadline::of(None);
        assert_eq!(endless.judge(s(4000), s(4000), 1, 8), None);
        assert!(endless.allows(s(4000)) && !deadline.allows(s(61)));
    }

    #[test]
    fn a_block_takes_the_longest_attempt_of_each_condition_but_the_first_and_no_retries() {
        let mut deadline = Deadline::of(Some(s(60)));
        let (small, large) = (group("1k"), group("1m"));
        deadline.took(&small.condition, s(30));
        assert_eq!(deadline.time_of([&small].into_iter()), s(30), "all so far");
        for took in [4, 20, 5] {
            deadline.took(&small.condition, s(took));
        }
        let both = [&small, &large];
        let not_measured_yet = deadline.time_of(both.into_iter());
        assert_eq!(not_measured_yet, s(40));
        deadline.took(&large.condition, s(30));
        assert_eq!(deadline.time_of(both.into_iter()), s(50));
        let mut queue: Queue = [(2, small.clone()), (2, large.clone()), (3, small.clone())].into();
        assert_eq!(deadline.next_block(&queue, 8), None, "block 3 comes later");
        deadline.changed(s(3), s(1));
        assert_eq!(deadline.time_of(both.into_iter()), s(46));
        deadline.took(&queue[0].1.condition, s(33));
        let why = deadline.next_block(&queue, 8).unwrap();
        assert!(why.contains("allowed 1 of 8 blocks"), "{why}");
        queue.clear();
        assert_eq!(deadline.next_block(&queue, 8), None);
    }

    #[test]
    fn a_retry_leaves_time_for_what_is_planned() {
        let mut deadline = Deadline::of(Some(s(60)));
        let one = group("1k");
        deadline.took(&one.condition, s(10));
        let planned = |blocks| (0..blocks).map(|block| (block, one.clone())).collect();
        assert!(deadline.allows_retry(&one, &planned(4)));
        assert_eq!(deadline.left_out(), None);
        assert!(!deadline.allows_retry(&one, &planned(6)));
        let told = deadline.left_out().unwrap();
        assert!(told.starts_with("1 retry was left out"), "{told}");
        assert!(!deadline.allows_retry(&one, &planned(7)));
        let told = deadline.left_out().unwrap();
        assert!(told.starts_with("2 retries were left out"), "{told}");
        let mut endless = Deadline::of(None);
        endless.took(&one.condition, s(4000));
        assert!(endless.allows_retry(&one, &planned(30)));
        assert_eq!(endless.left_out(), None);
    }
}
