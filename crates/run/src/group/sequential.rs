//! Sequential measurement of subjects whose servers would disturb each other side by side, or
//! cannot all run at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use readings::{Condition, FailureCause, LoadReading, Outcome, at_condition};

use crate::context::Context;
use crate::group::answers;
use crate::group::start_failures::GroupFailure;
use crate::group::{GroupResult, side_by_side};
use crate::measure::curve::choose_curve;
use crate::measure::rate::choose_rate_of;
use crate::testbed::copies;
use agent::AgentError;
use agent::wire::{Answer, Order, without_last_output};
use experiment::plan::Group;
use experiment::{Apart, Design, Experiment, Rate, ResolvedCondition};

/// Length of a sample of the servers' idle load, ms. A server above the limit is sampled twice, and
/// the lower sample counts.
const SAMPLE_MS: u64 = 200;
/// Share of a CPU below which an idle server disturbs nobody.
const IDLE_SHARE_MIN: f64 = 0.005;

/// Why conditions are measured sequentially.
#[derive(Debug, Default)]
pub(crate) struct Sequential {
    reasons: BTreeMap<Condition, String>,
    sampled: BTreeSet<Condition>,
    /// Conditions in which the baseline's second copy has no servers of its own.
    without_copies: BTreeSet<Condition>,
    /// Servers of which it was told that they do not start.
    pub(crate) told: BTreeSet<String>,
    /// Whether only closed loops are measured for now, to find the common rate.
    closed_only: bool,
}

/// A group's condition, reduced to the servers of its subjects.
pub(crate) fn resolve_group(experiment: &Experiment, group: &Group) -> ResolvedCondition {
    let mut resolved = experiment.under(&group.condition);
    let used: BTreeSet<String> = resolved
        .subjects
        .iter()
        .filter(|subject| {
            group
                .trials
                .iter()
                .any(|planned| planned.subject == subject.name)
        })
        .flat_map(|subject| subject.through.clone())
        .collect();
    resolved
        .servers
        .retain(|server| used.contains(&server.name));
    resolved
}

/// Whether all subjects of a group use the same servers, so that there is nothing to separate.
fn share_one_path(resolved: &ResolvedCondition, group: &Group) -> bool {
    let mut paths = resolved
        .subjects
        .iter()
        .filter(|subject| {
            group
                .trials
                .iter()
                .any(|planned| planned.subject == subject.name)
        })
        .map(|subject| &subject.through);
    let first = paths.next();
    paths.all(|path| Some(path) == first)
}

impl Sequential {
    /// The design of the current measurement.
    pub(crate) fn design(&self, experiment: &Experiment) -> Design {
        let mut design = experiment.design.clone();
        if self.closed_only {
            design.latency_window = Duration::ZERO;
        }
        design
    }

    /// Whether the baseline's second copy may have servers of its own.
    pub(crate) fn has_copies(&self, condition: &Condition) -> bool {
        !self.without_copies.contains(condition)
    }

    /// Whether only closed loops are measured for now.
    pub(crate) fn is_closed_only(&self) -> bool {
        self.closed_only
    }
}

/// Servers that do not all start side by side may start alone.
pub(crate) fn note_start_failure(
    design: &Design,
    group: &Group,
    resolved: &ResolvedCondition,
    failure: &GroupFailure,
    result: &mut GroupResult,
) {
    if let AgentError::Failed(_) = failure.error
        && design.apart == Apart::Auto
        && !share_one_path(resolved, group)
    {
        let reason = failure.reason();
        result.disturbed = Some(format!(
            "not all servers could be started at the same time: {reason}"
        ));
    }
}

/// Measures the trials of a group. `rate` is the common rate, if known.
pub(crate) fn measure_group(cx: &mut Context<'_>, group: &Group, rate: Option<f64>) -> GroupResult {
    let design = &cx.options.experiment.design;
    let apart = match design.apart {
        Apart::Always => true,
        Apart::Never => false,
        Apart::Auto => cx.sequential.reasons.contains_key(&group.condition),
    };
    if apart {
        return sequentially(cx, group, rate);
    }
    let mut first = side_by_side(cx, group, rate);
    if first.no_copies {
        cx.sequential.without_copies.insert(group.condition.clone());
        first = side_by_side(cx, group, rate);
    }
    let Some(reason) = first.disturbed.clone() else {
        return first;
    };
    if !cx.stopped() {
        // What the servers printed stands in the trials' reasons.
        let why = without_last_output(&reason);
        cx.note(format!(
            "the servers of each subject are started alone now: {why}"
        ));
    }
    let mut result = sequentially(cx, group, rate);
    result.warnings.splice(0..0, first.warnings);
    let all = result
        .outcomes
        .iter()
        .all(|(_, outcome)| matches!(outcome, Outcome::Done(_)));
    if all && !result.outcomes.is_empty() {
        result.warnings.push(warning(&group.condition, &reason));
        cx.sequential
            .reasons
            .insert(group.condition.clone(), reason);
    }
    result
}

