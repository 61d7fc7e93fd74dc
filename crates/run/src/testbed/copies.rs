//! The servers of the baseline's second copy: started separately, so that the noise floor contains
//! the variance of starts.

use std::collections::BTreeSet;

use experiment::plan::{Group, PlannedTrial};
use experiment::{ResolvedCondition, ServerSpec, SubjectSpec, Target, Upstream};
use readings::{AcceptQueue, SystemMetrics};

/// Ends the name of a copied server. Names of an experiment's servers have no dot.
const SUFFIX: &str = ".copy";

fn copy_of(name: &str) -> String {
    format!("{name}{SUFFIX}")
}

/// The name in the experiment.
pub(crate) fn original(name: &str) -> &str {
    name.strip_suffix(SUFFIX).unwrap_or(name)
}

pub(crate) fn is_copy(name: &str) -> bool {
    name.ends_with(SUFFIX)
}

/// Adds the servers of the baseline's copy to a group's condition.
pub(crate) fn add(resolved: &mut ResolvedCondition, group: &Group) {
    let Some(copy) = group.trials.iter().find(|planned| planned.baseline_copy) else {
        return;
    };
    let originals = group.trials.iter().filter(|one| !one.baseline_copy);
    let mut others: Vec<&str> = originals.map(|one| one.subject.as_str()).collect();
    let all = others.len();
    others.retain(|subject| *subject != copy.subject);
    // Without the baseline beside it, the copy needs no servers of its own.
    if others.len() == all {
        return;
    }
    let own = resolved.servers_of_copy(&copy.subject, &others);
    let specs = resolved.servers.iter();
    let specs = specs.filter(|one| own.contains(&one.name));
    let copies: Vec<ServerSpec> = specs.map(|spec| copied(spec, &own)).collect();
    resolved.servers.extend(copies);
}

fn copied(spec: &ServerSpec, own: &BTreeSet<String>) -> ServerSpec {
    let upstreams = spec.upstreams.iter().map(|upstream| match upstream {
        Upstream::Server(name) if own.contains(name) => Upstream::Server(copy_of(name)),
        other => other.clone(),
    });
    ServerSpec {
        name: copy_of(&spec.name),
        upstreams: upstreams.collect(),
        ..spec.clone()
    }
}

/// A trial's subject, with the copied servers if it is the baseline's copy and there are any.
pub(crate) fn subject_of(
    resolved: &ResolvedCondition,
    planned: &PlannedTrial,
) -> Option<SubjectSpec> {
    let find = |one: &&SubjectSpec| one.name == planned.subject;
    let mut subject = resolved.subjects.iter().find(find)?.clone();
    if planned.baseline_copy {
        let has_copy = |name: &str| resolved.servers.iter().any(|s| s.name == copy_of(name));
        for server in &mut subject.through {
            if has_copy(server) {
                *server = copy_of(server);
            }
        }
        if let Target::Server(name) = &mut subject.target
            && has_copy(name)
        {
            *name = copy_of(name);
        }
    }
    Some(subject)
}

/// Whether the servers of a baseline copy were started for it alone.
pub(crate) fn is_separate(
    resolved: &ResolvedCondition,
    group: &Group,
    planned: &PlannedTrial,
) -> bool {
    let Some(subject) = subject_of(resolved, planned).filter(|_| planned.baseline_copy) else {
        return false;
    };
    match group.trials.len() {
        // Measured apart, every trial starts its servers.
        1 => !subject.through.is_empty(),
        _ => subject.through.iter().any(|name| is_copy(name)),
    }
}

/// The accept queues of a trial's own servers under the names of the experiment, and those of which
/// no server is known.
pub(crate) fn queues_of_path(queues: &[AcceptQueue], through: &[String]) -> Vec<AcceptQueue> {
    let own = queues.iter().filter(|queue| match &queue.server {
        Some(server) => through.contains(server),
        None => true,
    });
    let named = own.cloned().map(|mut queue| {
        queue.server = queue.server.map(|server| original(&server).to_owned());
        queue
    });
    named.collect()
}

/// Metrics of a trial under the names of the experiment: of its own servers, be they copies or not.
pub(crate) fn of_path(mut metrics: SystemMetrics, through: &[String]) -> SystemMetrics {
    metrics = metrics.of_servers(through);
    let servers = std::mem::take(&mut metrics.servers).into_iter();
    metrics.servers = servers
        .map(|(name, one)| (original(&name).to_owned(), one))
        .collect();
    for network in &mut metrics.networks {
        network.servers.retain(|name| !is_copy(name));
    }
    metrics
}
