//! The result of a group: what was found, and which trials failed.

use readings::{FailureCause, Outcome};

use crate::group::answers::{Differing, FirstAnswer};
use crate::measure::Findings;
use experiment::plan::{Group, PlannedTrial};

/// The result of a group; empty when the run was stopped during it.
#[derive(Default)]
pub(crate) struct GroupResult {
    pub(crate) found: Findings,
    pub(crate) agent_lost: bool,
    /// Whether the measurement failed through some of its subjects' servers.
    pub(super) one_ended: bool,
    pub(super) answers: Vec<FirstAnswer>,
    /// The failed trials that would fail again for the same reason.
    pub(crate) lasting: Vec<PlannedTrial>,
}

impl GroupResult {
    pub(super) fn has_failures(&self) -> bool {
        let mut outcomes = self.found.outcomes.iter();
        outcomes.any(|(_, one)| matches!(one, Outcome::Failed { .. }))
    }

    /// Takes the trials out that failed through other subjects' servers.
    pub(super) fn take_bystanders(&mut self) -> Vec<PlannedTrial> {
        let is_bystander = |outcome: &Outcome| match outcome {
            Outcome::Failed { cause, .. } => *cause == FailureCause::Other,
            Outcome::Done(_) => false,
        };
        let outcomes = std::mem::take(&mut self.found.outcomes).into_iter();
        let (bystanders, own): (Vec<_>, Vec<_>) =
            outcomes.partition(|(_, outcome)| is_bystander(outcome));
        self.found.outcomes = own;
        bystanders.into_iter().map(|(planned, _)| planned).collect()
    }

    /// Takes in what others of the same group gave.
    pub(super) fn add(&mut self, other: Self) {
        self.found.outcomes.extend(other.found.outcomes);
        self.found.logs.extend(other.found.logs);
        self.found.warnings.extend(other.found.warnings);
        self.found.slow.extend(other.found.slow);
        self.answers.extend(other.answers);
        self.lasting.extend(other.lasting);
        self.agent_lost |= other.agent_lost;
        self.found.rate = other.found.rate.or(self.found.rate.take());
        self.found.curve = other.found.curve.or(self.found.curve.take());
        self.found.warm_up = other.found.warm_up.or(self.found.warm_up.take());
    }

    /// Why the first trial failed that did.
    pub(super) fn first_failure(&self) -> Option<&str> {
        let mut outcomes = self.found.outcomes.iter();
        outcomes.find_map(|(_, outcome)| match outcome {
            Outcome::Failed { reason, .. } => Some(reason.as_str()),
            Outcome::Done(_) => None,
        })
    }

    pub(super) fn fail(&mut self, planned: &PlannedTrial, reason: String, cause: FailureCause) {
        let failed = Outcome::Failed { reason, cause };
        self.found.outcomes.push((planned.clone(), failed));
    }

    /// Fails all trials of a group after a loss that affects all of them: which of them were
    /// complete is unknown.
    pub(super) fn fail_all(&mut self, group: &Group, reason: &str) {
        self.found.outcomes.clear();
        self.fail_remaining(group, reason, |_| FailureCause::Other);
        (self.found.rate, self.found.curve) = (None, None);
        self.lasting.clear();
        self.agent_lost = true;
    }

    /// Fails the trials that have no outcome yet.
    pub(super) fn fail_remaining(
        &mut self,
        group: &Group,
        reason: &str,
        cause_of: impl Fn(&PlannedTrial) -> FailureCause,
    ) {
        for planned in &group.trials {
            let has_outcome = |(one, _): &(PlannedTrial, _)| one.trial == planned.trial;
            if !self.found.outcomes.iter().any(has_outcome) {
                self.fail(planned, reason.to_owned(), cause_of(planned));
            }
        }
    }

    /// Fails the trials whose first answers differ from the baseline's, also those that were
    /// measured.
    pub(super) fn fail_differing(&mut self, differing: Vec<Differing>) {
        for one in differing {
            let outcomes = &mut self.found.outcomes;
            outcomes.retain(|(other, _)| other.trial != one.planned.trial);
            self.fail(&one.planned, one.reason, FailureCause::Subject);
            if one.is_lasting {
                self.lasting.push(one.planned);
            }
        }
    }
}
