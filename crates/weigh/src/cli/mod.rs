//! The command line as plain values; nothing happens while it is parsed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use net::IoKind;
use readings::QuicCongestion;

use crate::units;

mod balance;
mod bisect;
mod capacity;
mod compare;
mod gates;
mod history;
mod load;
mod negative;
mod plan;
mod read;
mod requests;
mod tls;
mod traffic;

pub use balance::{BalanceArgs, BalanceRequest};
pub use bisect::{BisectArgs, BisectMetric};
pub use capacity::{CapacityArgs, CapacityFormat};
pub use compare::{CompareArgs, OwnServerArgs, UpstreamArg};
pub use gates::{GateArgs, Unsettled, is_output};
pub use history::{BoardArgs, HistoryArgs, HistoryFormat};
pub use load::{
    Arrivals, HttpVersion, LoadArgs, ProxyProtocol, RequestArgs, ReuseArgs, TimestampSource, Wait,
};
pub use negative::joined;
pub use plan::{PILOT_BLOCKS, PlanArgs, PlanFormat};
pub use read::{ReadArgs, ReadFormat};
pub use requests::{ComparedRequestsArgs, DataArgs, RecordedArgs};
pub use tls::{OriginTlsArgs, TlsArgs};
pub use traffic::{IdleArgs, TrafficArgs};

/// Weighs what a web server, a proxy or a load balancer costs, and says how far the answer can be
/// trusted.
#[derive(Debug, Parser)]
#[command(
    name = "weigh",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
#[command(
    after_help = "Exit status: 0 done; 1 it could not be done; 2 wrong arguments or files; \
    3 a gate was breached, or a change is confirmed (`history --fail-on-change`); \
    4 measured, but invalid; 129, 130 or 143 stopped by a signal."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run an experiment of the catalogue, or a file of your own.
    Run(RunArgs),
    /// Say how many blocks an experiment needs here, from a pilot of a few.
    Plan(PlanArgs),
    /// Compare servers: commands, revisions of a git repository, and URLs that already run.
    Compare(Box<CompareArgs>),
    /// Measure the working tree against a good revision, as a step of `git bisect run`.
    Bisect(Box<BisectArgs>),
    /// Put load on a URL, and report throughput and latency.
    Load(Box<LoadArgs>),
    /// Find the highest rate that meets an objective, or measure throughput over connections.
    Capacity(Box<CapacityArgs>),
    /// Read what other load generators printed, and say what it shows.
    Read(ReadArgs),
    /// Show the result of a run again, or two runs beside each other.
    Report(ReportArgs),
    /// Show what changed from run to run, over a folder of runs.
    History(HistoryArgs),
    /// Make a site of static pages from any number of runs: experiments, and servers across them.
    Board(BoardArgs),
    /// Check what on this machine would spoil a measurement, and how to fix it.
    Doctor(DoctorArgs),
    /// List experiments, recipes and drivers, and whether each can run here.
    List(ListArgs),
    /// Install programs of recipes and drivers from registries into a cache of yours, in fixed
    /// versions.
    Install(InstallArgs),
    /// Print a JSON schema: of experiments, recipes and drivers for editors, or of results for
    /// scripts.
    Schema {
        /// The kind of document.
        #[arg(value_enum)]
        of: SchemaKind,
    },
    /// Print a shell's completions.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Write the man pages into a folder (for packages).
    #[command(hide = true)]
    Man {
        /// The folder, which must exist.
        folder: PathBuf,
    },
    /// Run the built-in back end.
    Origin(OriginArgs),
    /// Run the built-in balancer.
    Balance(BalanceArgs),
    /// Speak the agent protocol over standard input and output (used by `run`).
    #[command(hide = true)]
    Agent,
    /// Hold the namespaces and links of hosts while standard input is open (used by `run`).
    #[command(hide = true)]
    NetnsHolder,
}

/// The documents that have schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaKind {
    /// An experiment file.
    Experiment,
    /// A recipe.toml.
    Recipe,
    /// A driver.toml.
    Driver,
    /// A result: summary.json.
    Result,
    /// A line of journal.jsonl.
    Journal,
    /// The data beside a page of `weigh board`.
    Board,
}

/// Shells that completions are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON document.
    Json,
}

/// `weigh run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// An experiment of the catalogue (see `weigh list`), or the path of a file.
    #[arg(required_unless_present = "resume")]
    pub experiment: Option<String>,
    /// The shorter form that the experiment describes.
    #[arg(long)]
    pub quick: bool,
    /// Folder of the run [default: weigh-runs/NAME-TIME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continue the run in this folder.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["experiment", "quick", "out", "seed", "set", "bottleneck", "curve", "dry_run", "gates"])]
    pub resume: Option<PathBuf>,
    /// What to call this run in a history [default: the commit of the current folder's git
    /// repository].
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["resume", "dry_run"])]
    pub label: Option<String>,
    /// Seed of every random choice.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Search for each subject's bottleneck after the last block; `--bottleneck=false` skips that
    /// [default: true, with --quick false].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub bottleneck: Option<bool>,
    /// Measure latency against offered rate too, at rates chosen from the first block.
    #[arg(long)]
    pub curve: bool,
    /// Change a value of the experiment, such as design.blocks=20.
    #[arg(long, value_name = "KEY=VALUE", value_parser = units::key_value)]
    pub set: Vec<(String, String)>,
    /// Print the plan and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// The time that the run may take, such as 4m: blocks and windows are chosen so that it fits.
    #[arg(long, value_name = "TIME", value_parser = units::some_time, conflicts_with = "resume")]
    pub within: Option<Duration>,
    /// Folder of checkouts and builds of revisions [default: $XDG_CACHE_HOME/weigh or
    /// ~/.cache/weigh].
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Profile each subject's servers with perf after the last block, and draw flame graphs and their
    /// differences to the baseline into the run's folder; fp finds callers by frame pointers, dwarf
    /// by debug information.
    #[arg(long, value_name = "fp|dwarf", num_args = 0..=1, require_equals = true, default_missing_value = "fp", value_enum)]
    pub profile: Option<Profile>,
    #[command(flatten)]
    pub gates: GateArgs,
    /// Recipes and drivers of the user's own.
    #[command(flatten)]
    pub own: OwnFolders,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Print everything in the text: each comparison, all figures and caveats.
    #[arg(long)]
    pub verbose: bool,
}

