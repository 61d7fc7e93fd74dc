//! `weigh origin`.

use net::IoKind;

use crate::cli::OriginArgs;
use crate::failure::Failure;
use crate::signals::Signals;

/// Runs the built-in back end until a signal comes.
pub fn origin(args: &OriginArgs) -> Result<u8, Failure> {
    net::os::raise_open_files();
    let signals = Signals::listen()?;
    let io = args.io.unwrap_or_else(IoKind::best);
    let origin = origin::Origin::start(&origin::OriginOptions {
        listen: args.listen,
        threads: usize::from(args.threads),
        io,
        backlog: args.backlog,
        connections: args.connections,
        spin: false,
    })
    .map_err(|e| match e {
        origin::OriginError::Listen { .. } => Failure::words(e),
        origin::OriginError::Loop(_) => Failure::failed(e),
    })?;
    eprintln!(
        "origin on http://{}/ ({io}, threads: {}); also /bytes/N, /status/N, /env",
        origin.address(),
        args.threads
    );
    signals.wait();
    let stats = origin.stats();
    eprintln!(
        "{} connections, {} requests",
        stats.connections, stats.requests
    );
    Ok(0)
}
