//! The words of `weigh balance`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use net::IoKind;

use super::Format;
use crate::units;

/// `weigh balance`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BalanceArgs {
    /// The configuration: TOML where its name ends in .toml, else as Crossroads 1.x has it.
    #[arg(required_unless_present_any = ["status"])]
    pub config: Option<PathBuf>,
    /// Read the configuration, print it as TOML with every default, and end.
    #[arg(long)]
    pub check: bool,
    /// Ask the balancer that runs this configuration how it is, and end.
    #[arg(long, conflicts_with_all = ["check", "io", "metrics", "user"])]
    pub status: bool,
    /// The Unix socket that answers operators [default: `status_socket` of the configuration,
    /// else beside it as FILE.sock].
    #[arg(long, value_name = "PATH", conflicts_with = "check")]
    pub socket: Option<PathBuf>,
    /// Show the counters as Prometheus reads them, on http://ADDR:PORT/metrics.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "check")]
    pub metrics: Option<SocketAddr>,
    /// Go on as this user once everything is open; only root can.
    #[arg(long, value_name = "NAME", conflicts_with = "check")]
    pub user: Option<String>,
    /// The event loop [default: uring where it is allowed].
    #[arg(long, value_name = "uring|epoll")]
    pub io: Option<IoKind>,
    /// How --status is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// What to ask of a balancer that runs.
    #[command(subcommand)]
    pub request: Option<BalanceRequest>,
}

/// What to ask of a balancer that runs.
#[derive(Debug, Subcommand)]
pub enum BalanceRequest {
    /// Change a back end: `state up|available|unavailable|down|waking`, `server HOST:PORT`,
    /// `weight N` or `drain`.
    Tell {
        /// Name of the service.
        service: String,
        /// Name of the back end.
        backend: String,
        /// What to change, and to what.
        #[arg(required = true, num_args = 1..=2, value_names = ["WHAT", "VALUE"])]
        what: Vec<String>,
        /// The balancer's socket.
        #[arg(long, value_name = "PATH", required_unless_present = "file")]
        socket: Option<PathBuf>,
        /// The configuration that the balancer runs, instead.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Have it read its configuration again; what has mistakes changes nothing.
    Reload {
        /// The configuration that it runs.
        #[arg(required_unless_present = "socket")]
        file: Option<PathBuf>,
        /// Its socket, instead.
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
    },
    /// Have it accept no more, wait for its clients, and end.
    Stop {
        /// The configuration that it runs.
        #[arg(required_unless_present = "socket")]
        file: Option<PathBuf>,
        /// Its socket, instead.
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
        /// How long it waits for clients before it cuts them off.
        #[arg(long, default_value = "30s", value_parser = units::duration)]
        limit: Duration,
    },
}
