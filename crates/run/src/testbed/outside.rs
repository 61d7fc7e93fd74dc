//! What ran before the experiment on a subject's path: it is sampled like the servers that agents
//! start.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use agent::listening_at;
use agent::wire::OtherServer;
use experiment::{Experiment, ResolvedCondition, SubjectSpec, Target, Upstream};

/// The servers of a subject's path that are reached by an address instead of a name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outside {
    /// Those that ran before on this machine and can be sampled. What is behind them is not known.
    pub(crate) running: Vec<OtherServer>,
    /// Those that the experiment has started itself.
    pub(crate) started: Vec<String>,
    /// Upstreams that cannot be sampled, such as those of other machines.
    pub(crate) uncounted: BTreeSet<String>,
}

impl Outside {
    /// What is at a subject's `address`, and at those of the upstreams of its servers. `addresses`
    /// are those of all started servers.
    pub(crate) fn of(
        experiment: &Experiment,
        resolved: &ResolvedCondition,
        subject: &SubjectSpec,
        address: SocketAddr,
        addresses: &BTreeMap<String, SocketAddr>,
    ) -> Self {
        let is_here = !experiment.hosts_are_apart() && !experiment.hosts_are_machines();
        let find = |address| is_here.then(|| listening_at(address)).flatten();
        let mut outside = Self::default();
        if matches!(subject.target, Target::Address(_)) {
            outside.running.extend(find(address));
        }
        for upstream in upstream_addresses(resolved, subject) {
            let started = addresses.iter().find(|(_, at)| **at == upstream);
            if let Some((name, _)) = started {
                if !subject.through.contains(name) && !outside.started.contains(name) {
                    outside.started.push(name.clone());
                }
                continue;
            }
            match find(upstream) {
                // One process may listen at several addresses, and counts once.
                Some(one) if outside.running.iter().any(|other| other.pid == one.pid) => {}
                Some(one) => outside.running.push(one),
                None => {
                    outside.uncounted.insert(upstream.to_string());
                }
            }
        }
        outside
    }

    /// The names of those that are counted.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        let running = self.running.iter().map(|one| &one.server);
        running.chain(&self.started).cloned()
    }
}

/// The upstreams of a subject's servers that are given by address, as often as they are given.
fn upstream_addresses(resolved: &ResolvedCondition, subject: &SubjectSpec) -> Vec<SocketAddr> {
    let servers = resolved.servers.iter();
    let path = servers.filter(|server| subject.through.contains(&server.name));
    let upstreams = path.flat_map(|server| &server.upstreams);
    upstreams
        .filter_map(|upstream| match upstream {
            Upstream::Address(address) => Some(*address),
            Upstream::Server(_) => None,
        })
        .collect()
}
