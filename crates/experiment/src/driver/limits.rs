//! What a driver cannot do.

use super::Driver;
use crate::spec::{HttpVersion, LoadSpec, Rate};

/// A setting of the load that a driver cannot do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The key of `[load]`.
    pub key: &'static str,
    /// What it cannot do, in words.
    pub what: String,
    /// Why, or what to do instead, where its file says so.
    pub why: Option<String>,
}

/// The names that `[cannot]` may have: keys of `[load]`, and those of [`NO_KEEPALIVE`].
pub(crate) const WORDS: [&str; 19] = [
    "threads",
    "keepalive",
    "no_keepalive",
    "no_keepalive_multiplexed",
    "requests_per_connection",
    "rate",
    "method",
    "headers",
    "body",
    "timeout",
    "http",
    "streams",
    "quic_congestion",
    "tls_version",
    "tls_suites",
    "tls_groups",
    "tls_resumption",
    "tls_ca",
    "tls_client_key",
];

/// The names for a connection per request: over HTTP/1.1, and over HTTP/2 and HTTP/3.
pub(crate) const NO_KEEPALIVE: [&str; 2] = ["no_keepalive", "no_keepalive_multiplexed"];

impl Driver {
    /// What of a load it cannot do; empty when it can do all.
    pub fn refusals(&self, load: &LoadSpec) -> Vec<Refusal> {
        let mut found = Vec::new();
        let usual = LoadSpec::default();
        let mut refuse = |key, word: &str, what: String| {
            found.push(Refusal {
                key,
                what,
                why: self.cannot.get(word).cloned(),
            });
        };
        if let Some(most) = self.connections_max
            && load.connections > most
        {
            let what = format!("it supports at most {most} connections");
            refuse("connections", "connections", what);
        }
        if let Some(threads) = load.threads.filter(|count| *count > 1) {
            let over = load.connections % threads;
            if !self.can("threads") {
                refuse("threads", "threads", "it has a single thread".to_owned());
            } else if self.threads_divide && over != 0 {
                let what = format!(
                    "it opens the same number of connections on each thread, and {} connections on {threads} threads leave {over} out",
                    load.connections
                );
                refuse("threads", "connections", what);
            }
        }
        if load.keepalive && self.cannot.contains_key("keepalive") {
            let what = "it opens a connection for each request".to_owned();
            refuse("keepalive", "keepalive", what);
        }
        let only_keeps = self.cannot.contains_key("no_keepalive") || !self.uses("keepalive");
        if !load.keepalive && only_keeps && !self.cannot.contains_key("keepalive") {
            let what = "it always keeps connections alive".to_owned();
            refuse("keepalive", "no_keepalive", what);
        } else if !load.keepalive && load.http != HttpVersion::Http1 {
            let word = "no_keepalive_multiplexed";
            if self.cannot.contains_key(word) {
                let what = "it cannot open a connection for each request with HTTP/2 or HTTP/3";
                refuse("keepalive", word, what.to_owned());
            }
        }
        if !self.http.contains(&load.http) {
            let names: Vec<&str> = self.http.iter().map(|one| one.name()).collect();
            let what = format!("it speaks HTTP/{}", names.join(" and HTTP/"));
            refuse("http", "http", what);
        } else if load.http != HttpVersion::Http1 && load.streams > 1 && !self.can("streams") {
            let what = "its connections have one stream at a time".to_owned();
            refuse("streams", "streams", what);
        }
        let asks = [
            (
                "requests_per_connection",
                load.requests_per_connection.is_some(),
                "it cannot limit requests per connection",
            ),
            (
                "rate",
                load.rate != Rate::Auto,
                "it has no open loop, so it takes no rate",
            ),
            (
                "method",
                load.method != usual.method,
                "it cannot set the method",
            ),
            ("idle", load.idle > 0, "it holds no idle connections"),
            ("headers", !load.headers.is_empty(), "it cannot set headers"),
            ("body", load.body().is_some(), "it cannot send a body"),
            (
                "timeout",
                load.timeout != usual.timeout,
                "it cannot set a timeout",
            ),
            (
                "quic_congestion",
                load.quic_congestion.is_some(),
                "it cannot choose QUIC's congestion control",
            ),
            (
                "tls_version",
                load.tls.version.is_some(),
                "it cannot choose a version of TLS",
            ),
            (
                "tls_suites",
                !load.tls.suites.is_empty(),
                "it cannot choose cipher suites",
            ),
            (
                "tls_groups",
                !load.tls.groups.is_empty(),
                "it cannot choose key exchange groups",
            ),
            (
                "tls_resumption",
                load.tls.resumption,
                "it does not say whether sessions are resumed",
            ),
            (
                "tls_ca",
                load.tls.ca.is_some(),
                "it does not verify certificates",
            ),
            (
                "tls_client_key",
                load.tls.client_key.is_some(),
                "it has no certificate of its own",
            ),
        ];
        for (key, asked, what) in asks {
            if asked && !self.can(key) {
                refuse(key, key, what.to_owned());
            }
        }
        found
    }

    /// Whether its command uses a key of the load.
    pub(crate) fn can(&self, key: &str) -> bool {
        match key {
            "rate" => self.has_open_loop(),
            "timeout" => self.uses("timeout_s") || self.uses("timeout_ms"),
            "headers" => !self.header.is_empty(),
            "no_keepalive" => self.uses("keepalive"),
            "no_keepalive_multiplexed" => false,
            "http" => self.http != [HttpVersion::default()],
            key => self.uses(key),
        }
    }

    /// How many threads it gets where the experiment does not say: one for each of `cpus` CPUs, as
    /// far as it has threads and they divide the connections.
    pub fn threads(&self, load: &LoadSpec, cpus: u32) -> u32 {
        if !self.can("threads") {
            return 1;
        }
        let wanted = load
            .threads
            .unwrap_or(cpus)
            .clamp(1, load.connections.max(1));
        (1..=wanted)
            .rev()
            .find(|threads| !self.threads_divide || load.connections.is_multiple_of(*threads))
            .unwrap_or(1)
    }
}
