//! Work on one subject by itself, after the last block.

use readings::Condition;

use crate::context::Context;
use crate::group::ready::ready_subjects;
use crate::group::result::GroupResult;
use crate::group::servers::{start_servers, stop_servers};
use crate::measure::resolve_group;
use crate::testbed::ReadySubject;
use agent::AgentError;
use experiment::ResolvedCondition;
use experiment::plan::{Group, PlannedTrial};

/// A subject under a condition, with no other.
pub(super) struct Alone {
    group: Group,
    /// Its condition, with its servers only.
    pub(super) resolved: ResolvedCondition,
}

impl Alone {
    pub(super) fn new(cx: &Context<'_>, condition: &Condition, subject: &str) -> Self {
        let group = Group {
            condition: condition.clone(),
            trials: vec![PlannedTrial {
                trial: 0,
                subject: subject.to_owned(),
                baseline_copy: false,
            }],
        };
        let resolved = resolve_group(cx.options.experiment, &group);
        Self { group, resolved }
    }

    /// Starts the servers, does the work once the subject answers, and stops the servers.
    /// `at_failure` is done before they are stopped, if anything has failed.
    ///
    /// # Errors
    /// When the subject does not answer, the work fails, or an agent is lost.
    pub(super) fn with_servers<T>(
        &self,
        cx: &mut Context<'_>,
        work: impl FnOnce(
            &mut Context<'_>,
            &[ReadySubject],
            &mut fastrand::Rng,
        ) -> Result<T, AgentError>,
        at_failure: impl FnOnce(&mut Context<'_>),
    ) -> Result<T, AgentError> {
        let (group, resolved) = (&self.group, &self.resolved);
        let mut random = fastrand::Rng::with_seed(cx.seed);
        let (mut result, mut up) = (GroupResult::default(), Vec::new());
        let done = start_servers(cx, resolved, &mut up, &mut random)
            .map_err(|failure| failure.error)
            .and_then(|addresses| ready_subjects(cx, resolved, group, &addresses, &mut result))
            .and_then(|ready| match ready.is_empty() {
                true => {
                    let why = result.first_failure().unwrap_or("there is no such subject");
                    Err(AgentError::Failed(why.to_owned()))
                }
                false => work(cx, &ready, &mut random),
            });
        if let Err(AgentError::Failed(_)) = done {
            at_failure(cx);
        }
        let lost = cx.testbed.hosts.lost(done.is_err());
        stop_servers(cx, group, &up, &mut result);
        match lost {
            Some(why) => Err(AgentError::Lost(why)),
            None if result.agent_lost => Err(AgentError::Lost(
                "it ended while the servers were being stopped".into(),
            )),
            None => done,
        }
    }
}
