//! Links of hosts that are machines, and the mistakes that can be made in them.

use crate::support::{changed, good, parse, shown};

/// Machines with links, and no mistake.
const LINKED: &str = r#"title = "links over ssh"
[hosts.vm]
ssh = "vm"
address = "192.0.2.7"
[hosts.db]
ssh = "db"
address = "192.0.2.8"
[hosts.client]
ssh = "client"
address = "192.0.2.9"
link = { rtt = "20ms", loss = "1%", rate = "10Mbit/s" }
[servers.one]
recipe = "origin"
host = "vm"
[servers.two]
recipe = "origin"
host = "db"
[servers.lb]
recipe = "balance"
host = "vm"
upstreams = ["one", "two"]
[subjects]
lb = "http://lb/"
here = "http://127.0.0.1:80/"
[load]
host = "client"
"#;

#[test]
fn links_between_machines() {
    let wrong = |name, from, to| shown(name, &changed(LINKED, from, to));
    let experiment = good(parse(LINKED));
    assert!(experiment.hosts_are_machines() && !experiment.hosts_are_apart());
    let again = good(parse(&experiment.to_toml()));
    assert_eq!(again.hosts, experiment.hosts);
    wrong(
        "link-machine-jitter",
        "loss = ",
        "jitter = \"1ms\", loss = ",
    );
    wrong("link-machine-no-address", "address = \"192.0.2.9\"\n", "");
    wrong("link-machine-one-address", "192.0.2.8", "192.0.2.7");
    // The load asks one host, the balancer's host is asked and asks another one.
    let rate = "ssh = \"vm\"\nlink = { rate = \"10Mbit/s\" }\n";
    wrong("link-machine-rate", "ssh = \"vm\"\n", rate);
    good(parse(&changed(
        LINKED,
        "ssh = \"vm\"\n",
        "ssh = \"vm\"\nlink = {}\n",
    )));
    wrong("link-machine-outside", "127.0.0.1", "192.0.2.66");
    good(parse(&changed(LINKED, "127.0.0.1", "192.0.2.7")));
    let nodes = "[hosts.n]\nslurm = { nodes = 12 }\n[servers.one]";
    wrong("link-machine-many", "[servers.one]", nodes);
    good(parse(&changed(
        LINKED,
        "[servers.one]",
        &nodes.replace("12", "11"),
    )));
}
