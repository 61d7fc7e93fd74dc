//! Bottlenecks provoked on hosts that are apart, with links, settings and ports of their own: each is
//! named, and confirmed where what the lab changes can show it. No speed is asserted.

use readings::{LinkKind, LinkSpec};

use super::bottleneck::{confirmed, provoked};
use crate::common::{Place, array, far, hosts_or_skip, skip};

/// Whether this machine can have hosts with links; says so when it cannot.
fn can_be_made() -> bool {
    let one = far("one", LinkSpec::default());
    hosts_or_skip(&[one], Some(LinkKind::UserSpace)).is_some()
}

/// A server and a client; `client` and `server` are what is said of their hosts.
fn between(server: &str, client: &str, path: &str, load: &str) -> String {
    format!(
        "[hosts.server]\n{server}\n[hosts.client]\n{client}\n\
         [servers.o]\nrecipe = \"origin\"\nhost = \"server\"\n\
         [subjects]\nx = \"http://o{path}\"\n[load]\nhost = \"client\"\n{load}\n"
    )
}

#[test]
fn four_connections_over_50_ms_are_limited_by_concurrency() {
    if !can_be_made() {
        return;
    }
    let place = Place::alone();
    let text = between("", "link = { rtt = \"50ms\" }", "/", "connections = 4");
    let (one, found) = confirmed(&place, &text, "concurrency");
    let sentence = one["sentence"].as_str().unwrap();
    assert!(sentence.contains("4 connections"), "{found:#?}");
    assert_eq!(one["at_least"], false);
}

#[test]
fn a_link_of_50_mbit_is_named_with_its_rate_and_confirmed_by_twice_of_it() {
    if !can_be_made() {
        return;
    }
    let place = Place::alone();
    let link = "link = { rate = \"50Mbit/s\" }";
    let text = between("", link, "/bytes/20000", "connections = 8");
    let (one, found) = confirmed(&place, &text, "network");
    let sentence = one["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("of answers over a link of 50.0 Mbit/s"),
        "{found:#?}"
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
    let text = between("quota = 0.3", "", "/burn/2000000", "connections = 8");
    let (one, found) = confirmed(&place, &text, "server");
    assert_eq!(one["server"], "o");
    let sentence = one["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("with 0.15 CPUs for the servers together"),
        "{found:#?}"
    );
}

#[test]
fn an_accept_queue_that_a_hosts_setting_makes_short_is_named() {
    if !can_be_made() {
        return;
    }
    let place = Place::alone();
    let text = between(
        "settings = { \"net.core.somaxconn\" = 8 }",
        "",
        "/burn/200000",
        "connections = 48\nkeepalive = false\ntimeout = \"20s\"",
    );
    let (one, found) = provoked(&place, &text, "accept_queue");
    let sentence = one["sentence"].as_str().unwrap();
    assert!(sentence.contains("ListenOverflows"), "{found:#?}");
}

#[test]
fn too_few_ports_are_named_and_confirmed_by_more() {
    if !can_be_made() {
        return;
    }
    let place = Place::alone();
    // A port that waits may be had again after a second, so that each load finds some.
    let text = between(
        "",
        "settings = { \"net.ipv4.ip_local_port_range\" = \"40000 40199\", \
         \"net.ipv4.tcp_tw_reuse\" = 1 }",
        "/",
        "connections = 300\nkeepalive = false",
    );
    let (one, found) = confirmed(&place, &text, "ports");
    let sentence = one["sentence"].as_str().unwrap();
    for words in ["EADDRNOTAVAIL", "with more ports ", " find none"] {
        assert!(sentence.contains(words), "{found:#?}");
    }
}

#[test]
fn a_client_that_closes_first_runs_out_of_ports_and_that_is_what_is_named() {
    if !can_be_made() {
        return;
    }
    let place = Place::alone();
    // Each connection leaves its port in TIME_WAIT for a minute.
    let text = between(
        "",
        "settings = { \"net.ipv4.ip_local_port_range\" = \"40000 40199\" }",
        "/",
        "connections = 8\nrequests_per_connection = 1",
    );
    let (one, found) = provoked(&place, &text, "ports");
    let sentence = one["sentence"].as_str().unwrap();
    assert!(sentence.contains("TIME_WAIT"), "{found:#?}");
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
    let place = Place::alone();
    let text = "[hosts.back]\n[hosts.front]\n[hosts.client]\nlink = {}\n\
                [servers.o]\nrecipe = \"origin\"\nhost = \"back\"\n\
                [servers.p]\nrecipe = \"lighttpd\"\nhost = \"front\"\nupstreams = [\"o\"]\n\
                [subjects]\nx = \"http://p/\"\n[load]\nhost = \"client\"\nconnections = 4\n";
    let (one, found) = provoked(&place, text, "upstream_connections");
    let sentence = one["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("new connections to an upstream per request"),
        "{found:#?}"
    );
}
