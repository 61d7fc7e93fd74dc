//! Measures one condition in one block: start servers, measure, stop servers.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use readings::{CurveChoice, FailureCause, Outcome, RateChoice};

use crate::context::{Context, connection_close, request};
use crate::measure::{GroupSetup, measurer};
use crate::sequential;
use crate::servers::{start_servers, stop_servers};
use agent::AgentError;
use agent::wire::{AwaitServer, Order};
use experiment::plan::{Group, PlannedTrial};
use experiment::{ResolvedCondition, SubjectSpec};

/// How long a subject may take to answer as expected once its servers are ready.
const SUBJECT_READY_MS: u64 = 5_000;

/// The result of a group; empty when the run was stopped during it.
#[derive(Default)]
pub(crate) struct GroupResult {
    pub(crate) outcomes: Vec<(PlannedTrial, Outcome)>,
    pub(crate) rate: Option<RateChoice>,
    /// The rates of the condition's curve, if they were chosen here.
    pub(crate) curve: Option<CurveChoice>,
    pub(crate) logs: Vec<(u32, BTreeMap<String, String>)>,
    pub(crate) warnings: Vec<String>,
    pub(crate) agent_lost: bool,
    /// Why the subjects cannot be measured side by side; nothing was measured then.
    pub(crate) disturbed: Option<String>,
}

impl GroupResult {
    fn has_failures(&self) -> bool {
        let is_failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed { .. });
        self.disturbed.is_some() || self.outcomes.iter().any(|(_, one)| is_failed(one))
    }

    /// Fails all trials of a group after a loss that affects all of them: which of them were
    /// complete is unknown.
    fn fail_all(&mut self, group: &Group, reason: &str) {
        let failed = |planned: &PlannedTrial| {
            let reason = reason.to_owned();
            let cause = FailureCause::Other;
            (planned.clone(), Outcome::Failed { reason, cause })
        };
        self.outcomes = group.trials.iter().map(failed).collect();
        self.rate = None;
        self.curve = None;
        self.disturbed = None;
        self.agent_lost = true;
    }

    /// Fails the trials that have no outcome yet.
    pub(crate) fn fail_remaining(&mut self, group: &Group, reason: &str, cause: FailureCause) {
        for planned in &group.trials {
            let has_outcome = |(one, _): &(PlannedTrial, _)| one.trial == planned.trial;
            if !self.outcomes.iter().any(has_outcome) {
                let reason = reason.to_owned();
                let failed = Outcome::Failed { reason, cause };
                self.outcomes.push((planned.clone(), failed));
            }
        }
    }
}

#[derive(Clone)]
pub(crate) struct ReadySubject {
    pub(crate) planned: PlannedTrial,
    pub(crate) subject: SubjectSpec,
    pub(crate) address: SocketAddr,
    /// The host of the load.
    pub(crate) from: Option<String>,
}

/// Measures the trials of a group with all its servers up at once. `rate` is the common rate, if
/// known.
pub(crate) fn side_by_side(cx: &mut Context<'_>, group: &Group, rate: Option<f64>) -> GroupResult {
    let resolved = sequential::resolve_group(cx.options.experiment, group);
    let mut result = GroupResult::default();
    let mut up = Vec::new();
    // Uses other ports than the block's other trials: connection state that IPVS or a socket in
    // TIME_WAIT keeps for an old port would affect this trial.
    let first = group.trials.iter().map(|planned| planned.trial).min();
    let salt = u64::from(first.unwrap_or(0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = fastrand::Rng::with_seed(cx.seed ^ salt);
    cx.phase("starting servers");
    let failure = match start_servers(cx, &resolved, &mut up, &mut random) {
        Ok(addresses) => {
            let setup = GroupSetup {
                resolved: &resolved,
                group,
                up: &up,
                rate,
            };
            measure(cx, &setup, &addresses, &mut random, &mut result).err()
        }
        Err(reason) => {
            let design = &cx.options.experiment.design;
            sequential::note_start_failure(design, group, &resolved, &reason, &mut result);
            Some(reason)
        }
    };
    let failed = failure.is_some() || result.has_failures();
    let lost = cx.testbed.hosts.lost(failed);
    if cx.stopped() {
        result.outcomes.clear();
    } else if let Some(reason) = lost {
        result.fail_all(group, &reason);
    } else if result.disturbed.is_some() {
        result.outcomes.clear();
    } else if let Some(reason) = failure {
        result.fail_remaining(group, &reason.to_string(), FailureCause::Other);
        result.agent_lost = matches!(reason, AgentError::Lost(_));
    }
    cx.phase("stopping servers");
    stop_servers(cx, group, &up, &mut result);
    result.agent_lost |= cx.testbed.hosts.lost(false).is_some();
    result
}

fn measure(
    cx: &mut Context<'_>,
    setup: &GroupSetup<'_>,
    addresses: &BTreeMap<String, SocketAddr>,
    random: &mut fastrand::Rng,
    result: &mut GroupResult,
) -> Result<(), AgentError> {
    let ready = ready_subjects(cx, setup.resolved, setup.group, addresses, result)?;
    if ready.is_empty() {
        return Ok(());
    }
    measurer(setup.resolved, &ready).measure(cx, setup, &ready, random, result)
}

/// The subjects that answer as expected; the others fail here.
pub(crate) fn ready_subjects(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    group: &Group,
    addresses: &BTreeMap<String, SocketAddr>,
    result: &mut GroupResult,
) -> Result<Vec<ReadySubject>, AgentError> {
    let expect = cx.options.experiment.expect.clone();
    let mut ready = Vec::new();
    for planned in &group.trials {
        let Some(subject) = resolved.subjects.iter().find(|s| s.name == planned.subject) else {
            continue;
        };
        let from = resolved.load.host.as_deref();
        let outcome = match cx.resolve(from, &subject.target, addresses) {
            Err(reason) => Err(reason),
            Ok(address) => {
                let fields = [resolved.load.headers.as_slice(), &connection_close()].concat();
                let request = match subject.scheme.as_str() {
                    "http" => request(subject, &resolved.load, &fields),
                    _ => String::new(),
                };
                let order = Order::Await(AwaitServer {
                    server: None,
                    address,
                    request,
                    raw: false,
                    status: Some(expect.status),
                    contains: expect.contains.clone(),
                    timeout_ms: SUBJECT_READY_MS,
                });
                match cx.testbed.agent(from)?.ask_unless(&order, cx.stop) {
                    Ok(_) => Ok(address),
                    Err(AgentError::Failed(reason)) => Err(reason),
                    Err(lost) => return Err(lost),
                }
            }
        };
        match outcome {
            Ok(address) => ready.push(ReadySubject {
                planned: planned.clone(),
                subject: subject.clone(),
                address,
                from: resolved.load.host.clone(),
            }),
            Err(reason) => result.outcomes.push((
                planned.clone(),
                Outcome::Failed {
                    reason: format!("subject `{}`: {reason}", planned.subject),
                    cause: FailureCause::Subject,
                },
            )),
        }
    }
    Ok(ready)
}
