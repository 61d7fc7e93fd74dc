//! `weigh balance`.

use balance::{Balancer, BalancerError, ConfigError};
use net::IoKind;

use crate::cli::BalanceArgs;
use crate::failure::Failure;
use crate::output::print_text;
use crate::signals::Signals;

/// Runs the built-in balancer until a signal comes.
pub fn balance(args: &BalanceArgs) -> Result<u8, Failure> {
    let name = args.config.display().to_string();
    let (config, warnings) = balance::parse_file(&args.config).map_err(|error| match error {
        ConfigError::Open(error) => Failure::words(error),
        mistakes => Failure::file(mistakes),
    })?;
    for warning in &warnings {
        eprintln!("weigh: {warning}");
    }
    if args.check {
        let backends: usize = config.services.iter().map(|one| one.backends.len()).sum();
        eprintln!(
            "{name} is right: {} services, {backends} back ends",
            config.services.len()
        );
        print_text(&balance::config::write::toml(&config));
        return Ok(0);
    }
    net::os::raise_open_files();
    let signals = Signals::listen()?;
    let io = args.io.unwrap_or_else(IoKind::best);
    let balancer = Balancer::start(&config, io).map_err(|e| match e {
        BalancerError::Loop(_) => Failure::failed(e),
        BalancerError::Access { source, .. } => Failure::file(*source),
        _ => Failure::words(e),
    })?;
    let threads = config.threads;
    eprintln!("balancer: {io}, threads: {threads}, stop with Ctrl-C");
    for (name, address) in balancer.addresses() {
        let service = config.services.iter().find(|one| one.name == name);
        let backends = service.map_or(0, |one| one.backends.len());
        eprintln!("service {name} on {address}, back ends: {backends}");
    }
    signals.wait();
    let stats = balancer.stats();
    eprintln!(
        "{} clients, {} refused, by back end: {:?}",
        stats.clients, stats.refused, stats.served
    );
    Ok(0)
}
