//! `weigh balance`.

use balance::{Balancer, BalancerConfig, BalancerError};
use net::IoKind;

use crate::cli::BalanceArgs;
use crate::failure::Failure;
use crate::signals::Signals;

/// Runs the built-in balancer until a signal comes.
pub fn balance(args: &BalanceArgs) -> Result<u8, Failure> {
    let name = args.config.display().to_string();
    let text = std::fs::read_to_string(&args.config)
        .map_err(|e| Failure::words(format!("cannot read {name}: {e}")))?;
    let config = BalancerConfig::parse(&name, &text).map_err(|e| Failure::file(*e))?;
    if args.check {
        eprintln!("{name} is right: {} upstreams", config.upstreams.len());
        return Ok(0);
    }
    net::os::raise_open_files();
    let signals = Signals::listen()?;
    let io = args.io.unwrap_or_else(IoKind::best);
    let balancer = Balancer::start(&config, io).map_err(|e| match e {
        BalancerError::Listen { .. } => Failure::words(e),
        BalancerError::Loop(_) => Failure::failed(e),
    })?;
    eprintln!(
        "balancer on {} ({io}, threads: {}), round robin over {} upstreams",
        balancer.address(),
        config.threads,
        config.upstreams.len()
    );
    signals.wait();
    let stats = balancer.stats();
    eprintln!(
        "{} clients, {} refused, by upstream: {:?}",
        stats.clients, stats.refused, stats.served
    );
    Ok(0)
}
