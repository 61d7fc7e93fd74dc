//! Links of hosts that are machines.

use crate::support::{changed, good, parse};

/// Machines with links, and no mistake.
const LINKED: &str = include_str!("../../good/linked.toml");

#[test]
fn links_between_machines() {
    let experiment = good(parse(LINKED));
    assert!(experiment.hosts_are_machines() && !experiment.hosts_are_apart());
    let again = good(parse(&experiment.to_toml()));
    assert_eq!(again.hosts, experiment.hosts);
    for (from, to) in [
        ("ssh = \"vm\"\n", "ssh = \"vm\"\nlink = {}\n"),
        ("127.0.0.1", "192.0.2.7"),
        (
            "[servers.one]",
            "[hosts.n]\nslurm = { nodes = 11 }\n[servers.one]",
        ),
    ] {
        good(parse(&changed(LINKED, from, to)));
    }
}
