//! Several loads at the same time: what a file may say, and how mistakes are shown.

use std::time::Duration;

use crate::support::{changed, good, parse, shown};
use experiment::{Experiment, HttpVersion, LoadRole, Rate};
use readings::Condition;

/// Two compared loads and one in the background, and no mistake.
const LOADS: &str = r#"title = "slow and quick"
[hosts.vm]
[hosts.near]
link = { rtt = "1ms" }
[hosts.far]
link = { rtt = "80ms", rate = "8Mbit/s" }
[servers.web]
recipe = "origin"
host = "vm"
[servers.proxy]
recipe = "balance"
host = "vm"
upstreams = ["web"]
[subjects]
direct = "http://web/"
proxy = "http://proxy/"
[loads.quick]
host = "near"
path = "/{page}"
connections = 16
[loads.slow]
hosts = ["near", "far"]
connections = 8
rate = "20/s"
timeout = "60s"
http = "2"
streams = 4
[loads.download]
role = "background"
host = "far"
path = "/bytes/100000"
[factors]
page = ["a", "b"]
"quick.connections" = [16, 64]
background = ["none", "download"]
"#;

fn with(from: &str, to: &str) -> String {
    changed(LOADS, from, to)
}

fn wrong(name: &str, from: &str, to: &str) {
    shown(name, &with(from, to));
}

fn condition(page: &str, connections: &str, background: &str) -> Condition {
    Condition::from([
        ("page".to_owned(), page.to_owned()),
        ("quick.connections".to_owned(), connections.to_owned()),
        ("background".to_owned(), background.to_owned()),
    ])
}

fn names(experiment: &Experiment, condition: &Condition) -> Vec<String> {
    let beside = experiment.under(condition).beside.into_iter();
    beside.map(|one| one.name).collect()
}

#[test]
fn each_load_has_its_own_hosts_paths_rate_and_version() {
    let experiment = good(parse(LOADS));
    assert_eq!(experiment.conditions().len(), 8);
    assert!(!experiment.design.bottleneck);
    let resolved = experiment.under(&condition("b", "64", "download"));
    assert_eq!(resolved.load_name.as_deref(), Some("quick"));
    assert_eq!(resolved.load.connections, 64);
    assert_eq!(resolved.load.host.as_deref(), Some("near"));
    let paths = resolved.subjects.iter().map(|one| one.path.as_str());
    assert_eq!(paths.collect::<Vec<_>>(), ["/b", "/b"]);
    let [slow, download] = resolved.beside.as_slice() else {
        panic!("{:?}", resolved.beside);
    };
    assert_eq!(
        (slow.name.as_str(), slow.role),
        ("slow", LoadRole::Compared)
    );
    assert_eq!(slow.load.rate, Rate::PerSecond(20.0));
    assert_eq!(slow.load.timeout, Duration::from_secs(60));
    assert_eq!(slow.load.more_hosts, ["far"]);
    for subject in &slow.subjects {
        assert_eq!((subject.path.as_str(), subject.connections), ("/", 8));
        assert_eq!(
            (subject.http, subject.streams),
            (HttpVersion::Http2, Some(4))
        );
    }
    assert_eq!(download.role, LoadRole::Background);
    assert_eq!(download.subjects[1].path, "/bytes/100000");
}

#[test]
fn the_factor_or_the_subjects_say_where_background_loads_are_made() {
    let experiment = good(parse(LOADS));
    assert_eq!(names(&experiment, &condition("a", "16", "none")), ["slow"]);
    let both = names(&experiment, &condition("a", "16", "download"));
    assert_eq!(both, ["slow", "download"]);
    let all = with("background = [\"none\", \"download\"]\n", "");
    let all = good(parse(&all));
    assert_eq!(names(&all, &Condition::new()), ["slow", "download"]);
    let own = with("background = [\"none\", \"download\"]\n", "").replace(
        "proxy = \"http://proxy/\"",
        "proxy = { url = \"http://proxy/\", background = [\"download\"] }",
    );
    let own = good(parse(&own));
    let resolved = own.under(&Condition::new());
    let download = resolved.beside.iter().find(|one| one.name == "download");
    let subjects = download
        .unwrap()
        .subjects
        .iter()
        .map(|one| one.name.as_str());
    assert_eq!(subjects.collect::<Vec<_>>(), ["proxy"]);
    for one in [experiment, all, own] {
        let again = good(parse(&one.to_toml()));
        assert_eq!(again, one, "{}", one.to_toml());
    }
}

