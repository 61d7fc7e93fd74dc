//! The orders of the hosts that make one load together.

use std::time::Duration;

use agent::wire::LoadOrder;
use load::Part;
use readings::HostSpec;

use crate::testbed::ReadySubject;

pub(crate) struct HostOrder {
    pub(crate) host: Option<String>,
    pub(crate) order: LoadOrder,
}

/// One load: the orders of the hosts that make it.
pub(crate) struct LoadOrders {
    /// Its name, if there are several loads.
    pub(crate) name: Option<String>,
    pub(crate) hosts: Vec<HostOrder>,
}

/// An order for each host of a load. The agent of the first host also samples the servers.
pub(crate) fn parts(
    order: LoadOrder,
    ready: &[ReadySubject],
    hosts: &[HostSpec],
    gap: Duration,
) -> Vec<HostOrder> {
    let Some(first) = ready.first() else {
        return Vec::new();
    };
    let threads = order.job.threads;
    let count = 1 + first.also_from.len();
    let part = |number| part_of(number, count, threads, gap);
    let mut lead = order.clone();
    lead.job.part = Some(part(0));
    let mut orders = vec![HostOrder {
        host: first.from.clone(),
        order: lead,
    }];
    for (number, (host, _)) in first.also_from.iter().enumerate() {
        // Only the first host's agent samples servers.
        let mut own = unwatched(order.clone());
        own.job.part = Some(part(number + 1));
        own.job.cpus = cpus_of(host, hosts);
        let addresses = ready.iter().map(|one| one.also_from[number].1);
        for (target, address) in own.job.targets.iter_mut().zip(addresses) {
            target.address = address.into();
        }
        orders.push(HostOrder {
            host: Some(host.clone()),
            order: own,
        });
    }
    orders
}

/// The part of the host with this number, of so many hosts with so many threads each. It has no
/// start yet.
pub(crate) fn part_of(number: usize, hosts: usize, threads: usize, gap: Duration) -> Part {
    Part {
        first_thread: number * threads,
        all_threads: hosts * threads,
        start_ns: 0,
        gap_ns: gap.as_nanos() as u64,
    }
}

/// The CPUs that a host declares.
pub(crate) fn cpus_of(host: &str, hosts: &[HostSpec]) -> Vec<u32> {
    let found = hosts.iter().find(|one| one.name == host);
    found.map(|one| one.cpus.clone()).unwrap_or_default()
}

/// The order with its load only, without samples of servers.
pub(crate) fn unwatched(order: LoadOrder) -> LoadOrder {
    LoadOrder::of(order.job)
}
