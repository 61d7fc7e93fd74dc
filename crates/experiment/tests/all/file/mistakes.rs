//! Every mistake in an experiment file is shown in its place, with what was expected.

use crate::support::{GOOD, assert_shown, good, parse, parse_set, recipes, rendered};
use experiment::Experiment;

/// The good experiment with one piece of text changed.
fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "the good experiment has no {from:?}");
    GOOD.replacen(from, to, 1)
}

fn shown(name: &str, text: &str) {
    let error = parse(text).expect_err(name);
    assert_shown(name, &rendered(&error));
}

#[test]
fn the_good_one_is_good() {
    good(parse(GOOD));
}

#[test]
fn the_length_of_a_body_is_given_once() {
    for header in ["Content-Length = \"3\"", "transfer-encoding = \"chunked\""] {
        let load = format!("[load]\nbody = \"hello\"\nheaders = {{ {header} }}\n[design]");
        let error = parse(&with("[design]", &load)).expect_err(header);
        let text = rendered(&error);
        assert!(text.contains("cannot be given as a header"), "{text}");
        assert!(text.contains("follows from `body`"), "{text}");
    }
}

#[test]
fn unknown_keys() {
    shown("unknown-key", &with("blocks = 10", "block = 10"));
    shown("unknown-table", &with("[design]", "[desing]"));
}

/// Hosts apart, with two vantage points and no mistake.
const APART: &str = r#"title = "near and far"
[hosts.vm]
quota = 0.5
settings = { "net.core.somaxconn" = 65535 }
[hosts.near]
link = { rtt = "0.4ms", jitter = "100us", loss = "0.1%", rate = "1Gbit/s" }
[hosts.far]
access = "external"
link = { rtt = "156ms" }
[servers.backend]
recipe = "apache"
host = "vm"
[subjects]
direct = "http://backend/"
[factors]
from = ["near", "far"]
"#;

/// Hosts that are machines, and no mistake.
const MACHINES: &str = r#"title = "over ssh"
[hosts.vm]
ssh = "me@vm1"
address = "192.0.2.7"
cpus = [0, 1]
[hosts.client]
ssh = "client"
binary = "weigh-aarch64"
[hosts.here]
[servers.backend]
recipe = "apache"
host = "vm"
[subjects]
direct = "http://backend/"
outside = "http://192.0.2.9:80/"
[factors]
from = ["client", "here"]
"#;

fn machines(from: &str, to: &str) -> String {
    assert!(MACHINES.contains(from), "there is no {from:?}");
    MACHINES.replacen(from, to, 1)
}

#[test]
fn hosts_behind_ssh() {
    let experiment = good(parse(MACHINES));
    assert!(experiment.hosts_are_machines() && !experiment.hosts_are_apart());
    let behind = |host| experiment.is_elsewhere(Some(host));
    assert_eq!(["vm", "client", "here"].map(behind), [true, true, false]);
    let again = good(parse(&experiment.to_toml()));
    assert_eq!(again.hosts, experiment.hosts);
    shown("ssh-option", &machines("me@vm1", "-oProxyCommand=x"));
    shown("ssh-address", &machines("192.0.2.7", "vm1.example"));
    shown("ssh-no-address", &machines("address = \"192.0.2.7\"\n", ""));
    shown("ssh-no-host", &machines("host = \"vm\"\n", ""));
    shown(
        "ssh-no-load",
        &machines("[factors]\nfrom = [\"client\", \"here\"]\n", ""),
    );
    let nobody = machines("ssh = \"me@vm1\"\n", "").replace("ssh = \"client\"\n", "");
    shown("ssh-nobody", &nobody);
}

/// Hosts behind other pipes, and no mistake.
const PIPES: &str = r#"title = "over pipes"
[hosts.pod]
exec = ["kubectl", "exec", "-i", "pod-1", "--", "weigh", "agent"]
address = "192.0.2.7"
[hosts.n]
slurm = { nodes = 2, partition = "bench", options = ["--exclusive"] }
cpus = [0, 1]
[hosts.box]
podman = { image = "weigh", options = ["--runtime", "runc"] }
[hosts.other]
podman = { container = "bench" }
[hosts.k]
kubernetes = { image = "debian", namespace = "bench", replicas = 2 }
[hosts.job]
nomad = { job = "bench", task = "weigh" }
binary = "weigh-musl"
[servers.backend]
recipe = "apache"
host = "n1"
[subjects]
direct = "http://backend/"
[load]
host = "pod"
"#;

