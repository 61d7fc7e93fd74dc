//! What load is put on each subject, and what makes it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use readings::{HttpVersion, QuicCongestion};
use tls::{KeyType, Version};

use super::request_set::{Feeds, ReplayFile, RequestFile};
use super::traffic::{TrafficChange, TrafficSpec};
use crate::manifest::Value;

/// What load is put on each subject.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSpec {
    /// The host the load is made on; without one it runs on CPUs that no host claims.
    pub host: Option<String>,
    /// Further hosts that make their shares of the same load at the same time.
    pub more_hosts: Vec<String>,
    /// Connections that are open at once.
    pub connections: u32,
    /// Further connections that are held open without being used; 0 for none.
    pub idle: u32,
    /// Threads that make the load; without a number the runner chooses.
    pub threads: Option<u32>,
    /// Whether a connection carries more than one request.
    pub keepalive: bool,
    /// Requests after which a connection is closed and another opened.
    pub requests_per_connection: Option<u64>,
    /// The HTTP method.
    pub method: String,
    /// Headers to add: names and values.
    pub headers: Vec<(String, String)>,
    /// The request's body.
    pub body: Option<String>,
    /// A file of requests, in the place of one with the subject's path.
    pub requests: Option<RequestFile>,
    /// A log whose requests are made at its times; then the load has no closed loop.
    pub replay: Option<ReplayFile>,
    /// The data of placeholders.
    pub feeds: Arc<Feeds>,
    /// Whether each connection keeps the cookies that answers set.
    pub cookies: bool,
    /// Whether the `Age` of answers is read.
    pub ages: bool,
    /// The size of a body of made-up text instead.
    pub body_bytes: Option<u64>,
    /// How long an answer, or the opening of a connection, may take.
    pub timeout: Duration,
    /// The rate at which latency is compared.
    pub rate: Rate,
    /// Whether latency is measured at several rates, and at which.
    pub curve: Option<CurveSpec>,
    /// What makes the load of subjects that name no driver.
    pub driver: Choice,
    /// HTTP/2 is negotiated by ALPN with TLS, and spoken from the first byte without.
    pub http: HttpVersion,
    /// Streams that each HTTP/2 or HTTP/3 connection has open at once.
    pub streams: u32,
    /// The congestion control of HTTP/3 at the load; `None` for the one that matches TCP's on the host
    /// that makes the load.
    pub quic_congestion: Option<QuicCongestion>,
    /// How it speaks TLS to subjects with an https URL.
    pub tls: TlsSpec,
    /// What is said on its connections.
    pub traffic: TrafficSpec,
}

/// How a load speaks TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSpec {
    /// The only version to offer; `None` offers 1.3 and 1.2.
    pub version: Option<Version>,
    /// Cipher suites by their IANA names, in order of preference; empty for the default.
    pub suites: Vec<String>,
    /// Key exchange groups, in order of preference; empty for the default.
    pub groups: Vec<String>,
    /// Whether connections that are opened again resume an earlier session.
    pub resumption: bool,
    /// A file with the certificates of the authorities to trust, for servers that already run. The
    /// experiment's own servers have certificates from the run's authority.
    pub ca: Option<String>,
    /// Whether servers that already run may have any certificate.
    pub insecure: bool,
    /// Key type of the client certificate, for servers of the experiment that ask for one; `None`
    /// for no certificate.
    pub client_key: Option<KeyType>,
}

impl Default for LoadSpec {
    fn default() -> Self {
        Self {
            host: None,
            more_hosts: Vec::new(),
            connections: 64,
            idle: 0,
            threads: None,
            keepalive: true,
            requests_per_connection: None,
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: None,
            requests: None,
            replay: None,
            feeds: Arc::default(),
            cookies: false,
            ages: false,
            body_bytes: None,
            timeout: Duration::from_secs(5),
            rate: Rate::Auto,
            curve: None,
            driver: Choice::engine(),
            http: HttpVersion::default(),
            streams: 1,
            quic_congestion: None,
            tls: TlsSpec::default(),
            traffic: TrafficSpec::default(),
        }
    }
}

impl LoadSpec {
    /// The request's body: [`Self::body`], or one of [`Self::body_bytes`] with readable text that is
    /// the same in each run.
    pub fn body(&self) -> Option<Cow<'_, str>> {
        const LINE: &str = "Readable text, a line of sixty-four bytes, sent again and again.\n";
        match (&self.body, self.body_bytes) {
            (Some(body), _) => Some(body.into()),
            (None, Some(bytes)) => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                let mut text = LINE.repeat(bytes.div_ceil(LINE.len()));
                text.truncate(bytes);
                Some(text.into())
            }
            (None, None) => None,
        }
    }

    /// Makes loads equal that differ in the rate of their open loop only.
    pub(super) fn leave_out_rate(&mut self) {
        self.rate = Rate::Auto;
        if self.traffic.fan_out.is_none() {
            self.traffic.message_rate = None;
        }
    }

    /// Whether its requests are the steps of users, who arrive in an open loop.
    pub fn has_users(&self) -> bool {
        let file = self.requests.as_ref();
        file.is_some_and(|file| file.set.users.is_some())
    }

    /// Fits what depends on several keys, once all of them are known.
    pub(crate) fn settle(&mut self) {
        // A thread without a connection has nothing to do.
        self.threads = self.threads.map(|threads| threads.min(self.connections));
        if let (Some(per_s), None) = (self.traffic.message_rate, self.traffic.fan_out) {
            self.rate = Rate::PerSecond(per_s * f64::from(self.connections));
        }
        if self.traffic.grpc.is_some() {
            self.http = HttpVersion::Http2;
            // What is wrong with it is reported where the file is read.
            self.traffic.call = self.call().ok().flatten().map(Arc::new);
        }
    }
}

