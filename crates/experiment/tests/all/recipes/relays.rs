//! What recipes say of traffic that lasts.

use std::collections::BTreeMap;

use crate::support::{good, parse, recipes, shown};
use experiment::HttpVersion;
use experiment::manifest::Value;
use experiment::recipe::{Recipe, Relay, Upstreams};
use readings::TrafficKind;

const ALL: [(TrafficKind, HttpVersion); 3] = [
    (TrafficKind::WebSocket, HttpVersion::Http1),
    (TrafficKind::WebSocket, HttpVersion::Http2),
    (TrafficKind::Grpc, HttpVersion::Http2),
];

/// A parameter and a value, as `[relays]` writes them.
fn given(recipe: &Recipe, text: &str) -> (String, Value) {
    let (name, value) = text.split_once(" = ").expect(text);
    let param = recipe.param(name);
    assert!(param.is_some(), "{}: {text}", recipe.name);
    let value = match value.strip_prefix('"') {
        Some(text) => Value::Text(text.trim_end_matches('"').to_owned()),
        None => Value::Boolean(value == "true"),
    };
    (name.to_owned(), value)
}

#[test]
fn each_parameter_that_a_recipe_asks_for_makes_it_relay() {
    let mut asked = 0;
    for recipe in recipes().iter() {
        for (kind, http) in ALL {
            let mut params = BTreeMap::new();
            // Several may be needed, one after the other.
            for _ in 0..3 {
                let Ok(filled) = recipe.fill(&params) else {
                    break;
                };
                let relay = recipe.relays(kind, http, &filled).unwrap();
                let Relay::With(text) = relay else { break };
                assert_ne!(recipe.upstreams, Upstreams::None, "{}", recipe.name);
                let (name, value) = given(recipe, &text);
                assert_eq!(params.insert(name, value), None, "{}: {text}", recipe.name);
                asked += 1;
            }
            if let Ok(filled) = recipe.fill(&params) {
                let relay = recipe.relays(kind, http, &filled).unwrap();
                assert!(matches!(relay, Relay::Yes | Relay::No), "{relay:?}");
            }
        }
    }
    assert!(asked >= 8, "{asked}");
}

fn text(recipe: &str, with: &str, load: &str) -> String {
    format!(
        "title = \"x\"\n[servers.back]\nrecipe = \"origin\"\n[servers.front]\nrecipe = \"{recipe}\"\n\
         upstreams = [\"back\"]\nwith = {{ {with} }}\n[subjects]\nproxy = \"http://front/\"\n\
         direct = \"http://back/\"\n[load]\n{load}\n"
    )
}

#[test]
fn traffic_that_a_server_does_not_relay_is_refused_before_the_run() {
    let websocket = "websocket = true";
    let both = "websocket = true\nhttp = \"2\"";
    let grpc = "grpc = \"weigh.v1.Echo/Unary\"";
    shown("relay-never", &text("lighttpd", "", grpc));
    shown("relay-with", &text("nginx", "", websocket));
    shown(
        "relay-http-2",
        &text("nginx", "websocket = true, http2 = true", both),
    );
    let relayed = [
        ("nginx", "websocket = true", websocket),
        ("nginx", "upstream_protocol = \"grpc\", http2 = true", grpc),
        ("haproxy", "", websocket),
        ("lighttpd", "", "events = true"),
    ];
    for (recipe, with, load) in relayed {
        good(parse(&text(recipe, with, load)));
    }
    // A server that has no upstreams is asked itself.
    let own = text("lighttpd", "", grpc).replace("upstreams = [\"back\"]\n", "");
    good(parse(&own));
}
