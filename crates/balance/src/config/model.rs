//! What a balancer does, whichever file form said it.
//!
//! Nothing here knows of files and places. Each default says why it is what it is; both forms use
//! the same ones.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::template::Template;
use crate::access::Prefix;
use crate::health::State;

/// A balancer.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What it offers; at least one. Names differ, and no two listen on the same address.
    pub services: Vec<Service>,
    /// Threads; each has its own event loop and listening sockets. 1: what a balancer costs is
    /// easiest to compare so.
    pub threads: usize,
    /// Most client connections at one time of all services, per thread. Memory for them is
    /// bounded by this. 8192: about what the usual limit of open files allows.
    pub connections_per_thread: u32,
    /// The Unix socket that answers `--status` and `tell`. None: it is beside the file.
    pub status_socket: Option<PathBuf>,
    /// Where counters are shown as a Prometheus page. None: nowhere, as it is readable by all.
    pub prometheus: Option<SocketAddr>,
}

impl Config {
    /// A balancer without services and with every default.
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

/// One service: where clients come in, and the back ends that they are sent to.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Where it listens; at least one. Port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// What it understands of what it passes on.
    pub kind: ServiceKind,
    /// How a back end is chosen.
    pub dispatch: Dispatch,
    /// How long after it became unavailable a back end is probed. Zero: never. 5 s: a back end
    /// that restarts is soon back, and one that stays away costs a probe now and then.
    pub reviving_interval: Duration,
    /// How often back ends that are available are probed. Zero: never, as clients find out at
    /// once whether a back end is there and are sent to another one.
    pub check_interval: Duration,
    /// How probes are made: of unavailable and of available back ends. TCP: what every back end
    /// understands.
    pub check: Check,
    /// How many probes it takes, and how long each may.
    pub probing: Probing,
    /// When a back end that answers badly is left out for a while. None: never, as only HTTP
    /// tells, and an error may be what the client asked for.
    pub ejection: Option<Ejection>,
    /// How long a back end that comes back takes to its full share. Zero: it has it at once.
    pub slow_start: Duration,
    /// How long connections may go on when their back end, or the service, is taken away. 30 s:
    /// most requests are over by then.
    pub drain: Duration,
    /// Most clients at one time, over all threads. None: as many as the threads hold.
    pub connections_max: Option<u32>,
    /// Clients that wait while every back end is at its limit.
    pub queue: Queue,
    /// Length of the kernel's queue of connections that wait to be accepted. 4096: what
    /// `net.core.somaxconn` allows on Linux since 5.4.
    pub backlog: u32,
    /// Who may connect. Everybody.
    pub access: Access,
    /// Limits of every wait.
    pub timeouts: Timeouts,
    /// Whether each client begins with a PROXY protocol header. No: it must not be guessed, and
    /// believing anybody's header would let clients claim any address.
    pub proxy_protocol_in: bool,
    /// Whether more is logged than errors. No.
    pub verbosity: bool,
    /// The file that gets a line per connection or request. None: writing costs.
    pub access_log: Option<PathBuf>,
    /// What a line of it holds. The common form: the other tells more of clients.
    pub access_log_form: LogFormat,
    /// The account that external commands run as. None: the balancer's own.
    pub user_account: Option<String>,
    /// Where clients are sent; at least one. Names differ.
    pub backends: Vec<Backend>,
}

impl Service {
    /// A service without addresses and back ends, and with every default.
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
            timeouts: Timeouts::default(),
            proxy_protocol_in: false,
            verbosity: false,
            access_log: None,
            access_log_form: LogFormat::Common,
            user_account: None,
            backends: Vec::new(),
        }
    }
}

/// What a service understands of what it passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// Nothing: bytes. The least work.
    Tcp,
    /// HTTP/1.1.
    Http {
        /// Which messages of a connection are looked at.
        inspect: Inspect,
    },
}

/// The form of an access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// The Common Log Format.
    #[default]
    Common,
    /// The same, with the fields `Referer` and `User-Agent`.
    Combined,
}

/// Which messages of an HTTP connection are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inspect {
    /// The first only; the rest of the connection is passed on as bytes.
    FirstMessage,
    /// Every one: each request is dispatched on its own, and headers are changed in all.
    EveryMessage,
}

