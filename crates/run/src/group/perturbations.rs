//! What probes change to find a bottleneck: the perturbations that are possible, and that a first
//! probe gives a reason for.

use std::collections::BTreeSet;

use readings::{BottleneckReading, Change, Probe};

use crate::context::Context;
use crate::testbed::path_limits::ServerQuota;
use agent::wire::{LoadOrder, QuotaOrder};
use experiment::{ResolvedCondition, ServerSpec};

/// Share of a CPU below which a thread counts as idle.
const WORKING: f64 = 0.05;

/// The most connections of a probe.
const CONNECTIONS_MAX: u32 = 100_000;
/// Factor on the rates of links for [`Change::TwiceTheLinkRate`].
const LINK_FACTOR: f64 = 2.0;

/// What a probe changes, and the values.
pub(super) struct Perturbation {
    pub(super) change: Change,
    /// The order of the load with the change.
    pub(super) order: LoadOrder,
    /// CPU quotas of hosts during the probe, CPUs each.
    pub(super) hosts: Vec<(String, f64)>,
    /// CPU quotas of servers where hosts are machines, CPUs each.
    pub(super) servers: Vec<ServerQuota>,
    /// Factor on the declared link rates.
    pub(super) link_factor: f64,
}

impl Perturbation {
    /// The sum of the quotas that the probe sets, CPUs; `None` if it sets none.
    pub(super) fn bound_cpus(&self) -> Option<f64> {
        let of_hosts = self.hosts.iter().map(|(_, cpus)| *cpus);
        let all: Vec<f64> = of_hosts
            .chain(self.order.quota.iter().map(|one| one.cpus))
            .chain(self.servers.iter().map(|one| one.cpus))
            .collect();
        (!all.is_empty()).then(|| all.iter().sum())
    }

    /// A change of the load's order alone.
    fn of_order(change: Change, order: &LoadOrder, edit: impl FnOnce(&mut LoadOrder)) -> Self {
        let mut perturbation = unchanged(order);
        perturbation.change = change;
        edit(&mut perturbation.order);
        perturbation
    }
}

pub(super) fn unchanged(order: &LoadOrder) -> Perturbation {
    Perturbation {
        change: Change::None,
        order: order.clone(),
        hosts: Vec::new(),
        servers: Vec::new(),
        link_factor: 1.0,
    }
}

fn set_connections(order: &mut LoadOrder, connections: u32) {
    for target in &mut order.job.targets {
        target.connections = connections;
    }
}

/// The perturbations that are possible and that the first probe gives a reason for. Those that are
/// not possible are noted in the reading.
pub(super) fn perturbations(
    cx: &Context<'_>,
    resolved: &ResolvedCondition,
    order: &LoadOrder,
    first: &Probe,
    reading: &mut BottleneckReading,
) -> Vec<Perturbation> {
    let mut found = Vec::new();
    let mut skipped = Vec::new();
    let mut skip = |change, why: &str| skipped.push(not_tried(change, why));
    let connections = order.job.targets[0].connections;
    let host = resolved.load.host.as_deref();
    let more = cpu_for_one_more_thread(cx, host, order, reading);
    if order.job.threads as u32 >= connections {
        skip(Change::ClientThread, "there is no connection for it");
    } else if more.is_none() && !order.job.cpus.is_empty() {
        skip(Change::ClientThread, "there is no other CPU for it");
    } else {
        found.push(Perturbation::of_order(
            Change::ClientThread,
            order,
            |order| {
                order.job.threads += 1;
                if !order.job.cpus.is_empty() {
                    order.job.cpus.extend(more);
                }
            },
        ));
    }
    let shares = |cpu: &u32| reading.server_cpus.contains(cpu);
    if let Some(cpu) = more.filter(|cpu| !shares(cpu) && order.job.cpus.iter().any(shares)) {
        found.push(Perturbation::of_order(
            Change::ClientApart,
            order,
            |order| {
                order.job.threads = 1;
                order.job.cpus = vec![cpu];
            },
        ));
    }
    match connections
        .checked_mul(2)
        .filter(|twice| *twice <= CONNECTIONS_MAX)
    {
        Some(twice) => {
            let change = Change::TwiceTheConnections;
            found.push(Perturbation::of_order(change, order, |order| {
                set_connections(order, twice)
            }));
        }
        None => skip(Change::TwiceTheConnections, "there are too many already"),
    }
    if first.accept_queue_overflows() + first.no_port > 0 && connections > 1 {
        let change = Change::HalfTheConnections;
        found.push(Perturbation::of_order(change, order, |order| {
            set_connections(order, connections / 2);
            order.job.threads = order.job.threads.min(connections as usize / 2);
        }));
    }
    if first.seen.servers.is_empty() {
        let why = "no server of the path was started here";
        skip(Change::HalfTheServerCpu, why);
    } else {
        found.push(half_the_server_cpu(cx, resolved, order, first, reading));
    }
    let wider = cx.testbed.wider_ports(host);
    if let Some(ports) = wider.filter(|_| first.no_port > 0) {
        found.push(Perturbation::of_order(Change::MorePorts, order, |order| {
            order.ports = Some(ports)
        }));
    }
    if !reading.hosts.is_empty() {
        if first.no_port > 0 {
            let why = "the ports of a machine are not the run's own";
            skip(Change::MorePorts, why);
        }
        let is_apart = |server: &String| reading.apart(server).is_some();
        // The rate of a link can be changed.
        if reading.link_bits_per_s.is_none() && reading.hosts.keys().any(is_apart) {
            let why = "the network between the machines cannot be changed";
            skip(Change::TwiceTheLinkRate, why);
        }
    }
    if reading.link_bits_per_s.is_some() {
        found.push(Perturbation {
            change: Change::TwiceTheLinkRate,
            link_factor: LINK_FACTOR,
            ..unchanged(order)
        });
    }
    reading.not_tried.append(&mut skipped);
    found
}

