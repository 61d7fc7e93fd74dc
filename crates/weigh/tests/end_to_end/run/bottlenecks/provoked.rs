//! Bottlenecks provoked on purpose, here and on hosts with links, settings and ports of their own:
//! each is named, and confirmed where a change can show it. Only names are asserted, no speeds. Except
//! in `alone`, they do not depend on what else the machine does.

use std::sync::OnceLock;

use readings::{LinkKind, LinkSpec};
use serde_json::Value;

use crate::common::{
    Place, RUN, array, far, find, has, hosts_or_skip, quickly, skip, texts, write_light_proxy_cost,
};

/// The search has windows of its own; what comes before it is as short as can be.
const DESIGN: &str = "[design]\nblocks = 1\nwarmup = \"200ms\"\nwindow = \"200ms\"\n\
                      slice = \"200ms\"\nlatency_window = \"0s\"\nretries = 0\n\
                      bottleneck = true\n";

/// Runs an experiment; the bottlenecks of its document.
fn bottlenecks(place: &Place, text: &str) -> Vec<Value> {
    std::fs::create_dir_all(place.path("recipes")).unwrap();
    place.write("x.toml", &format!("title = \"t\"\n{text}{DESIGN}"));
    let document = place.run(RUN).result();
    let found = array(&document["bottlenecks"]).clone();
    assert!(!found.is_empty(), "{document}");
    let page = place.read("r/report.html");
    assert!(page.contains("<h2>Bottlenecks</h2>"));
    assert!(place.left().is_empty(), "{:?}", place.left());
    std::fs::remove_dir_all(place.path("r")).unwrap();
    found
}

/// What was found under this name; its sentence has these texts.
#[track_caller]
pub fn provoked(place: &Place, text: &str, bottleneck: &str, says: &[&str]) -> Value {
    found(&bottlenecks(place, text), bottleneck, says)
}

/// The same for one that has to be confirmed.
#[track_caller]
pub fn confirmed(place: &Place, text: &str, bottleneck: &str, says: &[&str]) -> Value {
    let all = bottlenecks(place, text);
    let is_it = |one: &&Value| one["bottleneck"] == bottleneck && one["standing"] == "confirmed";
    let one = all.iter().find(is_it);
    let one = one.unwrap_or_else(|| panic!("not confirmed in {all:#?}"));
    found(std::slice::from_ref(one), bottleneck, says)
}

#[track_caller]
fn found(all: &[Value], bottleneck: &str, says: &[&str]) -> Value {
    let one = find(all, "bottleneck", bottleneck);
    for text in says {
        has(one["sentence"].as_str().unwrap(), text);
    }
    one.clone()
}

/// Whether this machine can have hosts with links, tried once; says so when it cannot.
pub fn can_be_made() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    let one = || far("one", LinkSpec::default());
    *CAN.get_or_init(|| hosts_or_skip(&[one()], Some(LinkKind::UserSpace)).is_some())
}

/// A place, where this machine can have hosts with links.
fn place() -> Option<Place> {
    can_be_made().then(Place::new)
}

/// A server and a client; `client` and `server` are what is said of their hosts.
pub fn between(server: &str, client: &str, path: &str, load: &str) -> String {
    format!(
        "[hosts.server]\n{server}\n[hosts.client]\n{client}\n\
         [servers.o]\nrecipe = \"origin\"\nhost = \"server\"\n\
         [subjects]\nx = \"http://o{path}\"\n[load]\nhost = \"client\"\n{load}\n"
    )
}

#[test]
fn a_short_accept_queue_is_named() {
    let place = Place::new();
    place.origin_recipe("short", &["--backlog", "8"], "");
    provoked(
        &place,
        "[servers.short]\nrecipe = \"short\"\n[subjects]\nx = \"http://short/burn/200000\"\n\
         [load]\nconnections = 48\nkeepalive = false\ntimeout = \"3s\"\n",
        "accept_queue",
        &["ListenOverflows"],
    );
}

