//! Every mistake in an experiment file is shown in its place, with what was expected.

use crate::support::{
    GOOD, assert_shown, changed, good, parse, parse_set, recipes, rendered, shown,
};
use experiment::Experiment;

/// The good experiment with one piece of text changed.
fn with(from: &str, to: &str) -> String {
    changed(GOOD, from, to)
}

fn wrong(name: &str, from: &str, to: &str) {
    shown(name, &with(from, to));
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
fn a_load_that_keeps_its_connections_does_not_say_that_it_closes_them() {
    let load = "[load]\nheaders = { connection = \"Close\" }\n[design]";
    let text = rendered(&parse(&with("[design]", load)).expect_err("it closes"));
    assert!(text.contains("keepalive = false"), "{text}");
    let load = "[load]\nheaders = { Connection = \"upgrade\" }\n[design]";
    good(parse(&with("[design]", load)));
}

#[test]
fn unknown_keys() {
    wrong("unknown-key", "blocks = 10", "block = 10");
    wrong("unknown-table", "[design]", "[desing]");
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

#[test]
fn hosts_behind_ssh() {
    let experiment = good(parse(MACHINES));
    let wrong = |name, from, to| shown(name, &changed(MACHINES, from, to));
    assert!(experiment.hosts_are_machines() && !experiment.hosts_are_apart());
    let behind = |host| experiment.is_elsewhere(Some(host));
    assert_eq!(["vm", "client", "here"].map(behind), [true, true, false]);
    let again = good(parse(&experiment.to_toml()));
    assert_eq!(again.hosts, experiment.hosts);
    wrong("ssh-option", "me@vm1", "-oProxyCommand=x");
    wrong("ssh-address", "192.0.2.7", "vm1.example");
    wrong("ssh-no-address", "address = \"192.0.2.7\"\n", "");
    wrong("ssh-no-host", "host = \"vm\"\n", "");
    wrong(
        "ssh-no-load",
        "[factors]\nfrom = [\"client\", \"here\"]\n",
        "",
    );
    let nobody = changed(MACHINES, "ssh = \"me@vm1\"\n", "").replace("ssh = \"client\"\n", "");
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
    let wrong = |name, from, to| shown(name, &changed(PIPES, from, to));
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
    let both = changed(PIPES, "address =", "ssh = \"vm1\"\naddress =");
    shown("pipe-two-ways", &both);
    let none = changed(
        PIPES,
        "[\"kubectl\", \"exec\", \"-i\", \"pod-1\", \"--\", \"weigh\", \"agent\"]",
        "[]",
    );
    shown("pipe-no-command", &none);
    wrong("pipe-no-image", "image = \"weigh\", ", "");
    wrong("pipe-nodes", "nodes = 2", "nodes = 0");
    wrong("pipe-option", "\"bench\", options", "\"-bench\", options");
    wrong("pipe-same-name", "[hosts.box]", "[hosts.n2]");
    wrong("pipe-unknown-key", "replicas", "replica");
    wrong("pipe-with-quota", "cpus = [0, 1]", "quota = 0.5");
    wrong("pipe-undefined", "host = \"n1\"", "host = \"n3\"");
}

#[test]
fn hosts() {
    let experiment = good(parse(APART));
    let wrong = |name, from, to| shown(name, &changed(APART, from, to));
    assert!(experiment.hosts_are_apart());
    assert!(!good(parse(GOOD)).hosts_are_apart());
    for condition in experiment.conditions() {
        let host = experiment.under(&condition).load.host;
        assert_eq!(host.as_ref(), condition.get("from"));
    }
    let again = good(parse(&experiment.to_toml()));
    assert_eq!(again.hosts, experiment.hosts);
    wrong("host-link-key", "jitter", "jiter");
    wrong("host-link-jitter", "100us", "1ms");
    wrong("host-link-rate", "1Gbit/s", "1GB/s");
    wrong("host-link-no-unit", "\"0.4ms\"", "0.4");
    wrong("host-quota", "0.5", "0.01");
    wrong("host-access", "external", "extern");
    wrong("host-setting", "net.core", "core");
    wrong("host-of-no-name", "[hosts.vm]", "[hosts.localhost]");
    wrong("host-ssh", "quota = 0.5", "ssh = \"vm1\"");
    wrong("host-vantage", "\"far\"]", "\"fare\"]");
    wrong("host-none-for-server", "host = \"vm\"\n", "");
    wrong("host-none-for-load", "from = [\"near\", \"far\"]", "");
    wrong("host-outside", "//backend/", "//127.0.0.1:80/");
}

#[test]
fn units() {
    wrong("unit-unknown", "\"10s\"", "\"10 parsecs\"");
    wrong("unit-missing", "\"10s\"", "10");
    wrong("unit-x", "\"10s\"", "\"10x\"");
    wrong("share-without-percent", "\"3%\"", "0.03");
    wrong(
        "rate-without-unit",
        "[design]",
        "[load]\nrate = \"2000\"\n[design]",
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
    wrong("server-undefined-in-url", "http://proxy/", "http://prox/");
    wrong(
        "server-undefined-in-upstreams",
        "[\"backend\"]",
        "[\"back\"]",
    );
    wrong("host-undefined", "host = \"vm\"", "host = \"wm\"");
    wrong("recipe-unknown", "\"lighttpd\"", "\"lightppd\"");
    wrong("baseline-unknown", "\"direct\"", "\"dierct\"");
    wrong("factor-unknown", "connections =", "conections =");
    wrong("factor-of-no-server", "connections =", "prxy.workers =");
    wrong("placeholder-unknown", "backend/cgi", "backend/{size}/cgi");
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
    wrong("parameter-unknown", "mpm = \"event\"", "mmp = \"event\"");
    wrong("parameter-type", "mpm = \"event\"", "keepalive = \"yes\"");
    wrong(
        "parameter-range",
        "mpm = \"event\"",
        "listen_backlog = 70000",
    );
    wrong("parameter-word", "mpm = \"event\"", "mpm = \"evnt\"");
    wrong(
        "parameter-level",
        "connections = [96",
        "proxy.workers = [-1",
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
    wrong("subjects-twice", "lighttpd = \"http", "direct = \"http");
    wrong("subject-https", "http://proxy/", "https://proxy/");
    wrong("subject-no-url", "http://proxy/", "proxy/");
    wrong(
        "subject-port-out-of-range",
        "http://proxy/",
        "http://127.0.0.1:70000/",
    );
    wrong(
        "subject-fragment",
        "second.pl\"\nlighttpd",
        "second.pl#top\"\nlighttpd",
    );
}

#[test]
fn ports() {
    wrong("port-out-of-range", "host = \"vm\"", "port = 65536");
    let text =
        with("host = \"vm\"", "port = 8080").replace("upstreams =", "port = 8080\nupstreams =");
    shown("port-twice", &text);
}

#[test]
fn factors() {
    wrong("factor-empty", "[96, 400]", "[]");
    wrong("factor-level-twice", "[96, 400]", "[96, 96]");
    wrong("factor-level-type", "[96, 400]", "[96, \"many\"]");
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
    wrong("no-toml", "blocks = 10", "blocks = ten");
    wrong("unclosed", "\"3%\"", "\"3%");
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

#[test]
fn what_happens_to_servers() {
    let experiment = good(parse(EVENTS));
    let wrong = |name, from, to| shown(name, &changed(EVENTS, from, to));
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
    wrong("event-server", "server = \"two\"", "server = \"tow\"");
    wrong("event-what", "what = \"{fault}\"", "what = \"kil\"");
    wrong("event-level", "\"kill\", \"cut\"", "\"kill\", \"freeze\"");
    wrong("event-factor", "{fault}", "{falt}");
    wrong("event-missing", "what = \"{fault}\"\n", "");
    wrong("event-beyond", "at = \"1s\"", "at = \"5s\"");
    wrong("event-until", "until = \"3s\"", "until = \"500ms\"");
    wrong("event-until-beyond", "until = \"3s\"", "until = \"6s\"");
    wrong("event-window", "blocks = 3", "blocks = 3\nwindow = \"2s\"");
    wrong("event-rate", "rate = \"500/s\"\n", "");
    wrong("event-quick-subject", "[\"direct\"]", "[\"direkt\"]");
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
