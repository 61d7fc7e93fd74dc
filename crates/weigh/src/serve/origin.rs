//! `weigh origin`.

use std::thread::sleep;
use std::time::Duration;

use net::IoKind;
use origin::{Always, Origin, OriginError, OriginOptions};
use readings::QuicCongestion;

use crate::cli::OriginArgs;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::output::note_fallback;

/// How often signals and threads are checked.
const TURN: Duration = Duration::from_millis(20);

/// Runs the built-in back end until a signal comes.
pub fn origin(args: &OriginArgs) -> Result<u8, Failure> {
    net::os::raise_open_files();
    let signals = Signals::listen()?;
    let tls = crate::tls::server(&args.tls, args.listen.ip())?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    // QUIC needs TLS 1.3.
    let http3 = tls.is_some() && args.tls.tls_version != Some(tls::Version::Tls12);
    let congestion = args
        .quic_congestion
        .unwrap_or_else(|| QuicCongestion::like_tcp(net::os::tcp_congestion().as_deref()));
    let delay = args.delay.unwrap_or_default();
    let always = (!delay.is_zero() || args.status.is_some()).then(|| Always {
        delay_ns: u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX),
        status: args.status,
    });
    let (mut origin, io) = IoKind::choose(args.io, refusal, |io| {
        let origin = Origin::start(&OriginOptions {
            listen: args.listen,
            threads: usize::from(args.threads),
            io,
            backlog: args.backlog,
            connections: args.connections,
            spin: args.spin,
            tls: tls.clone(),
            http2_only: args.http2_only,
            http3,
            quic_congestion: Some(congestion),
            counts: args.counts.clone(),
            always,
            limit_per_s: args.limit,
        })?;
        Ok((origin, io))
    })
    .map_err(|e| match e {
        OriginError::Listen { .. } | OriginError::Quic(_) | OriginError::Counts { .. } => {
            Failure::words(e)
        }
        OriginError::Loop(_) | OriginError::Thread(_) => Failure::failed(e),
    })?;
    note_fallback();
    eprintln!(
        "origin on {scheme}://{}/ ({io}, threads: {}{}); also /bytes/N, /status/N, /env, /events/N, /ws/echo",
        origin.address(),
        args.threads,
        match http3 {
            true => format!(", also HTTP/3 with {}", congestion.name()),
            false => String::new(),
        }
    );
    let mut said = false;
    while !signals.stopped() {
        if let Some(ended) = origin.ended() {
            return Err(Failure::failed(ended));
        }
        if !said && let Some(error) = origin.accept_failure() {
            said = true;
            note_accept_failure(&error, args.connections);
        }
        sleep(TURN);
    }
    let stats = origin.stats();
    eprintln!(
        "{} connections, {} requests",
        stats.connections, stats.received.requests
    );
    if !http3 {
        // Its threads have nothing to say at the end: TCP connections end with the process.
        std::mem::forget(origin);
    }
    Ok(0)
}

/// Why an event loop could not be opened.
fn refusal(error: &OriginError) -> Option<&std::io::Error> {
    match error {
        OriginError::Loop(error) => Some(error),
        OriginError::Listen { .. }
        | OriginError::Thread(_)
        | OriginError::Quic(_)
        | OriginError::Counts { .. } => None,
    }
}

fn note_accept_failure(error: &std::io::Error, connections: u32) {
    let files = net::os::open_files();
    match error.raw_os_error() {
        // On io_uring a thread has no more slots than the process may have files.
        Some(net::SLOTS_FULL) if u64::from(connections) >= files => eprintln!(
            "weigh: a thread has reached the limit of open files, {files}; further connections are \
             closed; raise it (ulimit -n), or serve with more threads (--threads)"
        ),
        Some(net::SLOTS_FULL) => eprintln!(
            "weigh: a thread has reached its limit of {connections} connections; further ones are closed (--connections)"
        ),
        _ => eprintln!(
            "weigh: cannot accept clients: {error}; they wait until a connection closes; the limit \
             of open files is {files} (ulimit -n)"
        ),
    }
}
