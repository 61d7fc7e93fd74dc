//! A run whose servers and load are on hosts of their own.

use std::collections::BTreeSet;
use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use crate::common::{
    KILL, Place, array, descendants, has, hosts_or_skip, key, proxy_and_backend, spec, trials,
};
use readings::LinkKind;

const HOSTS: &str = include_str!("run/hosts.toml");

const DESIGN: &str = include_str!("run/design.toml");

fn experiment() -> String {
    let parts = proxy_and_backend("back", "vm");
    format!("{HOSTS}{parts}{DESIGN}")
}

/// Whether this machine can have such hosts, tried once; says so when it cannot.
pub fn can_be_made() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(were_made)
}

/// A place, where this machine can have such hosts.
fn place() -> Option<Place> {
    can_be_made().then(Place::new)
}

fn were_made() -> bool {
    let small = readings::HostSpec {
        quota: Some(1.0),
        ..spec("small")
    };
    // A control group is asked for as well: an ordinary user has none.
    if !net::os::is_root() {
        crate::common::skip("hosts with a quota need root");
        return false;
    }
    hosts_or_skip(&[small], Some(LinkKind::UserSpace)).is_some()
}

/// An experiment with a setting of one host.
fn with_setting(setting: &str) -> String {
    let parts = proxy_and_backend("vm", "vm");
    format!(
        "title = \"t\"\n[hosts.vm]\nsettings = {{ {setting} }}\n{parts}[load]\nhost = \"vm\"\n\
         [design]\nblocks = 1\nwarmup = \"100ms\"\nwindow = \"200ms\"\n\
         latency_window = \"0s\"\nbottleneck = false\n"
    )
}

#[test]
fn a_mistake_in_a_setting_is_the_experiments_and_leaves_no_folder() {
    let Some(place) = place() else { return };
    let call = "run x.toml --out r --format json";
    let refused = [
        (
            "\"net.core.somaxcon\" = 9",
            "host `vm`: this kernel has no setting `net.core.somaxcon`",
        ),
        (
            "\"net.core.somaxconn\" = \"abc\"",
            "the kernel does not accept `abc` for `net.core.somaxconn`",
        ),
        ("\"net.core.somaxconn\" = -5", "does not accept `-5`"),
        (
            "\"net.ipv4.tcp_congestion_control\" = \"none\"",
            "does not accept `none`",
        ),
        (
            "\"net.ipv4.tcp_available_congestion_control\" = \"reno\"",
            "`net.ipv4.tcp_available_congestion_control` is read-only",
        ),
    ];
    let running: Vec<_> = refused
        .iter()
        .enumerate()
        .map(|(number, (setting, _))| {
            let (file, out) = (format!("{number}.toml"), format!("r{number}"));
            place.write(&file, &with_setting(setting));
            place.start(&format!("run {file} --out {out}"))
        })
        .collect();
    for (number, (one, (setting, why))) in running.into_iter().zip(refused).enumerate() {
        one.end().expect(2).says(&[why]);
        assert!(!place.path(&format!("r{number}")).exists(), "{setting}");
    }
    // Kernels before 5.16 have it, but show it to the machine alone.
    place.write("x.toml", &with_setting("\"net.core.rmem_max\" = 9999"));
    let done = place.run(call).expect(2);
    done.says(&["`net.core.rmem_max`", "the whole machine"]);
    assert!(!done.err.contains("os error"), "{}", done.err);
    // A folder that was there stays, with what was in it.
    place.write("r/mine", "");
    place.run(call).expect(2);
    assert_eq!(fs::read_dir(place.path("r")).unwrap().count(), 1);
    place.write("x.toml", &with_setting("\"net.core.somaxconn\" = 9"));
    let document = place.run(call).result();
    assert_eq!(document["trials"]["done"], 3);
    assert!(place.path("r/mine").exists());
}

/// Runs two blocks and kills a child of the program in the first; the run's own document.
fn with_a_killed(place: &Place, is_it: impl Fn(&str) -> bool) -> serde_json::Value {
    place.write("x.toml", &experiment());
    let call = ["run", "x.toml", "--out", "r", "--format", "json"];
    let sets = ["--set", "design.retries=0", "--set", "design.window=500ms"];
    let mut running = place.start(&[&call[..], &sets].concat());
    running.until_said("block 1/2");
    running.go_on(Duration::from_millis(1500));
    let found = descendants(running.pid())
        .into_iter()
        .find(|process| is_it(&process.to_string()));
    net::os::kill(found.unwrap().pid, KILL).unwrap();
    let done = running.end();
    assert!(done.status == 0 || done.status == 4, "{}", done.err);
    assert!(place.left().is_empty(), "{:?}", place.left());
    done.json()
}

