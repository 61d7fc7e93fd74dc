//! `weigh balance`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use balance::{Balancer, BalancerConfig, BalancerError};
use net::IoKind;

use crate::cli::BalanceArgs;
use crate::failure::Failure;
use crate::signals::Signals;

/// A configuration has a few lines; anything beyond this is something else.
const LARGEST_BYTES: u64 = 64 * 1024;

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?
        .take(LARGEST_BYTES + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST_BYTES {
        return Err(io::Error::other(format!(
            "expected a configuration of at most {LARGEST_BYTES} bytes, found more; is it the \
             right file?"
        )));
    }
    Ok(text)
}

/// Runs the built-in balancer until a signal comes.
pub fn balance(args: &BalanceArgs) -> Result<u8, Failure> {
    let name = args.config.display().to_string();
    let text =
        read(&args.config).map_err(|e| Failure::words(format!("cannot read {name}: {e}")))?;
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
