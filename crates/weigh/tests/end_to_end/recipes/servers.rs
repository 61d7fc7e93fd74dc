//! Each recipe of a program from a package: started, asked, stopped, and nothing left of it.

use crate::common::has;
use crate::common::started::{LARGE_BYTES, Started, Upstream, ask};

/// What holds of every server over two upstreams that takes them in turn: answers come from both,
/// and a large one comes whole.
fn passes_on(server: &Started, upstreams: &[&Upstream; 2]) {
    for upstream in upstreams {
        upstream.taken();
    }
    let mut bodies = Vec::new();
    for _ in 0..4 {
        let answered = ask(server.address, "/");
        assert_eq!(answered.status, 200, "{}", answered.head);
        bodies.push(answered.body);
    }
    bodies.sort();
    assert_eq!(bodies, ["one", "one", "two", "two"]);
    let large = ask(server.address, "/large");
    assert_eq!((large.status, large.body.len()), (200, LARGE_BYTES));
}

/// Starts a recipe over two upstreams, sees it pass requests on, and stops it.
fn balances(recipe: &str, params: &str) -> Option<[(u64, usize); 2]> {
    let (one, two) = (Upstream::start("one"), Upstream::start("two"));
    let server = Started::start(recipe, params, &[&one, &two])?;
    passes_on(&server, &[&one, &two]);
    server.stop();
    Some([&one, &two].map(|upstream| {
        let (connections, heads) = upstream.taken();
        (connections, heads.len())
    }))
}

/// Connections and requests at both upstreams together.
fn sum(counts: [(u64, usize); 2]) -> (u64, usize) {
    (counts[0].0 + counts[1].0, counts[0].1 + counts[1].1)
}

#[test]
fn nginx_serves_files_and_a_fixed_answer() {
    let Some(server) = Started::start("nginx", "", &[]) else {
        return;
    };
    let page = ask(server.address, "/");
    has(&page.body, "weigh: it works");
    let hello = ask(server.address, "/hello.txt");
    assert_eq!((hello.status, hello.body.as_str()), (200, "Hello, world!"));
    assert_eq!(ask(server.address, "/absent").status, 404);
    server.stop();

    let words = r#"it costs "$5"; \o/ {x}"#;
    let params = format!("answer = {words}, workers = 2");
    let server = Started::start("nginx", &params, &[]).unwrap();
    let fixed = ask(server.address, "/any/thing");
    assert_eq!((fixed.status, fixed.body.as_str()), (200, words));
    server.stop();
}

#[test]
fn nginx_opens_upstream_connections_for_each_request_unless_it_keeps_them() {
    let Some(counts) = balances("nginx", "") else {
        return;
    };
    assert_eq!(sum(counts), (5, 5));
    let keep = "upstream_keepalive = 8";
    let (connections, requests) = sum(balances("nginx", keep).unwrap());
    assert_eq!(requests, 5);
    assert!(connections <= 2, "{connections} connections for {requests}");
}

#[test]
fn nginx_asks_its_upstream_once_for_what_it_keeps() {
    let one = Upstream::start("one");
    let params = "cache = true, access_log = true";
    let Some(mut server) = Started::start("nginx", params, &[&one]) else {
        return;
    };
    one.taken();
    let first = ask(server.address, "/page");
    has(&first.head, "x-cache-status: miss");
    let second = ask(server.address, "/page");
    has(&second.head, "x-cache-status: hit");
    assert_eq!((first.body.as_str(), second.body.as_str()), ("one", "one"));
    assert_eq!(one.taken().1.len(), 1);
    server.until_logged("access.log", "GET /page HTTP/1.1");
    server.stop();
}

#[test]
fn caddy_serves_files_and_a_fixed_answer_and_balances() {
    let Some(server) = Started::start("caddy", "", &[]) else {
        return;
    };
    let hello = ask(server.address, "/hello.txt");
    assert_eq!((hello.status, hello.body.as_str()), (200, "Hello, world!"));
    assert_eq!(ask(server.address, "/absent").status, 404);
    server.stop();

    let words = r#"it costs "$5"; \o/ {x}"#;
    let params = format!("answer = {words}, access_log = true");
    let mut server = Started::start("caddy", &params, &[]).unwrap();
    let fixed = ask(server.address, "/any/thing");
    assert_eq!((fixed.status, fixed.body.as_str()), (200, words));
    server.until_logged("access.log", "/any/thing");
    server.stop();

    let (connections, requests) = sum(balances("caddy", "").unwrap());
    assert_eq!(requests, 5);
    assert!(connections <= 2, "{connections} connections for {requests}");
    let close = "upstream_keepalive = 0";
    assert_eq!(sum(balances("caddy", close).unwrap()), (5, 5));
}

#[test]
fn envoy_and_traefik_balance_and_log_when_asked_to() {
    for (name, close) in [
        ("envoy", "upstream_keepalive = false"),
        ("traefik", "upstream_keepalive = 0"),
    ] {
        let (connections, requests) = sum(balances(name, "").unwrap());
        assert_eq!(requests, 5, "{name}");
        assert!(connections <= 2, "{name}: {connections} connections");
        let (connections, requests) = sum(balances(name, close).unwrap());
        assert_eq!((connections, requests), (5, 5), "{name}");

        let one = Upstream::start("one");
        let params = "access_log = true, routes = 2";
        let mut server = Started::start(name, params, &[&one]).unwrap();
        one.taken();
        let answered = ask(server.address, "/r2/page");
        assert_eq!((answered.status, answered.body.as_str()), (200, "one"));
        has(&one.taken().1[0], "get /page http/1.1");
        server.until_logged("access.log", "/r2/page");
        server.stop();
    }
}

