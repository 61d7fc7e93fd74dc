//! Every mistake in an experiment file is shown in its place, with what was expected.

use crate::support::{
    GOOD, assert_shown, changed, good, parse, parse_set, recipes, rendered, said, shown,
};
use experiment::Experiment;

/// The good experiment with one piece of text changed.
fn with(from: &str, to: &str) -> String {
    changed(GOOD, from, to)
}

/// The cases of `tests/mistakes.toml`.
#[test]
fn mistakes_are_shown_in_their_place() {
    let cases: toml::Table = include_str!("../../mistakes.toml").parse().unwrap();
    let good_ones = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/good");
    for (base, cases) in &cases {
        let before = std::fs::read_to_string(format!("{good_ones}/{base}.toml"));
        for (name, case) in cases.as_table().unwrap() {
            let Some(changes) = case.as_array() else {
                shown(name, case.as_str().unwrap());
                continue;
            };
            let changes: Vec<&str> = changes.iter().filter_map(|one| one.as_str()).collect();
            let text = changes
                .chunks(2)
                .fold(before.as_ref().unwrap().clone(), |text, change| {
                    changed(&text, change[0], change[1])
                });
            shown(name, &text);
        }
    }
}

#[test]
fn the_good_ones_are_good() {
    for text in [GOOD, APART, MACHINES, PIPES, FAULTS] {
        let experiment = good(parse(text));
        assert_eq!(good(parse(&experiment.to_toml())), experiment);
    }
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

/// Hosts apart, with two vantage points and no mistake.
const APART: &str = include_str!("../../good/apart.toml");

/// Hosts that are machines, and no mistake.
const MACHINES: &str = include_str!("../../good/machines.toml");

#[test]
fn hosts_behind_ssh() {
    let experiment = good(parse(MACHINES));
    assert!(experiment.hosts_are_machines() && !experiment.hosts_are_apart());
    let behind = |host| experiment.is_elsewhere(Some(host));
    assert_eq!(["vm", "client", "here"].map(behind), [true, true, false]);
}

/// Hosts behind other pipes, and no mistake.
const PIPES: &str = include_str!("../../good/pipes.toml");

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
fn a_key_that_is_set_does_not_hide_behind_a_factor_of_the_whole_load() {
    let text = with("connections = [96, 400]", "load = [{ connections = 8 }]");
    let error = parse_set(&text, &[("load.connections", "9")]);
    assert_shown("set-hidden-by-a-load", &rendered(&error.unwrap_err()));
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
const FAULTS: &str = include_str!("../../good/faults.toml");

#[test]
fn what_happens_to_servers() {
    let experiment = good(parse(FAULTS));
    assert!(experiment.design.window.is_zero() && !experiment.design.bottleneck);
    let faults: Vec<&str> = experiment
        .conditions()
        .iter()
        .map(|condition| experiment.under(condition).events[0].kind.word())
        .collect();
    assert_eq!(faults, ["kill", "cut"]);
    let quick = good(Experiment::parse("x.toml", FAULTS, &[], true, recipes()));
    assert_eq!(quick.subjects.len(), 1);
    let here = FAULTS.replace("link = { rtt = \"0ms\" }\n", "");
    // Neither of the others needs hosts.
    let here = here.replace("\"kill\", \"cut\"", "\"kill\", \"stop\"");
    good(parse(&here));
}

#[test]
fn servers_of_the_users_own() {
    for (server, says) in said("own-server") {
        let text =
            format!("title = \"own\"\n[servers.a]\n{server}\n[subjects]\na = \"http://a/\"\n");
        let shown = rendered(&parse(&text).expect_err(&server));
        let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&says), "{server}: {shown}");
    }
    let port = "title = \"own\"\n[servers.a]\ncommand = [\"./x\", \"{port}\"]\n[subjects]\n\
                a = \"http://a/{port}\"\n[factors]\nport = [1, 2]\n";
    let shown = rendered(&parse(port).expect_err("port"));
    assert!(shown.contains("cannot be called `port`"), "{shown}");
}