#[test]
fn hosts_behind_other_pipes() {
    let experiment = good(parse(PIPES));
    assert!(experiment.hosts_are_machines() && !experiment.hosts_are_apart());
    let names: Vec<&str> = experiment
        .hosts
        .iter()
        .map(|host| host.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["pod", "n1", "n2", "box", "other", "k1", "k2", "job"]
    );
    let cpus = experiment.hosts.iter().filter(|host| host.cpus == [0, 1]);
    assert_eq!(cpus.count(), 2);
    let again = good(parse(&experiment.to_toml()));
    assert_eq!(again.hosts, experiment.hosts);
    let pipes = |from: &str, to: &str| {
        assert!(PIPES.contains(from), "there is no {from:?}");
        PIPES.replacen(from, to, 1)
    };
    let both = pipes("address =", "ssh = \"vm1\"\naddress =");
    shown("pipe-two-ways", &both);
    let none = pipes(
        "[\"kubectl\", \"exec\", \"-i\", \"pod-1\", \"--\", \"weigh\", \"agent\"]",
        "[]",
    );
    shown("pipe-no-command", &none);
    shown("pipe-no-image", &pipes("image = \"weigh\", ", ""));
    shown("pipe-nodes", &pipes("nodes = 2", "nodes = 0"));
    shown(
        "pipe-option",
        &pipes("\"bench\", options", "\"-bench\", options"),
    );
    shown("pipe-same-name", &pipes("[hosts.box]", "[hosts.n2]"));
    shown("pipe-unknown-key", &pipes("replicas", "replica"));
    shown("pipe-with-quota", &pipes("cpus = [0, 1]", "quota = 0.5"));
    shown("pipe-undefined", &pipes("host = \"n1\"", "host = \"n3\""));
}

fn apart(from: &str, to: &str) -> String {
    assert!(APART.contains(from), "there is no {from:?}");
    APART.replacen(from, to, 1)
}

#[test]
fn hosts() {
    let experiment = good(parse(APART));
    assert!(experiment.hosts_are_apart());
    assert!(!good(parse(GOOD)).hosts_are_apart());
    for condition in experiment.conditions() {
        let host = experiment.under(&condition).load.host;
        assert_eq!(host.as_ref(), condition.get("from"));
    }
    let again = good(parse(&experiment.to_toml()));
    assert_eq!(again.hosts, experiment.hosts);
    shown("host-link-key", &apart("jitter", "jiter"));
    shown("host-link-jitter", &apart("100us", "1ms"));
    shown("host-link-rate", &apart("1Gbit/s", "1GB/s"));
    shown("host-link-no-unit", &apart("\"0.4ms\"", "0.4"));
    shown("host-quota", &apart("0.5", "0.01"));
    shown("host-access", &apart("external", "extern"));
    shown("host-setting", &apart("net.core", "core"));
    shown("host-of-no-name", &apart("[hosts.vm]", "[hosts.localhost]"));
    shown("host-ssh", &apart("quota = 0.5", "ssh = \"vm1\""));
    shown("host-vantage", &apart("\"far\"]", "\"fare\"]"));
    shown("host-none-for-server", &apart("host = \"vm\"\n", ""));
    shown(
        "host-none-for-load",
        &apart("from = [\"near\", \"far\"]", ""),
    );
    shown("host-outside", &apart("//backend/", "//127.0.0.1:80/"));
}

#[test]
fn units() {
    shown("unit-unknown", &with("\"10s\"", "\"10 parsecs\""));
    shown("unit-missing", &with("\"10s\"", "10"));
    shown("unit-x", &with("\"10s\"", "\"10x\""));
    shown("share-without-percent", &with("\"3%\"", "0.03"));
    shown(
        "rate-without-unit",
        &with("[design]", "[load]\nrate = \"2000\"\n[design]"),
    );
}

#[test]
fn a_rate_that_no_client_can_offer_is_a_mistake() {
    for keys in ["rate = 1e9", "curve = [1e9]"] {
        let text = with("[design]", &format!("[load]\n{keys}\n[design]"));
        let error = rendered(&parse(&text).expect_err(keys));
        assert!(error.contains("100000000 "), "{error}");
    }
}

