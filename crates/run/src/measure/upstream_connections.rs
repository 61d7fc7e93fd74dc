//! Connections that servers opened to their upstreams, held against their settings.

use experiment::plan::PlannedTrial;
use experiment::{ResolvedCondition, ServerSpec, SubjectSpec};
use readings::{LoadReading, Reading};

use crate::context::Context;

/// Connections per request above which they are not kept.
const NOT_KEPT: f64 = 0.05;
/// Connections per request from which every request opens one, as good as.
const ONE_EACH: f64 = 0.5;
/// Requests from which a share says something.
const REQUESTS_MIN: u64 = 500;
/// Requests per connection of the client from which it says that connections are not kept: a server
/// that keeps them may open one for each of the client's too.
const REQUESTS_MIN_PER_CONNECTION: u64 = 40;

/// Whether a server of a subject's path has upstreams, so that accepted connections may be its own.
/// Where none has, they are those of other programs. The servers of a given address are unknown.
pub(crate) fn may_be_opened(resolved: &ResolvedCondition, subject: &SubjectSpec) -> bool {
    subject.through.is_empty()
        || subject.through.iter().any(|name| {
            let server = resolved.servers.iter().find(|one| one.name == *name);
            server.is_some_and(|one| !one.upstreams.is_empty())
        })
}

/// Warns in the first block where a server opened connections for many requests, against its
/// settings or by them.
pub(crate) fn warning(
    cx: &Context<'_>,
    resolved: &ResolvedCondition,
    planned: &PlannedTrial,
    reading: &Reading,
) -> Option<String> {
    // A balancer of connections opens one for each of the client's.
    let load = &resolved.load;
    if cx.block != 1 || planned.baseline_copy || !load.keepalive {
        return None;
    }
    let opened = reading.upstream_connections_per_request?;
    let throughput = reading.throughput.as_ref()?;
    let subject = resolved
        .subjects
        .iter()
        .find(|s| s.name == planned.subject)?;
    let spec = |name: &String| resolved.servers.iter().find(|one| one.name == *name);
    let mut fronts = subject.through.iter().filter_map(spec);
    let mut with_upstreams = fronts.by_ref().filter(|one| !one.upstreams.is_empty());
    let front = with_upstreams.next()?;
    // Of several servers, which one opened them is unknown.
    if with_upstreams.next().is_some() || throughput.requests_all < REQUESTS_MIN {
        return None;
    }
    let settings = &cx.configurations.get(&front.name)?["settings"];
    let kept = settings["keepalive_upstream"].as_str()?;
    let each = subject
        .requests_per_connection
        .or(load.requests_per_connection);
    let keeps_clients = each.is_none() && is_each_used_often(throughput);
    told(front, &subject.name, kept, opened, keeps_clients)
}

/// Whether there were many requests for each of the client's connections.
fn is_each_used_often(load: &LoadReading) -> bool {
    load.requests_all >= REQUESTS_MIN_PER_CONNECTION * load.connections
}

fn told(
    front: &ServerSpec,
    subject: &str,
    kept: &str,
    opened: f64,
    keeps_clients: bool,
) -> Option<String> {
    let (name, recipe) = (&front.name, &front.recipe);
    match kept {
        "on" if opened > NOT_KEPT && keeps_clients => Some(format!(
            "server `{name}` keeps connections to its upstreams by its settings, but opened \
             {opened:.2} per request of `{subject}` in block 1"
        )),
        "off" if opened > ONE_EACH => Some(format!(
            "server `{name}` does not keep connections to its upstreams and opened {opened:.2} per \
             request of `{subject}` in block 1, which costs CPU time on both sides; unless the \
             experiment sets it, that is the default of the recipe `{recipe}`"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::{Experiment, Recipes};
    use readings::Pacing;

    #[test]
    fn few_requests_per_connection_say_nothing() {
        // 32 connections, each opened once, are 0.06 per request.
        let is_enough = |requests_all, connections| {
            is_each_used_often(&LoadReading {
                requests_all,
                connections,
                ..LoadReading::empty(Pacing::Closed)
            })
        };
        assert!(!is_enough(530, 32) && is_enough(1_280, 32));
    }

    #[test]
    fn what_was_counted_is_held_against_what_was_set() {
        let text = "title = \"x\"\n[servers.back]\nrecipe = \"origin\"\n[servers.front]\n\
                    recipe = \"balance\"\nupstreams = [\"back\"]\n[subjects]\n\
                    direct = \"http://back/\"\nthrough = \"http://front/\"\n\
                    there = \"http://127.0.0.1:1/\"\n";
        let recipes = Recipes::embedded().unwrap();
        let experiment = Experiment::parse("x.toml", text, &[], false, &recipes).unwrap();
        let resolved = experiment.under(&Default::default());
        let may: Vec<bool> = resolved
            .subjects
            .iter()
            .map(|subject| may_be_opened(&resolved, subject))
            .collect();
        assert_eq!(may, [false, true, true]);
        let front = resolved
            .servers
            .iter()
            .find(|one| one.name == "front")
            .unwrap();
        let text = told(front, "page", "on", 1.046, true).unwrap();
        assert!(
            text.contains("`front` keeps") && text.contains("1.05 per request of `page`"),
            "{text}"
        );
        assert_eq!(told(front, "page", "on", 0.04, true), None);
        assert_eq!(told(front, "page", "on", 0.2, false), None);
        assert!(
            told(front, "page", "off", 1.0, true)
                .unwrap()
                .contains("does not keep")
        );
    }
}
