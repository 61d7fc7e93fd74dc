//! Bottlenecks that are told by how much throughput a change makes.

use super::provoked::{between, can_be_made, confirmed, provoked};
use crate::common::{Place, array, skip};

fn cpus() -> Vec<u32> {
    net::os::allowed_cpus().unwrap()
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
    let says = &format!("shares CPU {} with the servers", cpus[0]);
    let one = provoked(&place, &text, "client", &[says]);
    assert!(one["standing"] == "confirmed" || one["standing"] == "suspected");
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
    let one = provoked(
        &place,
        "[servers.four]\nrecipe = \"four\"\n[subjects]\nx = \"http://four/burn/1000000\"\n\
         [load]\nconnections = 8\n",
        "server",
        &[],
    );
    assert_eq!(one["server"], "four");
    let sentence = one["sentence"].as_str().unwrap();
    // With one CPU the CPU is named, with more the thread.
    let full = ["threads is full", "its one CPU is full"];
    assert!(
        full.iter().any(|words| sentence.contains(words)),
        "{sentence}"
    );
}

#[test]
fn a_proxy_that_keeps_no_upstream_connections_is_named() {
    let installed = std::process::Command::new("lighttpd").arg("-v").output();
    if installed.is_err() {
        return skip("a proxy without kept upstream connections: lighttpd is not installed");
    }
    let place = Place::alone();
    provoked(
        &place,
        "[servers.o]\nrecipe = \"origin\"\n[servers.proxy]\nrecipe = \"lighttpd\"\n\
         upstreams = [\"o\"]\n[subjects]\nx = \"http://proxy/\"\n[load]\nconnections = 16\n",
        "upstream_connections",
        &["new connections to an upstream per request"],
    );
}

#[test]
fn a_link_of_50_mbit_is_named_with_its_rate_and_confirmed_by_twice_of_it() {
    if !can_be_made() {
        return;
    }
    let place = Place::alone();
    let link = "link = { rate = \"50Mbit/s\" }";
    let text = between("", link, "/bytes/20000", "connections = 8");
    let one = confirmed(
        &place,
        &text,
        "network",
        &["of answers over a link of 50.0 Mbit/s"],
    );
    let effects = array(&one["effects"]);
    let twice = effects
        .iter()
        .find(|effect| effect["change"] == "twice_the_link_rate");
    assert!(twice.unwrap()["ratio"].as_f64().unwrap() > 1.2, "{one}");
}

#[test]
fn a_host_with_a_bound_of_its_own_is_confirmed_by_half_of_it() {
    if !can_be_made() {
        return;
    }
    let place = Place::alone();
    let text = between("quota = 0.3", "", "/burn/1000000", "connections = 8");
    let one = confirmed(
        &place,
        &text,
        "server",
        &["with 0.15 CPUs for the servers together"],
    );
    assert_eq!(one["server"], "o");
}
