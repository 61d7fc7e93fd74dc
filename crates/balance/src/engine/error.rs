//! Why a balancer does not start, and why one of its threads ends.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::config::ConfigError;

/// How often a thread is started again within [`WINDOW`].
pub(super) const RESTARTS_MAX: usize = 5;
pub(super) const WINDOW: Duration = Duration::from_secs(60);

/// Why a balancer does not start.
#[derive(Debug, thiserror::Error)]
pub enum BalancerError {
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("cannot open an event loop: {0}")]
    Loop(#[source] io::Error),
    #[error("service `{service}`, back end `{backend}`: cannot look up `{address}`: {source}")]
    Resolve {
        service: String,
        backend: String,
        /// Its host and port.
        address: String,
        source: io::Error,
    },
    #[error("service `{service}`: invalid access lists")]
    Access {
        service: String,
        /// The errors, with their locations.
        source: Box<ConfigError>,
    },
    #[error("service `{service}`: {source}")]
    Tls {
        service: String,
        #[source]
        source: tls::TlsError,
    },
    #[error(transparent)]
    Thread(#[from] net::os::StartThreadError),
    /// Commands cannot run as the service's `user_account`.
    #[error("service `{service}`: `user_account` cannot be used: {why}")]
    Account {
        service: String,
        /// The cause.
        why: String,
    },
    #[error("service `{service}`: {what}")]
    Unsupported {
        service: String,
        /// What it asks for, and what to do.
        what: &'static str,
    },
    #[error(
        "service `{service}`, back end `{backend}`: invalid edit of the field `{field}`: {source}"
    )]
    Header {
        service: String,
        backend: String,
        field: String,
        source: crate::http::EditError,
    },
    #[error("expected at least one service with an address to listen on, found none")]
    Nothing,
}

/// A thread failed too often and is not started again. If it is a worker, its listening sockets are
/// closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{thread} failed {} times within {} s and is not restarted; the last failure: {last}",
    RESTARTS_MAX + 1,
    WINDOW.as_secs()
)]
pub struct ThreadFailed {
    /// Which, such as `worker 1`.
    pub thread: String,
    /// The last failure.
    pub last: String,
}
