//! The command line of `weigh load`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use load::Stage;
use net::IoKind;
use readings::QuicCongestion;

use super::{DataArgs, Format, IdleArgs, RecordedArgs, TlsArgs, TrafficArgs};
use crate::units::{self, CpuRange, stage};

/// `weigh load`. Its groups follow each other as in its help.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// The URL, such as http://127.0.0.1:8080/, or ws://127.0.0.1:8080/ for a WebSocket server
    /// that echoes.
    #[arg(required_unless_present_any = ["urls", "write_requests"])]
    pub url: Option<String>,
    /// A file of requests instead, one a line: weight, method and URL; weight and method may be left
    /// out. With a URL on the command line, lines may give just a path. All go to one server.
    #[arg(long, value_name = "FILE")]
    pub urls: Option<PathBuf>,
    /// Send the requests of --urls in order, instead of at random by weight.
    #[arg(long, requires = "urls")]
    pub in_order: bool,
    /// Connections over all threads [default: 10].
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: Option<u32>,
    /// Threads.
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,
    #[command(flatten)]
    pub idle: IdleArgs,
    #[command(flatten)]
    pub length: LengthArgs,
    #[command(flatten)]
    pub pacing: PacingArgs,
    /// What takes the timestamp of an answer: the kernel, when the packet arrives, or userspace,
    /// when the program reads it; `auto` is the kernel in an open loop.
    #[arg(long, value_enum, default_value_t)]
    pub timestamps: TimestampSource,
    #[command(flatten)]
    pub reuse: ReuseArgs,
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub answer: AnswerArgs,
    #[command(flatten)]
    pub client: ClientArgs,
    #[command(flatten)]
    pub route: RouteArgs,
    #[command(flatten)]
    pub site: CrawlArgs,
    #[command(flatten)]
    pub version: VersionArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    // The last ones: clap would put further options under their heading.
    #[command(flatten)]
    pub traffic: TrafficArgs,
    #[command(flatten)]
    pub tls: TlsArgs,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub recorded: RecordedArgs,
}

impl LoadArgs {
    /// The version of HTTP: gRPC has its own.
    pub fn http(&self) -> HttpVersion {
        match (&self.traffic.grpc.method_name, self.version.http) {
            (Some(_), HttpVersion::Http1) => HttpVersion::Http2,
            (_, version) => version,
        }
    }

    /// Connections over all threads.
    pub fn connections(&self) -> u32 {
        const USUAL: u32 = 10;
        self.connections.unwrap_or(USUAL)
    }

    /// Whether idle connections are all that is asked for: nothing says how a load is made.
    pub fn is_idle_alone(&self) -> bool {
        let length = &self.length;
        let says_load = self.connections.is_some()
            || length.count.is_some()
            || length.each_connection.is_some()
            || self.pacing.rate.is_some()
            || !self.pacing.stages.is_empty();
        self.idle.idle.is_some() && !says_load
    }
}

/// How long a load lasts.
#[derive(Debug, Args)]
pub struct LengthArgs {
    /// Measured time [default: 10s].
    #[arg(short, long, value_parser = units::some_time, conflicts_with = "count")]
    pub duration: Option<Duration>,
    /// Stop after this many requests instead of a time.
    #[arg(short = 'n', long = "count", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Stop when each connection has made this many requests.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..),
        conflicts_with_all = ["count", "duration", "rate", "stages"]
    )]
    pub each_connection: Option<u64>,
    /// Warm-up, not measured.
    #[arg(long, default_value = "0s", value_parser = units::duration)]
    pub warmup: Duration,
}

