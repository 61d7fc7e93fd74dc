//! Links of hosts that are machines, and the mistakes that can be made in them.

use crate::support::{assert_shown, good, parse, rendered};

fn shown(name: &str, text: &str) {
    assert_shown(name, &rendered(&parse(text).expect_err(name)));
}

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
    let linked = |from: &str, to: &str| {
        assert!(LINKED.contains(from), "there is no {from:?}");
        LINKED.replacen(from, to, 1)
    };
    let experiment = good(parse(LINKED));
    assert!(experiment.hosts_are_machines() && !experiment.hosts_are_apart());
    let again = good(parse(&experiment.to_toml()));
    assert_eq!(again.hosts, experiment.hosts);
    shown(
        "link-machine-jitter",
        &linked("loss = ", "jitter = \"1ms\", loss = "),
    );
    shown(
        "link-machine-no-address",
        &linked("address = \"192.0.2.9\"\n", ""),
    );
    shown(
        "link-machine-one-address",
        &linked("192.0.2.8", "192.0.2.7"),
    );
    // The load asks one host, the balancer's host is asked and asks another one.
    let rate = "ssh = \"vm\"\nlink = { rate = \"10Mbit/s\" }\n";
    shown("link-machine-rate", &linked("ssh = \"vm\"\n", rate));
    good(parse(&linked(
        "ssh = \"vm\"\n",
        "ssh = \"vm\"\nlink = {}\n",
    )));
    shown("link-machine-outside", &linked("127.0.0.1", "192.0.2.66"));
    good(parse(&linked("127.0.0.1", "192.0.2.7")));
    let nodes = "[hosts.n]\nslurm = { nodes = 12 }\n[servers.one]";
    shown("link-machine-many", &linked("[servers.one]", nodes));
    good(parse(&linked("[servers.one]", &nodes.replace("12", "11"))));
}
