//! The configuration, independent of syntax.
//!
//! Each default gives its reason; both syntaxes share them.

mod backend;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::access::Prefix;
pub use crate::config::address::{Address, Host};
use crate::config::template::Template;
pub use crate::config::tls::{BackendTls, ServiceTls};
pub use crate::http::EditKind;
pub use backend::{Backend, HttpVersion, Weight};

/// Limit of `over`, which takes 8 bytes per value, back end and thread.
pub const OVER_MAX: u32 = 65_536;

/// The configuration of a balancer.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// At least one, with unique names and addresses.
    pub services: Vec<Service>,
    /// Worker threads, each with its own event loop and listening sockets. Default 1: easiest to
    /// compare.
    pub threads: usize,
    /// Client limit per thread, over all services, which bounds memory. Default 8192: about what
    /// the usual limit of open files allows.
    pub connections_per_thread: u32,
    /// The control socket. Default: beside the file.
    pub status_socket: Option<PathBuf>,
    /// Address of the Prometheus page. Default: none, as anybody can read it.
    pub prometheus: Option<SocketAddr>,
}

impl Config {
    /// A configuration without services, with every default.
    pub fn new() -> Config {
        Config {
            services: Vec::new(),
            threads: 1,
            connections_per_thread: 8192,
            status_socket: None,
            prometheus: None,
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config::new()
    }
}

/// A service: where clients connect, and the back ends they are sent to.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    pub name: String,
    /// At least one. Port 0 takes a free port.
    pub listen: Vec<SocketAddr>,
    /// The protocol.
    pub kind: ServiceKind,
    /// How a back end is chosen.
    pub dispatch: Dispatch,
    /// When an unavailable back end is probed. Zero: never. Default 5 s: a restarted back end is
    /// soon used again, and a dead one costs few probes.
    pub reviving_interval: Duration,
    /// How often available back ends are probed. Default zero, never: a client finds out and is
    /// sent to another one.
    pub check_interval: Duration,
    /// How back ends are probed. Default TCP, which every back end supports.
    pub check: Check,
    /// Thresholds and time limit of probes.
    pub probing: Probing,
    /// When a failing back end is ejected. Default never: only HTTP shows it, and an error may be
    /// what the client asked for.
    pub ejection: Option<Ejection>,
    /// Ramp to the full share after an outage. Default zero: none.
    pub slow_start: Duration,
    /// How long connections may stay when their back end or service is removed. Default 30 s: most
    /// requests are done by then.
    pub drain: Duration,
    /// Client limit, over all threads. Default: what the threads hold.
    pub connections_max: Option<u32>,
    /// The queue while every back end is at its limit.
    pub queue: Queue,
    /// Length of the kernel's accept queue. Default 4096: `net.core.somaxconn` on Linux since 5.4.
    pub backlog: u32,
    /// Who may connect. Default: everybody.
    pub access: Access,
    /// The proxies in front. With such a list, only they may announce a client. PROXY protocol
    /// connections of others are closed, and their `Forwarded`, `X-Forwarded-For` and similar
    /// fields are dropped. Default: none, and requests keep these fields, as in other proxies.
    pub trusted_proxies: Vec<Prefix>,
    /// TLS to clients. Default: none.
    pub tls: Option<ServiceTls>,
    /// Back ends by the server name that clients of a TCP service ask for in TLS, which is not ended
    /// here; the first rule that matches. Default: all back ends for all names, unread.
    pub sni: Vec<SniRule>,
    /// The versions of HTTP that clients of an HTTP service may speak. Default:
    /// [`Service::http_versions`].
    pub offered_versions: Option<HttpVersions>,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Whether clients send a PROXY protocol header. Default no: believing anybody's header would
    /// let clients claim any address.
    pub proxy_protocol_in: bool,
    /// How often a request that was sent to a back end may be sent again after a failure. Default
    /// 2: enough for a pooled connection that was just closed and for a back end that failed. Not
    /// more, as the request itself may be what makes back ends fail.
    pub resends: u32,
    /// Whether a client of an HTTP service that has shut down its side still gets its response.
    /// Default no, as in nginx: nearly all such clients have closed the connection, and would
    /// occupy a place and a back end for nothing.
    pub half_close: bool,
    /// The lowest rate of a request's body, bytes per second: each so many bytes received extend
    /// [`Timeouts::client_body`] by a second; 0: nothing extends it. Default 500, as in Apache,
    /// which is slower than any network link.
    pub body_rate_min: u32,
    /// File with a line per connection or request. Default: none, as writing costs.
    pub access_log: Option<PathBuf>,
    /// Its format. Default common: the other one says more about clients.
    pub access_log_form: LogFormat,
    /// User that commands run as. Default: the balancer's own.
    pub user_account: Option<String>,
    /// At least one, with unique names.
    pub backends: Vec<Backend>,
}