/// How a back end is chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Dispatch {
    /// One after the other.
    RoundRobin,
    /// By lot, each in proportion to its weight.
    Random,
    /// The one whose connections moved the fewest bytes on average.
    BySize {
        /// Over how many of the last connections; `None`: all.
        over: Option<u32>,
    },
    /// The one whose connections took the least time on average.
    ByDuration {
        /// Over how many of the last connections; `None`: all.
        over: Option<u32>,
    },
    /// The one with the fewest connections.
    ByConnections {
        /// Over how many of the last decisions they are averaged; `None`: as they are now.
        over: Option<u32>,
    },
    /// The first in the file that is available.
    ByOrder,
    /// The same for a client's address, as long as it is available.
    ByClientIp,
    /// As a program says, which prints the back end's name, or its place counted from 0.
    External {
        /// The command line; its `%r` and the like are filled in.
        command: Template,
    },
    /// One after the other, each as often as its weight says, and evenly spread.
    WeightedRoundRobin,
    /// The one with the fewest connections for its weight.
    LeastConnections,
    /// The better of two drawn by lot, by the peak-sensitive average of its answer times and the
    /// requests that it has now.
    PeakEwma {
        /// In what time a past answer time loses 63% of its say. 10 s, as in Finagle.
        decay: Duration,
    },
    /// The same for the same key, with as few clients moved as can be when back ends come and go.
    ConsistentHash {
        /// What is hashed.
        key: HashKey,
    },
}

/// What [`Dispatch::PeakEwma`] uses where nothing is said.
pub const PEAK_EWMA_DECAY: Duration = Duration::from_secs(10);

/// What a consistent hash is made of. A request that lacks it is hashed by its client's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashKey {
    /// The client's address.
    ClientIp,
    /// A request's header field.
    Header(String),
    /// A cookie.
    Cookie(String),
    /// The path of the request target, without its query.
    Path,
}

/// How a probe is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// A connection is opened and closed.
    Tcp,
    /// A request is sent.
    Http {
        /// Its path.
        path: String,
        /// Its `Host`; `None`: the back end's own address.
        host: Option<String>,
        /// The status that is good.
        status: u16,
    },
}

/// How many probes change what is thought of a back end, and how long each may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// So many in a row have to go well before a back end is used again; at least 1. 1: clients
    /// find out at once when it is not so.
    pub rise: u32,
    /// So many in a row have to fail before an available one is left out; at least 1. 1: a probe
    /// waits long enough to be believed.
    pub fall: u32,
    /// How long a probe may take. 5 s: as long as a client's connection may.
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

/// When a back end that answers badly is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ejection {
    /// After so many failed answers in a row.
    pub failures: u32,
    /// For how long; it is probed before it is used again.
    pub duration: Duration,
}

/// Clients that wait while every back end is at its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Most clients that wait. 1024: bounded, and longer than what a short burst needs.
    pub length: u32,
    /// How long one waits at most. 5 s: longer, and its user has gone.
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
/// The deny lists are looked at first; where there is an allow list, whoever is not on it is
/// denied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Who is allowed; empty and without a file: everybody.
    pub allow: Vec<Prefix>,
    /// Who is not.
    pub deny: Vec<Prefix>,
    /// A file with more of those who are allowed; read at the start and when told to reload.
    pub allow_file: Option<PathBuf>,
    /// A file with more of those who are not.
    pub deny_file: Option<PathBuf>,
}

/// Limits of every wait; zero means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a back end to accept a connection. 5 s: a SYN is sent again after 1 s and 3 s.
    pub connect: Duration,
    /// For a client to send a request's head, and its PROXY protocol header. 10 s: enough for a
    /// bad line, and slow senders hold a connection no longer.
    pub client_header: Duration,
    /// For a connection without traffic: of a TCP service in both directions, of an HTTP service
    /// between two requests. 10 min: people who look at a terminal are not cut off, and forgotten
    /// connections end.
    pub client_idle: Duration,
    /// For a back end to begin and to go on with an answer. 60 s: what nginx waits.
    pub upstream_answer: Duration,
    /// For a receiver, client or back end, to take anything of what waits for it. 60 s: what
    /// nginx waits.
    pub write_stall: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            connect: Duration::from_secs(5),
            client_header: Duration::from_secs(10),
            client_idle: Duration::from_secs(600),
            upstream_answer: Duration::from_secs(60),
            write_stall: Duration::from_secs(60),
        }
    }
}