#[test]
fn curves() {
    let load = |keys: &str| with("[design]", &format!("[load]\n{keys}\n[design]"));
    shown("curve-no-rate", &load("curve = [1000, \"2000\"]"));
    shown("curve-of-a-word", &load("curve = \"auto\""));
    shown("curve-twice", &load("curve = [1000, \"1000/s\"]"));
    shown("curve-empty", &load("curve = []"));
    shown("curve-out-of-range", &load("curve = [\"250%\"]"));
    shown("curve-bounds-alone", &load("bounds = [\"1ms\"]"));
    shown("curve-bounds", &load("curve = true\nbounds = [\"1ms\", 5]"));
    shown("curve-driver", &load("curve = true\ndriver = \"wrk\""));
}

#[test]
fn names_that_nothing_has() {
    shown(
        "server-undefined-in-url",
        &with("http://proxy/", "http://prox/"),
    );
    shown(
        "server-undefined-in-upstreams",
        &with("[\"backend\"]", "[\"back\"]"),
    );
    shown("host-undefined", &with("host = \"vm\"", "host = \"wm\""));
    shown("recipe-unknown", &with("\"lighttpd\"", "\"lightppd\""));
    shown("baseline-unknown", &with("\"direct\"", "\"dierct\""));
    shown("factor-unknown", &with("connections =", "conections ="));
    shown(
        "factor-of-no-server",
        &with("connections =", "prxy.workers ="),
    );
    shown(
        "placeholder-unknown",
        &with("backend/cgi", "backend/{size}/cgi"),
    );
}

#[test]
fn circles() {
    let text = r#"title = "round and round"
[servers.a]
recipe = "lighttpd"
upstreams = ["b"]
[servers.b]
recipe = "lighttpd"
upstreams = ["c"]
[servers.c]
recipe = "lighttpd"
upstreams = ["b"]
[subjects]
a = "http://a/"
"#;
    shown("upstreams-in-a-circle", text);
    let own = with("upstreams = [\"backend\"]", "upstreams = [\"proxy\"]");
    shown("upstream-of-itself", &own);
}

#[test]
fn parameters() {
    shown(
        "parameter-unknown",
        &with("mpm = \"event\"", "mmp = \"event\""),
    );
    shown(
        "parameter-type",
        &with("mpm = \"event\"", "keepalive = \"yes\""),
    );
    shown(
        "parameter-range",
        &with("mpm = \"event\"", "listen_backlog = 70000"),
    );
    shown("parameter-word", &with("mpm = \"event\"", "mpm = \"evnt\""));
    shown(
        "parameter-level",
        &with("connections = [96", "proxy.workers = [-1"),
    );
    shown(
        "upstreams-too-many",
        &with("host = \"vm\"", "upstreams = [\"proxy\"]")
            .replacen("recipe = \"apache\"", "recipe = \"origin\"", 1)
            .replacen("with = { mpm = \"event\", cgi = [\"second.pl\"] }\n", "", 1),
    );
}

#[test]
fn subjects() {
    shown("subjects-none", "title = \"t\"\n");
    shown("subjects-empty", "title = \"t\"\n[subjects]\n");
    shown(
        "subjects-twice",
        &with("lighttpd = \"http", "direct = \"http"),
    );
    shown("subject-https", &with("http://proxy/", "https://proxy/"));
    shown("subject-no-url", &with("http://proxy/", "proxy/"));
    shown(
        "subject-port-out-of-range",
        &with("http://proxy/", "http://127.0.0.1:70000/"),
    );
    shown(
        "subject-fragment",
        &with("second.pl\"\nlighttpd", "second.pl#top\"\nlighttpd"),
    );
}

#[test]
fn ports() {
    shown("port-out-of-range", &with("host = \"vm\"", "port = 65536"));
    let text =
        with("host = \"vm\"", "port = 8080").replace("upstreams =", "port = 8080\nupstreams =");
    shown("port-twice", &text);
}

