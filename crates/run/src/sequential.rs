//! Subjects that are measured one after the other, because side by side they would disturb each
//! other or do not fit.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use readings::{Condition, LoadReading, Outcome};

use crate::context::Context;
use crate::group::{GroupResult, side_by_side};
use crate::measure::rate::choose_rate_of;
use agent::AgentError;
use agent::wire::{Answer, Order};
use experiment::plan::Group;
use experiment::{Apart, Design, Experiment, Rate, ResolvedCondition};

/// How long servers are looked at without load, ms; twice, and the quieter time counts.
const IDLE_MS: u64 = 200;
/// A server that takes less of a CPU than this while nobody asks it disturbs nobody.
const IDLE_SHARE_MIN: f64 = 0.005;

/// The conditions whose subjects are measured one after the other.
#[derive(Debug, Default)]
pub(crate) struct Sequential {
    reasons: BTreeMap<Condition, String>,
    looked_at: BTreeSet<Condition>,
    /// Whether only closed loops are made at the moment, to find the common rate.
    closed_only: bool,
}

/// A group's resolved: only the servers that its subjects go through.
pub(crate) fn resolved(experiment: &Experiment, group: &Group) -> ResolvedCondition {
    let mut resolved = experiment.under(&group.condition);
    let used: BTreeSet<String> = resolved
        .subjects
        .iter()
        .filter(|subject| group.trials.iter().any(|lane| lane.subject == subject.name))
        .flat_map(|subject| subject.through.clone())
        .collect();
    resolved
        .servers
        .retain(|server| used.contains(&server.name));
    resolved
}

/// Whether every subject of a group goes through the same servers: then there is nothing to part.
fn all_the_same(resolved: &ResolvedCondition, group: &Group) -> bool {
    let mut paths = resolved
        .subjects
        .iter()
        .filter(|subject| group.trials.iter().any(|lane| lane.subject == subject.name))
        .map(|subject| &subject.through);
    let first = paths.next();
    paths.all(|path| Some(path) == first)
}

impl Sequential {
    /// The design of what is made now.
    pub(crate) fn design(&self, experiment: &Experiment) -> Design {
        let mut design = experiment.design.clone();
        if self.closed_only {
            design.latency_window = Duration::ZERO;
        }
        design
    }
}

/// Servers that do not come up beside each other may come up alone.
pub(crate) fn do_not_fit(
    design: &Design,
    group: &Group,
    resolved: &ResolvedCondition,
    reason: &AgentError,
    result: &mut GroupResult,
) {
    if let AgentError::Failed(reason) = reason
        && design.apart == Apart::Auto
        && !all_the_same(resolved, group)
    {
        result.disturbed = Some(format!(
            "not all servers came up beside each other: {reason}"
        ));
    }
}

/// Makes the trials of a group. `rate` is the common rate when it is known already.
pub(crate) fn measure_group(cx: &mut Context<'_>, group: &Group, rate: Option<f64>) -> GroupResult {
    let design = &cx.options.experiment.design;
    let apart = match design.apart {
        Apart::Always => true,
        Apart::Never => false,
        Apart::Auto => cx.sequential.reasons.contains_key(&group.condition),
    };
    if apart {
        return one_by_one(cx, group, rate);
    }
    let first = side_by_side(cx, group, rate);
    let Some(reason) = first.disturbed.clone() else {
        return first;
    };
    let mut result = one_by_one(cx, group, rate);
    let all = result
        .outcomes
        .iter()
        .all(|(_, outcome)| matches!(outcome, Outcome::Done(_)));
    if all && !result.outcomes.is_empty() {
        result.warnings.push(words(&group.condition, &reason));
        cx.sequential
            .reasons
            .insert(group.condition.clone(), reason);
    }
    result
}

