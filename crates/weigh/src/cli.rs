//! The command line as plain values; nothing happens while it is parsed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use net::IoKind;

use crate::units;

mod balance;
mod capacity;
mod load;
mod plan;
mod read;
mod tls;

pub use balance::{BalanceArgs, BalanceRequest};
pub use capacity::{CapacityArgs, CapacityFormat};
pub use load::{Arrivals, HttpVersion, LoadArgs, ProxyProtocol, TimestampSource, Wait};
pub use plan::{PlanArgs, PlanFormat};
pub use read::{ReadArgs, ReadFormat};
pub use tls::{OriginTlsArgs, TlsArgs};

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
    /// Compare URLs that already run.
    Compare(CompareArgs),
    /// Put load on a URL, and report throughput and latency.
    Load(Box<LoadArgs>),
    /// Find the highest rate that meets an objective, or measure throughput over connections.
    Capacity(Box<CapacityArgs>),
    /// Read what other load generators printed, and say what it shows.
    Read(ReadArgs),
    /// Show a run's folder again.
    Report(ReportArgs),
    /// Check what on this machine would spoil a measurement, and how to fix it.
    Doctor(DoctorArgs),
    /// List experiments, recipes and drivers, and whether each can run here.
    List(ListArgs),
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
    #[arg(long, value_name = "DIR", conflicts_with_all = ["experiment", "quick", "out", "seed", "set", "bottleneck", "curve", "dry_run"])]
    pub resume: Option<PathBuf>,
    /// Seed of every random choice.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Search for each subject's bottleneck after the last block; `--bottleneck=false` skips that
    /// [default: true, with --quick false].
    #[arg(long, alias = "limiter", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
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
    #[arg(long, value_name = "TIME", value_parser = units::some_time, conflicts_with_all = ["resume", "plan"])]
    pub within: Option<Duration>,
    /// Measure a pilot of a few blocks, and say how many the experiment needs here: `weigh plan`.
    #[arg(long, conflicts_with_all = ["resume", "dry_run", "bottleneck"])]
    pub plan: bool,
    /// Recipes and drivers of the user's own.
    #[command(flatten)]
    pub own: OwnFolders,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
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

/// `weigh compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Subjects as NAME=URL; the first is the baseline.
    #[arg(required = true, num_args = 2.., value_name = "NAME=URL", value_parser = units::key_value)]
    pub subjects: Vec<(String, String)>,
    /// Connections.
    #[arg(short, long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub connections: u32,
    /// Threads that make the load.
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
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
    /// Compare latency, too; `--latency=false` leaves the open loops out.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true, action = clap::ArgAction::Set)]
    pub latency: bool,
    /// For https:// URLs: trust only the authorities whose certificates are in this PEM file
    /// [default: those that this machine trusts].
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<String>,
    /// For https:// URLs: accept any certificate.
    #[arg(long)]
    pub insecure: bool,
    /// CPUs that the load has for itself, such as 1 or 2,3: it polls there in the latency part,
    /// which keeps its own delays small. Keep the servers off them.
    #[arg(long, value_delimiter = ',')]
    pub cpus: Vec<u32>,
    /// Search for each subject's bottleneck after the last block; `--bottleneck=false` skips that
    /// [default: true, with --within if there is time].
    #[arg(long, alias = "limiter", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub bottleneck: Option<bool>,
    /// Folder of the run [default: weigh-runs/compare-TIME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Seed of every random choice.
    #[arg(long)]
    pub seed: Option<u64>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `weigh report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The run's folder.
    pub folder: PathBuf,
    /// The form of the report.
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
    /// Where to write it [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Use the rows of a damaged journal that are whole, and say what was left out.
    #[arg(long)]
    pub salvage: bool,
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
    /// Recipes and drivers of the user's own.
    #[command(flatten)]
    pub own: OwnFolders,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
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
    #[command(flatten)]
    pub tls: OriginTlsArgs,
}
