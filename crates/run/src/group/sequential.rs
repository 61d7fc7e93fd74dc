//! Sequential measurement of subjects whose servers would disturb each other side by side, or
//! cannot all run at once.

use readings::{Condition, FailureCause, LoadReading, Outcome, at_condition};

use crate::context::Context;
use crate::group::result::GroupResult;
use crate::group::{NotSideBySide, answers, side_by_side};
use crate::measure::curve::choose_curve;
use crate::measure::rate::choose_rate_of;
use crate::measure::{Findings, Wanted, resolve_group};
use agent::wire::without_last_output;
use experiment::plan::Group;
use experiment::{Apart, Rate};

/// Measures the trials of a group. `rate` is the common rate, if known.
pub(crate) fn measure_group(cx: &mut Context<'_>, group: &Group, rate: Option<f64>) -> GroupResult {
    let apart = match cx.options.experiment.design.apart {
        Apart::Always => true,
        Apart::Never => false,
        Apart::Auto => cx.learned.one_by_one.contains_key(&group.condition),
    };
    if apart {
        return sequentially(cx, group, rate);
    }
    let wanted = Wanted {
        rate,
        closed_only: false,
    };
    let mut first = side_by_side(cx, group, wanted);
    if let Err(NotSideBySide::NoCopies) = first {
        cx.learned.without_copies.insert(group.condition.clone());
        first = side_by_side(cx, group, wanted);
    }
    let (why, warnings) = match first {
        Ok(result) => return measure_bystanders(cx, group, wanted, result),
        Err(NotSideBySide::Disturbed { why, warnings }) => (why, warnings),
        // There are no copies any more.
        Err(NotSideBySide::NoCopies) => return GroupResult::default(),
    };
    // What the servers printed stands in the trials' reasons.
    cx.note(format!(
        "the servers of each subject are started alone now: {}",
        without_last_output(&why)
    ));
    let mut result = sequentially(cx, group, rate);
    result.found.warnings.splice(0..0, warnings);
    if !result.has_failures() && !result.found.outcomes.is_empty() {
        result.found.warnings.push(warning(&group.condition, &why));
        cx.learned.one_by_one.insert(group.condition.clone(), why);
    }
    result
}

/// A server that ends fails the load on all subjects: those on whose path it is not are measured
/// without it.
fn measure_bystanders(
    cx: &mut Context<'_>,
    group: &Group,
    wanted: Wanted,
    mut result: GroupResult,
) -> GroupResult {
    // Fewer of them fail each time, or this would go on for ever.
    let mut most = group.trials.len();
    while result.one_ended && !result.agent_lost && !cx.stopped() {
        result.one_ended = false;
        let trials = result.take_bystanders();
        if trials.is_empty() {
            break;
        }
        if trials.len() >= most {
            let why = "a server ended while it was measured, and nothing says whose";
            result.fail_remaining(group, why, |_| FailureCause::Other);
            break;
        }
        most = trials.len();
        let ended = group.trials.len() - trials.len();
        cx.note(format!(
            "{ended} of {} trials failed through their own servers; the others are measured without \
             them",
            group.trials.len()
        ));
        let rest = Group {
            condition: group.condition.clone(),
            trials,
        };
        // None is a copy of what is gone.
        match side_by_side(cx, &rest, wanted) {
            Ok(more) => {
                result.one_ended = more.one_ended;
                result.add(more);
            }
            Err(NotSideBySide::NoCopies) => result.fail_remaining(
                group,
                "the second copy of the baseline's servers could not be started",
                |_| FailureCause::Other,
            ),
            Err(NotSideBySide::Disturbed { why, warnings }) => {
                result.found.warnings.extend(warnings);
                result.fail_remaining(group, &why, |_| FailureCause::Other);
            }
        }
    }
    result
}

