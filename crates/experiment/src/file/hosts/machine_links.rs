//! Links of hosts that are machines: what the kernel's netem can make between them, on the sending
//! side of each.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::reach;
use crate::spec::{Experiment, ResolvedCondition, SubjectSpec, Target, Upstream};
use config::reader::{Problem, Reader};
use config::section::Section;
use config::units::shown;
use readings::HostSpec;

/// The most hosts that one host has links to: netem needs a band of `prio` for each.
const PEERS_MAX: usize = 13;

/// Checks what links need of all hosts.
pub(crate) fn check(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    let hosts = &experiment.hosts;
    let at = |path: &[&str]| top.place_of(path).unwrap_or_default();
    let Some(linked) = hosts.iter().find(|host| host.link.is_some()) else {
        return;
    };
    for host in hosts.iter().filter(|host| host.is_first()) {
        let name = host.declared_name();
        if host.link.is_some_and(|link| link.jitter_ns > 0) {
            let problem = Problem::at(
                at(&["hosts", name, "link", "jitter"]),
                format!("`hosts.{name}.link.jitter` is not possible between machines"),
                "with jitter, the kernel's netem lets packets overtake each other",
            );
            reader.report(problem.help("remove it; a link between namespaces may have jitter"));
        }
    }
    if hosts.len() > PEERS_MAX + 1 {
        let problem = Problem::at(
            at(&["hosts", linked.declared_name(), "link"]),
            format!("a link is not possible between {} hosts", hosts.len()),
            format!("expected at most {} hosts", PEERS_MAX + 1),
        );
        reader.report(problem.help("remove the links, or hosts that are not used"));
    }
    check_addresses(reader, top, experiment, linked);
}

/// Each host has to know where packets to the others go.
fn check_addresses(
    reader: &mut Reader,
    top: &Section<'_>,
    experiment: &Experiment,
    linked: &HostSpec,
) {
    let place = |path: &[&str]| top.place_of(path);
    let says_address = |host: &HostSpec| place(&["hosts", &host.name, "address"]).is_some();
    let has_servers = |host: &HostSpec| {
        let mut servers = experiment.servers.iter();
        servers.any(|server| server.host.as_ref() == Some(&host.name))
    };
    for (number, host) in experiment.hosts.iter().enumerate() {
        let name = &host.name;
        let Some(address) = host.address else {
            // Of hosts with servers that is reported for those.
            if !reach::asks_engine(host) && !says_address(host) && !has_servers(host) {
                let problem = Problem::at(
                    place(&["hosts", name]).unwrap_or_default(),
                    format!("the host `{name}` has no address"),
                    "expected address = \"…\"",
                );
                reader.report(problem.help(format!(
                    "`{}` has a link, so every host has to know the addresses of the others: give \
                     the IP address that packets of this host come from",
                    linked.declared_name()
                )));
            }
            continue;
        };
        let before = &experiment.hosts[..number];
        if let Some(other) = before.iter().find(|one| one.address == Some(address)) {
            let problem = Problem::at(
                place(&["hosts", name, "address"]).unwrap_or_default(),
                format!(
                    "the hosts `{}` and `{name}` have the same address",
                    other.name
                ),
                "the second",
            );
            let first = place(&["hosts", &other.name, "address"]).unwrap_or_default();
            reader.report(problem.and(first, "the first").help(format!(
                "`{}` has a link, and links tell hosts apart by their addresses",
                linked.declared_name()
            )));
        }
    }
}

/// Where packets of a host go to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Peer<'e> {
    Host(&'e str),
    /// An address that no host has.
    Outside(String),
}