/// One back end of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct Backend {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub address: Address,
    /// Its weight. A share of 1: all alike.
    pub weight: Weight,
    /// By how many percent what is known of its size or duration shrinks whenever another back
    /// end is chosen: 0 to 100. 0: it is never forgotten.
    pub decay_percent: u8,
    /// Most connections to it at one time, over all threads. None: no limit.
    pub connections_max: Option<u32>,
    /// How often it is asked again when it does not accept a connection, before another back end
    /// is. 0: another one at once.
    pub retries: u32,
    /// Commands that run when something happens.
    pub hooks: Hooks,
    /// The file that gets a copy of what passes. None.
    pub traffic_log: Option<PathBuf>,
    /// The file that gets the sizes and times of what passed. None.
    pub throughput_log: Option<PathBuf>,
    /// The cookie that binds a client to this back end. None.
    pub sticky_cookie: Option<StickyCookie>,
    /// Changes of header fields, in order. None.
    pub header_edits: Vec<HeaderEdit>,
    /// How long a connection to it may be without traffic. Zero: as the service says.
    pub session_timeout: Duration,
    /// The PROXY protocol header that it is told the client's address with. None: it must expect
    /// one.
    pub proxy_protocol_out: Option<ProxyVersion>,
    /// What it is at the start. Available.
    pub initial_state: State,
}

impl Backend {
    /// A back end at an address, with every default.
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
            initial_state: State::Available,
        }
    }
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The host.
    pub host: Host,
    /// The port, from 1.
    pub port: u16,
}

/// A host by its address or by a name that is looked up when the balancer starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// Its address.
    Ip(IpAddr),
    /// Its name.
    Name(String),
}

impl Address {
    /// The socket address, where the host is not a name.
    pub fn socket(&self) -> Option<SocketAddr> {
        match self.host {
            Host::Ip(ip) => Some(SocketAddr::new(ip, self.port)),
            Host::Name(_) => None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address {
            host: Host::Ip(address.ip()),
            port: address.port(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(ip) => SocketAddr::new(*ip, self.port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

/// How much a back end gets, in either sense of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Weight {
    /// Its share: one of 2 gets twice what one of 1 gets. At least 1.
    Share(u32),
    /// Crossroads' sense: what is measured of it is multiplied by this, so that one of 2 is chosen
    /// about half as often. At least 1.
    Penalty(u32),
}

impl Weight {
    /// What a measured load is multiplied by.
    pub fn cost(self) -> f64 {
        match self {
            Weight::Share(share) => 1.0 / f64::from(share.max(1)),
            Weight::Penalty(penalty) => f64::from(penalty.max(1)),
        }
    }

    /// What it gets in proportion to others.
    pub fn share(self) -> f64 {
        1.0 / self.cost()
    }
}

/// Commands that run when something happens to a back end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// When a client's connection to it begins.
    pub on_start: Option<Template>,
    /// When such a connection ends.
    pub on_end: Option<Template>,
    /// When it could not be reached.
    pub on_fail: Option<Template>,
}

/// The cookie that binds a client to a back end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StickyCookie {
    /// The cookie's name.
    pub name: String,
    /// The value that means this back end.
    pub value: String,
    /// Whether the balancer sends it to clients that do not have it. Yes; no where a header edit
    /// does that.
    pub set: bool,
}

/// A change of a header field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderEdit {
    /// In which messages.
    pub recipient: Recipient,
    /// How.
    pub how: EditKind,
    /// The field's name.
    pub name: String,
    /// The field's value.
    pub value: Template,
}

/// The messages that a header edit is made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// Answers, which go to the client.
    Client,
    /// Requests, which go to the back end.
    Server,
}

/// How a header field is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditKind {
    /// A further field is put beside those of the same name.
    Add,
    /// The value is put to the end of the field of that name; where there is none, it is added.
    Append,
    /// It replaces all fields of that name.
    Set,
}

/// The version of a PROXY protocol header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyVersion {
    /// The line.
    V1,
    /// The binary one.
    V2,
}
