//! Why idle connections could not be opened.

use std::io;

/// Why idle connections could not be opened, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum IdleError {
    /// The process may not have so many open files.
    #[error(
        "{connections} idle connections take as many open files, and the limit is {limit}: raise it \
         (ulimit -n {}), use io_uring, or hold fewer",
        connections + 1000
    )]
    Files { connections: u64, limit: u64 },
    /// Source addresses have too few ports.
    #[error(
        "{connections} idle connections to {address} need as many local ports, and {sources} source \
         {} {ports}: widen net.ipv4.ip_local_port_range, give further addresses of this machine \
         (--source), or hold fewer",
        if *sources == 1 { "address has" } else { "addresses have" }
    )]
    Ports {
        address: net::Address,
        connections: u64,
        sources: u64,
        ports: u64,
    },
    /// HTTP/3.
    #[error(
        "idle connections are held over TCP, not over HTTP/3; leave out the HTTP/3 or the idle connections"
    )]
    Quic,
    /// Too many could not be opened.
    #[error(
        "a thread opened {open} of its {asked} idle connections to {address}, then too many failed: {why}"
    )]
    Opening {
        address: net::Address,
        open: u64,
        asked: u64,
        /// The last failure, with its cure where that is known.
        why: String,
    },
    /// An event loop could not be opened.
    #[error("cannot open an event loop with {connections} idle connections: {source}")]
    Loop {
        connections: u64,
        #[source]
        source: io::Error,
    },
}

impl IdleError {
    pub(super) fn files(connections: u64, limit: u64) -> Self {
        IdleError::Files { connections, limit }
    }
}

/// `EMFILE`, `ENFILE`, `EADDRNOTAVAIL`.
const NO_FILES: [i32; 2] = [24, 23];
const NO_ADDRESS: i32 = 99;

/// A failure to open a connection, with its cure where that is known.
pub(super) fn why(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(errno) if NO_FILES.contains(&errno) => format!(
            "{error}; the limit of open files is {}: raise it (ulimit -n), or hold fewer",
            net::os::open_files()
        ),
        Some(NO_ADDRESS) => format!(
            "{error}: no local port is free; widen net.ipv4.ip_local_port_range, or give further \
             addresses of this machine (--source)"
        ),
        _ => error.to_string(),
    }
}