/// Each subject started, measured and stopped before the next, in the group's order.
fn one_by_one(cx: &mut Context<'_>, group: &Group, rate: Option<f64>) -> GroupResult {
    let mut result = GroupResult::default();
    let mut rate = rate.or(
        match cx.options.experiment.under(&group.condition).load.rate {
            Rate::PerSecond(rate) => Some(rate),
            Rate::Auto => None,
        },
    );
    let open = !cx.options.experiment.design.latency_window.is_zero();
    if open && rate.is_none() {
        // The rate hangs on the slowest of all, so all are asked once before.
        cx.sequential.closed_only = true;
        let found = each(cx, group, None);
        cx.sequential.closed_only = false;
        let closed: Vec<LoadReading> = found
            .outcomes
            .iter()
            .filter_map(|(_, outcome)| match outcome {
                Outcome::Done(reading) => reading.throughput.clone(),
                Outcome::Failed { .. } => None,
            })
            .collect();
        if found.agent_lost || cx.stopped() {
            return found;
        }
        let resolved = resolved(cx.options.experiment, group);
        let all = closed.len() == group.trials.len();
        rate = all
            .then(|| choose_rate_of(group, &resolved, &closed, &mut result))
            .flatten();
    }
    let chosen = result.rate.take();
    let mut result = each(cx, group, rate);
    result.rate = chosen;
    result
}

fn each(cx: &mut Context<'_>, group: &Group, rate: Option<f64>) -> GroupResult {
    let mut all = GroupResult::default();
    for lane in &group.trials {
        let alone = Group {
            condition: group.condition.clone(),
            trials: vec![lane.clone()],
        };
        // Without a rate the open loop is left out: one subject cannot choose it for all.
        let closed_only = cx.sequential.closed_only;
        cx.sequential.closed_only |= rate.is_none();
        let one = side_by_side(cx, &alone, rate);
        cx.sequential.closed_only = closed_only;
        all.outcomes.extend(one.outcomes);
        all.logs.extend(one.logs);
        all.warnings.extend(one.warnings);
        all.agent_lost |= one.agent_lost;
        if cx.stopped() || all.agent_lost {
            break;
        }
    }
    if cx.stopped() {
        all.outcomes.clear();
    } else if all.agent_lost {
        all.others_failed(group, "the agent was lost before its turn");
    }
    all
}

/// Looks, once for each condition, whether a server takes CPU time while nobody asks it: that
/// is missing while a subject is measured that does not go through it.
pub(crate) fn disturb_each_other(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    group: &Group,
    result: &mut GroupResult,
) -> Result<bool, AgentError> {
    let design = &cx.options.experiment.design;
    if design.apart != Apart::Auto
        || all_the_same(resolved, group)
        || !cx.sequential.looked_at.insert(group.condition.clone())
    {
        return Ok(false);
    }
    let limit = (design.matters / 2.0).max(IDLE_SHARE_MIN);
    cx.phase("looking what servers do while nobody asks them");
    let from = resolved.load.host.as_deref();
    let mut quietest: BTreeMap<String, f64> = BTreeMap::new();
    for (host, servers, others) in cx.testbed.views(from, resolved) {
        for _ in 0..2 {
            let order = Order::SampleScheduling {
                servers: servers.clone(),
                others: others.clone(),
                duration_ms: IDLE_MS,
            };
            let agent = cx.testbed.agent(host.as_deref())?;
            let seen = match agent.ask_unless(&order, cx.stop)? {
                Answer::Seen(seen) => seen,
                other => return Err(AgentError::Lost(format!("unexpected answer: {other:?}"))),
            };
            for (server, one) in seen.servers {
                let least = quietest.entry(server).or_insert(f64::INFINITY);
                *least = least.min(one.cpus);
            }
        }
    }
    let shared = |server: &str| {
        let in_lanes = |name: &String| group.trials.iter().any(|lane| lane.subject == *name);
        resolved
            .subjects
            .iter()
            .filter(|subject| in_lanes(&subject.name))
            .all(|subject| subject.through.iter().any(|one| one == server))
    };
    let worst = quietest
        .into_iter()
        .filter(|(server, share)| *share > limit && !shared(server))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    result.disturbed = worst.map(|(server, share)| {
        format!(
            "server `{server}` takes {:.1}% of a CPU while nobody asks it",
            share * 100.0
        )
    });
    Ok(result.disturbed.is_some())
}

fn words(condition: &Condition, reason: &str) -> String {
    let levels: Vec<String> = condition.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let at = match levels.is_empty() {
        true => String::new(),
        false => format!(" at {}", levels.join(", ")),
    };
    format!(
        "subjects were measured one after the other{at}, so drift of the machine does not cancel \
         as it does between slices: {reason}"
    )
}