/// How a profile finds the callers of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// By frame pointers.
    Fp,
    /// By debug information.
    Dwarf,
}

impl From<Profile> for run::CallGraph {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Fp => run::CallGraph::Fp,
            Profile::Dwarf => run::CallGraph::Dwarf,
        }
    }
}

/// Where recipes and drivers of the user's own are.
#[derive(Clone, Debug, Default, Args)]
pub struct OwnFolders {
    /// Folder of recipes of your own; may be repeated.
    #[arg(long, value_name = "DIR")]
    pub recipes: Vec<PathBuf>,
    /// Folder of drivers of your own; may be repeated.
    #[arg(long, value_name = "DIR")]
    pub drivers: Vec<PathBuf>,
}

/// `weigh report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The run's folder.
    pub folder: PathBuf,
    /// A second run's folder: what differs between the two, and their ratios beside each other.
    #[arg(conflicts_with_all = ["salvage", "gates", "unsettled", "markdown", "junit"])]
    pub other: Option<PathBuf>,
    /// The form of the report.
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
    /// Where to write it [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the ranking of the subjects as one picture, and nothing else: `.svg`, or `.png` in a
    /// build with the feature `full`.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["other", "format", "output", "gates", "unsettled", "markdown", "junit"],
    )]
    pub picture: Option<PathBuf>,
    /// Use the rows of a damaged journal that are whole, and say what was left out.
    #[arg(long)]
    pub salvage: bool,
    /// Print everything in the text: each comparison, all figures and caveats.
    #[arg(long, conflicts_with = "other")]
    pub verbose: bool,
    #[command(flatten)]
    pub gates: GateArgs,
}

/// The forms of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For the terminal.
    #[default]
    Text,
    /// One page with pictures.
    Html,
    /// Markdown.
    Md,
    /// A row per trial.
    Csv,
    /// One JSON document.
    Json,
    /// The picture of the first condition's curve.
    Svg,
    /// Bencher Metric Format.
    Bencher,
    /// For github-action-benchmark, the figures of which more is better: `customBiggerIsBetter`.
    GithubBigger,
    /// The others: `customSmallerIsBetter`.
    GithubSmaller,
    /// Gauges in the text format of OpenMetrics.
    Openmetrics,
    /// A line of CSV for Apache Otava.
    Otava,
}

/// `weigh doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Check for this experiment too: a name of the catalogue, or the path of a file.
    pub experiment: Option<String>,
    /// Recipes and drivers of the user's own.
    #[command(flatten)]
    pub own: OwnFolders,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `weigh list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Show this recipe, driver or experiment whole: its parameters, what it needs, how long it
    /// takes. An experiment may also be the path of a file.
    pub name: Option<String>,
    /// Recipes and drivers of the user's own.
    #[command(flatten)]
    pub own: OwnFolders,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `weigh install`.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// Recipes, drivers, or experiments with all that they need, as `weigh list` names them.
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// The version, of those that `weigh list RECIPE` shows [default: the first].
    #[arg(long, value_name = "VERSION")]
    pub version: Option<String>,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    /// Print what would be run, and do nothing.
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Recipes of the user's own.
    #[command(flatten)]
    pub own: OwnFolders,
}

/// `weigh origin`.
#[derive(Debug, Args)]
pub struct OriginArgs {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:8081")]
    pub listen: SocketAddr,
    /// Threads.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Connection limit per thread.
    #[arg(long, default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(1..=500_000))]
    pub connections: u32,
    /// Length of the accept queue.
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(i32).range(1..=65_535))]
    pub backlog: i32,
    /// The event loop [default: uring where it is allowed].
    #[arg(long, value_name = "uring|epoll")]
    pub io: Option<IoKind>,
    /// Poll without sleeping: each thread takes a whole CPU, and is late by microseconds only.
    #[arg(long)]
    pub spin: bool,
    /// Without TLS, speak only HTTP/2 (prior knowledge), as servers of gRPC do [default: HTTP/1.1 too].
    #[arg(long, conflicts_with_all = ["tls", "tls_cert", "tls_key"])]
    pub http2_only: bool,
    /// The congestion control of HTTP/3: cubic, bbr or newreno [default: that of this machine's TCP,
    /// or cubic where QUIC has no match].
    #[arg(long, value_name = "NAME")]
    pub quic_congestion: Option<QuicCongestion>,
    /// Count requests and bytes in this file while they come, for other programs to read; counts that
    /// are in it go on.
    #[arg(long, value_name = "FILE")]
    pub counts: Option<PathBuf>,
    /// Delay every answer by this long, such as 10ms, and send the small body at every path.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub delay: Option<Duration>,
    /// Answer every request with this status and the small body.
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(200..=599))]
    pub status: Option<u16>,
    /// Admit so many requests per second over HTTP/1.1; refuse the others with status 429, uncounted.
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    pub limit: Option<f64>,
    #[command(flatten)]
    pub tls: OriginTlsArgs,
}
