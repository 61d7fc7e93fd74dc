//! A back end as configured.

use std::path::PathBuf;
use std::time::Duration;

use super::{Address, BackendTls, HeaderEdit, Hooks, ProxyVersion, StickyCookie};
use crate::health::State;

/// A back end of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct Backend {
    pub name: String,
    pub address: Address,
    /// Its weight. Default: a share of 1.
    pub weight: Weight,
    /// By how many percent its mean size or duration shrinks whenever another back end is chosen: 0
    /// to 100. Default 0: never.
    pub decay_percent: u8,
    /// Connection limit, over all threads. Default: none.
    pub connections_max: Option<u32>,
    /// Retries of a failed connection before another back end is tried. Default 0.
    pub retries: u32,
    /// Commands to run on events.
    pub hooks: Hooks,
    /// File with a copy of the traffic. Default: none.
    pub traffic_log: Option<PathBuf>,
    /// File with sizes and times of connections or requests. Default: none.
    pub throughput_log: Option<PathBuf>,
    /// The sticky cookie. Default: none.
    pub sticky_cookie: Option<StickyCookie>,
    /// Header edits, in order. Default: none.
    pub header_edits: Vec<HeaderEdit>,
    /// Limit of silence on a connection. Zero: as the service says.
    pub session_timeout: Duration,
    /// Version of the PROXY protocol header it is sent. Default none: it has to expect one.
    pub proxy_protocol_out: Option<ProxyVersion>,
    /// TLS to it. Default: none.
    pub tls: Option<BackendTls>,
    /// The HTTP version of requests to it. Default 1.1, which every server speaks. HTTP/2 needs an
    /// HTTP service that inspects every message, and excludes a PROXY protocol header, as a
    /// connection carries the requests of many clients.
    pub http: HttpVersion,
    /// Its initial state. Default: available.
    pub initial_state: State,
}

impl Backend {
    /// A back end with every default.
    pub fn new(name: &str, address: Address) -> Backend {
        Backend {
            name: name.to_owned(),
            address,
            weight: Weight::Share(1),
            decay_percent: 0,
            connections_max: None,
            retries: 0,
            hooks: Hooks::default(),
            traffic_log: None,
            throughput_log: None,
            sticky_cookie: None,
            header_edits: Vec::new(),
            session_timeout: Duration::ZERO,
            proxy_protocol_out: None,
            tls: None,
            http: HttpVersion::One,
            initial_state: State::Available,
        }
    }
}

impl Backend {
    /// Whether it gets requests in HTTP/2.
    pub fn speaks_http_2(&self) -> bool {
        self.http == HttpVersion::Two
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    One,
    /// HTTP/2.
    Two,
}

impl HttpVersion {
    /// As configurations name it.
    pub fn name(self) -> &'static str {
        match self {
            HttpVersion::One => "1.1",
            HttpVersion::Two => "2",
        }
    }
}

/// A weight, in either sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Weight {
    /// A share: one of 2 gets twice what one of 1 gets. At least 1.
    Share(u32),
    /// As in Crossroads: the measure is multiplied by this, so one of 2 is chosen about half as
    /// often. At least 1.
    Penalty(u32),
}

impl Weight {
    /// The factor of a measured load.
    pub fn cost(self) -> f64 {
        match self {
            Weight::Share(share) => 1.0 / f64::from(share.max(1)),
            Weight::Penalty(penalty) => f64::from(penalty.max(1)),
        }
    }

    /// The share relative to others.
    pub fn share(self) -> f64 {
        1.0 / self.cost()
    }
}