/// Checks, in an experiment without other mistakes, that links mean between machines what they mean
/// between namespaces: all packets of a host pass its link and share its rate.
pub(crate) fn check_traffic(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    if !experiment.hosts_are_machines() || experiment.hosts.iter().all(|it| it.link.is_none()) {
        return;
    }
    let conditions = experiment.conditions();
    let all: Vec<ResolvedCondition> = conditions.iter().map(|one| experiment.under(one)).collect();
    for host in experiment.hosts.iter().filter(|it| it.link.is_some()) {
        let peers: Vec<BTreeSet<Peer<'_>>> = all
            .iter()
            .map(|resolved| peers_of(experiment, &host.name, resolved))
            .collect();
        let (name, declared) = (&host.name, host.declared_name());
        let mut each = peers.iter().flatten();
        let outside = each.find_map(|peer| match peer {
            Peer::Outside(address) => Some(address),
            Peer::Host(_) => None,
        });
        let place = |path: &[&str]| top.place_of(path).unwrap_or_default();
        if let Some(address) = outside {
            let problem = Problem::at(
                place(&["hosts", declared, "link"]),
                format!("the link of `{name}` does not lead to `{}`", shown(address)),
                "links are between hosts of the experiment",
            );
            reader.report(problem.help("declare a host with that address, or remove the link"));
        }
        let shared = peers.iter().find(|peers| peers.len() > 1);
        let has_rate = host.link.is_some_and(|it| it.rate_bits_per_s.is_some());
        if let (true, Some(peers), None) = (has_rate, shared, outside) {
            let names = peers.iter().map(|peer| match peer {
                Peer::Host(name) => format!("`{name}`"),
                Peer::Outside(address) => format!("`{}`", shown(address)),
            });
            let names: Vec<String> = names.collect();
            let problem = Problem::at(
                place(&["hosts", declared, "link", "rate"]),
                format!(
                    "the rate of the link of `{name}` cannot be shared by {}",
                    names.join(" and ")
                ),
                "each of them would get all of it",
            );
            reader.report(problem.help(
                "between machines, a link with a rate leads to one other host; give the rate to \
                 the links of those hosts instead",
            ));
        }
    }
}

/// The other hosts that a host exchanges packets with under a condition.
fn peers_of<'e>(
    experiment: &'e Experiment,
    host: &'e str,
    resolved: &ResolvedCondition,
) -> BTreeSet<Peer<'e>> {
    // From where to where: the loads' requests, and those of servers to their upstreams.
    let mut ways: Vec<(&'e str, Peer<'e>)> = Vec::new();
    let known = |name: &str| {
        let found = experiment.hosts.iter().find(|one| one.name == name);
        found.map(|one| one.name.as_str())
    };
    let of_server = |name: &str| experiment.server(name)?.host.as_deref().map(Peer::Host);
    let main = (&resolved.load, &resolved.subjects);
    let beside = resolved.beside.iter().map(|one| (&one.load, &one.subjects));
    for (load, subjects) in std::iter::once(main).chain(beside) {
        let to: Vec<Peer<'e>> = subjects
            .iter()
            .filter_map(|subject: &SubjectSpec| match &subject.target {
                Target::Server(name) => of_server(name),
                Target::Address(address) => of_address(experiment, address),
            })
            .collect();
        for from in load.host.iter().chain(&load.more_hosts) {
            let from = known(from);
            ways.extend(
                from.iter()
                    .flat_map(|from| to.iter().map(|to| (*from, to.clone()))),
            );
        }
    }
    for server in &resolved.servers {
        let from = server.host.as_deref().and_then(known);
        for upstream in &server.upstreams {
            let to = match upstream {
                Upstream::Server(name) => of_server(name),
                Upstream::Address(address) => of_address(experiment, &address.to_string()),
            };
            ways.extend(from.zip(to));
        }
    }
    let others = ways.into_iter().filter_map(|(from, to)| match to {
        Peer::Host(to) if to == host => Some(Peer::Host(from)),
        to if from == host => Some(to),
        _ => None,
    });
    others.filter(|other| *other != Peer::Host(host)).collect()
}

/// The host with an address; `None` for one that leads to the sending machine itself.
fn of_address<'e>(experiment: &'e Experiment, address: &str) -> Option<Peer<'e>> {
    let Ok(socket) = address.parse::<SocketAddr>() else {
        let is_here = address.split(':').next() == Some("localhost");
        return (!is_here).then(|| Peer::Outside(address.to_owned()));
    };
    let ip = socket.ip();
    let mut hosts = experiment.hosts.iter();
    match hosts.find(|host| host.address == Some(ip)) {
        Some(host) => Some(Peer::Host(&host.name)),
        None if ip.is_loopback() => None,
        None => Some(Peer::Outside(address.to_owned())),
    }
}
