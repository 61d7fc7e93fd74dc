//! Bottlenecks provoked on purpose: each is named. Names are asserted, no speeds.

use crate::common::{Place, RUN, array, quickly, skip};
use serde_json::Value;

const DESIGN: &str = "[design]\nblocks = 1\nwarmup = \"200ms\"\nwindow = \"300ms\"\n\
                      latency_window = \"0s\"\nretries = 0\nbottleneck = true\n";

/// Runs an experiment; the bottlenecks of its document.
fn bottlenecks(place: &Place, text: &str) -> Vec<Value> {
    std::fs::create_dir_all(place.path("recipes")).unwrap();
    place.write("x.toml", &format!("title = \"t\"\n{text}{DESIGN}"));
    let document = place.run(&RUN).result();
    let found = array(&document["bottlenecks"]).clone();
    assert!(!found.is_empty(), "{document}");
    let page = std::fs::read_to_string(place.path("r/report.html")).unwrap();
    assert!(page.contains("<h2>Bottlenecks</h2>"));
    assert!(place.left().is_empty(), "{:?}", place.left());
    std::fs::remove_dir_all(place.path("r")).unwrap();
    found
}

/// What was found under this name, and all that was found.
#[track_caller]
pub fn provoked(place: &Place, text: &str, bottleneck: &str) -> (Value, Vec<Value>) {
    found(place, text, |one| one["bottleneck"] == bottleneck)
}

/// The same for one that has to be confirmed.
#[track_caller]
pub fn confirmed(place: &Place, text: &str, bottleneck: &str) -> (Value, Vec<Value>) {
    found(place, text, |one| {
        one["bottleneck"] == bottleneck && one["standing"] == "confirmed"
    })
}

#[track_caller]
fn found(place: &Place, text: &str, is_it: impl Fn(&Value) -> bool) -> (Value, Vec<Value>) {
    let all = bottlenecks(place, text);
    match all.iter().find(|one| is_it(one)) {
        Some(one) => (one.clone(), all.clone()),
        None => panic!("not found in {all:#?}"),
    }
}

fn cpus() -> Vec<u32> {
    net::os::allowed_cpus().unwrap()
}

#[test]
fn four_connections_over_a_slow_answer_are_limited_by_concurrency() {
    let place = Place::alone();
    let (one, found) = provoked(
        &place,
        "[servers.o]\nrecipe = \"origin\"\n[subjects]\nx = \"http://o/delay/constant/50ms\"\n\
         [load]\nconnections = 4\n",
        "concurrency",
    );
    assert_eq!(one["standing"], "confirmed", "{found:#?}");
    let sentence = one["sentence"].as_str().unwrap();
    assert!(sentence.contains("4 connections"), "{sentence}");
    assert_eq!(one["at_least"], false);
}

#[test]
fn a_client_on_the_servers_cpu_is_named_and_its_throughput_is_at_least() {
    let cpus = cpus();
    if cpus.len() < 2 {
        return skip("a client that shares a CPU with its server: needs a second CPU");
    }
    let place = Place::alone();
    let text = format!(
        "[hosts.both]\ncpus = [{}]\n[servers.o]\nrecipe = \"origin\"\nhost = \"both\"\n\
         [subjects]\nx = \"http://o/\"\n[load]\nhost = \"both\"\nconnections = 32\n",
        cpus[0]
    );
    let (one, _) = provoked(&place, &text, "client");
    assert!(one["standing"] == "confirmed" || one["standing"] == "suspected");
    let sentence = one["sentence"].as_str().unwrap();
    assert!(
        sentence.contains(&format!("shares CPU {} with the servers", cpus[0])),
        "{sentence}"
    );
    let tried = array(&one["effects"]).iter();
    let tried: Vec<&str> = tried.map(|one| one["change"].as_str().unwrap()).collect();
    assert!(tried.contains(&"client_apart"), "{tried:?}");
}

#[test]
fn one_worker_of_four_that_does_all_is_named() {
    let place = Place::alone();
    // Four workers, of which one has the port.
    place.recipe(
        "four",
        "summary = \"one of four works\"\n[start]\n\
         command = [\"sh\", \"-c\", \"for i in 1 2 3; do {{ weigh }} origin --listen 127.0.0.1:0 & done; exec {{ weigh }} origin --listen {{ listen.addr }}\"]\n\
         [ready]\npath = \"/\"\nstatus = 200\ntimeout = \"20s\"\n",
    );
    let (one, _) = provoked(
        &place,
        "[servers.four]\nrecipe = \"four\"\n[subjects]\nx = \"http://four/burn/1000000\"\n\
         [load]\nconnections = 8\n",
        "server",
    );
    assert_eq!(one["server"], "four");
    let sentence = one["sentence"].as_str().unwrap();
    assert!(sentence.contains("threads is full"), "{sentence}");
}

#[test]
fn a_short_accept_queue_is_named() {
    let place = Place::alone();
    place.recipe(
        "short",
        "summary = \"eight may wait\"\n[start]\n\
         command = [\"{{ weigh }}\", \"origin\", \"--listen\", \"{{ listen.addr }}\", \"--backlog\", \"8\"]\n\
         [ready]\npath = \"/\"\nstatus = 200\ntimeout = \"20s\"\n",
    );
    let (one, _) = provoked(
        &place,
        "[servers.short]\nrecipe = \"short\"\n[subjects]\nx = \"http://short/burn/600000\"\n\
         [load]\nconnections = 128\nkeepalive = false\ntimeout = \"20s\"\n",
        "accept_queue",
    );
    let sentence = one["sentence"].as_str().unwrap();
    assert!(sentence.contains("ListenOverflows"), "{sentence}");
}

#[test]
fn a_proxy_that_keeps_no_upstream_connections_is_named() {
    let installed = std::process::Command::new("lighttpd").arg("-v").output();
    if installed.is_err() {
        return skip("a proxy without kept upstream connections: lighttpd is not installed");
    }
    let place = Place::alone();
    let (one, _) = provoked(
        &place,
        "[servers.o]\nrecipe = \"origin\"\n[servers.proxy]\nrecipe = \"lighttpd\"\n\
         upstreams = [\"o\"]\n[subjects]\nx = \"http://proxy/\"\n[load]\nconnections = 16\n",
        "upstream_connections",
    );
    let sentence = one["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("new connections to an upstream per request"),
        "{sentence}"
    );
}

#[test]
fn without_the_search_there_are_no_bottlenecks() {
    let place = Place::alone();
    let sets = [
        "design.blocks=1",
        "design.window=200ms",
        "design.latency_window=0s",
        "design.retries=0",
    ];
    let document = place.run(&quickly("proxy-cost", &sets, "r")).result();
    assert_eq!(array(&document["bottlenecks"]).len(), 0);
    let kept = std::fs::read_to_string(place.path("r/experiment.toml")).unwrap();
    assert!(kept.contains("bottleneck = false"), "{kept}");
    let mut call = quickly("proxy-cost", &sets, "s");
    call.push("--bottleneck");
    let document = place.run(&call).result();
    let subjects: Vec<&str> = array(&document["bottlenecks"])
        .iter()
        .map(|one| one["subject"].as_str().unwrap())
        .collect();
    assert!(
        subjects.contains(&"direct") && subjects.contains(&"balanced"),
        "{subjects:?}"
    );
}
