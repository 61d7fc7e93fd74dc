//! What the proxies of today are told in their configurations.

use std::path::Path;

use super::rules::{context, file};
use crate::support::recipes;
use experiment::describe::RecipeDescription;
use experiment::manifest::Value;
use experiment::recipe::ReloadState;

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