/// When requests are due.
// What belongs to an open loop requires the group that chooses it: an option that is required
// alone is not missed where another conflicts with it.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("open_loop").args(["rate", "stages"]))]
#[command(group = ArgGroup::new("timed").args(["rate", "stages", "replay"]).multiple(true))]
pub struct PacingArgs {
    /// Open loop: requests per second over all connections.
    #[arg(long, value_parser = units::rate)]
    pub rate: Option<f64>,
    /// Open loop in stages, each a time and its requests per second, or those at its start and
    /// end: 10s@0-2000,1m@2000.
    #[arg(
        long,
        value_name = "TIME@RATE,...",
        value_delimiter = ',',
        value_parser = stage,
        conflicts_with_all = ["rate", "count", "duration"]
    )]
    pub stages: Vec<Stage>,
    /// When the requests of an open loop are due.
    #[arg(long, value_enum, default_value_t, requires = "open_loop")]
    pub arrivals: Arrivals,
    /// How an open loop waits: `spin` is on time to the microsecond and takes a CPU per thread,
    /// `sleep` takes none and is late by a timer's wake-up; `auto` spins where threads are fewer
    /// than CPUs.
    #[arg(long, value_enum, default_value_t, requires = "timed")]
    pub wait: Wait,
}

/// How many requests a connection carries; the same for `weigh compare`.
#[derive(Clone, Debug, Args)]
pub struct ReuseArgs {
    /// A new connection for each request.
    #[arg(long, conflicts_with = "requests_per_connection")]
    pub no_keepalive: bool,
    /// Requests before a connection is closed and opened anew.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests_per_connection: Option<u64>,
}

/// What is asked; the same for `weigh capacity` and `weigh compare`.
#[derive(Clone, Debug, Args)]
pub struct RequestArgs {
    /// A header field; may be repeated.
    #[arg(short = 'H', long = "header", value_name = "K: V", value_parser = units::header)]
    pub headers: Vec<(String, String)>,
    /// The method.
    #[arg(short, long, default_value = "GET")]
    pub method: String,
    /// The body: @FILE sends the content of a file, anything else is sent as it stands. The path of a
    /// file that exists may go without its @.
    #[arg(long, value_name = "TEXT|@FILE", allow_hyphen_values = true)]
    pub body: Option<OsString>,
}

/// The longest waits.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Longest wait for an answer; of a stream of events, for the next.
    #[arg(long, default_value = "5s", value_parser = units::some_time)]
    pub timeout: Duration,
    /// Longest wait for a connection [default: that for an answer].
    #[arg(long, value_parser = units::some_time)]
    pub connect_timeout: Option<Duration>,
}

/// Which answers are good.
#[derive(Debug, Args)]
pub struct AnswerArgs {
    /// The status that counts as good [default: what the first answer has, if it is a success].
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=999))]
    pub expect_status: Option<u16>,
    /// Text that a good answer's body contains.
    #[arg(long, value_name = "TEXT")]
    pub expect_contains: Option<String>,
    /// Do not compare the content of answers.
    #[arg(long)]
    pub body_varies: bool,
}

/// Where and how the load is made.
#[derive(Debug, Args)]
pub struct ClientArgs {
    /// The event loop [default: uring where it is allowed].
    #[arg(long, value_name = "uring|epoll")]
    pub io: Option<IoKind>,
    /// CPUs to bind the threads to, such as 1 or 0-3,5.
    #[arg(long, value_delimiter = ',', value_parser = units::cpu_range)]
    pub cpus: Vec<CpuRange>,
    /// Addresses of this machine that connections come from, in turn, such as
    /// 127.0.0.2,127.0.0.3: each has ports of its own.
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub source: Vec<std::net::IpAddr>,
    /// Have the hosts of this file make the load together, instead of this machine. The file has
    /// [hosts.NAME] tables as in an experiment, such as [hosts.one] with ssh = "user@machine".
    /// --connections and rates are those of the whole load, --threads those of each host.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "count", "each_connection", "crawl", "source", "unix_socket", "cpus"
    ])]
    pub hosts: Option<PathBuf>,
}

