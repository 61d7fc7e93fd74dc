//! Measures one condition in one block: start servers, measure, stop servers.

mod alone;
mod answers;
pub(crate) mod bottleneck;
mod perturbations;
pub(crate) mod profile;
mod ready;
mod ready_wait;
pub(crate) mod result;
mod schemas;
pub(crate) mod sequential;
mod servers;
mod start_failures;

use readings::{FailureCause, Outcome, Reading};

use crate::context::Context;
use crate::events;
use crate::group::ready::ready_subjects;
use crate::group::result::GroupResult;
use crate::group::servers::{broken_servers, start_servers, stop_servers};
use crate::group::start_failures::GroupFailure;
use crate::measure::{
    Ending, Findings, GroupSetup, Wanted, resolve_group, share_one_path, slices, tools,
    upstream_connections,
};
use crate::testbed::copies::original;
use crate::testbed::{StartedServer, copies};
use agent::AgentError;
use experiment::plan::{Group, PlannedTrial};
use experiment::{Apart, ResolvedCondition, ServerSpec, Upstream};

/// Why a group cannot be measured with all its servers up at once. Nothing was measured then.
enum NotSideBySide {
    /// See [`Ending::NoCopies`].
    NoCopies,
    /// See [`Ending::Disturbed`].
    Disturbed { why: String, warnings: Vec<String> },
}