#[test]
fn a_level_may_be_several_background_loads() {
    let text = with(
        "[factors]",
        "[loads.upload]\nrole = \"background\"\nhost = \"far\"\n[factors]",
    )
    .replace(
        "[\"none\", \"download\"]",
        "[\"none\", [\"download\", \"upload\"]]",
    );
    let experiment = good(parse(&text));
    let both = names(&experiment, &condition("a", "16", "download,upload"));
    assert_eq!(both, ["slow", "download", "upload"]);
    assert_eq!(good(parse(&experiment.to_toml())), experiment);
}

#[test]
fn a_rate_acts_on_the_open_loop_only_unless_it_is_of_a_background_load() {
    let of = |factor: &str| {
        let text = with("[factors]\n", &format!("[factors]\n{factor}\n"));
        good(parse(&text)).open_loop_factors()
    };
    assert_eq!(of("\"slow.rate\" = [10, 20]"), ["slow.rate"]);
    assert!(of("\"download.rate\" = [10, 20]").is_empty());
}

#[test]
fn mistakes_in_loads() {
    wrong(
        "loads-and-load",
        "[factors]",
        "[load]\nconnections = 2\n[factors]",
    );
    shown(
        "loads-none",
        "title = \"x\"\nloads = {}\n[subjects]\na = \"http://h:1/\"\n",
    );
    wrong("loads-unknown-key", "timeout", "time_out");
    wrong(
        "loads-driver",
        "timeout = \"60s\"",
        "driver = \"wrk\"\ncurve = true",
    );
    wrong(
        "loads-role",
        "role = \"background\"",
        "role = \"backgound\"",
    );
    wrong(
        "loads-path",
        "path = \"/bytes/100000\"",
        "path = \"bytes/{size}\"",
    );
    wrong("loads-no-rate", "rate = \"20/s\"\n", "");
    wrong("loads-no-host", "host = \"near\"\npath", "path");
    wrong(
        "loads-host-unknown",
        "[\"near\", \"far\"]",
        "[\"near\", \"fra\"]",
    );
    let background = LOADS
        .replace("[loads.quick]", "[loads.quick]\nrole = \"background\"")
        .replace("[loads.slow]", "[loads.slow]\nrole = \"background\"");
    shown("loads-all-background", &background);
    shown(
        "loads-name-of-server",
        &LOADS.replace("loads.slow]", "loads.web]"),
    );
}

#[test]
fn mistakes_in_what_several_loads_cannot_be_combined_with() {
    let events = "[[events]]\nat = \"1s\"\nserver = \"web\"\nwhat = \"stop\"\n";
    shown("loads-events", &format!("{LOADS}{events}"));
    shown(
        "loads-bottleneck",
        &format!("{LOADS}[design]\nbottleneck = true\n"),
    );
    let own = "proxy = { url = \"http://proxy/\", connections = 3, driver = \"wrk\" }";
    wrong("loads-subject", "proxy = \"http://proxy/\"", own);
    let own = "proxy = { url = \"http://proxy/\", requests_per_connection = 5 }";
    wrong("loads-subject-requests", "proxy = \"http://proxy/\"", own);
}

#[test]
fn mistakes_in_factors_of_loads() {
    wrong(
        "loads-factor-which",
        "page =",
        "connections = [1, 2]\npage =",
    );
    wrong(
        "loads-factor-load",
        "page =",
        "load = [{ connections = 1 }]\npage =",
    );
    wrong("loads-factor-key", "quick.connections", "quick.conections");
    wrong(
        "loads-factor-unknown",
        "quick.connections",
        "quik.connections",
    );
    wrong(
        "loads-background-unknown",
        "[\"none\", \"download\"]",
        "[\"none\", \"dowload\"]",
    );
    wrong(
        "loads-background-compared",
        "[\"none\", \"download\"]",
        "[\"none\", \"slow\"]",
    );
    let twice = "proxy = { url = \"http://proxy/\", background = \"download\" }";
    wrong("loads-background-twice", "proxy = \"http://proxy/\"", twice);
}
