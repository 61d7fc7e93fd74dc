//! HTTP/2, HTTP/3 and TLS, over all commands that speak them.

use std::collections::BTreeSet;

use crate::common::{Place, trials};

mod http2;
mod http3;
mod tls;

/// What the subjects of a run have agreed on: name, connections, protocol, and whether it was QUIC.
fn agreed(place: &Place) -> BTreeSet<(String, u64, String, bool)> {
    let subject = |trial: serde_json::Value| {
        let load = &trial["outcome"]["done"]["throughput"];
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        (
            text(&trial["subject"]),
            load["connections"].as_u64().unwrap(),
            text(&load["tls"]["negotiated"][0]["alpn"]),
            load["quic"].is_object(),
        )
    };
    trials(&place.path("r")).into_iter().map(subject).collect()
}