/// A CPU for one more thread of the client, preferably one without servers.
fn cpu_for_one_more_thread(
    cx: &Context<'_>,
    host: Option<&str>,
    order: &LoadOrder,
    reading: &BottleneckReading,
) -> Option<u32> {
    let mut others = cx.testbed.usable_cpus(host);
    let of_host = cx.testbed.cpus_of(host);
    others.retain(|cpu| of_host.is_empty() || of_host.contains(cpu));
    others.retain(|cpu| !order.job.cpus.contains(cpu));
    let free = |cpu: &&u32| !reading.server_cpus.contains(cpu);
    others.iter().find(free).or(others.first()).copied()
}

/// Limits the servers to half of the CPU time that they can use, or to half of their host's quota
/// if it has one.
fn half_the_server_cpu(
    cx: &Context<'_>,
    resolved: &ResolvedCondition,
    order: &LoadOrder,
    first: &Probe,
    reading: &BottleneckReading,
) -> Perturbation {
    if !reading.hosts.is_empty() {
        // Each server is limited by the agent that has started it.
        let half = |server: &ServerSpec| {
            let cpus = reading
                .cpus_of_servers
                .get(&server.name)
                .map_or(1, Vec::len);
            let of = BTreeSet::from([server.name.clone()]);
            ServerQuota {
                host: server.host.clone(),
                server: server.name.clone(),
                cpus: usable_cpus(first, &of, cpus) / 2.0,
            }
        };
        return Perturbation {
            change: Change::HalfTheServerCpu,
            servers: resolved.servers.iter().map(half).collect(),
            ..unchanged(order)
        };
    }
    let mut halved = unchanged(order);
    halved.change = Change::HalfTheServerCpu;
    for group in cx.testbed.quota_groups(resolved) {
        let could = usable_cpus(first, &group.servers, reading.server_cpus.len());
        let half = group.quota.unwrap_or(could) / 2.0;
        match group.host {
            Some(host) => halved.hosts.push((host, half)),
            None => {
                halved.order.quota = Some(QuotaOrder {
                    servers: group.servers,
                    cpus: half,
                });
            }
        }
    }
    halved
}

/// The CPU time that servers could use unperturbed, in CPUs.
///
/// A thread that was runnable half of the time could do twice as much; one that is always runnable
/// is at its limit, even where other programs leave it little CPU time. Therefore the used CPU time
/// is divided by the busiest thread's runnable share.
fn usable_cpus(first: &Probe, of: &BTreeSet<String>, server_cpus: usize) -> f64 {
    let servers = first.seen.servers.iter();
    let servers = servers
        .filter(|(name, _)| of.contains(*name))
        .map(|(_, server)| server);
    let used: f64 = servers.clone().map(|server| server.cpus).sum();
    let wanted = servers
        .filter_map(|server| server.wanted.first())
        .copied()
        .fold(0.0, f64::max);
    let most = server_cpus.max(1) as f64;
    if wanted < WORKING {
        // Almost idle: one CPU is ample.
        return 1.0;
    }
    (used / wanted).min(most)
}

pub(super) fn not_tried(change: Change, why: &str) -> String {
    format!("{}: {why}", description(change))
}

fn description(change: Change) -> &'static str {
    match change {
        Change::None => "a load without a change",
        Change::ClientThread => "one more client thread",
        Change::ClientApart => "a CPU of its own for the client",
        Change::TwiceTheConnections => "twice the connections",
        Change::HalfTheConnections => "half the connections",
        Change::HalfTheServerCpu => "half the servers' CPU time",
        Change::TwiceTheLinkRate => "twice the link's rate",
        Change::MorePorts => "more ports",
    }
}
