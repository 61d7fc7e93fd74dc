//! Whether idle servers disturb the measurement of others.

use std::collections::BTreeMap;

use super::{Ending, GroupSetup, planned_subjects};
use crate::context::Context;
use crate::testbed::{copies, unexpected};
use agent::AgentError;
use agent::wire::{Answer, Order};
use experiment::plan::Group;
use experiment::{Apart, ResolvedCondition};

/// Length of a sample of the servers' idle load, ms. A server above the limit is sampled twice, and
/// the lower sample counts.
const SAMPLE_MS: u64 = 200;
/// Share of a CPU below which an idle server disturbs nobody.
const IDLE_SHARE_MIN: f64 = 0.005;

/// Whether all subjects of a group use the same servers, so that there is nothing to separate.
pub(crate) fn share_one_path(resolved: &ResolvedCondition, group: &Group) -> bool {
    let mut paths = planned_subjects(resolved, group).map(|subject| &subject.through);
    let first = paths.next();
    paths.all(|path| Some(path) == first)
}

/// Checks, once per condition, whether an idle server takes CPU time that other subjects would then
/// lack. `None` if not.
pub(super) fn find(
    cx: &mut Context<'_>,
    setup: &GroupSetup<'_>,
) -> Result<Option<Ending>, AgentError> {
    let (resolved, group) = (setup.resolved, setup.group);
    let design = &cx.options.experiment.design;
    if design.apart != Apart::Auto
        || share_one_path(resolved, group)
        || !cx.learned.sampled.insert(group.condition.clone())
    {
        return Ok(None);
    }
    let limit = (design.matters / 2.0).max(IDLE_SHARE_MIN);
    cx.phase("sampling the servers without load");
    let shared = |server: &str| {
        planned_subjects(resolved, group)
            .all(|subject| subject.through.iter().any(|one| one == server))
    };
    let disturbing = idle_shares(cx, resolved, limit)?
        .into_iter()
        .filter(|(server, share)| *share > limit && !shared(server));
    let (of_copies, others): (Vec<_>, Vec<_>) =
        disturbing.partition(|(server, _)| copies::is_copy(server));
    let worst = others.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    Ok(match worst {
        Some((server, share)) => Some(Ending::Disturbed(format!(
            "server `{server}` takes {:.1}% of a CPU without load",
            share * 100.0
        ))),
        None => (!of_copies.is_empty()).then_some(Ending::NoCopies),
    })
}

/// The share of a CPU that each server takes without load; the lower of two samples where the first
/// is above the limit.
fn idle_shares(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    limit: f64,
) -> Result<BTreeMap<String, f64>, AgentError> {
    let mut quietest: BTreeMap<String, f64> = BTreeMap::new();
    let from = resolved.load.host.as_deref();
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
                other => return Err(unexpected(&other)),
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
    Ok(quietest)
}