/// Back ends for server names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SniRule {
    /// Names in lower case, `*.` and a domain for one label in front of it, or `*` for everything
    /// else, clients without a name included.
    pub names: Vec<String>,
    /// Names of back ends of the service.
    pub back_ends: Vec<String>,
}

/// Versions of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpVersions {
    /// HTTP/1.1 and HTTP/1.0.
    pub one: bool,
    /// HTTP/2.
    pub two: bool,
}

impl HttpVersions {
    pub const BOTH: Self = Self {
        one: true,
        two: true,
    };
}

impl Service {
    /// The versions of HTTP that its clients may speak. Both with TLS, where a client chooses by
    /// ALPN; only HTTP/1.1 without, as a client has to know beforehand. HTTP/2 needs every message
    /// inspected.
    pub fn http_versions(&self) -> HttpVersions {
        let ServiceKind::Http { inspect } = self.kind else {
            return HttpVersions {
                one: false,
                two: false,
            };
        };
        self.offered_versions.unwrap_or(HttpVersions {
            one: true,
            two: self.tls.is_some() && inspect == Inspect::EveryMessage,
        })
    }

    /// Whether its clients may speak HTTP/2.
    pub fn speaks_http_2(&self) -> bool {
        self.http_versions().two
    }

    /// A service without addresses and back ends, with every default.
    pub fn new(name: &str) -> Service {
        Service {
            name: name.to_owned(),
            listen: Vec::new(),
            kind: ServiceKind::Tcp,
            dispatch: Dispatch::RoundRobin,
            reviving_interval: Duration::from_secs(5),
            check_interval: Duration::ZERO,
            check: Check::Tcp,
            probing: Probing::default(),
            ejection: None,
            slow_start: Duration::ZERO,
            drain: Duration::from_secs(30),
            connections_max: None,
            queue: Queue::default(),
            backlog: 4096,
            access: Access::default(),
            trusted_proxies: Vec::new(),
            tls: None,
            sni: Vec::new(),
            offered_versions: None,
            timeouts: Timeouts::default(),
            proxy_protocol_in: false,
            resends: 2,
            half_close: false,
            body_rate_min: 500,
            access_log: None,
            access_log_form: LogFormat::Common,
            user_account: None,
            backends: Vec::new(),
        }
    }
}

/// The protocol of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// Plain TCP: the least work.
    Tcp,
    Http {
        /// Which messages of a connection are inspected.
        inspect: Inspect,
    },
}

impl ServiceKind {
    /// HTTP whose every message is inspected.
    pub const HTTP: Self = Self::Http {
        inspect: Inspect::EveryMessage,
    };
}

/// The format of an access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    #[default]
    Common,
    /// Combined Log Format: with `Referer` and `User-Agent`.
    Combined,
}

/// Which messages of a connection are inspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inspect {
    /// The first; the rest is relayed as bytes.
    FirstMessage,
    /// Every message: each request is dispatched separately, and headers are edited in all.
    EveryMessage,
}

/// How a back end is chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Dispatch {
    /// In turn: as often as the shares say, regardless of penalties.
    RoundRobin,
    /// Random, in proportion to weights.
    Random,
    /// The smallest mean size of connections.
    BySize {
        /// Number of last connections in the mean; `None`: all.
        over: Option<u32>,
    },
    /// The shortest mean duration of connections.
    ByDuration {
        /// Number of last connections in the mean; `None`: all.
        over: Option<u32>,
    },
    /// The fewest connections.
    ByConnections {
        /// Number of last decisions to average over; `None`: the current number.
        over: Option<u32>,
    },
    /// The first available one in the file.
    ByOrder,
    /// The same for a client's address, while it is available.
    ByClientIp,
    /// A program prints the name or the index of the back end.
    External {
        /// The command line, with placeholders.
        command: Template,
    },
    /// Smooth weighted round robin, by shares and penalties.
    WeightedRoundRobin,
    /// The fewest connections relative to the weight.
    LeastConnections,
    /// The better of two random ones, by a peak-sensitive average of latency and by current
    /// requests.
    PeakEwma {
        /// Time in which the weight of a past latency falls by 63%. Default 10 s, as in Finagle.
        decay: Duration,
    },
    /// The same for the same key; few clients move when back ends come and go.
    ConsistentHash { key: HashKey },
}

impl Dispatch {
    /// The name of the mode in TOML.
    pub fn name(&self) -> &'static str {
        match self {
            Dispatch::RoundRobin => "round-robin",
            Dispatch::Random => "random",
            Dispatch::BySize { .. } => "by-size",
            Dispatch::ByDuration { .. } => "by-duration",
            Dispatch::ByConnections { .. } => "by-connections",
            Dispatch::ByOrder => "by-order",
            Dispatch::ByClientIp => "by-client-ip",
            Dispatch::External { .. } => "external",
            Dispatch::WeightedRoundRobin => "weighted-round-robin",
            Dispatch::LeastConnections => "least-connections",
            Dispatch::PeakEwma { .. } => "peak-ewma",
            Dispatch::ConsistentHash { .. } => "consistent-hash",
        }
    }
}