#[test]
fn without_the_search_there_are_no_bottlenecks() {
    let place = Place::new();
    let sets = [
        "design.blocks=1",
        "design.warmup=100ms",
        "design.window=200ms",
        "design.latency_window=0s",
        "design.retries=0",
    ];
    let document = place.run(&quickly("proxy-cost", &sets, "r")).result();
    assert_eq!(array(&document["bottlenecks"]).len(), 0);
    let kept = place.read("r/experiment.toml");
    has(&kept, "bottleneck = false");
    let mut call = quickly(write_light_proxy_cost(&place), &sets, "s");
    call.push("--bottleneck");
    let document = place.run(&call).result();
    let subjects = texts(array(&document["bottlenecks"]), "subject");
    assert!(
        subjects.contains(&"direct") && subjects.contains(&"balanced"),
        "{subjects:?}"
    );
}
#[test]
fn a_client_that_closes_first_runs_out_of_ports_and_that_is_what_is_named() {
    let Some(place) = place() else { return };
    // Each connection leaves its port in TIME_WAIT for a minute.
    let text = between(
        "",
        "settings = { \"net.ipv4.ip_local_port_range\" = \"40000 40199\" }",
        "/",
        "connections = 8\nrequests_per_connection = 1",
    );
    provoked(&place, &text, "ports", &["TIME_WAIT"]);
}

#[test]
fn an_accept_queue_that_a_hosts_setting_makes_short_is_named() {
    let Some(place) = place() else { return };
    let text = between(
        "settings = { \"net.core.somaxconn\" = 8 }",
        "",
        "/burn/200000",
        "connections = 48\nkeepalive = false\ntimeout = \"3s\"",
    );
    provoked(&place, &text, "accept_queue", &["ListenOverflows"]);
}

#[test]
fn too_few_ports_are_named_and_confirmed_by_more() {
    let Some(place) = place() else { return };
    // A port that waits may be had again after a second, so that each load finds some.
    let text = between(
        "",
        "settings = { \"net.ipv4.ip_local_port_range\" = \"40000 40199\", \
         \"net.ipv4.tcp_tw_reuse\" = 1 }",
        "/",
        "connections = 300\nkeepalive = false",
    );
    let says = ["EADDRNOTAVAIL", "with more ports ", " find none"];
    confirmed(&place, &text, "ports", &says);
}

#[test]
fn upstream_connections_are_counted_on_other_hosts_than_the_loads() {
    if !can_be_made() {
        return;
    }
    let installed = std::process::Command::new("lighttpd").arg("-v").output();
    if installed.is_err() {
        return skip("a proxy without kept upstream connections: lighttpd is not installed");
    }
    let place = Place::new();
    let text = "[hosts.back]\n[hosts.front]\n[hosts.client]\nlink = {}\n\
                [servers.o]\nrecipe = \"origin\"\nhost = \"back\"\n\
                [servers.p]\nrecipe = \"lighttpd\"\nhost = \"front\"\nupstreams = [\"o\"]\n\
                [subjects]\nx = \"http://p/\"\n[load]\nhost = \"client\"\nconnections = 4\n";
    provoked(
        &place,
        text,
        "upstream_connections",
        &["new connections to an upstream per request"],
    );
}

mod alone {
    use super::*;

    /// Four connections leave the CPUs idle. Beside other tests these would be busy, and be named instead.
    #[test]
    fn four_connections_over_a_slow_answer_are_limited_by_concurrency() {
        let place = Place::alone();
        let one = provoked(
            &place,
            "[servers.o]\nrecipe = \"origin\"\n[subjects]\nx = \"http://o/delay/constant/50ms\"\n\
             [load]\nconnections = 4\n",
            "concurrency",
            &["4 connections"],
        );
        assert_eq!(one["standing"], "confirmed", "{one}");
        assert_eq!(one["at_least"], false);
    }

    #[test]
    fn four_connections_over_20_ms_are_limited_by_concurrency() {
        if !can_be_made() {
            return;
        }
        let place = Place::alone();
        let text = between("", "link = { rtt = \"20ms\" }", "/", "connections = 4");
        let one = confirmed(&place, &text, "concurrency", &["4 connections"]);
        assert_eq!(one["at_least"], false);
    }
}
