//! The balancer's threads.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use net::{Epoll, Io, IoKind, IoOptions, Uring, os};

use crate::plain::BalancerConfig;
use crate::relay::{Counters, Relay};

/// Why a balancer does not start.
#[derive(Debug, thiserror::Error)]
pub enum BalancerError {
    /// It cannot listen.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// Its event loop cannot be opened.
    #[error("cannot open an event loop: {0}")]
    Loop(#[source] io::Error),
}

/// Counts since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Clients accepted.
    pub clients: u64,
    /// Clients that no upstream took.
    pub refused: u64,
    /// Clients that each upstream took.
    pub served: Vec<u64>,
}

/// A running balancer; dropping it stops it.
pub struct Balancer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    counters: Vec<Arc<Counters>>,
    threads: Vec<JoinHandle<()>>,
}

impl Balancer {
    /// Starts a balancer.
    ///
    /// # Errors
    /// When it cannot listen there, or no event loop can be had.
    pub fn start(config: &BalancerConfig, kind: IoKind) -> Result<Balancer, BalancerError> {
        let mut address = config.listen;
        let mut listeners = Vec::new();
        for _ in 0..config.threads {
            let listener = os::listen(address, config.backlog, config.threads > 1)
                .map_err(|source| BalancerError::Listen { address, source })?;
            address = listener
                .local_addr()
                .map_err(|source| BalancerError::Listen { address, source })?;
            listeners.push(listener);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (opened, results) = std::sync::mpsc::channel();
        let mut counters = Vec::new();
        let mut threads = Vec::new();
        for listener in listeners {
            let own = Arc::new(Counters {
                served: config.upstreams.iter().map(|_| AtomicU64::new(0)).collect(),
                ..Counters::default()
            });
            counters.push(own.clone());
            let (config, stop, opened) = (config.clone(), stop.clone(), opened.clone());
            threads.push(std::thread::spawn(move || match kind {
                IoKind::Uring => relay::<Uring>(listener, &config, own, &stop, &opened),
                IoKind::Epoll => relay::<Epoll>(listener, &config, own, &stop, &opened),
            }));
        }
        let balancer = Balancer {
            address,
            stop,
            counters,
            threads,
        };
        for result in results.iter().take(balancer.counters.len()) {
            result.map_err(BalancerError::Loop)?;
        }
        Ok(balancer)
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        let load = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let mut stats = Stats::default();
        for counters in &self.counters {
            stats.clients += load(&counters.clients);
            stats.refused += load(&counters.refused);
            stats.served.resize(counters.served.len(), 0);
            for (sum, own) in stats.served.iter_mut().zip(&counters.served) {
                *sum += load(own);
            }
        }
        stats
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn relay<I: Io>(
    listener: std::net::TcpListener,
    config: &BalancerConfig,
    counters: Arc<Counters>,
    stop: &AtomicBool,
    opened: &Sender<io::Result<()>>,
) {
    let options = IoOptions {
        outgoing: config.connections,
        accepted: config.connections,
        buffers: 1024,
        buffer_size: 16 * 1024,
        files: true,
    };
    let io = I::open(options).and_then(|mut io| io.listen(listener).map(|()| io));
    match io {
        Ok(io) => {
            let _ = opened.send(Ok(()));
            Relay::new(io, options.slots(), config, counters).run(stop);
        }
        Err(e) => drop(opened.send(Err(e))),
    }
}