/// The rate of the open loop in which latency is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Chosen from the first block, below what the slowest subject can carry.
    Auto,
    /// Requests per second over all connections.
    PerSecond(f64),
}

/// Latency against offered rate.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveSpec {
    /// The rates at which all subjects are compared, requests per second, ascending; without a list
    /// they are chosen from the first block.
    pub rates_per_s: Option<Vec<f64>>,
    /// The shares of its own capacity at which each subject is measured, as fractions, ascending.
    pub shares: Vec<f64>,
    /// The bounds of the 99th percentile for which the rate is asked, ascending.
    pub bounds: Vec<Duration>,
}

impl CurveSpec {
    /// Shares of a capacity that `curve = true` means.
    pub const SHARES: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];
    /// Bounds of the 99th percentile, ms, where the experiment names none.
    pub const BOUNDS_MS: [u64; 4] = [1, 5, 10, 50];

    /// `curve = true`.
    pub fn auto() -> Self {
        Self {
            rates_per_s: None,
            shares: Self::SHARES.to_vec(),
            bounds: Self::BOUNDS_MS.map(Duration::from_millis).to_vec(),
        }
    }

    /// The most points that a subject has in a block, for an estimate of the time.
    pub fn points(&self) -> usize {
        // Chosen rates: the shares of the slowest and some of the fastest subject's capacity.
        self.rates_per_s.as_ref().map_or(9, Vec::len) + self.shares.len()
    }
}

/// A change of one key of the load.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadChange {
    Connections(u32),
    Idle(u32),
    Threads(u32),
    Keepalive(bool),
    RequestsPerConnection(u64),
    Method(String),
    Body(String),
    BodyBytes(u64),
    Timeout(Duration),
    Rate(Rate),
    Driver(Choice),
    /// `from`: the host it is made on.
    Host(String),
    Http(HttpVersion),
    Streams(u32),
    QuicCongestion(Option<QuicCongestion>),
    TlsVersion(Option<Version>),
    TlsSuites(Vec<String>),
    TlsGroups(Vec<String>),
    TlsResumption(bool),
    TlsCa(String),
    TlsInsecure(bool),
    TlsClientKey(Option<KeyType>),
    /// A key of what is said on connections.
    Traffic(TrafficChange),
}

impl LoadChange {
    pub(crate) fn apply(&self, load: &mut LoadSpec) {
        match self {
            Self::Connections(count) => load.connections = *count,
            Self::Idle(count) => load.idle = *count,
            Self::Threads(count) => load.threads = Some(*count),
            Self::Keepalive(value) => load.keepalive = *value,
            Self::RequestsPerConnection(count) => load.requests_per_connection = Some(*count),
            Self::Method(method) => load.method.clone_from(method),
            Self::Body(body) => load.body = Some(body.clone()),
            Self::BodyBytes(bytes) => load.body_bytes = Some(*bytes),
            Self::Timeout(timeout) => load.timeout = *timeout,
            Self::Rate(rate) => load.rate = *rate,
            Self::Driver(driver) => load.driver.clone_from(driver),
            Self::Host(host) => load.host = Some(host.clone()),
            Self::Http(version) => load.http = *version,
            Self::Streams(count) => load.streams = *count,
            Self::QuicCongestion(congestion) => load.quic_congestion = *congestion,
            Self::TlsVersion(version) => load.tls.version = *version,
            Self::TlsSuites(names) => load.tls.suites.clone_from(names),
            Self::TlsGroups(names) => load.tls.groups.clone_from(names),
            Self::TlsResumption(value) => load.tls.resumption = *value,
            Self::TlsCa(path) => load.tls.ca = Some(path.clone()),
            Self::TlsInsecure(value) => load.tls.insecure = *value,
            Self::TlsClientKey(key) => load.tls.client_key = *key,
            Self::Traffic(change) => change.apply(&mut load.traffic),
        }
    }
}

/// The name of the built-in engine where a driver is named.
pub const ENGINE: &str = "engine";

/// A driver that an experiment chose.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its name; [`ENGINE`] for the built-in one.
    pub name: String,
    /// All of its parameters, defaults included.
    pub params: BTreeMap<String, Value>,
    /// Those that are not at their defaults, as `name=value`.
    pub settings: Vec<String>,
}

impl Choice {
    /// The built-in engine.
    pub fn engine() -> Self {
        Self {
            name: ENGINE.to_owned(),
            params: BTreeMap::new(),
            settings: Vec::new(),
        }
    }

    /// Whether this is the built-in engine.
    pub fn is_engine(&self) -> bool {
        self.name == ENGINE
    }

    /// Its name, and its parameters that are not at their defaults: `weigh (io=epoll)`.
    pub fn label(&self) -> String {
        if self.settings.is_empty() {
            return self.name.clone();
        }
        format!("{} ({})", self.name, self.settings.join(", "))
    }
}

/// One of several loads, `[loads.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedLoad {
    pub name: String,
    pub role: LoadRole,
    /// Path and query that it requests, instead of those of the subject's URL. A factor's `{name}`
    /// in it is filled in per condition.
    pub path: Option<String>,
    pub load: LoadSpec,
}

/// Whether subjects are compared by a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadRole {
    /// Subjects are compared by its figures.
    #[default]
    Compared,
    /// Its figures are only recorded.
    Background,
}

impl LoadRole {
    pub const ALL: [LoadRole; 2] = [LoadRole::Compared, LoadRole::Background];

    /// The word in an experiment file.
    pub fn word(self) -> &'static str {
        match self {
            LoadRole::Compared => "compared",
            LoadRole::Background => "background",
        }
    }
}
