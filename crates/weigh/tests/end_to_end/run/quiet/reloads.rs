//! Reloads of real servers under load, and a rolling restart.

use serde_json::Value;

use crate::common::started::installed;
use crate::common::{Place, array, find, number, trials};

/// Servers in front of one back end, each reloaded under load. `SERVERS`, `SUBJECTS` and `EVENTS`
/// are filled in.
const EXPERIMENT: &str = include_str!("reloads/experiment.toml");

/// An experiment with servers: name, recipe, parameters, and those that a reload changes, which is undone
/// after so many seconds.
fn experiment(servers: &[(&str, &str, &str, &str)], until_s: u32) -> String {
    let (mut all, mut subjects, mut events) = (String::new(), String::new(), String::new());
    for (name, recipe, with, params) in servers {
        all.push_str(&format!(
            "[servers.{name}]\nrecipe = \"{recipe}\"\nupstreams = [\"origin\"]\nwith = {{ {with} }}\n"
        ));
        subjects.push_str(&format!("{name} = \"http://{name}/\"\n"));
        events.push_str(&format!(
            "[[events]]\nat = \"500ms\"\nserver = \"{name}\"\nwhat = \"reload\"\nuntil = \"{until_s}s\"\n\
             params = {{ {params} }}\n"
        ));
    }
    EXPERIMENT
        .replace("SERVERS", &all)
        .replace("SUBJECTS", &subjects)
        .replace("EVENTS", &events)
        .replace("WINDOW", &format!("{}s", until_s + 1))
}

/// The events of a subject's trial; of the last one if it was repeated.
fn events_of<'t>(trials: &'t [Value], subject: &str) -> &'t Value {
    let mut found = trials.iter().rev();
    let found = found.find(|one| one["subject"] == subject && one["baseline_copy"] == false);
    let trial = found.unwrap_or_else(|| panic!("no trial of {subject}"));
    assert!(trial["outcome"]["done"].is_object(), "{trial}");
    &trial["outcome"]["done"]["events"]
}

/// Reloads servers under load, and checks their trials.
fn reload(servers: &[(&str, &str, &str, &str)], failed_max: f64) {
    reload_for(3, servers, failed_max);
}

/// The same with this time between a reload and the next one, in seconds.
fn reload_for(until_s: u32, servers: &[(&str, &str, &str, &str)], failed_max: f64) {
    let place = Place::quiet();
    place.write("x.toml", &experiment(servers, until_s));
    let document = place.run("run x.toml --out r --format json").none_failed();
    let trials = trials(&place.path("r"));
    for (name, ..) in servers {
        let events = events_of(&trials, name);
        let event = &array(&events["events"])[0];
        assert_eq!(
            (&event["what"], &event["server"]),
            (&"reload".into(), &(*name).into())
        );
        let in_effect_s = number(&event["in_effect_after_s"]);
        assert!(in_effect_s < f64::from(until_s) - 0.5, "{event}");
        assert!(number(&event["back_s"]) >= f64::from(until_s), "{event}");
        assert!(number(&event["during"]["requests"]) > 20.0, "{event}");
        assert!(number(&events["failed"]) <= failed_max, "{name}: {events}");
        for memory in ["memory_before_bytes", "memory_after_bytes"] {
            assert!(number(&events[memory]) > 50_000.0, "{name}: {events}");
        }
        // If other work takes the CPUs, the trials may be spoilt.
        if document["trials"]["invalid"] != 0 {
            continue;
        }
        let row = find(array(&document["table"]), "subject", name);
        let row = &row["events"];
        assert_eq!(
            (&row["reloads"], &row["not_in_effect"]),
            (&row["trials"], &0.into())
        );
    }
    let summary = place.read("r/summary.md");
    let is_spoilt = document["trials"]["invalid"] != 0;
    assert!(
        is_spoilt || summary.contains("in effect after"),
        "{summary}"
    );
    assert!(place.left().is_empty(), "{:?}", place.left());
}

pub(super) fn is_installed(recipe: &str) -> bool {
    let recipes = experiment::Recipes::embedded().unwrap();
    installed(recipes.get(recipe).unwrap()).is_some()
}

#[test]
fn the_balancer_reloads_under_load_without_a_failed_request() {
    let http = "mode = \"http\"";
    let servers = [
        ("tcp", "balance", "", "connect_timeout_ms = 1000"),
        ("http", "balance", http, "check = true"),
    ];
    reload(&servers, 0.0);
}

#[test]
fn nginx_reloads_under_load_with_a_changed_parameter() {
    if is_installed("nginx") {
        let params = "extra = [\"add_header X-Changed yes;\"]";
        reload(&[("nginx", "nginx", "upstream_keepalive = 8", params)], 0.0);
    }
}

#[test]
fn other_servers_reload_under_load() {
    let others = [
        ("haproxy", "haproxy", "", "timeout_s = 30"),
        ("haproxy_tcp", "haproxy", "mode = \"tcp\"", "timeout_s = 30"),
        ("apache", "apache", "", "timeout_s = 30"),
        ("caddy", "caddy", "", "proxy_timeout_s = 30"),
        ("envoy", "envoy", "", "proxy_timeout_s = 30"),
        (
            "traefik",
            "traefik",
            "throttle_ms = 100",
            "proxy_timeout_s = 30",
        ),
        ("lighttpd", "lighttpd", "", "max_keepalive_requests = 10"),
        ("nghttpx", "nghttpx", "", "proxy_timeout_s = 30"),
        ("h2o", "h2o", "", "proxy_timeout_s = 30"),
        ("pingora", "pingora", "", "proxy_timeout_s = 30"),
        ("stream", "nginx-stream", "", "connect_timeout_s = 3"),
    ];
    let here: Vec<_> = others
        .into_iter()
        .filter(|one| is_installed(one.1))
        .collect();
    if !here.is_empty() {
        // Some servers close their listening sockets for a moment.
        reload(&here, 100.0);
    }
}

/// Its manager tells it of changes every five seconds.
#[test]
fn traffic_server_reloads_under_load_in_its_own_time() {
    if is_installed("trafficserver") {
        let with = "config_update_ms = 100";
        let server = ("ats", "trafficserver", with, "proxy_timeout_s = 30");
        reload_for(8, &[server], 0.0);
    }
}

#[test]
fn back_ends_are_restarted_one_after_the_other() {
    let place = Place::quiet();
    let text = include_str!("reloads/rolling.toml");
    place.write("x.toml", text);
    place.run("run x.toml --out r --format json").none_failed();
    let trials = trials(&place.path("r"));
    let events = events_of(&trials, "lb");
    let each = array(&events["events"]);
    let names: Vec<&Value> = each.iter().map(|event| &event["server"]).collect();
    assert_eq!(names, ["two", "one"]);
    let (first, second) = (&each[0], &each[1]);
    let gap_s = number(&second["at_s"]) - number(&first["back_s"]);
    assert!(number(&first["at_s"]) >= 0.5 && gap_s >= 0.5, "{events}");
    assert!(second["back_s"].is_number(), "{events}");
    // One back end is always running, and requests in flight at the other are sent again.
    assert!(number(&events["failed"]) < 10.0, "{events}");
    assert!(place.left().is_empty(), "{:?}", place.left());
}