/// The reasons of a run's failed trials, all of one condition in the first block.
fn reasons_in_one_condition(place: &Place) -> Vec<String> {
    let failed: Vec<serde_json::Value> = trials(&place.path("r"))
        .into_iter()
        .filter(|trial| trial["outcome"]["failed"].is_object())
        .collect();
    assert_eq!(failed.len(), 3, "{failed:#?}");
    for trial in &failed {
        assert_eq!(trial["block"], 1, "{trial}");
        assert_eq!(trial["condition"], failed[0]["condition"], "{trial}");
    }
    let reason = |trial: &serde_json::Value| trial["outcome"]["failed"]["reason"].clone();
    let reasons = failed.iter().map(reason);
    reasons
        .map(|one| one.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn hosts_whose_links_are_lost_are_made_afresh() {
    let Some(place) = place() else { return };
    let document = with_a_killed(&place, |process| process.ends_with(" netns-holder)"));
    assert_eq!(document["trials"]["done"], 9, "{document}");
    for reason in reasons_in_one_condition(&place) {
        assert_eq!(reason, "lost the process that holds the links");
    }
}

#[test]
fn trials_name_the_agent_that_was_lost() {
    let Some(place) = place() else { return };
    // The first is that of the first host, on which the proxy is: not the one that makes the load.
    let document = with_a_killed(&place, |process| process.ends_with(" agent)"));
    assert_eq!(document["trials"]["done"], 9, "{document}");
    for reason in reasons_in_one_condition(&place) {
        has(&reason, "lost the agent: it ended");
        assert!(reason.starts_with("host `"), "{reason}");
    }
}

mod alone {
    use super::*;

    /// From near it is a full load, and the thread that carries its packets runs before all others.
    #[test]
    fn a_run_measures_from_each_vantage_point() {
        if !can_be_made() {
            return;
        }
        let place = Place::alone();
        place.write("x.toml", &experiment().replace("blocks = 2", "blocks = 1"));
        let done = place.run("run x.toml --out r --format json");
        let document = done.result();
        assert_eq!(document["trials"]["done"], 6, "{}", done.err);
        let folder = place.path("r");
        let hosts: serde_json::Value =
            serde_json::from_slice(&fs::read(folder.join("hosts.json")).unwrap()).unwrap();
        let apart = &hosts["apart"];
        assert_eq!(apart["links"], "user_space");
        assert_eq!(
            apart["hosts"]["vm"]["settings"]["net.core.somaxconn"],
            "3000"
        );
        assert_eq!(apart["hosts"]["far"]["link"]["rtt_ns"], 50_000_000);
        let mut bound = false;
        for trial in trials(&folder) {
            let reading = &trial["outcome"]["done"];
            let load = &reading["throughput"];
            let number = |value: &serde_json::Value| value.as_f64().unwrap();
            // Answers come in bursts of eight: those at the edges of a slice count with their part.
            let slices = array(&load["slices"]).iter();
            let answers: f64 = slices
                .map(|slice| number(&slice["requests"]) + number(&slice["edges"]))
                .sum();
            let per_s = answers / number(&load["duration_s"]);
            // Each request has a connection of its own, so two round trips.
            let most = 8.0 / 0.1;
            if trial["condition"]["from"] == "far" {
                assert!(per_s < 1.05 * most && per_s > 0.5 * most, "{per_s}");
                bound |=
                    trial["block"] == 1 && trial["baseline_copy"] == false && per_s > 0.92 * most;
            } else {
                assert!(per_s > 1.2 * most, "{per_s}");
            }
            // Servers are on other hosts than the load; what they do is counted all the same.
            for server in array(&reading["servers"]) {
                assert!(number(&server["cpu_s"]) > 0.0, "{trial}");
            }
            // A path without upstreams has no such figure.
            let behind = reading["upstream_connections_per_request"].as_f64();
            let behind = behind.unwrap_or(0.0);
            let expected = if trial["subject"] == "proxy" {
                1.0
            } else {
                0.0
            };
            assert!(
                (behind - expected).abs() < 0.2,
                "{}: {behind}",
                trial["subject"]
            );
        }
        done.says(&["links are made in user space"]);
        // A machine that is busy with other things may keep them from it.
        if bound {
            done.says(&["the network's delay limits this"]);
        }
        assert!(place.left().is_empty(), "{:?}", place.left());
    }
}

mod quiet {
    use super::*;

    /// A lost SYN is sent again after a second, which is longer than the slices here.
    #[test]
    fn a_link_that_loses_packets_makes_no_trial_invalid() {
        if !can_be_made() {
            return;
        }
        let place = Place::quiet();
        let hosts =
            "title = \"loss\"\n[hosts.vm]\n[hosts.far]\nlink = { rtt = \"2ms\", loss = \"3%\" }\n";
        let parts = proxy_and_backend("vm", "vm");
        let design = "[load]\nhost = \"far\"\nconnections = 32\n[design]\nblocks = 1\nwarmup = \"200ms\"\n\
                  window = \"600ms\"\nlatency_window = \"0s\"\nbottleneck = false\nretries = 0\n";
        place.write("x.toml", &format!("{hosts}{parts}{design}"));
        let done = place.run("run x.toml --out r --format json");
        let document = done.result();
        assert_eq!(document["trials"]["done"], 3, "{}", done.err);
        // A machine that is busy with other things, or loses its CPUs, may spoil a trial; lost
        // packets may not.
        for trial in array(&document["trials"]["invalid_trials"]) {
            for reason in array(&trial["reasons"]) {
                let reason = reason.as_str().unwrap();
                let is_of_the_machine = ["the client sent late", "it was stolen", "of a CPU"]
                    .iter()
                    .any(|words| reason.contains(words));
                assert!(is_of_the_machine, "{trial}");
            }
        }
        for trial in trials(&place.path("r")) {
            let reading = &trial["outcome"]["done"]["throughput"];
            assert_eq!(reading["connections_open_min"], 32, "{trial}");
        }
    }
}

/// Three clients, each with a link of its own, and the same experiment from one of them.
fn from_clients(load: &str) -> String {
    let hosts = "[hosts.vm]\nsettings = { \"net.core.somaxconn\" = 3000 }\n\
                 [hosts.a]\n[hosts.b]\n[hosts.c]\n";
    let parts = proxy_and_backend("vm", "vm");
    format!(
        "title = \"t\"\n{hosts}{parts}[load]\n{load}\nconnections = 8\nrate = \"700/s\"\n\
         [design]\nblocks = 1\nwarmup = \"200ms\"\nwindow = \"200ms\"\n\
         latency_window = \"600ms\"\nbottleneck = false\n"
    )
}

#[test]
fn three_hosts_make_the_load_of_one() {
    let Some(place) = place() else { return };
    for (name, load) in [
        ("one", "host = \"a\""),
        ("three", "hosts = [\"a\", \"b\", \"c\"]"),
    ] {
        place.write("x.toml", &from_clients(load));
        let run = place.run(&format!("run x.toml --out {name} --format json"));
        assert!(matches!(run.status, 0 | 4), "{}", run.err);
        let all = trials(&place.path(name));
        // On a busy machine, a host may begin late; the trial is repeated then.
        let done = all.iter().filter(|one| one["outcome"]["done"].is_object());
        let keys: BTreeSet<String> = done.clone().map(key).collect();
        assert_eq!(keys.len(), 3, "{all:?}");
        for trial in done {
            let reading = &trial["outcome"]["done"];
            let (closed, open) = (&reading["throughput"], &reading["latency"]);
            assert_eq!(closed["connections"], 8, "{closed}");
            let hosts: Vec<&str> = open["hosts"].as_array().map_or(Vec::new(), |hosts| {
                hosts
                    .iter()
                    .map(|one| one["host"].as_str().unwrap())
                    .collect()
            });
            match name {
                "one" => assert!(hosts.is_empty(), "{open}"),
                _ => assert_eq!(hosts, ["a", "b", "c"]),
            }
            let own = array(&closed["slices"]).iter();
            let requests: u64 = own.map(|slice| slice["requests"].as_u64().unwrap()).sum();
            assert_eq!(closed["requests"], requests);
            // 700/s for 0.6 s, to the request, from wherever it comes.
            assert_eq!(open["offered"]["due"], 420, "{name}: {open}");
        }
    }
}

#[test]
fn what_several_hosts_cannot_do_is_said_before_the_run() {
    let place = Place::new();
    for (load, words) in [
        ("hosts = [\"a\", \"a\"]", "the host `a` is named twice"),
        ("hosts = [\"a\", \"x\"]", "no host is called `x`"),
        ("host = \"a\"\nhosts = [\"b\"]", "exclude each other"),
        ("hosts = []", "names no host"),
        (
            "hosts = [\"a\", \"b\"]\ndriver = \"wrk\"",
            "only the built-in engine can share a load among hosts",
        ),
    ] {
        place.write("x.toml", &from_clients(load));
        place.run("run x.toml --dry-run").expect(2).says(&[words]);
    }
}
