//! What a run asks about its own rows: whether it may end, and which trials to make again.

use std::collections::BTreeMap;

use readings::{Condition, Outcome, RunHeader, Trial};

use experiment::plan::Group;

/// Judges a run's rows while it goes on. `lab` holds no statistics: whoever starts a run brings
/// them.
pub trait StoppingRule {
    /// Whether the run stands at one of its looks and all that was declared is settled. `trials`
    /// are all rows so far, in the order in which they were written.
    fn is_settled(&self, header: &RunHeader, trials: &[Trial]) -> bool;

    /// Why a trial that was measured cannot be used, or only in part; empty for a good one.
    fn flaws(&self, header: &RunHeader, trial: &Trial) -> Vec<String>;
}

/// The rows so far, and what follows from them.
pub(crate) struct RetryTracker<'a> {
    stopping_rule: &'a dyn StoppingRule,
    header: RunHeader,
    trials: Vec<Trial>,
    /// How often a group was made in this part of the run.
    made: BTreeMap<(u32, Condition), u32>,
    /// Subjects under a condition that no number of tries has helped.
    hopeless: Vec<(Condition, String)>,
}

impl<'a> RetryTracker<'a> {
    pub(crate) fn of(
        stopping_rule: &'a dyn StoppingRule,
        header: RunHeader,
        trials: Vec<Trial>,
    ) -> Self {
        Self {
            stopping_rule,
            header,
            trials,
            made: BTreeMap::new(),
            hopeless: Vec::new(),
        }
    }

    pub(crate) fn take(&mut self, trial: &Trial) {
        self.trials.push(trial.clone());
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.stopping_rule.is_settled(&self.header, &self.trials)
    }

    /// The seed of a group's random choices; another one each time that the group is made.
    pub(crate) fn seed(&mut self, block: u32, group: &Group) -> u64 {
        let made = self
            .made
            .entry((block, group.condition.clone()))
            .or_default();
        *made += 1;
        self.header.seed ^ (u64::from(block) << 20) ^ (u64::from(*made - 1) << 40)
    }

    fn flaw(&self, trial: &Trial) -> Option<String> {
        match &trial.outcome {
            Outcome::Failed { reason } => Some(reason.clone()),
            Outcome::Done(_) => {
                let flaws = self.stopping_rule.flaws(&self.header, trial);
                (!flaws.is_empty()).then(|| flaws.join("; "))
            }
        }
    }

    /// Whether a group that was just made is to be made again: why, and how often it still can.
    ///
    /// A trial counts as good when any of its rows is. A subject that was not good in all tries of
    /// one block is not tried again for its own sake in later ones, until a trial of it is good:
    /// what never works would make each block several times as long.
    pub(crate) fn again(
        &mut self,
        block: u32,
        group: &Group,
        retries: u32,
    ) -> Option<(Vec<String>, u32)> {
        let made = *self.made.get(&(block, group.condition.clone()))?;
        let mut reasons = Vec::new();
        for lane in &group.trials {
            let rows: Vec<&Trial> = self
                .trials
                .iter()
                .filter(|t| t.block == block && t.condition == group.condition)
                .filter(|t| t.subject == lane.subject && t.again == lane.baseline_copy)
                .collect();
            let Some(last) = rows.last() else { continue };
            let flaws: Vec<Option<String>> = rows.iter().map(|row| self.flaw(row)).collect();
            let key = (group.condition.clone(), lane.subject.clone());
            if flaws.iter().any(Option::is_none) {
                self.hopeless.retain(|one| *one != key);
            } else if !self.hopeless.contains(&key) {
                let flaw = flaws.into_iter().flatten().next_back().unwrap_or_default();
                reasons.push((
                    key,
                    format!("trial {}, {}: {flaw}", last.trial, lane.subject),
                ));
            }
        }
        if made <= retries && !reasons.is_empty() {
            let reasons = reasons.into_iter().map(|(_, reason)| reason).collect();
            return Some((reasons, retries - made + 1));
        }
        self.hopeless
            .extend(reasons.into_iter().map(|(key, _)| key));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::plan::PlannedTrial;
    use readings::Reading;

    struct ByWarnings;

    impl StoppingRule for ByWarnings {
        fn is_settled(&self, _: &RunHeader, trials: &[Trial]) -> bool {
            trials.len() >= 4
        }
        fn flaws(&self, _: &RunHeader, trial: &Trial) -> Vec<String> {
            match &trial.outcome {
                Outcome::Done(reading) => reading.warnings.clone(),
                Outcome::Failed { .. } => Vec::new(),
            }
        }
    }

    fn header() -> RunHeader {
        RunHeader {
            weigh_version: String::new(),
            experiment: String::new(),
            title: String::new(),
            seed: 7,
            baseline: "a".into(),
            subjects: vec!["a".into()],
            conditions: vec![Condition::new()],
            blocks: 30,
            matters: 0.03,
            max_error: 0.01,
            published: Vec::new(),
            started_unix_s: 0,
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

    fn row(block: u32, flaw: Option<&str>) -> Trial {
        Trial {
            trial: 1,
            block,
            condition: Condition::new(),
            subject: "a".into(),
            again: false,
            outcome: Outcome::Done(Box::new(Reading {
                warnings: flaw.map(str::to_owned).into_iter().collect(),
                ..Reading::default()
            })),
        }
    }

    #[test]
    fn what_cannot_be_used_is_made_again_and_not_for_ever() {
        let (header, group) = (header(), group());
        let mut tracker = RetryTracker::of(&ByWarnings, header, Vec::new());
        let first = tracker.seed(1, &group);
        tracker.take(&row(1, Some("late")));
        let (reasons, left) = tracker.again(1, &group, 2).unwrap();
        assert_eq!((reasons, left), (vec!["trial 1, a: late".to_owned()], 2));
        assert_ne!(tracker.seed(1, &group), first);
        tracker.take(&row(1, None));
        assert_eq!(tracker.again(1, &group, 2), None);
        // In all tries of a block.
        for left in [Some(2), Some(1), None] {
            tracker.seed(2, &group);
            tracker.take(&row(2, Some("late")));
            assert_eq!(tracker.again(2, &group, 2).map(|(_, left)| left), left);
        }
        // Not for its own sake in the next, until it is good again.
        tracker.seed(3, &group);
        tracker.take(&row(3, Some("late")));
        assert_eq!(tracker.again(3, &group, 2), None);
        tracker.seed(4, &group);
        tracker.take(&row(4, None));
        assert_eq!(tracker.again(4, &group, 2), None);
        tracker.seed(5, &group);
        tracker.take(&row(5, Some("late")));
        assert!(tracker.again(5, &group, 2).is_some());
        assert!(tracker.is_settled());
    }
}