/// Starts, measures and stops each subject's servers in turn, in the group's order.
fn sequentially(cx: &mut Context<'_>, group: &Group, rate: Option<f64>) -> GroupResult {
    let mut result = GroupResult::default();
    let mut rate = rate.or(
        match cx.options.experiment.under(&group.condition).load.rate {
            Rate::PerSecond(rate) => Some(rate),
            Rate::Auto => None,
        },
    );
    let experiment = cx.options.experiment;
    let open = !experiment.design.latency_window.is_zero() && rate.is_none();
    let curve = experiment.load.curve.is_some() && cx.curve.is_none();
    if open || curve {
        // The rates depend on what all subjects carry, so the closed loops come first.
        cx.sequential.closed_only = true;
        let found = measure_each(cx, group, None);
        cx.sequential.closed_only = false;
        let measured: Vec<(String, LoadReading)> = found
            .outcomes
            .iter()
            .filter_map(|(planned, outcome)| match outcome {
                Outcome::Done(reading) => {
                    Some((planned.subject.clone(), reading.throughput.clone()?))
                }
                Outcome::Failed { .. } => None,
            })
            .collect();
        if found.agent_lost || cx.stopped() {
            return found;
        }
        let resolved = resolve_group(cx.options.experiment, group);
        result.warnings = found.warnings;
        if measured.len() == group.trials.len() {
            if curve {
                let choice = choose_curve(group, &resolved, &measured);
                cx.curve.clone_from(&choice);
                result.curve = choice;
            }
            let closed: Vec<LoadReading> = measured.into_iter().map(|(_, load)| load).collect();
            if rate.is_none() {
                rate = choose_rate_of(group, &resolved, &closed, &mut result);
            }
        } else if rate.is_none() {
            // There are no open loops, so the closed ones are not made again: a server that does not
            // become ready would be waited for once more.
            return GroupResult {
                warnings: result.warnings,
                ..found
            };
        }
    }
    let GroupResult {
        rate: chosen,
        curve,
        mut warnings,
        ..
    } = result;
    let mut result = measure_each(cx, group, rate);
    warnings.append(&mut result.warnings);
    (result.rate, result.curve, result.warnings) = (chosen, curve, warnings);
    result
}

fn measure_each(cx: &mut Context<'_>, group: &Group, rate: Option<f64>) -> GroupResult {
    let mut all = GroupResult::default();
    for planned in &group.trials {
        let alone = Group {
            condition: group.condition.clone(),
            trials: vec![planned.clone()],
        };
        // Without a common rate the open loop is left out: one subject cannot choose it for all.
        let closed_only = cx.sequential.closed_only;
        let open = !cx.options.experiment.design.latency_window.is_zero();
        cx.sequential.closed_only |= open && rate.is_none();
        let one = side_by_side(cx, &alone, rate);
        cx.sequential.closed_only = closed_only;
        all.outcomes.extend(one.outcomes);
        all.answers.extend(one.answers);
        all.lasting.extend(one.lasting);
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
        let last = all.outcomes.iter().rev();
        let reason = last
            .filter_map(|(_, outcome)| match outcome {
                Outcome::Failed { reason, .. } => Some(reason.clone()),
                Outcome::Done(_) => None,
            })
            .next()
            .unwrap_or_else(|| "an agent was lost before this trial".to_owned());
        all.fail_remaining(group, &reason, |_| FailureCause::Other);
    }
    let experiment = cx.options.experiment;
    let (expect, baseline) = (&experiment.expect, &experiment.design.baseline);
    let resolved = resolve_group(experiment, group);
    let differing = answers::differing(expect, &resolved, baseline, &all.answers, None);
    if !cx.stopped() {
        all.fail_differing(differing);
    }
    all
}

/// Checks, once per condition, whether an idle server takes CPU time that other subjects would then
/// lack.
pub(crate) fn check_disturbance(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    group: &Group,
    result: &mut GroupResult,
) -> Result<bool, AgentError> {
    let design = &cx.options.experiment.design;
    if design.apart != Apart::Auto
        || share_one_path(resolved, group)
        || !cx.sequential.sampled.insert(group.condition.clone())
    {
        return Ok(false);
    }
    let limit = (design.matters / 2.0).max(IDLE_SHARE_MIN);
    cx.phase("sampling the servers without load");
    let from = resolved.load.host.as_deref();
    let mut quietest: BTreeMap<String, f64> = BTreeMap::new();
    for (host, servers, others) in cx.testbed.views(from, resolved) {
        for _ in 0..2 {
            let order = Order::SampleScheduling {
                servers: servers.clone(),
                others: others.clone(),
                duration_ms: SAMPLE_MS,
            };
            let agent = cx.testbed.agent(host.as_deref())?;
            let seen = match agent.ask_unless(&order, cx.stop)? {
                Answer::Scheduling(seen) => seen,
                other => return Err(AgentError::Lost(format!("unexpected answer: {other:?}"))),
            };
            // The lower of two cannot be above the limit if the first is not.
            let all_idle = seen.servers.values().all(|one| one.cpus <= limit);
            for (server, one) in seen.servers {
                let least = quietest.entry(server).or_insert(f64::INFINITY);
                *least = least.min(one.cpus);
            }
            if all_idle {
                break;
            }
        }
    }
    let shared = |server: &str| {
        let is_planned =
            |name: &String| group.trials.iter().any(|planned| planned.subject == *name);
        resolved
            .subjects
            .iter()
            .filter(|subject| is_planned(&subject.name))
            .all(|subject| subject.through.iter().any(|one| one == server))
    };
    let disturbing = quietest
        .into_iter()
        .filter(|(server, share)| *share > limit && !shared(server));
    let (of_copies, others): (Vec<_>, Vec<_>) =
        disturbing.partition(|(server, _)| copies::is_copy(server));
    let worst = others.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    result.no_copies = worst.is_none() && !of_copies.is_empty();
    result.disturbed = worst.map(|(server, share)| {
        format!(
            "server `{server}` takes {:.1}% of a CPU without load",
            share * 100.0
        )
    });
    Ok(result.disturbed.is_some() || result.no_copies)
}

fn warning(condition: &Condition, reason: &str) -> String {
    format!(
        "subjects were measured one after the other{}, so machine drift does not cancel \
         as it does between slices: {reason}",
        at_condition(condition)
    )
}
