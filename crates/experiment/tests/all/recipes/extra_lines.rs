//! Lines and parameters that a user adds to a configuration.

use std::path::Path;
use testing::Text as _;

use super::rules::{context, file, is_of_users, text};
use crate::support::recipes;
use experiment::manifest::Value;

#[test]
fn settings_that_extra_lines_may_override_are_unknown() {
    let given = |name: &str, params: &[(&str, Value)]| {
        let recipe = recipes().get(name).unwrap();
        let out = recipe.render(&context(recipe, Path::new("/d"), params));
        out.unwrap().settings
    };
    let lines = |line: &str| Value::List(vec![line.to_owned()]);
    let plain = given("nginx", &[]);
    assert_eq!(plain["access_log"], "off");
    let extra = given("nginx", &[("extra", lines("access_log {dir}/a.log;"))]);
    for setting in ["access_log", "keepalive_client", "compression", "tls"] {
        assert_eq!(extra[setting], "unknown (extra lines)", "{setting}");
    }
    // Lines of a `server` block do not reach it.
    assert_eq!(extra["workers"], "1");
    let global = given("haproxy", &[("extra_global", lines("nbthread 4"))]);
    assert_eq!(global["workers"], "unknown (extra_global lines)");
    assert_eq!(global["compression"], "off");
    let own = given("balance", &[("crossroads", text("service x {}"))]);
    assert_eq!(own["access_log"], "unknown (crossroads)");
}

#[test]
fn every_parameter_that_goes_into_a_configuration_says_what_it_overrides() {
    for recipe in recipes().iter().filter(|one| !is_of_users(&one.name)) {
        for param in &recipe.params {
            let is_free = param.name.starts_with("extra")
                || ["options", "crossroads"].contains(&param.name.as_str());
            assert_eq!(
                is_free,
                !param.overrides.is_empty(),
                "{} {}",
                recipe.name,
                param.name
            );
        }
    }
}

#[test]
fn nginx_reaches_php_by_the_socket_that_php_listens_on() {
    let dir = |path: &'static str| Path::new(path);
    let given = |name: &str, at: &'static str, params: &[(&str, Value)]| {
        let recipe = recipes().get(name).unwrap();
        recipe.render(&context(recipe, dir(at), params)).unwrap()
    };
    let php = given("php-fpm", "/behind", &[("socket", Value::Boolean(true))]);
    let php = file(&php, "fpm.conf");
    assert!(php.contains("listen = \"/behind/php.sock\""), "{php}");
    // The port stays, for the check whether it is up.
    assert!(php.contains("listen = 127.0.0.1:8080"), "{php}");
    let socket = [
        ("upstream_protocol", text("fastcgi")),
        ("upstream_socket", text("php.sock")),
    ];
    let nginx = file(&given("nginx", "/d", &socket), "nginx.conf");
    nginx.has("server unix:/behind/php.sock max_fails");
    let port = file(&given("php-fpm", "/d", &[]), "fpm.conf");
    port.lacks("php.sock");
    port.lacks("[port]");
}

#[test]
fn lines_of_ones_own_know_the_folder_of_the_server() {
    let recipe = recipes().get("nginx").unwrap();
    let extra = Value::List(vec!["access_log {dir}/a.log; # {dirs}".to_owned()]);
    let out = recipe.render(&context(recipe, Path::new("/d"), &[("extra", extra)]));
    let conf = file(&out.unwrap(), "nginx.conf");
    assert!(conf.contains("access_log /d/a.log; # {dirs}"), "{conf}");
}
