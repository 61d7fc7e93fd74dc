//! What the owner of a native configuration relies on.

use std::path::Path;
use std::time::Duration;

use balance::config::model::{
    Check, Dispatch, Ejection, HashKey, Inspect, ProxyVersion, ServiceKind, Weight,
};
use balance::config::{Syntax, parse_text, write};
use balance::health::State;
use balance::{Config, ConfigError};

use super::{assert_said, mistakes_of, rows};

fn parse(text: &str) -> Result<Config, ConfigError> {
    parse_text("balance.toml", text, Syntax::Native).map(|(config, _)| config)
}

fn good(text: &str) -> Config {
    match parse(text) {
        Ok(config) => config,
        Err(error) => panic!("{text}\n{:?}", miette::Report::new(error)),
    }
}

/// The mistakes as `line: message; help`.
fn mistakes(text: &str) -> Vec<String> {
    mistakes_of(parse(text).expect_err(text), "balance.toml")
}

#[test]
fn the_form_is_told_by_the_name() {
    for (name, form) in [
        ("a/b.toml", Syntax::Native),
        ("B.TOML", Syntax::Native),
        ("crossroads.conf", Syntax::Crossroads),
        ("toml", Syntax::Crossroads),
        ("", Syntax::Crossroads),
    ] {
        assert_eq!(Syntax::of(Path::new(name)), form, "{name}");
    }
}

#[test]
fn the_short_form_is_one_service_in_turn() {
    let config = good(
        "listen = \"127.0.0.1:8080\"\nupstreams = [\"127.0.0.1:1\", \"[::1]:2\"]\nthreads = 2\n\
         backlog = 64\nconnections = 100\nconnect_timeout_ms = 250",
    );
    let [service] = config.services.as_slice() else {
        panic!()
    };
    assert_eq!(service.listen, ["127.0.0.1:8080".parse().unwrap()]);
    assert_eq!(
        (
            config.threads,
            service.backlog,
            config.connections_per_thread
        ),
        (2, 64, 100)
    );
    assert_eq!(service.timeouts.connect, Duration::from_millis(250));
    assert_eq!(
        (service.kind, &service.dispatch),
        (ServiceKind::Tcp, &Dispatch::RoundRobin)
    );
    let backends: Vec<String> = service
        .backends
        .iter()
        .map(|one| format!("{} {}", one.name, one.address))
        .collect();
    assert_eq!(backends, ["upstream1 127.0.0.1:1", "upstream2 [::1]:2"]);
    let plain = good("listen = '127.0.0.1:0'\nupstreams = ['127.0.0.1:9']");
    let service = &plain.services[0];
    assert_eq!(
        (plain.threads, service.backlog, plain.connections_per_thread),
        (1, 4096, 8192)
    );
    assert_eq!(service.timeouts.connect, Duration::from_secs(5));
}

#[test]
fn all_that_crossroads_lacks_can_be_said() {
    let config = good(include_str!("native/all.toml"));
    assert_eq!((config.threads, config.connections_per_thread), (2, 100));
    let [web, db] = config.services.as_slice() else {
        panic!()
    };
    assert_eq!(web.listen.len(), 2);
    assert_eq!(
        web.kind,
        ServiceKind::Http {
            inspect: Inspect::FirstMessage
        }
    );
    assert_eq!(
        web.dispatch,
        Dispatch::PeakEwma {
            decay: Duration::from_secs(5)
        }
    );
    assert_eq!(
        web.check,
        Check::Http {
            path: "/health".to_owned(),
            host: Some("web".to_owned()),
            status: 204
        }
    );
    assert_eq!(
        web.ejection,
        Some(Ejection {
            failures: 3,
            duration: Duration::from_secs(10)
        })
    );
    assert_eq!(web.timeouts.client_idle, Duration::ZERO);
    assert_eq!(web.timeouts.client_body, Duration::from_secs(5));
    assert_eq!(web.timeouts.half_closed, Duration::from_secs(6));
    assert_eq!(web.trusted_proxies.len(), 2);
    assert_eq!(
        (web.resends, web.half_close, web.body_rate_min),
        (1, true, 1000)
    );
    assert_eq!(web.drain, Duration::from_secs(60));
    let [one, two] = web.backends.as_slice() else {
        panic!()
    };
    // The service's headers come before a back end's own.
    assert_eq!((one.header_edits.len(), two.header_edits.len()), (1, 2));
    assert_eq!(two.header_edits[1].value.to_string(), "%b");
    assert_eq!(two.weight, Weight::Share(3));
    assert_eq!(two.proxy_protocol_out, Some(ProxyVersion::V2));
    assert_eq!(two.initial_state, State::Down);
    assert_eq!(
        (db.kind, &db.dispatch),
        (ServiceKind::Tcp, &Dispatch::LeastConnections)
    );
    assert_eq!(db.backends[0].weight, Weight::Penalty(2));
}

