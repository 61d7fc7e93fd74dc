//! Decides from a run's rows whether it may end, and which groups to retry.

use std::collections::BTreeMap;

use readings::{Condition, FailureCause, Outcome, RunHeader, Trial};
use verdict::plan::Noise;

use crate::{MayStop, RetryReason, WhyRetry};
use experiment::plan::{Group, PlannedTrial};

/// A subject that failed in fewer attempts than this may work yet.
const ATTEMPTS_MIN: usize = 2;

/// Decides from the rows so far which groups to retry.
pub(crate) struct RetryTracker<'a> {
    may_stop: &'a MayStop<'a>,
    header: RunHeader,
    trials: Vec<Trial>,
    /// Attempts per group in this process.
    attempts: BTreeMap<(u32, Condition), u32>,
    /// Subjects that are no longer retried, by condition.
    given_up: Vec<(Condition, String)>,
    /// Trials of the last group that failed for a reason that would be found again.
    lasting: Vec<PlannedTrial>,
}

impl<'a> RetryTracker<'a> {
    pub(crate) fn of(may_stop: &'a MayStop<'a>, header: RunHeader, trials: Vec<Trial>) -> Self {
        Self {
            may_stop,
            header,
            trials,
            attempts: BTreeMap::new(),
            given_up: Vec::new(),
            lasting: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, trial: &Trial) {
        self.trials.push(trial.clone());
    }

    /// Sets the trials of the last group that failed for a reason that would be found again.
    pub(crate) fn set_lasting(&mut self, lasting: Vec<PlannedTrial>) {
        self.lasting = lasting;
    }

    /// Whether a group was measured, with or without failures.
    pub(crate) fn has_rows(&self, block: u32, group: &Group) -> bool {
        let mut trials = self.trials.iter();
        trials.any(|one| one.block == block && one.condition == group.condition)
    }

    /// Whether a trial of the last group would fail again.
    fn would_fail_again(&self, planned: &PlannedTrial) -> bool {
        self.lasting.iter().any(|one| one.trial == planned.trial)
    }

    /// The number of a group's next attempt, also after rows of an earlier process.
    pub(crate) fn next_attempt(&self, block: u32, condition: &Condition) -> u32 {
        let rows = self.trials.iter();
        let rows = rows.filter(|t| t.block == block && t.condition == *condition);
        rows.map(|t| t.attempt).max().unwrap_or(0) + 1
    }

    /// What is said of a subject, or the baseline's copy, that has never worked under a condition until
    /// this block. `None` where it was measured once, or where something else was at fault.
    pub(crate) fn never_worked(
        &self,
        block: u32,
        condition: &Condition,
        planned: &PlannedTrial,
    ) -> Option<String> {
        let is_of = |trial: &&Trial| {
            trial.condition == *condition
                && trial.subject == planned.subject
                && trial.baseline_copy == planned.baseline_copy
        };
        let mut last = None;
        // One attempt may fail by chance.
        let attempts = self.trials.iter().filter(is_of).count();
        if attempts < ATTEMPTS_MIN && !self.would_fail_again(planned) {
            return None;
        }
        for trial in self.trials.iter().filter(is_of) {
            let Outcome::Failed { reason, cause } = &trial.outcome else {
                return None;
            };
            if *cause != FailureCause::Subject {
                return None;
            }
            last = Some(reason);
        }
        last.map(|reason| match self.would_fail_again(planned) {
            // The reason was told when the trial failed.
            true => format!("it failed in block {block}, and would fail again"),
            false => format!("it failed in every attempt in block {block}: {reason}"),
        })
    }

    pub(crate) fn is_settled(&self) -> bool {
        (self.may_stop)(&self.header, &self.trials)
    }

    /// How much the blocks so far vary; nothing of fewer than two.
    pub(crate) fn noise(&self) -> Option<Noise> {
        Noise::of(&self.header, &self.trials).map(Noise::beside_assumed)
    }

    /// Why a subject cannot be used in a block, if another attempt may be better: no attempt of it was
    /// good, none would fail again, and it was good in another block.
    pub(crate) fn unusable(
        &self,
        block: u32,
        condition: &Condition,
        planned: &PlannedTrial,
    ) -> Option<WhyRetry> {
        let is_of = |trial: &&Trial| {
            trial.condition == *condition
                && trial.subject == planned.subject
                && trial.baseline_copy == planned.baseline_copy
        };
        let all: Vec<&Trial> = self.trials.iter().filter(is_of).collect();
        let mut why = None;
        for (at, trial) in all.iter().enumerate() {
            match (self.fault(trial), trial.block == block) {
                (None, true) => return None,
                (Some(_), true) if self.is_lasting(&all[..at], trial) => return None,
                (Some(fault), true) => why = Some(fault),
                (_, false) => {}
            }
        }
        let was_good = |one: &&Trial| one.block != block && self.fault(one).is_none();
        why.filter(|_| all.into_iter().any(|one| was_good(&one)))
    }

    /// The seed of a group's random choices; each attempt has its own.
    pub(crate) fn seed(&mut self, block: u32, group: &Group) -> u64 {
        let attempts = self
            .attempts
            .entry((block, group.condition.clone()))
            .or_default();
        *attempts += 1;
        self.header.seed ^ (u64::from(block) << 20) ^ (u64::from(*attempts - 1) << 40)
    }

    /// Why a trial would be measured again; `None` for a good one.
    fn fault(&self, trial: &Trial) -> Option<WhyRetry> {
        match &trial.outcome {
            Outcome::Failed { reason, .. } => Some(WhyRetry::Failed(reason.clone())),
            Outcome::Done(_) => {
                let flaws = verdict::trial_flaws(&self.header, trial);
                (!flaws.is_empty()).then_some(WhyRetry::Flawed(flaws))
            }
        }
    }

    /// Whether repeating a measured trial would find the same flaws, as its subject always has them
    /// under this load.
    fn is_lasting(&self, earlier: &[&Trial], trial: &Trial) -> bool {
        matches!(trial.outcome, Outcome::Done(_))
            && verdict::is_lasting(&self.header, earlier, trial)
    }

    /// Whether to retry a group: the reasons, and the retries left, this one included.
    ///
    /// A trial is good if any of its rows is. One whose flaws or failure would be found again causes
    /// no retry. A subject that failed in all attempts of a block causes no retries in later blocks
    /// until one of its trials is good: a subject that never works would multiply the duration of
    /// every block.
    pub(crate) fn retry(
        &mut self,
        block: u32,
        group: &Group,
        retries: u32,
    ) -> Option<(Vec<RetryReason>, u32)> {
        let attempts = *self.attempts.get(&(block, group.condition.clone()))?;
        let mut reasons = Vec::new();
        for planned in &group.trials {
            let all: Vec<&Trial> = self
                .trials
                .iter()
                .filter(|t| t.condition == group.condition)
                .filter(|t| {
                    t.subject == planned.subject && t.baseline_copy == planned.baseline_copy
                })
                .collect();
            let is_of_block = |(_, trial): &(usize, &&Trial)| trial.block == block;
            let of_block = || all.iter().enumerate().filter(is_of_block);
            let rows: Vec<&Trial> = of_block().map(|(_, trial)| *trial).collect();
            let Some(last) = rows.last() else { continue };
            let is_lasting = of_block().any(|(at, trial)| self.is_lasting(&all[..at], trial));
            if is_lasting || self.would_fail_again(planned) {
                continue;
            }
            let faults: Option<Vec<WhyRetry>> = rows.iter().map(|row| self.fault(row)).collect();
            let key = (group.condition.clone(), planned.subject.clone());
            match faults.and_then(|mut all| all.pop()) {
                None => self.given_up.retain(|one| *one != key),
                Some(_) if self.given_up.contains(&key) => {}
                Some(why) => reasons.push(RetryReason {
                    trial: last.trial,
                    subject: planned.subject.clone(),
                    why,
                }),
            }
        }
        if attempts <= retries && !reasons.is_empty() {
            return Some((reasons, retries - attempts + 1));
        }
        let given_up = reasons.into_iter().map(|one| one.subject);
        self.given_up
            .extend(given_up.map(|subject| (group.condition.clone(), subject)));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::{LoadReading, Offered, Pacing, Reading};

    fn header() -> RunHeader {
        RunHeader {
            seed: 7,
            baseline: "a".into(),
            subjects: vec!["a".into()],
            blocks: 30,
            ..RunHeader::default()
        }
    }

    fn group() -> Group {
        Group {
            condition: Condition::new(),
            trials: vec![PlannedTrial {
                trial: 1,
                subject: "a".into(),
                baseline_copy: false,
            }],
        }
    }

    /// What is wrong with a row.
    #[derive(Clone, Copy)]
    enum Fault {
        /// Wrong answers in the closed loop.
        Wrong,
        /// The open loop was offered less than the closed loop carried, and carried half of it.
        Overload,
    }

    fn row(block: u32, fault: Option<Fault>) -> Trial {
        let load = |pacing, requests| LoadReading {
            requests,
            requests_all: requests,
            duration_s: 10.0,
            ..LoadReading::empty(pacing)
        };
        let mut closed = load(Pacing::Closed, 40_000);
        let mut open = load(Pacing::Open { rate_per_s: 2e3 }, 20_000);
        match fault {
            Some(Fault::Wrong) => closed.errors_all.status = 9_000,
            Some(Fault::Overload) => {
                open.offered = Some(Offered {
                    due: 20_000,
                    answered_within: 10_000,
                    backlog: [0, 2_500, 5_000, 7_500, 10_000],
                });
            }
            None => {}
        }
        Trial {
            trial: 1,
            block,
            condition: Condition::new(),
            subject: "a".into(),
            baseline_copy: false,
            attempt: 1,
            outcome: Outcome::Done(Box::new(Reading {
                throughput: Some(closed),
                latency: Some(open),
                ..Reading::default()
            })),
        }
    }

    #[test]
    fn an_overload_is_repeated_only_until_it_was_seen_again() {
        let group = group();
        let mut tracker = RetryTracker::of(&|_, trials| trials.len() >= 4, header(), Vec::new());
        let mut retry = |block, flaw| {
            tracker.seed(block, &group);
            tracker.add(&row(block, Some(flaw)));
            tracker.retry(block, &group, 2).is_some()
        };
        assert!(retry(1, Fault::Overload), "it may have been chance");
        assert!(!retry(1, Fault::Overload));
        assert!(
            !retry(2, Fault::Overload),
            "it was seen in an earlier block"
        );
        assert!(retry(3, Fault::Wrong), "another flaw");
        assert!(!retry(3, Fault::Overload));
    }

    #[test]
    fn unusable_trials_are_retried_until_given_up() {
        let (header, group) = (header(), group());
        let mut tracker = RetryTracker::of(&|_, trials| trials.len() >= 4, header, Vec::new());
        let first = tracker.seed(1, &group);
        tracker.add(&row(1, Some(Fault::Wrong)));
        let (reasons, left) = tracker.retry(1, &group, 2).unwrap();
        let [reason] = &reasons[..] else {
            panic!("{reasons:?}")
        };
        assert_eq!((reason.trial, reason.subject.as_str(), left), (1, "a", 2));
        assert!(matches!(&reason.why, WhyRetry::Flawed(flaws) if flaws.len() == 1));
        assert_ne!(tracker.seed(1, &group), first);
        tracker.add(&row(1, None));
        assert_eq!(tracker.retry(1, &group, 2), None);
        // All attempts of a block.
        for left in [Some(2), Some(1), None] {
            tracker.seed(2, &group);
            tracker.add(&row(2, Some(Fault::Wrong)));
            assert_eq!(tracker.retry(2, &group, 2).map(|(_, left)| left), left);
        }
        // No retries in later blocks, until a trial is good.
        tracker.seed(3, &group);
        tracker.add(&row(3, Some(Fault::Wrong)));
        assert_eq!(tracker.retry(3, &group, 2), None);
        tracker.seed(4, &group);
        tracker.add(&row(4, None));
        assert_eq!(tracker.retry(4, &group, 2), None);
        tracker.seed(5, &group);
        tracker.add(&row(5, Some(Fault::Wrong)));
        assert!(tracker.retry(5, &group, 2).is_some());
        assert!(tracker.is_settled());
    }
}
