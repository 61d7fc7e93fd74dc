//! Hosts that are machines: one is behind a pipe, such as ssh.

use std::net::IpAddr;

use super::{machine_links, reach};
use crate::file::load::loads;
use crate::spec::{Event, EventKind, EventTarget, Experiment};
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::Place;
use config::units::shown;
use readings::{HostSpec, Reach};

/// The keys that need a namespace.
const MADE: [&str; 3] = ["quota", "access", "settings"];

/// `address`: where other hosts reach its servers.
pub(crate) fn address(reader: &mut Reader, host: &Section<'_>) -> Option<IpAddr> {
    let text = host.text(reader, "address")?;
    let address = text.parse().ok().filter(|one: &IpAddr| {
        // Servers listen on it, so it must be a single address.
        !one.is_unspecified() && !one.is_multicast()
    });
    if address.is_none() {
        let (entry, path) = host.entry("address")?;
        reader.report(Problem::at(
            entry.node.place,
            format!("`{path}` is not a host address: {}", shown(&text)),
            "expected an IP address, such as \"192.0.2.7\"",
        ));
    }
    address
}

/// Reports an event that is not possible where hosts are machines. Returns whether it is one.
pub(crate) fn refuses_event(
    reader: &mut Reader,
    experiment: &Experiment,
    event: &Event,
    kind: EventKind,
    place: &impl Fn(&'static str) -> Place,
) -> bool {
    let here = experiment.hosts.iter().find(|host| !host.is_elsewhere());
    if let (EventKind::Cut, Some(here)) = (kind, here) {
        let problem = Problem::at(
            place("what"),
            format!(
                "\"cut\" is not possible where this machine is a host, as `{}` is",
                here.name
            ),
            "the link of this machine carries the pipes to the others, too",
        );
        reader.report(problem.help("\"cut\" needs `ssh`, `exec` or a preset on every host"));
        return true;
    }
    if let (EventKind::Quota, EventTarget::Host(host)) = (kind, &event.target) {
        let problem = Problem::at(
            place("host"),
            format!(
                "the quota of host `{}` cannot change: it is a machine",
                shown(host)
            ),
            "only a host that is a namespace has a control group of its own",
        );
        reader.report(problem.help(
            "limit its servers, with server = \"NAME\"; or make all hosts namespaces of this \
             machine: leave out `ssh`, `exec` and presets",
        ));
        return true;
    }
    false
}

/// Checks an experiment whose hosts are machines.
pub(crate) fn check(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    let at = |path: &[&str]| top.place_of(path).unwrap_or_default();
    let says = |host: &str, key: &str| top.place_of(&["hosts", host, key]).is_some();
    let is_wrong = |host: &HostSpec| {
        let says_one = reach::KEYS.iter().any(|key| says(&host.name, key));
        !host.is_elsewhere() && says_one
    };
    if experiment.hosts.iter().any(is_wrong) {
        // Already reported; the other keys may depend on it.
        return;
    }
    let Some(first) = experiment.hosts.iter().find(|host| host.is_elsewhere()) else {
        for host in &experiment.hosts {
            for key in ["binary", "address"] {
                if let Some(place) = top.place_of(&["hosts", &host.name, key]) {
                    reader.advise(
                        place,
                        format!(
                            "`hosts.{}.{key}` is for hosts on other machines, and there is none",
                            host.name
                        ),
                        "has no effect",
                        "add `ssh`, `exec` or a preset to each host on another machine, or \
                             remove this key",
                    );
                }
            }
        }
        return;
    };
    machine_links::check(reader, top, experiment);
    let way = first.reach.as_ref().map_or("ssh", Reach::key);
    for host in experiment.hosts.iter().filter(|host| host.is_first()) {
        for key in MADE {
            let name = host.declared_name();
            if let Some(place) = top.place_of(&["hosts", name, key]) {
                reader.advise(
                    place,
                    format!("`hosts.{name}.{key}` is not possible with {way}"),
                    "only hosts on this machine can have this",
                    format!(
                        "remove it, or `{way}` from `{}`: simulated hosts and other machines \
                         cannot be mixed",
                        first.declared_name()
                    ),
                );
            }
        }
    }
    let help =
        format!("one host is reached over {way}, so the load and every server must name theirs");
    for server in &experiment.servers {
        let name = server.name.as_str();
        let Some(host) = &server.host else {
            let problem = Problem::at(
                at(&["servers", name]),
                format!("the server `{name}` has no host"),
                "expected host = \"…\"",
            );
            reader.report(problem.help(help.clone()));
            continue;
        };
        let found = experiment.hosts.iter().find(|one| one.name == *host);
        let needs_address = |host: &HostSpec| {
            host.address.is_none() && !reach::asks_engine(host) && !says(&host.name, "address")
        };
        if found.is_some_and(needs_address) {
            let problem = Problem::at(
                at(&["hosts", host]),
                format!("the host `{host}` has no address"),
                "expected address = \"…\"",
            );
            reader.report(problem.help(format!(
                "the server `{name}` runs on it: give the IP address at which the \
                 other hosts reach it"
            )));
        }
    }
    for (table, problem) in loads::without_host(top, experiment) {
        reader.advise(at(&table), problem.0, problem.1, help.clone());
    }
}
