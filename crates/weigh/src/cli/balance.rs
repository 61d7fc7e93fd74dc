//! The command line of `weigh balance`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use net::IoKind;

use super::Format;
use crate::units;

/// `weigh balance`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BalanceArgs {
    /// The configuration: TOML if its name ends in .toml, else Crossroads 1.x.
    #[arg(required_unless_present_any = ["status"])]
    pub config: Option<PathBuf>,
    /// Check the configuration, print it as TOML with every default, and exit.
    #[arg(long)]
    pub check: bool,
    /// Show state and counters of the balancer that runs this configuration.
    #[arg(long, conflicts_with_all = ["check", "io", "metrics", "user"])]
    pub status: bool,
    /// The control socket [default: `status_socket` of the configuration, else FILE.sock].
    #[arg(long, value_name = "PATH", conflicts_with = "check")]
    pub socket: Option<PathBuf>,
    /// Serve the counters for Prometheus on http://ADDR:PORT/metrics.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "check")]
    pub metrics: Option<SocketAddr>,
    /// Switch to this user once everything is open; needs root.
    #[arg(long, value_name = "NAME", conflicts_with = "check")]
    pub user: Option<String>,
    /// The event loop [default: uring if allowed].
    #[arg(long, value_name = "uring|epoll")]
    pub io: Option<IoKind>,
    /// The format of --status.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// A request to a running balancer.
    #[command(subcommand)]
    pub request: Option<BalanceRequest>,
}

/// A request to a running balancer.
#[derive(Debug, Subcommand)]
pub enum BalanceRequest {
    /// Change a back end: `state up|available|unavailable|down|waking`, `server HOST:PORT`,
    /// `weight N` or `drain`.
    #[command(group(ArgGroup::new("which").args(["file", "socket"]).required(true).multiple(true)))]
    Tell {
        /// Name of the service.
        service: String,
        /// Name of the back end.
        backend: String,
        /// What to change, and its value.
        #[arg(required = true, num_args = 1..=2, value_names = ["WHAT", "VALUE"])]
        what: Vec<String>,
        /// The balancer's socket.
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
        /// The configuration that it runs, instead.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Reload the configuration; with errors, nothing changes.
    Reload {
        /// The configuration that it runs.
        #[arg(required_unless_present = "socket")]
        file: Option<PathBuf>,
        /// Its socket, instead.
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
    },
    /// Stop accepting, wait for clients, and exit.
    Stop {
        /// The configuration that it runs.
        #[arg(required_unless_present = "socket")]
        file: Option<PathBuf>,
        /// Its socket, instead.
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
        /// How long to wait for clients before cutting them off.
        #[arg(long, default_value = "30s", value_parser = units::duration)]
        limit: Duration,
    },
}