/// Starts, measures and stops each subject's servers in turn, in the group's order.
fn sequentially(cx: &mut Context<'_>, group: &Group, rate: Option<f64>) -> GroupResult {
    let experiment = cx.options.experiment;
    let mut rate = rate.or(match experiment.under(&group.condition).load.rate {
        Rate::PerSecond(rate) => Some(rate),
        Rate::Auto => None,
    });
    let open = !experiment.design.latency_window.is_zero() && rate.is_none();
    let curve = experiment.load.curve.is_some() && cx.curve.is_none();
    let mut chosen = Findings::default();
    if open || curve {
        // The rates depend on what all subjects carry, so the closed loops come first.
        let closed_only = Wanted {
            rate: None,
            closed_only: true,
        };
        let first = measure_each(cx, group, closed_only);
        if first.agent_lost || cx.stopped() {
            return first;
        }
        let measured = closed_loops(&first);
        let all_measured = measured.len() == group.trials.len();
        if !all_measured && rate.is_none() {
            // There are no open loops, so the closed ones are not made again: a server that does not
            // become ready would be waited for once more.
            return first;
        }
        chosen.warnings = first.found.warnings;
        chosen.warm_up = first.found.warm_up;
        if all_measured {
            let resolved = resolve_group(experiment, group);
            if curve {
                cx.curve = choose_curve(group, &resolved, &measured);
                chosen.curve.clone_from(&cx.curve);
            }
            if rate.is_none() {
                let closed: Vec<LoadReading> = measured.into_iter().map(|(_, load)| load).collect();
                rate = choose_rate_of(group, &resolved, &closed, &mut chosen);
            }
        }
    }
    let wanted = Wanted {
        rate,
        // Without a common rate the open loop is left out: one subject cannot choose it for all.
        closed_only: rate.is_none() && !experiment.design.latency_window.is_zero(),
    };
    let mut result = measure_each(cx, group, wanted);
    result.found.warnings.splice(0..0, chosen.warnings);
    (result.found.rate, result.found.curve) = (chosen.rate, chosen.curve);
    result.found.warm_up = result.found.warm_up.take().or(chosen.warm_up);
    result
}

/// The closed loops of the trials that were measured, with their subjects.
fn closed_loops(result: &GroupResult) -> Vec<(String, LoadReading)> {
    let outcomes = result.found.outcomes.iter();
    outcomes
        .filter_map(|(planned, outcome)| match outcome {
            Outcome::Done(reading) => Some((planned.subject.clone(), reading.throughput.clone()?)),
            Outcome::Failed { .. } => None,
        })
        .collect()
}

fn measure_each(cx: &mut Context<'_>, group: &Group, wanted: Wanted) -> GroupResult {
    let mut all = GroupResult::default();
    for planned in &group.trials {
        let alone = Group {
            condition: group.condition.clone(),
            trials: vec![planned.clone()],
        };
        // One subject is never disturbed, and has no copy beside it.
        if let Ok(one) = side_by_side(cx, &alone, wanted) {
            all.add(one);
        }
        if cx.stopped() || all.agent_lost {
            break;
        }
    }
    if cx.stopped() {
        all.found.outcomes.clear();
        return all;
    }
    if all.agent_lost {
        let mut last = all.found.outcomes.iter().rev();
        let reason = last.find_map(|(_, outcome)| match outcome {
            Outcome::Failed { reason, .. } => Some(reason.clone()),
            Outcome::Done(_) => None,
        });
        let reason = reason.unwrap_or_else(|| "an agent was lost before this trial".to_owned());
        all.fail_remaining(group, &reason, |_| FailureCause::Other);
    }
    let experiment = cx.options.experiment;
    let (expect, baseline) = (&experiment.expect, &experiment.design.baseline);
    let resolved = resolve_group(experiment, group);
    let differing = answers::differing(expect, &resolved, baseline, &all.answers, None);
    all.fail_differing(differing);
    all
}

fn warning(condition: &Condition, reason: &str) -> String {
    format!(
        "subjects were measured one after the other{}, so machine drift does not cancel \
         as it does between slices: {reason}",
        at_condition(condition)
    )
}
