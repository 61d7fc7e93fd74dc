//! How an origin is run, and why it does not.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use net::IoKind;
use readings::QuicCongestion;
use tls::ServerTls;

/// How to run an origin.
#[derive(Clone, Debug)]
pub struct OriginOptions {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Number of threads.
    pub threads: usize,
    /// The event loop to use.
    pub io: IoKind,
    /// Length of the queue of connections that wait to be accepted.
    pub backlog: i32,
    /// Most connections open at one time, per thread.
    pub connections: u32,
    /// Whether threads poll without sleeping, with kernel timestamps of requests: each takes a
    /// whole CPU and sees requests within a microsecond, and its histogram of delays includes those
    /// of the thread itself.
    pub spin: bool,
    /// TLS on all connections.
    pub tls: Option<ServerTls>,
    /// Without TLS, whether clients have to begin with the preface of HTTP/2 (prior knowledge).
    /// Otherwise they may speak HTTP/1.1 too.
    pub http2_only: bool,
    /// HTTP/3 on the same port of UDP. Needs TLS.
    pub http3: bool,
    /// The congestion control of HTTP/3; `None` for the one that matches TCP's in the network
    /// namespace in which the origin runs.
    pub quic_congestion: Option<QuicCongestion>,
    /// A file in which other processes find what has been received, as [`readings::Received`] says;
    /// the counts in an existing file go on.
    pub counts: Option<PathBuf>,
    /// The answer to every path outside `/.weigh/`; `None` for the pages.
    pub always: Option<Always>,
    /// Requests per second that all threads together admit over HTTP/1.1, those for `/.weigh/` apart;
    /// others get 429, and are not counted.
    pub limit_per_s: Option<f64>,
}

/// What an origin does with every request outside `/.weigh/`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Always {
    /// How long each answer is delayed, ns; not those of exchanges that last.
    pub delay_ns: u64,
    /// The status of each answer; `None` for the page's own.
    pub status: Option<u16>,
}

impl Default for OriginOptions {
    /// One thread on a free port of 127.0.0.1, without TLS.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            threads: 1,
            io: IoKind::best(),
            backlog: 1024,
            connections: 64,
            spin: false,
            tls: None,
            http2_only: false,
            http3: false,
            quic_congestion: None,
            counts: None,
            always: None,
            limit_per_s: None,
        }
    }
}

/// Why an origin does not start.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// It cannot listen.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The file of its counts cannot be made.
    #[error("cannot count in {}: {source}", path.display())]
    Counts {
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Its event loop cannot be opened.
    #[error("cannot open an event loop: {0}")]
    Loop(#[source] io::Error),
    /// A thread cannot be started.
    #[error(transparent)]
    Thread(#[from] net::os::StartThreadError),
    /// HTTP/3 without TLS, or with TLS that QUIC cannot use.
    #[error("cannot serve HTTP/3: {0}")]
    Quic(String),
}

/// A thread of an origin ended before it was asked to. Its listening socket is closed.
#[derive(Debug, thiserror::Error)]
pub enum ThreadEnded {
    #[error("a thread of the origin ended, as its event loop failed: {0}")]
    Loop(#[source] io::Error),
    #[error("a thread of the origin panicked; this is a defect of the program")]
    Panic,
}