#[test]
fn factors() {
    shown("factor-empty", &with("[96, 400]", "[]"));
    shown("factor-level-twice", &with("[96, 400]", "[96, 96]"));
    shown("factor-level-type", &with("[96, 400]", "[96, \"many\"]"));
    shown(
        "factor-quick",
        &format!("{GOOD}[quick.factors]\nconnections = [97]\n"),
    );
    let connections = "connections = [96, 400]";
    let level_of = |factor: &str| with(connections, factor);
    shown(
        "factor-load-key",
        &level_of("load = [{ conections = 96 }, { headers = {} }]"),
    );
    shown("factor-load-value", &level_of("load = [96]"));
    shown(
        "factor-load-twice",
        &level_of("threads = [1, 2]\nload = [{ threads = 8, connections = 96 }]"),
    );
    shown("factor-table", &level_of("connections = [{ threads = 8 }]"));
    let error = parse_set(
        &level_of("load = [{ connections = 8 }]"),
        &[("load.connections", "9")],
    );
    assert_shown("set-hidden-by-a-load", &rendered(&error.unwrap_err()));
}

#[test]
fn files_that_are_no_experiment() {
    shown("empty", "");
    shown("only-a-comment", "# nothing\n\n");
    shown("no-toml", &with("blocks = 10", "blocks = ten"));
    shown("unclosed", &with("\"3%\"", "\"3%"));
}

#[test]
fn several_at_once() {
    let text = with("blocks = 10", "blocks = \"ten\"\nwarmpu = \"2s\"")
        .replace("\"10s\"", "\"10x\"")
        .replace("recipe = \"lighttpd\"", "recipe = \"lightppd\"");
    shown("several", &text);
}

#[test]
fn a_line_too_long_for_a_terminal_is_not_shown() {
    let text = with(
        "title = ",
        &format!("tilte = 1 # {}\ntitle = ", "x".repeat(9000)),
    );
    let shown = rendered(&parse(&text).unwrap_err());
    assert!(shown.contains("line 1, column 1"), "{shown}");
    assert!(shown.len() < 2000, "{} bytes are shown", shown.len());
}

#[test]
fn overrides() {
    let wrong = |name: &str, key: &str, value: &str| {
        let error = parse_set(GOOD, &[(key, value)]).expect_err(name);
        let shown = rendered(&error);
        assert!(
            shown.contains(key),
            "{name} does not name the key:\n{shown}"
        );
        assert_shown(name, &shown);
    };
    wrong("set-unknown-key", "design.block", "3");
    wrong("set-wrong-type", "design.blocks", "many");
    wrong("set-no-key", "design..blocks", "3");
    wrong("set-unknown-server", "servers.prox.with.workers", "2");
    wrong("set-below-a-value", "title.short", "x");
    wrong("set-hidden-by-a-factor", "load.connections", "8");
    wrong("set-unclosed-list", "factors.connections", "[96");
}

#[test]
fn overrides_change_what_they_name() {
    let experiment = good(parse_set(
        GOOD,
        &[
            ("design.blocks", "3"),
            ("load.timeout", "7s"),
            ("servers.proxy.with.workers", "2"),
            ("factors.connections", "[8]"),
            ("sysctls.net.core.somaxconn", "4096"),
        ],
    ));
    assert_eq!(experiment.design.blocks, 3);
    assert_eq!(experiment.load.timeout.as_secs(), 7);
    assert_eq!(experiment.factors[0].levels.len(), 1);
    assert_eq!(experiment.factors[0].levels[0].text, "8");
    assert_eq!(
        experiment.sysctls,
        [("net.core.somaxconn".to_owned(), "4096".to_owned())]
    );
    let setting = experiment.under(&experiment.conditions()[0]);
    let proxy = setting.servers.iter().find(|s| s.name == "proxy").unwrap();
    assert_eq!(proxy.params["workers"].to_string(), "2");
    assert_eq!(setting.load.connections, 8);
}

/// Something happens to a server, and no mistake.
const EVENTS: &str = r#"title = "one dies"
[hosts.client]
link = { rtt = "0ms" }
[hosts.vm]
[hosts.one]
[hosts.two]
[servers.one]
recipe = "origin"
host = "one"
[servers.two]
recipe = "origin"
host = "two"
[servers.lb]
recipe = "balance"
host = "vm"
upstreams = ["one", "two"]
[subjects]
direct = "http://two/"
lb = "http://lb/"
[factors]
fault = ["kill", "cut"]
[[events]]
at = "1s"
server = "two"
what = "{fault}"
until = "3s"
[load]
host = "client"
rate = "500/s"
[design]
blocks = 3
latency_window = "5s"
[quick]
latency_window = "4s"
subjects = ["direct"]
"#;