#[test]
fn the_version_of_requests_is_that_of_the_service_or_the_back_end() {
    let config = good(
        r#"
[services.web]
listen = "127.0.0.1:8080"
kind = "http"
http = "2"

[services.web.backends]
one = "10.0.0.1:80"
two = { address = "10.0.0.2:80", http = "1.1" }
"#,
    );
    let versions: Vec<_> = config.services[0]
        .backends
        .iter()
        .map(|one| one.http.name())
        .collect();
    assert_eq!(versions, ["2", "1.1"]);
}

#[test]
fn every_mode_has_its_words() {
    let mode = |text: &str| {
        let text = format!(
            "[services.s]\nlisten = \"127.0.0.1:1\"\nkind = \"http\"\ndispatch = {text}\n\
             backends.a = \"127.0.0.1:2\""
        );
        good(&text).services.remove(0).dispatch
    };
    for (text, dispatch) in [
        ("\"round-robin\"", Dispatch::RoundRobin),
        ("{ mode = \"random\" }", Dispatch::Random),
        ("\"by-size\"", Dispatch::BySize { over: None }),
        (
            "{ mode = \"by-duration\", over = 7 }",
            Dispatch::ByDuration { over: Some(7) },
        ),
        ("\"by-order\"", Dispatch::ByOrder),
        ("\"by-client-ip\"", Dispatch::ByClientIp),
        ("\"weighted-round-robin\"", Dispatch::WeightedRoundRobin),
        (
            "\"consistent-hash\"",
            Dispatch::ConsistentHash {
                key: HashKey::ClientIp,
            },
        ),
        (
            "{ mode = \"consistent-hash\", key = \"cookie\", name = \"sid\" }",
            Dispatch::ConsistentHash {
                key: HashKey::Cookie("sid".to_owned()),
            },
        ),
        (
            "{ mode = \"consistent-hash\", key = \"path\" }",
            Dispatch::ConsistentHash { key: HashKey::Path },
        ),
    ] {
        assert_eq!(mode(text), dispatch);
    }
}

#[test]
fn a_weight_that_the_mode_does_not_use_is_a_warning() {
    let warnings = |mode: &str, weights: [&str; 2]| -> Vec<String> {
        let text = format!(
            "[services.s]\nlisten = \"127.0.0.1:1\"\ndispatch = \"{mode}\"\n\
             backends.a = {{ address = \"127.0.0.1:2\", {} }}\n\
             backends.b = {{ address = \"127.0.0.1:3\", {} }}",
            weights[0], weights[1]
        );
        let (_, warnings) = parse_text("b.toml", &text, Syntax::Native).unwrap();
        warnings.iter().map(ToString::to_string).collect()
    };
    for mode in ["by-order", "by-client-ip"] {
        let found = warnings(mode, ["weight = 1", "weight = 2"]);
        let start = format!("b.toml:5:41: `weight` is ignored: the dispatch mode `{mode}` ");
        assert!(
            found.len() == 1 && found[0].starts_with(&start),
            "{found:?}"
        );
        assert!(warnings(mode, ["weight = 1", "penalty = 1"]).is_empty());
    }
    let penalties = ["penalty = 2", "weight = 2"];
    assert!(warnings("round-robin", penalties)[0].contains("`penalty` is ignored"));
    assert!(warnings("round-robin", ["penalty = 1", "weight = 2"]).is_empty());
    for mode in ["random", "weighted-round-robin", "least-connections"] {
        assert!(warnings(mode, penalties).is_empty(), "{mode}");
    }
}

#[test]
fn mistakes_are_shown_in_their_lines_with_what_to_write() {
    let service = "[services.s]\nlisten = \"127.0.0.1:1\"\n";
    let end = "backends.a = \"127.0.0.1:2\"\n";
    // A line of the service, and what is said.
    let cases = include_str!("native/service_mistakes.txt");
    for [line, says] in rows(cases) {
        let found = mistakes(&format!("{service}{line}\n{end}"));
        assert_said(&found, &says, &line);
    }
    // A whole file, and what is said.
    let cases = include_str!("native/file_mistakes.txt");
    for [text, says] in rows(cases) {
        assert_said(&mistakes(&text), &says, &text);
    }
}

#[test]
fn what_is_printed_says_every_default() {
    let text = write::toml(&good("listen = '127.0.0.1:0'\nupstreams = ['127.0.0.1:1']"));
    let lines = include_str!("native/defaults.toml");
    for line in lines.lines() {
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
}
