//! Options of idle connections.

use clap::Args;
use load::Idle;

/// Connections that are held open without being used.
#[derive(Clone, Debug, Args)]
pub struct IdleArgs {
    /// Hold this many idle connections for --duration, up to 50,000. Each makes one request first.
    /// With --connections, --rate, --stages, --count or --each-connection a load runs beside them,
    /// otherwise there is none. The memory of a server on this machine is shown.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=50_000),
        conflicts_with_all = ["hosts", "crawl"]
    )]
    pub idle: Option<u32>,
    /// Make no request on idle connections.
    #[arg(long, requires = "idle")]
    pub idle_silent: bool,
}

impl IdleArgs {
    /// The idle connections that are asked for.
    pub fn idle(&self) -> Option<Idle> {
        self.idle.map(|connections| Idle {
            connections,
            is_silent: self.idle_silent,
        })
    }
}
