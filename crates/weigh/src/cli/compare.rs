//! The command line of `weigh compare`, and of the user's own servers in it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use readings::QuicCongestion;

use super::{
    ComparedRequestsArgs, Format, GateArgs, HttpVersion, Profile, RequestArgs, ReuseArgs,
    TrafficArgs,
};
use crate::units::{self, CpuRange};

/// `weigh compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Subjects as NAME=URL, NAME=COMMAND, NAME=@REVISION or NAME=RECIPE; the first is the baseline. A
    /// command has {port} in it, and may have {address}, {dir} (a folder of its own) and {upstream}.
    /// @. is the working tree. Recipes are those of `weigh list`.
    #[arg(required_unless_present = "clean", num_args = 2.., value_name = "NAME=SUBJECT", value_parser = units::key_value)]
    pub subjects: Vec<(String, String)>,
    #[command(flatten)]
    pub own: OwnServerArgs,
    /// Remove all checkouts and builds from the cache, and do nothing else.
    #[arg(
        long,
        conflicts_with = "subjects",
        help_heading = "Servers of your own"
    )]
    pub clean: bool,
    /// Connections.
    #[arg(short, long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub connections: u32,
    /// Threads that make the load.
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Load before measuring, per subject and block [default: 500ms, and longer where the first block
    /// shows that servers are not warm after it].
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub warmup: Option<Duration>,
    /// Blocks at most; 30 may end after 10 or 20.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub blocks: u32,
    /// Measured time per subject and block, such as 2s.
    #[arg(long, default_value = "2s")]
    pub window: String,
    /// The smallest difference that matters, such as 3%.
    #[arg(long, default_value = "3%")]
    pub matters: String,
    /// Rate at which latency is compared, requests per second [default: half of what the slowest
    /// subject carries, at most a fifth of what the client could send].
    #[arg(long, value_parser = units::rate)]
    pub rate: Option<f64>,
    /// Measure latency against offered rate too, at rates chosen from the first block.
    #[arg(long)]
    pub curve: bool,
    #[command(flatten)]
    pub request: RequestArgs,
    /// Take the requests from this file, TOML or JSON lines, instead of one with each URL's path.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "body"])]
    pub requests: Option<String>,
    #[command(flatten)]
    pub reuse: ReuseArgs,
    /// The status of a good answer [default: 200].
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=599))]
    pub expect_status: Option<u16>,
    /// Text that a good answer's body contains.
    #[arg(long, value_name = "TEXT")]
    pub expect_contains: Option<String>,
    /// Whether all answers of a subject have the same body, byte for byte [default: decided from its
    /// first three answers].
    #[arg(long, value_name = "same|varies", value_enum)]
    pub expect_body: Option<ExpectedBody>,
    /// Whether all subjects have to give the same answer, by length and content [default: those that
    /// are asked for the same path].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub same: Option<bool>,
    /// The smallest difference of a latency that matters, such as 0.5ms: a latency is the same
    /// within this or within --matters.
    #[arg(long, value_name = "TIME")]
    pub matters_latency: Option<String>,
    /// The time that it may take, such as 4m: blocks and windows are chosen so that it fits.
    #[arg(long, value_name = "TIME", value_parser = units::some_time, conflicts_with = "blocks")]
    pub within: Option<Duration>,
    /// Compare latency too; `--latency=false` leaves out the open loops.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true, action = clap::ArgAction::Set)]
    pub latency: bool,
    /// The version of HTTP [default: 1.1]; 3 needs https:// URLs.
    #[arg(long, value_enum)]
    pub http: Option<HttpVersion>,
    /// Streams that each connection has open at once, with --http 2 or 3.
    #[arg(long, requires = "http", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub streams: Option<u32>,
    /// The load's congestion control, with --http 3: cubic, bbr or newreno [default: that of this
    /// machine's TCP, or cubic where QUIC has no match].
    #[arg(long, requires = "http", value_name = "NAME")]
    pub quic_congestion: Option<QuicCongestion>,
    /// For https:// URLs: trust only the authorities whose certificates are in this PEM file
    /// [default: those that this machine trusts].
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<String>,
    /// For https:// URLs: accept any certificate.
    #[arg(long)]
    pub insecure: bool,
    /// CPUs reserved for the load, such as 1 or 0-3,5. It polls on them in the open loop, which keeps
    /// its own delays small. Keep the servers off these CPUs.
    #[arg(long, value_delimiter = ',', value_parser = units::cpu_range)]
    pub cpus: Vec<CpuRange>,
    /// Search for each subject's bottleneck after the last block; `--bottleneck=false` skips that
    /// [default: true, with --within if there is time].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub bottleneck: Option<bool>,
    /// Profile each subject's servers with perf after the last block, and draw flame graphs and their
    /// differences to the baseline into the run's folder; fp finds callers by frame pointers, dwarf
    /// by debug information.
    #[arg(long, value_name = "fp|dwarf", num_args = 0..=1, require_equals = true, default_missing_value = "fp", value_enum)]
    pub profile: Option<Profile>,
    /// Folder of the run [default: weigh-runs/compare-TIME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// What to call this run in a history [default: the commit of the current folder's git
    /// repository].
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// Seed of every random choice.
    #[arg(long)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub gates: GateArgs,
    /// Change a value of the experiment that these options make, such as load.timeout=2s.
    #[arg(long, value_name = "KEY=VALUE", value_parser = units::key_value)]
    pub set: Vec<(String, String)>,
    /// Print the plan and do nothing.
    #[arg(long, conflicts_with = "clean")]
    pub dry_run: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Print everything in the text: each comparison, all figures and caveats.
    #[arg(long)]
    pub verbose: bool,
    // The last ones: clap would put further options under their headings.
    #[command(flatten)]
    pub data: ComparedRequestsArgs,
    #[command(flatten)]
    pub traffic: TrafficArgs,
}

/// Whether all answers of a subject have the same body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExpectedBody {
    /// Byte for byte the same.
    Same,
    /// Different from answer to answer.
    Varies,
}

impl ExpectedBody {
    /// As in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            ExpectedBody::Same => "same",
            ExpectedBody::Varies => "varies",
        }
    }
}

/// How commands and revisions are started.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Servers of your own")]
pub struct OwnServerArgs {
    /// Path and query to request from commands and revisions [default: /].
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// Path that a server answers once it is up [default: wait until its port accepts connections].
    #[arg(long, value_name = "PATH")]
    pub ready: Option<String>,
    /// Start the built-in back end for each block, or use what runs at this address; commands get
    /// its address and port as {upstream}.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "built-in", value_parser = upstream)]
    pub upstream: Option<UpstreamArg>,
    /// Shell command that builds a revision; it runs in the checkout.
    #[arg(long, value_name = "COMMAND")]
    pub build: Option<String>,
    /// Command that starts a revision's server, such as target/release/server --port {port}; it
    /// runs in the checkout.
    #[arg(long, value_name = "COMMAND")]
    pub start: Option<String>,
    /// Folder of checkouts and builds [default: $XDG_CACHE_HOME/weigh or ~/.cache/weigh].
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
}

/// The back end of the user's own servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamArg {
    /// The built-in back end.
    BuiltIn,
    /// Something that already runs.
    Address(SocketAddr),
}

fn upstream(text: &str) -> Result<UpstreamArg, String> {
    if text == "built-in" {
        return Ok(UpstreamArg::BuiltIn);
    }
    let address = text.parse().map_err(|_| {
        "expected an IP address and a port, such as 127.0.0.1:9000, or nothing for the built-in \
         back end"
    })?;
    Ok(UpstreamArg::Address(address))
}