fn events(from: &str, to: &str) -> String {
    assert!(EVENTS.contains(from), "there is no {from:?}");
    EVENTS.replacen(from, to, 1)
}

#[test]
fn what_happens_to_servers() {
    let experiment = good(parse(EVENTS));
    assert!(experiment.design.window.is_zero() && !experiment.design.bottleneck);
    let faults: Vec<&str> = experiment
        .conditions()
        .iter()
        .map(|condition| experiment.under(condition).events[0].kind.word())
        .collect();
    assert_eq!(faults, ["kill", "cut"]);
    // Written out with its defaults and read again it is the same.
    assert_eq!(good(parse(&experiment.to_toml())).events, experiment.events);
    let quick = good(Experiment::parse("x.toml", EVENTS, &[], true, recipes()));
    assert_eq!(quick.subjects.len(), 1);
    shown(
        "event-server",
        &events("server = \"two\"", "server = \"tow\""),
    );
    shown(
        "event-what",
        &events("what = \"{fault}\"", "what = \"kil\""),
    );
    shown(
        "event-level",
        &events("\"kill\", \"cut\"", "\"kill\", \"freeze\""),
    );
    shown("event-factor", &events("{fault}", "{falt}"));
    shown("event-missing", &events("what = \"{fault}\"\n", ""));
    shown("event-beyond", &events("at = \"1s\"", "at = \"5s\""));
    shown(
        "event-until",
        &events("until = \"3s\"", "until = \"500ms\""),
    );
    shown(
        "event-until-beyond",
        &events("until = \"3s\"", "until = \"6s\""),
    );
    shown(
        "event-window",
        &events("blocks = 3", "blocks = 3\nwindow = \"2s\""),
    );
    shown("event-rate", &events("rate = \"500/s\"\n", ""));
    shown(
        "event-quick-subject",
        &events("[\"direct\"]", "[\"direkt\"]"),
    );
    // The link of a host can be cut where nothing else hangs on it.
    let beside = EVENTS.replacen("host = \"vm\"", "host = \"two\"", 1);
    shown("event-cut-beside", &beside);
    let here = EVENTS.replace("link = { rtt = \"0ms\" }\n", "");
    shown("event-cut-no-host", &here);
    // Neither of the others needs hosts.
    let here = here.replace("\"kill\", \"cut\"", "\"kill\", \"stop\"");
    good(parse(&here));
}

#[test]
fn servers_of_the_users_own() {
    for (name, server, says) in [
        (
            "both",
            "recipe = \"origin\"\ncommand = [\"./x\", \"{port}\"]",
            "exclude each other",
        ),
        ("no-port", "command = [\"./x\"]", "which port"),
        (
            "quote",
            "command = \"./x {port} 'y\"",
            "quote is not closed",
        ),
        (
            "no-command",
            "ready = \"/\"",
            "neither a command nor a recipe",
        ),
        (
            "build",
            "command = [\"./x\", \"{port}\"]\nbuild = \"make\"",
            "needs a revision",
        ),
        (
            "options",
            "command = [\"./x\", \"{port}\"]\noptions = []",
            "for containers",
        ),
        (
            "with",
            "command = [\"./x\", \"{port}\"]\nwith = {}",
            "unknown key `with`",
        ),
        (
            "env",
            "command = [\"./x\", \"{port}\"]\nenv = \"A=b\"",
            "a table such as",
        ),
        (
            "image",
            "image = \"x\"\nrevision = \"main\"",
            "no parameter `revision`",
        ),
    ] {
        let text =
            format!("title = \"own\"\n[servers.a]\n{server}\n[subjects]\na = \"http://a/\"\n");
        let error = parse(&text).expect_err(name);
        let shown = rendered(&error);
        let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(says), "{name}: {shown}");
    }
    let port = "title = \"own\"\n[servers.a]\ncommand = [\"./x\", \"{port}\"]\n[subjects]\n\
                a = \"http://a/{port}\"\n[factors]\nport = [1, 2]\n";
    let shown = rendered(&parse(port).expect_err("port"));
    assert!(shown.contains("cannot be called `port`"), "{shown}");
}
