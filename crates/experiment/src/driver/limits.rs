//! What a driver cannot do.

use super::Driver;
use crate::spec::{LoadSpec, Rate};

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

/// What `[cannot]` may speak of: a key of `[load]`, or `no_keepalive`.
pub(super) const WORDS: [&str; 15] = [
    "threads",
    "keepalive",
    "no_keepalive",
    "requests_per_connection",
    "rate",
    "method",
    "headers",
    "body",
    "timeout",
    "http",
    "tls_version",
    "tls_suites",
    "tls_groups",
    "tls_resumption",
    "tls_ca",
];

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
                    "its {threads} threads do not divide {} connections: {over} would be left out",
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
                "it has no open loop and takes no rate",
            ),
            (
                "method",
                load.method != usual.method,
                "it cannot set the method",
            ),
            ("headers", !load.headers.is_empty(), "it cannot set headers"),
            ("body", load.body.is_some(), "it cannot send a body"),
            (
                "timeout",
                load.timeout != usual.timeout,
                "it cannot set a timeout",
            ),
            ("http", load.http2, "it speaks HTTP/1.1"),
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
        ];
        for (key, asked, what) in asks {
            if asked && !self.can(key) {
                refuse(key, key, what.to_owned());
            }
        }
        found
    }

    /// Whether its command uses a key of the load.
    pub(super) fn can(&self, key: &str) -> bool {
        match key {
            "rate" => self.has_open_loop(),
            "timeout" => self.uses("timeout_s") || self.uses("timeout_ms"),
            "headers" => !self.header.is_empty(),
            "no_keepalive" => self.uses("keepalive"),
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