/// Default of [`Dispatch::PeakEwma`].
pub const PEAK_EWMA_DECAY: Duration = Duration::from_secs(10);

/// The key of a consistent hash. Requests without it are hashed by the client's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashKey {
    ClientIp,
    /// A request's header field.
    Header(String),
    Cookie(String),
    /// The path of the request target, without the query.
    Path,
}

/// How a back end is probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// By connecting.
    Tcp,
    /// By a request.
    Http {
        path: String,
        /// `Host`; `None`: the back end's address.
        host: Option<String>,
        /// The expected status.
        status: u16,
    },
}

/// Thresholds and time limit of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// Successful probes in a row before a back end is used again; at least 1. Default 1: a client
    /// soon finds out if it was wrong.
    pub rise: u32,
    /// Failed probes in a row before an available back end is taken out; at least 1. Default 1: a
    /// probe waits long enough to be believed.
    pub fall: u32,
    /// Time limit of a probe. Default 5 s, as for a client's connection.
    pub timeout: Duration,
}

impl Default for Probing {
    fn default() -> Probing {
        Probing {
            rise: 1,
            fall: 1,
            timeout: Duration::from_secs(5),
        }
    }
}

/// When a failing back end is ejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ejection {
    /// Failed responses in a row.
    pub failures: u32,
    /// How long it is not used; it is probed before it is used again.
    pub duration: Duration,
}

/// The queue while every back end is at its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Longest queue. Default 1024: bounded, and enough for a short burst.
    pub length: u32,
    /// Longest wait. Default 5 s: after that the user has gone.
    pub time_limit: Duration,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue {
            length: 1024,
            time_limit: Duration::from_secs(5),
        }
    }
}

/// Who may connect.
///
/// The deny list is checked first; if there is an allow list, everybody else is denied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Allowed prefixes; empty and without a file: everybody.
    pub allow: Vec<Prefix>,
    /// Denied prefixes.
    pub deny: Vec<Prefix>,
    /// File with more allowed prefixes, read at the start and on reload.
    pub allow_file: Option<PathBuf>,
    /// File with more denied prefixes.
    pub deny_file: Option<PathBuf>,
}

/// Time limits; zero means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// To connect to a back end. Default 5 s: a SYN is sent again after 1 s and 3 s.
    pub connect: Duration,
    /// To receive a request head, and a PROXY protocol header. Default 10 s: enough for a bad line,
    /// and a bound for slow senders.
    pub client_header: Duration,
    /// To receive the rest of a request's body. Only time in which the balancer waits for nothing
    /// but the client counts. The bytes received extend it ([`Service::body_rate_min`]). Default
    /// 60 s: a pause in the network is tolerated, but sending a byte now and then is not enough.
    pub client_body: Duration,
    /// Silence on a connection: in TCP in both directions, in HTTP between requests. Default 10
    /// min: people at a terminal are not cut off, and forgotten connections end.
    pub client_idle: Duration,
    /// Silence on a relayed connection after one side has shut down. Default 60 s: usually the
    /// other side has nothing more to send.
    pub half_closed: Duration,
    /// For a back end to begin and continue a response. Default 60 s, as in nginx.
    pub upstream_answer: Duration,
    /// For a receiver to drain anything of its queue. Default 60 s, as in nginx.
    pub write_stall: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            connect: Duration::from_secs(5),
            client_header: Duration::from_secs(10),
            client_body: Duration::from_secs(60),
            client_idle: Duration::from_secs(600),
            half_closed: Duration::from_secs(60),
            upstream_answer: Duration::from_secs(60),
            write_stall: Duration::from_secs(60),
        }
    }
}

/// Commands to run on events of a back end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// A client's connection was opened.
    pub on_start: Option<Template>,
    /// Such a connection was closed.
    pub on_end: Option<Template>,
    /// It could not be reached.
    pub on_fail: Option<Template>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StickyCookie {
    pub name: String,
    /// The value that stands for this back end.
    pub value: String,
    /// Whether the balancer sets it for clients without it. Default yes, unless a header edit does.
    pub set: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderEdit {
    /// In which messages.
    pub recipient: Recipient,
    pub how: EditKind,
    /// The field's name.
    pub name: String,
    /// The field's value.
    pub value: Template,
}

/// The messages that a header edit applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// Responses, to the client.
    Client,
    /// Requests, to the back end.
    Server,
}

/// The version of a PROXY protocol header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyVersion {
    /// Text.
    V1,
    /// Binary.
    V2,
}
