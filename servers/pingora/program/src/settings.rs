//! The file of settings, which the recipe writes.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub listen: SocketAddr,
    pub threads: usize,
    /// Requests of a connection before it is closed; 0 is without limit.
    pub keepalive_requests: u32,
    /// How long an idle connection of a client or to an upstream is kept.
    pub keepalive_timeout_s: u64,
    /// For connecting to an upstream, reading from it and writing to it.
    pub timeout_s: u64,
    /// HTTP/2: by ALPN with TLS, else from the first byte.
    pub http2: bool,
    /// So many paths `/r1/`, `/r2/` and so on, which pass the rest of the path on.
    pub routes: usize,
    /// Each request is written into this file.
    pub access_log: Option<PathBuf>,
    /// Added to answers, by the field `X-Weigh-Reload`.
    pub reload: Option<u64>,
    pub tls: Option<Tls>,
    pub upstream: Upstream,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    pub chain: String,
    pub key: String,
    /// Clients need a certificate of this authority.
    pub client_authority: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// They take turns.
    pub servers: Vec<Server>,
    /// Idle connections that are kept; with 0 none.
    pub keepalive: usize,
    pub http2: bool,
    /// Streams of a connection at a time.
    pub streams: usize,
    /// Upstreams speak TLS, with certificates of this authority.
    pub authority: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    pub address: SocketAddr,
    /// The name in its certificate.
    pub name: String,
}

impl Settings {
    pub fn read(path: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|why| format!("{path}: {why}"))?;
        let settings: Self = toml::from_str(&text).map_err(|why| format!("{path}: {why}"))?;
        match settings.upstream.servers.is_empty() {
            true => Err(format!("{path}: expected an upstream, found none")),
            false => Ok(settings),
        }
    }
}
