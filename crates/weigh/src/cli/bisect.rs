//! The command line of `weigh bisect`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::OwnServerArgs;
use crate::units;

/// `weigh bisect`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status, as `git bisect run` expects it: 0 not slower; 1 slower; \
    125 cannot say; 128 and more: something is wrong, and the bisection ends."
)]
pub struct BisectArgs {
    /// The revision that is known to be good.
    #[arg(long, value_name = "REVISION")]
    pub good: String,
    /// What is compared; a commit that is slower in one of these is slower.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [BisectMetric::Throughput, BisectMetric::Cpu])]
    pub metric: Vec<BisectMetric>,
    /// The smallest difference that counts, such as 3%.
    #[arg(long, value_name = "SHARE", default_value = "3%")]
    pub more_than: String,
    /// The time that one step may take after the build, such as 5m: blocks and windows are chosen
    /// so that it fits [default: at most 30 blocks; 10 or 20 if they are enough].
    #[arg(long, value_name = "TIME", value_parser = units::some_time)]
    pub within: Option<Duration>,
    /// Measured time per revision and block.
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub window: String,
    /// Connections.
    #[arg(short, long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub connections: u32,
    /// Threads that make the load.
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    #[command(flatten)]
    pub own: OwnServerArgs,
    /// Folder in which each step makes a folder for its run, named after the commit [default: the run
    /// is in weigh-runs/bisect-TIME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Seed of every random choice.
    #[arg(long)]
    pub seed: Option<u64>,
}

/// What `weigh bisect` compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BisectMetric {
    /// Good answers per second.
    Throughput,
    /// CPU time of the server per request.
    Cpu,
    /// The 99th percentile of latency.
    P99,
    /// The largest memory use.
    Memory,
}
