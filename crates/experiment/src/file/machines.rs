//! Hosts that are machines: one is behind ssh.

use std::net::IpAddr;

use super::names::LOAD_HOST_FACTOR;
use crate::spec::Experiment;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::units::shown;

/// The keys that need a namespace.
const MADE: [&str; 4] = ["quota", "link", "access", "settings"];

/// `ssh`: the destination for the system's `ssh`.
pub(super) fn ssh(reader: &mut Reader, host: &Section<'_>) -> Option<String> {
    let ssh = host.text(reader, "ssh")?;
    // A leading dash would make it an option; a destination has no space.
    let good = |c: char| c.is_ascii_graphic() && !matches!(c, '\'' | '"' | '`' | '\\');
    if !ssh.is_empty() && !ssh.starts_with('-') && ssh.chars().all(good) {
        return Some(ssh);
    }
    let (entry, path) = host.entry("ssh")?;
    reader.report(
        Problem::at(
            entry.node.place,
            format!("`{path}` is not an ssh destination: {}", shown(&ssh)),
            "expected \"user@machine\", or a name of ~/.ssh/config",
        )
        .help("set port, keys and jump hosts in ~/.ssh/config, under a name for the host"),
    );
    None
}

/// `address`: where other hosts reach its servers.
pub(super) fn address(reader: &mut Reader, host: &Section<'_>) -> Option<IpAddr> {
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

/// Checks an experiment whose hosts are machines.
pub(super) fn check(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    let at = |path: &[&str]| top.place_of(path).unwrap_or_default();
    let says = |host: &str, key: &str| top.place_of(&["hosts", host, key]).is_some();
    if experiment
        .hosts
        .iter()
        .any(|host| host.ssh.is_none() && says(&host.name, "ssh"))
    {
        // Already reported; the other keys may depend on it.
        return;
    }
    let Some(first) = experiment.hosts.iter().find(|host| host.ssh.is_some()) else {
        for host in &experiment.hosts {
            for key in ["ssh_binary", "address"] {
                if let Some(place) = top.place_of(&["hosts", &host.name, key]) {
                    reader.report(
                        Problem::at(
                            place,
                            format!("`hosts.{}.{key}`: no host is behind ssh", host.name),
                            "has no effect",
                        )
                        .help("add ssh = \"…\" to the hosts that are other machines, or remove it"),
                    );
                }
            }
        }
        return;
    };
    for host in &experiment.hosts {
        for key in MADE {
            if let Some(place) = top.place_of(&["hosts", &host.name, key]) {
                reader.report(
                    Problem::at(
                        place,
                        format!("`hosts.{}.{key}` is not possible with ssh", host.name),
                        "only hosts on this machine can have this",
                    )
                    .help(format!(
                        "remove it, or `ssh` from `{}`: where one host is behind ssh, all \
                         hosts are machines",
                        first.name
                    )),
                );
            }
        }
    }
    let help = "hosts are machines, because one is behind ssh: the load and every server need one";
    for server in &experiment.servers {
        let name = server.name.as_str();
        let Some(host) = &server.host else {
            let problem = Problem::at(
                at(&["servers", name]),
                format!("the server `{name}` has no host"),
                "expected host = \"…\"",
            );
            reader.report(problem.help(help));
            continue;
        };
        let found = experiment.hosts.iter().find(|one| one.name == *host);
        if found.is_some_and(|host| host.address.is_none() && !says(&host.name, "address")) {
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
    let varied = experiment
        .factors
        .iter()
        .any(|one| one.name == LOAD_HOST_FACTOR);
    if experiment.load.host.is_none() && !varied {
        let table = match top.table.get("load") {
            Some(_) => "load",
            None => "hosts",
        };
        let problem = Problem::at(
            at(&[table]),
            "the load has no host",
            "expected host = \"…\" in [load], or the factor `from`",
        );
        reader.report(problem.help(help));
    }
}
