//! The command line of `weigh capacity`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use net::IoKind;

use super::{Arrivals, DataArgs, RequestArgs, TlsArgs, TrafficArgs, Unsettled, Wait};
use crate::units::{self, CpuRange};

/// `weigh capacity`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("question").required(true).args(["objective", "concurrency"]))]
pub struct CapacityArgs {
    /// The URL, such as http://127.0.0.1:8080/, or ws://127.0.0.1:8080/ for echoed messages.
    pub url: String,
    /// The objective, such as 'p99<10ms' or 'p99.9<50ms and errors<1%': limits on percentiles,
    /// mean, max, errors and achieved.
    #[arg(long, alias = "slo", value_name = "LIMITS")]
    pub objective: Option<String>,
    /// Largest share of failed requests [default: below 0.1%, unless the objective limits them].
    #[arg(long, value_name = "SHARE", requires = "objective")]
    pub errors: Option<String>,
    /// Smallest share of the offered rate that is answered [default: 99%].
    #[arg(long, value_name = "SHARE", requires = "objective")]
    pub min_achieved: Option<String>,
    /// Throughput at these numbers of connections instead, in a closed loop: 1,2,4,8,16.
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=100_000),
        conflicts_with_all = ["connections", "start", "min", "max", "precision", "max_steps"]
    )]
    pub concurrency: Vec<u32>,
    /// Connections that carry the rate.
    #[arg(short, long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub connections: u32,
    /// Threads.
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,
    /// Shortest measured time of a step; extended up to --step-max where the objective's quantile or the
    /// detection of an overload needs it.
    #[arg(long, default_value = "2s", value_parser = units::some_time)]
    pub step: Duration,
    /// Longest measured time of a step [default: 30s, or --step if that is longer].
    #[arg(long, value_parser = units::some_time)]
    pub step_max: Option<Duration>,
    /// Warm-up of each step, not measured.
    #[arg(long, default_value = "500ms", value_parser = units::duration)]
    pub warmup: Duration,
    /// Rounds in random order: of the curve's rates around the capacity (0: no curve) [default: 3],
    /// or of the numbers of connections [default: 5].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1000))]
    pub rounds: Option<u32>,
    /// The first rate, requests per second [default: half of what a closed loop carries].
    #[arg(long, value_parser = units::rate)]
    pub start: Option<f64>,
    /// The lowest rate worth offering.
    #[arg(long, value_parser = units::rate)]
    pub min: Option<f64>,
    /// The highest rate worth offering.
    #[arg(long, value_parser = units::rate)]
    pub max: Option<f64>,
    /// How close the bounds have to come.
    #[arg(long, default_value = "2%", value_parser = units::share)]
    pub precision: f64,
    /// Steps of the search after which it ends with what it knows.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub max_steps: u32,
    /// When requests are due.
    #[arg(long, value_enum, default_value_t)]
    pub arrivals: Arrivals,
    /// How the open loop waits.
    #[arg(long, value_enum, default_value_t)]
    pub wait: Wait,
    /// A new connection for each request.
    #[arg(long)]
    pub no_keepalive: bool,
    #[command(flatten)]
    pub request: RequestArgs,
    /// Longest wait for an answer.
    #[arg(long, default_value = "5s", value_parser = units::some_time)]
    pub timeout: Duration,
    /// The status that counts as good [default: what the first answer has, if it is a success].
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=999))]
    pub expect_status: Option<u16>,
    /// Do not compare the content of answers.
    #[arg(long)]
    pub body_varies: bool,
    /// The event loop [default: uring where it is allowed].
    #[arg(long, value_name = "uring|epoll")]
    pub io: Option<IoKind>,
    /// CPUs to bind the threads to, such as 1 or 0-3,5.
    #[arg(long, value_delimiter = ',', value_parser = units::cpu_range)]
    pub cpus: Vec<CpuRange>,
    /// Have the hosts of this file make the load together, instead of this machine. The file has
    /// [hosts.NAME] tables as in an experiment, such as [hosts.one] with ssh = "user@machine".
    /// --connections and rates are those of the whole load, --threads those of each host.
    #[arg(long, value_name = "FILE", conflicts_with = "cpus")]
    pub hosts: Option<PathBuf>,
    /// A bound that fails the search, such as 'capacity > 5000/s'; may be repeated. If it is
    /// breached, the exit status is 3.
    #[arg(long = "gate", value_name = "GATE", requires = "objective")]
    pub gates: Vec<String>,
    /// Whether unsettled gates pass or fail [default: pass].
    #[arg(long, value_enum, requires = "gates")]
    pub unsettled: Option<Unsettled>,
    /// Seed of the order.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Print nothing on standard error while it runs.
    #[arg(short, long)]
    pub quiet: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: CapacityFormat,
    /// Where to write the result [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    // The last ones: clap would put further options under their heading.
    #[command(flatten)]
    pub traffic: TrafficArgs,
    #[command(flatten)]
    pub tls: TlsArgs,
    #[command(flatten)]
    pub data: DataArgs,
}

/// The longest measured time of a step, unless an option says otherwise.
const STEP_MAX: Duration = Duration::from_secs(30);

impl CapacityArgs {
    /// The longest measured time of a step.
    pub fn longest_step(&self) -> Duration {
        self.step_max.unwrap_or(STEP_MAX.max(self.step))
    }
}

/// The forms of a capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CapacityFormat {
    /// For the terminal.
    #[default]
    #[value(alias = "terminal")]
    Text,
    /// One page with a picture.
    Html,
    /// Markdown.
    #[value(alias = "markdown")]
    Md,
    /// One JSON document.
    Json,
}
