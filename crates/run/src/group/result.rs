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
    /// The first answers.
    pub(super) answers: Vec<FirstAnswer>,
    /// The failed trials that would fail again for the same reason.
    pub(crate) lasting: Vec<PlannedTrial>,
}

impl GroupResult {
    pub(super) fn has_failures(&self) -> bool {
        let mut outcomes = self.found.outcomes.iter();
        outcomes.any(|(_, one)| matches!(one, Outcome::Failed { .. }))
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
