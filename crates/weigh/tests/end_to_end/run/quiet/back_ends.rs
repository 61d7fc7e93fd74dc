//! What back ends count by time: rate limits, expiries of cached answers, weights.

use serde_json::Value;

use crate::common::{Place, array, find, has, number};

/// A limiter that declares another limit than it has.
const LIMITER: &str = include_str!("back_ends/limiter.toml");

#[test]
fn a_limiter_that_lets_too_many_through_is_found_and_an_exact_one_is_not() {
    let place = Place::quiet();
    place.recipe("limiter", LIMITER);
    let text = r#"title = "limits"
[servers.exact]
recipe = "limiter"
with = { rate_limit_per_s = 200, real = "200" }
[servers.leaky]
recipe = "limiter"
with = { rate_limit_per_s = 200, real = "226.2" }
[subjects]
exact = "http://exact/"
leaky = "http://leaky/"
[load]
rate = "400/s"
connections = 8
threads = 1
[design]
alternate = false
primary = ["accepted"]
blocks = 3
warmup = "500ms"
latency_window = "3s"
"#;
    place.write("x.toml", text);
    let document = place
        .run("run x.toml --recipes recipes --format json --out r")
        .none_failed();
    let limits = array(&document["limits"]);
    let of = |subject| find(limits, "subject", subject);
    let excess = |subject| number(&of(subject)["excess"]["value"]);
    assert!((excess("leaky") - 0.131).abs() < 0.01, "{}", of("leaky"));
    assert!(excess("exact").abs() < 0.01, "{}", of("exact"));
    assert_eq!(of("leaky")["finding"], "too_many");
    assert_ne!(of("exact")["finding"], "too_many");
    assert_eq!(array(&of("leaky")["windows"]).len(), 3, "10 s did not pass");
    let sentence = of("leaky")["sentence"].as_str().unwrap();
    has(
        sentence,
        "`leaky` lets too many requests through: 226/s, a deviation of +13",
    );
    has(
        &place.run("report r").expect(0).out,
        "lets too many requests through",
    );
    // What was refused is neither an error nor a hit of a cache.
    let row = find(array(&document["table"]), "subject", "leaky");
    assert_eq!(number(&row["errors"]["status"]), 0.0, "{row}");
    assert!(
        array(&document["shares"]).is_empty(),
        "{}",
        document["shares"]
    );
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn an_expiry_is_one_request_where_one_renews_for_all_and_many_elsewhere() {
    if !super::reloads::is_installed("nginx") {
        return;
    }
    let place = Place::quiet();
    let text = r#"title = "expiries"
[servers.origin]
recipe = "origin"
with = { delay = "200ms" }
[servers.plain]
recipe = "nginx"
upstreams = ["origin"]
with = { cache = true, cache_valid_s = 1 }
[servers.renewed]
recipe = "nginx"
upstreams = ["origin"]
with = { cache = true, cache_valid_s = 1, extra = ["proxy_cache_use_stale updating;"] }
[subjects]
plain = "http://plain/"
renewed = "http://renewed/"
[load]
rate = "100/s"
connections = 60
threads = 1
[expect]
every_server = false
[design]
alternate = false
blocks = 1
warmup = "500ms"
latency_window = "9s"
"#;
    place.write("x.toml", text);
    let document = place.run("run x.toml --format json --out r").none_failed();
    let expiries = array(&document["expiries"]);
    let of = |subject| find(expiries, "subject", subject);
    let requests = |subject| number(&of(subject)["requests"]["value"]);
    // Those that come within 200 ms.
    assert!((5.0..=40.0).contains(&requests("plain")), "{}", of("plain"));
    assert!(requests("renewed") < 1.5, "{}", of("renewed"));
    let lasts_s = number(&of("renewed")["lasts_s"]["value"]);
    // nginx counts whole seconds.
    assert!((1.0..=2.5).contains(&lasts_s), "{}", of("renewed"));
}

#[test]
fn shares_are_those_of_the_weights_that_a_balancer_declares() {
    let place = Place::quiet();
    let text = r#"title = "weights"
[servers.one]
recipe = "origin"
[servers.two]
recipe = "origin"
[servers.weighed]
recipe = "balance"
upstreams = ["one", "two"]
with = { mode = "http", weights = ["3", "1"] }
[servers.even]
recipe = "balance"
upstreams = ["one", "two"]
with = { mode = "http" }
[subjects]
weighed = "http://weighed/"
even = "http://even/"
[load]
rate = "400/s"
connections = 8
threads = 1
[design]
alternate = false
blocks = 1
warmup = "200ms"
latency_window = "3s"
"#;
    place.write("x.toml", text);
    let document = place.run("run x.toml --format json --out r").none_failed();
    let shares = array(&document["shares"]);
    let of = |subject: &str, server: &str| -> Value {
        let one = find(shares, "subject", subject);
        find(array(&one["back_ends"]), "server", server).clone()
    };
    for (subject, server, intended) in [
        ("weighed", "one", 0.75),
        ("weighed", "two", 0.25),
        ("even", "one", 0.5),
    ] {
        let one = of(subject, server);
        assert_eq!(number(&one["intended"]), intended, "{one}");
        assert!((number(&one["share"]) - intended).abs() < 0.02, "{one}");
        assert_eq!(one["is_off"], false, "{one}");
    }
}
