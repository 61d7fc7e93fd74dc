//! Blocks that cannot be used, after the last one: which, why, and which of them are measured again.

use std::collections::BTreeMap;

use readings::Condition;

use super::agenda::Agenda;
use crate::{RunEvent, UnusableTrial};
use experiment::plan::Group;

/// What is measured again after the last block.
#[derive(Default)]
pub(super) struct Again {
    /// Attempts so far, by condition and block.
    attempts: BTreeMap<Condition, BTreeMap<u32, u32>>,
    pub(super) was_told: bool,
    /// Whether nothing is measured again any more.
    has_ended: bool,
}

impl Agenda<'_> {
    /// After the last block: queues one of the groups that cannot be used, until enough are, or the
    /// time is up. Without a time budget each condition gets half as many attempts as it has blocks.
    pub(super) fn measure_again(&mut self) -> Option<RunEvent> {
        let design = &self.options.experiment.design;
        if self.again.has_ended || design.retries == 0 || self.nothing_left {
            return None;
        }
        let trials = self.unusable();
        let most = match self.deadline.within() {
            Some(_) => design.blocks,
            None => design.blocks.div_ceil(2),
        };
        let mut wanted: Vec<(u32, &Group)> = Vec::new();
        for (block, group) in &self.measured {
            let is_unusable =
                |one: &UnusableTrial| one.block == *block && one.condition == group.condition;
            let attempts = self.again.attempts.get(&group.condition);
            let made: u32 = attempts.into_iter().flat_map(|one| one.values()).sum();
            if made < most && trials.iter().any(is_unusable) {
                wanted.push((*block, group));
            }
        }
        let settled = !trials.is_empty() && self.retries.is_settled();
        let wanted = wanted.into_iter().filter(|(_, group)| {
            !settled
                && self
                    .deadline
                    .allows(self.deadline.time_of([*group].into_iter()))
        });
        let wanted: Vec<(u32, &Group)> = wanted.collect();
        let attempts_at = |block: u32, group: &Group| {
            let of_condition = self.again.attempts.get(&group.condition);
            of_condition
                .and_then(|one| one.get(&block))
                .copied()
                .unwrap_or(0)
        };
        let next = wanted
            .iter()
            .min_by_key(|(block, group)| attempts_at(*block, group));
        let next = next.map(|(block, group)| (*block, (*group).clone()));
        let again = wanted.len();
        let Some((block, group)) = next else {
            self.again.has_ended = true;
            return (!trials.is_empty()).then_some(RunEvent::Unusable { trials, again: 0 });
        };
        let attempts = self
            .again
            .attempts
            .entry(group.condition.clone())
            .or_default();
        *attempts.entry(block).or_default() += 1;
        self.queue.push_back((block, group));
        let was_told = std::mem::replace(&mut self.again.was_told, true);
        (!was_told).then_some(RunEvent::Unusable { trials, again })
    }

    /// The subjects that cannot be used in a block and that another attempt may help; the baseline's
    /// second copy is left out.
    fn unusable(&self) -> Vec<UnusableTrial> {
        let groups = self.measured.iter();
        let trials = groups.flat_map(|(block, group)| {
            let trials = group.trials.iter().filter(|one| !one.baseline_copy);
            trials.filter_map(|planned| {
                Some(UnusableTrial {
                    block: *block,
                    condition: group.condition.clone(),
                    subject: planned.subject.clone(),
                    why: self.retries.unusable(*block, &group.condition, planned)?,
                })
            })
        });
        trials.collect()
    }
}