/// Measures the trials of a group with all its servers up at once.
fn side_by_side(
    cx: &mut Context<'_>,
    group: &Group,
    wanted: Wanted,
) -> Result<GroupResult, NotSideBySide> {
    let mut resolved = resolve_group(cx.options.experiment, group);
    if !cx.learned.without_copies.contains(&group.condition) {
        copies::add(&mut resolved, group);
    }
    let mut result = GroupResult::default();
    let mut up = Vec::new();
    // Uses other ports than the block's other trials: connection state that IPVS or a socket in
    // TIME_WAIT keeps for an old port would affect this trial.
    let first = group.trials.iter().map(|planned| planned.trial).min();
    let salt = u64::from(first.unwrap_or(0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = fastrand::Rng::with_seed(cx.seed ^ salt);
    cx.phase("starting servers");
    let ended = match start_servers(cx, &resolved, &mut up, &mut random) {
        Ok(addresses) => {
            let ready = ready_subjects(cx, &resolved, group, &addresses, &mut result);
            let measured = ready.and_then(|ready| {
                let setup = GroupSetup {
                    resolved: &resolved,
                    group,
                    up: &up,
                    ready: &ready,
                    wanted,
                };
                measure(cx, &setup, &mut random, &mut result.found)
            });
            measured.map_err(|error| {
                let servers = match error {
                    AgentError::Failed(_) if !cx.stopped() => broken_servers(cx, &up),
                    _ => Vec::new(),
                };
                GroupFailure::of_servers(error, servers).while_measured()
            })
        }
        Err(failure) => judge_start(cx, group, &resolved, failure, &up, &mut result),
    };
    let is_complete = matches!(ended, Ok(Ending::Complete));
    let lost = cx.testbed.hosts.lost(!is_complete || result.has_failures());
    let mut not_measured = None;
    match (ended, lost) {
        _ if cx.stopped() => result.found.outcomes.clear(),
        (_, Some(reason)) => result.fail_all(group, &reason),
        (Err(failure), None) => {
            result.one_ended = failure.while_measured;
            result.fail_remaining(group, &failure.reason(), |planned| {
                cause_of(&failure, &resolved, planned)
            });
            result.agent_lost = matches!(failure.error, AgentError::Lost(_));
        }
        (Ok(Ending::Complete), None) => {}
        (Ok(ending), None) => not_measured = Some(ending),
    }
    for (planned, outcome) in &mut result.found.outcomes {
        if let Outcome::Done(reading) = outcome {
            add_path(cx, &resolved, group, planned, reading);
            add_starts(&resolved, planned, &up, reading);
            let warning = upstream_connections::warning(cx, &resolved, planned, reading);
            result.found.warnings.extend(warning);
        }
    }
    cx.phase("stopping servers");
    stop_servers(cx, group, &up, &mut result);
    result.agent_lost |= cx.testbed.hosts.lost(false).is_some();
    match not_measured {
        Some(Ending::NoCopies) => Err(NotSideBySide::NoCopies),
        Some(Ending::Disturbed(why)) => Err(NotSideBySide::Disturbed {
            why,
            warnings: result.found.warnings,
        }),
        Some(Ending::Complete) | None => Ok(result),
    }
}

/// What follows from servers that could not be started: a copy may be left out, and servers that do
/// not all start side by side may start alone.
fn judge_start(
    cx: &mut Context<'_>,
    group: &Group,
    resolved: &ResolvedCondition,
    mut failure: GroupFailure,
    up: &[StartedServer],
    result: &mut GroupResult,
) -> Result<Ending, GroupFailure> {
    if failure.servers.iter().any(|server| copies::is_copy(server)) {
        return Ok(Ending::NoCopies);
    }
    if cx.stopped() {
        return Err(failure);
    }
    if let AgentError::Failed(_) = failure.error
        && cx.options.experiment.design.apart == Apart::Auto
        && !share_one_path(resolved, group)
    {
        return Ok(Ending::Disturbed(format!(
            "not all servers could be started at the same time: {}",
            failure.reason()
        )));
    }
    let start = up.last().map(|server| &server.start);
    start_failures::tell(cx, &mut failure, start, result);
    Err(failure)
}

/// What is at fault for the failure of a trial.
fn cause_of(
    failure: &GroupFailure,
    resolved: &ResolvedCondition,
    planned: &PlannedTrial,
) -> FailureCause {
    let subject = copies::subject_of(resolved, planned);
    let path = subject.map(|one| one.through).unwrap_or_default();
    match path.iter().any(|server| failure.servers.contains(server)) {
        true => FailureCause::Subject,
        false => FailureCause::Other,
    }
}

/// Adds what is known of the servers of a trial's path.
fn add_path(
    cx: &Context<'_>,
    resolved: &ResolvedCondition,
    group: &Group,
    planned: &PlannedTrial,
    reading: &mut Reading,
) {
    reading.separate_copy = copies::is_separate(resolved, group, planned);
    let subject = resolved.subjects.iter().find(|s| s.name == planned.subject);
    let Some(subject) = subject.filter(|_| cx.options.experiment.expect.every_server) else {
        return;
    };
    let spec = |name: &String| resolved.servers.iter().find(|one| one.name == *name);
    let asks_always = |server: &&ServerSpec| {
        let settings = cx.configurations.get(&server.name);
        let caching = settings.and_then(|one| one["settings"]["caching"].as_str());
        // What caches answers to requests has `on`; `scripts` and the like are other caches.
        caching.is_none_or(|caching| caching != "on")
    };
    for front in subject.through.iter().filter_map(spec).filter(asks_always) {
        for upstream in &front.upstreams {
            if let Upstream::Server(name) = upstream {
                reading.asked_by.insert(name.clone(), front.name.clone());
            }
        }
    }
}

/// Adds how the servers of a trial's path started.
fn add_starts(
    resolved: &ResolvedCondition,
    planned: &PlannedTrial,
    up: &[StartedServer],
    reading: &mut Reading,
) {
    let subject = copies::subject_of(resolved, planned);
    let path = subject.map(|one| one.through).unwrap_or_default();
    let its = up.iter().filter(|one| path.contains(&one.name));
    let starts = its.filter_map(|one| Some((original(&one.name).to_owned(), one.began?)));
    reading.starts = starts.collect();
}

/// Measures the subjects that are ready. The engine and outside drivers cannot alternate; an
/// experiment that mixes them under one condition was refused.
fn measure(
    cx: &mut Context<'_>,
    setup: &GroupSetup<'_>,
    random: &mut fastrand::Rng,
    found: &mut Findings,
) -> Result<Ending, AgentError> {
    let resolved = setup.resolved;
    if setup.ready.is_empty() {
        return Ok(Ending::Complete);
    }
    if cx.options.experiment.is_in_one_piece() {
        return events::measure(cx, setup, found);
    }
    let mut drivers = setup.ready.iter().map(|one| &one.subject.driver);
    match drivers.all(|one| one.is_engine()) || resolved.load_name.is_some() {
        true => slices::measure(cx, setup, random, found),
        false => tools::measure(cx, setup, random, found),
    }
}