#[test]
fn nghttpx_traffic_server_and_pingora_balance_and_log_when_asked_to() {
    for (name, close) in [
        ("nghttpx", None),
        ("trafficserver", Some("upstream_keepalive = false")),
        ("pingora", Some("upstream_keepalive = 0")),
    ] {
        let Some(counts) = balances(name, "") else {
            continue;
        };
        let (connections, requests) = sum(counts);
        assert_eq!(requests, 5, "{name}");
        // These clients end after each answer, and nghttpx then keeps its connection only at times.
        if let Some(close) = close {
            assert!(connections <= 2, "{name}: {connections} connections");
            assert_eq!(sum(balances(name, close).unwrap()), (5, 5), "{name}");
        }
    }
    // nghttpx does not rewrite paths.
    for (name, routes, path) in [
        ("nghttpx", "", "/page"),
        ("h2o", ", routes = 2", "/r2/page"),
        ("trafficserver", ", routes = 2", "/r2/page"),
        ("pingora", ", routes = 2", "/r2/page"),
    ] {
        let one = Upstream::start("one");
        let params = format!("access_log = true{routes}");
        let Some(mut server) = Started::start(name, &params, &[&one]) else {
            continue;
        };
        one.taken();
        let answered = ask(server.address, path);
        assert_eq!((answered.status, answered.body.as_str()), (200, "one"));
        has(&one.taken().1[0], "get /page http/1.1");
        server.until_logged("access.log", path);
        server.stop();
    }
}

#[test]
fn h2o_keeps_connections_to_its_upstream_unless_it_is_told_not_to() {
    for (params, expected) in [
        ("own_headers = false", 1),
        ("upstream_keepalive = false", 4),
    ] {
        let one = Upstream::start("one");
        let Some(server) = Started::start("h2o", params, &[&one]) else {
            return;
        };
        one.taken();
        for _ in 0..4 {
            assert_eq!(ask(server.address, "/page").body, "one");
        }
        let (connections, heads) = one.taken();
        // One may be left from the question whether it is up.
        assert!(
            (expected - 1..=expected).contains(&connections),
            "{connections}"
        );
        assert_eq!(heads.len(), 4);
        server.stop();
    }
}

#[test]
fn the_stream_module_of_nginx_relays() {
    let params = "reuseport = true";
    let Some(counts) = balances("nginx-stream", params) else {
        return;
    };
    assert_eq!(sum(counts), (5, 5));
}

#[test]
fn haproxy_relays_bytes_and_proxies_messages() {
    let tcp = "mode = tcp, splice_auto = true, access_log = true";
    let Some(counts) = balances("haproxy", tcp) else {
        return;
    };
    assert_eq!(sum(counts), (5, 5));
    let http = "http_reuse = always, threads = 2";
    balances("haproxy", http).unwrap();
}

#[test]
fn haproxy_probes_its_upstreams_and_logs_requests_when_asked_to() {
    let one = Upstream::start("one");
    let params = "check = true, check_path = /alive, check_interval_ms = 500, access_log = true";
    let Some(mut server) = Started::start("haproxy", params, &[&one]) else {
        return;
    };
    crate::common::wait_until("it is probed", crate::common::LIMIT, || {
        one.taken().1.iter().any(|head| head.contains("get /alive"))
    });
    assert_eq!(ask(server.address, "/page").body, "one");
    server.until_logged("output.log", "GET /page HTTP/1.1");
    server.stop();
}

#[test]
fn pen_relays_to_all_in_turn_or_keeps_a_client_where_it_was() {
    let Some(counts) = balances("pen", "") else {
        return;
    };
    assert_eq!(sum(counts), (5, 5));
    let (one, two) = (Upstream::start("one"), Upstream::start("two"));
    let params = "sticky = true";
    let server = Started::start("pen", params, &[&one, &two]).unwrap();
    let first = ask(server.address, "/").body;
    for _ in 0..4 {
        assert_eq!(ask(server.address, "/").body, first);
    }
    server.stop();
}

#[test]
fn squid_in_front_of_upstreams_keeps_answers_only_when_asked_to() {
    let Some((_, requests)) = balances("squid", "").map(sum) else {
        return;
    };
    assert_eq!(requests, 5);
    let one = Upstream::start("one");
    let params = "cache = true, cache_valid_min = 5, access_log = true";
    let mut server = Started::start("squid", params, &[&one]).unwrap();
    one.taken();
    for _ in 0..3 {
        assert_eq!(ask(server.address, "/page").body, "one");
    }
    assert_eq!(one.taken().1.len(), 1);
    server.until_logged("access.log", "TCP_MEM_HIT");
    server.stop();
}

#[test]
fn squid_without_upstreams_is_a_forward_proxy() {
    let one = Upstream::start("one");
    let Some(server) = Started::start("squid", "", &[]) else {
        return;
    };
    let target = format!("http://{}/page", one.address);
    for _ in 0..2 {
        let answered = ask(server.address, &target);
        assert_eq!((answered.status, answered.body.as_str()), (200, "one"));
    }
    assert_eq!(one.taken().1.len(), 2);
    server.stop();
}

#[test]
fn varnish_asks_its_upstream_once_unless_its_cache_is_off() {
    let off = "cache = false";
    let Some((_, requests)) = balances("varnish", off).map(sum) else {
        return;
    };
    assert_eq!(requests, 5);
    let one = Upstream::start("one");
    let server = Started::start("varnish", "", &[&one]).unwrap();
    one.taken();
    for _ in 0..3 {
        let answered = ask(server.address, "/page");
        assert_eq!((answered.status, answered.body.as_str()), (200, "one"));
    }
    assert_eq!(one.taken().1.len(), 1);
    server.stop();
}