/// The way to the server, where it is not a TCP connection to its host alone.
#[derive(Debug, Args)]
pub struct RouteArgs {
    /// Connect to this Unix socket instead of the URL's host.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["proxy", "source"])]
    pub unix_socket: Option<PathBuf>,
    /// Go through this forward proxy, such as http://127.0.0.1:3128.
    #[arg(long, value_name = "URL")]
    pub proxy: Option<String>,
    /// Begin each connection with a PROXY protocol header.
    #[arg(long, value_name = "VERSION", value_enum)]
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Clients that PROXY protocol headers name, in turn [default: numbered in 198.18.0.0/15].
    #[arg(
        long,
        value_name = "ADDRESS",
        value_delimiter = ',',
        requires = "proxy_protocol"
    )]
    pub proxy_client: Vec<std::net::IpAddr>,
}

/// The pages of a site, in the place of requests.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("site").args(["crawl"]))]
pub struct CrawlArgs {
    /// Find the pages below the URL by their links, then fetch them in order, pass after pass, on
    /// one connection, and time each pass.
    #[arg(long, conflicts_with_all = [
        "urls", "rate", "stages", "count", "duration", "each_connection", "connections",
        "threads", "body", "method", "proxy_protocol", "warmup", "hlog", "body_varies",
        "expect_status", "expect_contains",
    ])]
    pub crawl: bool,
    /// Passes of --crawl.
    #[arg(long, value_name = "N", requires = "site", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub passes: u32,
    /// Most pages of --crawl.
    #[arg(long, value_name = "N", requires = "site", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub pages_max: u32,
    /// Most links that --crawl follows one after the other.
    #[arg(long, value_name = "N", requires = "site", default_value_t = 5)]
    pub depth: u32,
}

/// The version of HTTP, and what belongs to it.
#[derive(Debug, Args)]
pub struct VersionArgs {
    /// The version of HTTP. HTTP/2 is negotiated by ALPN for https:// URLs, and spoken from the first
    /// byte for http:// URLs. HTTP/3 is spoken over QUIC to the same port of UDP, for https:// URLs.
    #[arg(long, value_name = "VERSION", value_enum, default_value_t)]
    pub http: HttpVersion,
    /// Streams that each connection has open at once, with --http 2 or 3.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub streams: u32,
    /// The congestion control of HTTP/3: cubic, bbr or newreno [default: that of this machine's TCP,
    /// or cubic where QUIC has no match].
    #[arg(long, value_name = "NAME")]
    pub quic_congestion: Option<QuicCongestion>,
}

/// What is printed and written.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Interval of the rows that the load reports.
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = units::row)]
    pub interval: Duration,
    /// Write the response times of each row to this file, as HdrHistogram's log (1.3, V2).
    #[arg(long, value_name = "FILE")]
    pub hlog: Option<PathBuf>,
    /// Print plain lines on standard error while the load runs, even on a terminal.
    #[arg(long)]
    pub plain: bool,
    /// Print nothing on standard error while the load runs.
    #[arg(short, long, conflicts_with = "plain")]
    pub quiet: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// The version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    #[value(name = "1.1", alias = "1")]
    Http1,
    /// HTTP/2.
    #[value(name = "2")]
    Http2,
    /// HTTP/3.
    #[value(name = "3")]
    Http3,
}

impl HttpVersion {
    /// As in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            HttpVersion::Http1 => "1.1",
            HttpVersion::Http2 => "2",
            HttpVersion::Http3 => "3",
        }
    }
}

/// When the requests of an open loop are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Arrivals {
    /// At equal intervals.
    #[default]
    Even,
    /// At exponentially distributed intervals.
    Poisson,
}

/// How an open loop waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Wait {
    /// Spin where threads are fewer than CPUs, sleep otherwise.
    #[default]
    Auto,
    /// Poll without sleeping.
    Spin,
    /// Sleep until woken.
    Sleep,
}

/// What takes the timestamp of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TimestampSource {
    /// The kernel in an open loop, userspace in a closed one.
    #[default]
    Auto,
    /// The kernel; receiving costs more.
    Kernel,
    /// The program, when it reads the answer.
    Userspace,
}

/// The version of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProxyProtocol {
    /// Text.
    V1,
    /// Binary.
    V2,
}
