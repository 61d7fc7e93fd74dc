//! The proxies of today accept the configurations that their recipes give.
//!
//! Traefik and nghttpx check a configuration only at their start: the end-to-end tests start them.

use std::path::Path;

use super::installed::{accepted, accepted_with_tls, tls_params};
use super::rules::{context, file, text};
use crate::support::recipes;
use experiment::describe::RecipeDescription;
use experiment::manifest::Value;
use experiment::recipe::ReloadState;

const ON: Value = Value::Boolean(true);
const OFF: Value = Value::Boolean(false);
const ENVOY: [&str; 5] = [
    "--mode",
    "validate",
    "--disable-hot-restart",
    "--config-path",
    "DIR/envoy.yaml",
];

#[test]
fn envoy_accepts_all_that_it_can_be() {
    accepted("envoy", &[], true, &ENVOY);
    for balance in ["round_robin", "least_request", "random"] {
        let all = [
            ("balance", text(balance)),
            ("keepalive_requests", Value::Integer(1000)),
            ("upstream_keepalive", OFF),
            ("own_headers", OFF),
            ("websocket", ON),
            ("http2", ON),
            ("upstream_http2", ON),
            ("access_log", ON),
            ("routes", Value::Integer(3)),
            ("rate_limit_per_s", Value::Integer(515)),
        ];
        accepted("envoy", &all, true, &ENVOY);
    }
    for params in tls_params() {
        accepted_with_tls("envoy", &params, true, &ENVOY);
    }
    let key = [("tls", ON), ("upstream_http2", ON)];
    accepted_with_tls("envoy", &key, true, &ENVOY);
}

#[test]
fn envoy_reads_what_a_reload_changes_from_files_of_their_own() {
    let recipes = recipes();
    let envoy = recipes.get("envoy").unwrap();
    let mut with = context(envoy, Path::new("/d"), &[]);
    let whole = envoy.render(&with).unwrap();
    assert!(file(&whole, "envoy.yaml").contains("port_value: 8081"));
    with.reload = ReloadState {
        is_expected: true,
        number: 2,
    };
    let parts = envoy.render(&with).unwrap();
    assert!(!file(&parts, "envoy.yaml").contains("port_value"));
    assert!(file(&parts, "clusters.yaml").contains("port_value: 8081"));
    let listeners = file(&parts, "listeners.yaml");
    assert!(listeners.contains("key: X-Weigh-Reload"), "{listeners}");
}

/// Envoy reads the interval in whole milliseconds, and accepts none below 50.
#[test]
fn envoy_has_exactly_the_rate_limit_that_is_declared() {
    let envoy = recipes().get("envoy").unwrap();
    for limit in [1, 7, 19, 20, 500, 507, 510, 512, 515, 1_000_000] {
        let params = [("rate_limit_per_s", Value::Integer(limit))];
        let whole = envoy.render(&context(envoy, Path::new("/d"), &params));
        let listener = file(&whole.unwrap(), "envoy.yaml");
        let of = |key: &str| {
            let line = listener
                .lines()
                .find_map(|one| one.trim().strip_prefix(key));
            line.unwrap_or_else(|| panic!("{key}: {listener}"))
        };
        let tokens: i64 = of("tokens_per_fill: ").parse().unwrap();
        let interval = of("fill_interval: ").strip_suffix('s').unwrap();
        let interval_s: f64 = interval.parse().unwrap();
        let ms = (interval_s * 1e3).round();
        assert_eq!(ms / 1e3, interval_s, "{limit}: {interval}");
        assert!((50.0..=1_000.0).contains(&ms), "{limit}: {interval}");
        assert_eq!(tokens * 1_000, limit * ms as i64, "{interval}");
        assert_eq!(of("max_tokens: "), tokens.to_string());
    }
}

#[test]
fn h2o_accepts_all_that_it_can_be() {
    let check = ["-t", "-c", "DIR/h2o.yaml"];
    let all = [
        ("workers", Value::Integer(2)),
        ("upstream_keepalive", OFF),
        ("own_headers", OFF),
        ("websocket", ON),
        ("access_log", ON),
        ("routes", Value::Integer(3)),
    ];
    accepted("h2o", &[], true, &check);
    accepted("h2o", &all, true, &check);
    for version in ["any", "1.3"] {
        let tls = [
            ("tls", ON),
            ("tls_version", text(version)),
            ("tls_tickets", OFF),
            ("neverbleed", OFF),
        ];
        accepted_with_tls("h2o", &tls, true, &check);
    }
}

#[test]
fn traffic_server_accepts_all_that_it_can_be() {
    let check = ["--run-root=DIR", "-C", "verify_config"];
    let all = [
        ("upstream_keepalive", OFF),
        ("own_headers", OFF),
        ("http2", ON),
        ("access_log", ON),
        ("routes", Value::Integer(3)),
    ];
    accepted("trafficserver", &[], true, &check);
    accepted("trafficserver", &all, true, &check);
    for params in tls_params() {
        accepted_with_tls("trafficserver", &params, true, &check);
    }
}

#[test]
fn pingora_accepts_all_that_it_can_be() {
    let check = ["--check", "DIR/proxy.toml"];
    let all = [
        ("keepalive_requests", Value::Integer(9)),
        ("upstream_keepalive", Value::Integer(0)),
        ("upstream_http2", ON),
        ("http2", ON),
        ("access_log", ON),
        ("routes", Value::Integer(3)),
    ];
    accepted("pingora", &[], true, &check);
    accepted("pingora", &all, true, &check);
    for http2 in [ON, OFF] {
        let tls = [("tls", ON), ("http2", http2), ("tls_client_certs", ON)];
        accepted_with_tls("pingora", &tls, true, &check);
    }
}

/// The program has Pingora's version for its own, which a result shows.
#[test]
fn the_program_on_pingora_has_the_version_of_pingora() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../servers/pingora/program/Cargo.toml.in");
    let text = std::fs::read_to_string(path).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let own = manifest["package"]["version"].as_str().unwrap();
    let pinned = manifest["dependencies"]["pingora"]["version"].as_str();
    assert_eq!(pinned, Some(format!("={own}").as_str()));
}

#[test]
fn what_stays_as_it_is_by_itself_is_said_with_its_reason() {
    let recipes = recipes();
    for name in [
        "envoy",
        "h2o",
        "nghttpx",
        "pingora",
        "traefik",
        "trafficserver",
    ] {
        let described = RecipeDescription::of(recipes.get(name).unwrap());
        assert!(described.defaults.len() > 3, "{name}");
        let page = described.page().text("recipe", 100);
        for (what, why) in &described.defaults {
            let first = why.split(' ').next().unwrap();
            assert!(
                page.contains(what) && page.contains(first),
                "{name}: {page}"
            );
        }
    }
}

#[test]
fn traefik_has_as_many_routes_as_asked_for() {
    let recipes = recipes();
    let traefik = recipes.get("traefik").unwrap();
    let render = |params: &[(&str, Value)]| {
        let rendered = traefik.render(&context(traefik, Path::new("/d"), params));
        file(&rendered.unwrap(), "dynamic.yaml")
    };
    let routes = render(&[("routes", Value::Integer(2))]);
    assert!(routes.contains("PathPrefix(`/r2/`)") && !routes.contains("/r3/"));
    let none = render(&[("upstream_keepalive", Value::Integer(0))]);
    assert!(!none.contains("/r1/") && none.contains("maxIdleConnsPerHost: -1"));
}
