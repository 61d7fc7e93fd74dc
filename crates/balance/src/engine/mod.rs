//! The balancer at work.
//!
//! A [`Balancer`] has a worker per thread, each with its own event loop, its own listening sockets
//! on every service's addresses, and its own dispatchers. What they have to know of each other is
//! in [`state::Shared`]: the life of each back end, the places that are taken there, and counters.
//! A thread apart probes back ends ([`keeper`]).

mod attempt;
mod counters;
pub mod events;
mod greet;
mod http;
pub mod keeper;
mod post;
mod pulse;
mod queue;
mod relay;
mod resolve;
mod scan;
mod side;
pub mod state;
mod threads;
mod worker;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::{IoKind, os};

use crate::config::model::{Config, Kind};
use crate::config::{ConfigError, access_rules};
use events::Happened;
use state::Shared;
use threads::{Ear, Spawn};

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
    /// A back end's host name has no address.
    #[error("service `{service}`, back end `{backend}`: cannot look up `{address}`: {source}")]
    Resolve {
        /// The service.
        service: String,
        /// The back end.
        backend: String,
        /// Its host and port.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// A file of an access list cannot be read, or has mistakes.
    #[error("service `{service}`: its access lists cannot be read")]
    Access {
        /// The service.
        service: String,
        /// Why not, with the places.
        source: Box<ConfigError>,
    },
    /// The configuration asks for what this version does not do.
    #[error("service `{service}`: {what}")]
    Unsupported {
        /// The service.
        service: String,
        /// What it is, and what to do.
        what: &'static str,
    },
    /// A header edit cannot be made.
    #[error(
        "service `{service}`, back end `{backend}`: the field `{field}` cannot be changed so: {source}"
    )]
    Header {
        /// The service.
        service: String,
        /// The back end.
        backend: String,
        /// The field's name.
        field: String,
        /// Why not.
        source: crate::http::EditError,
    },
    /// The configuration has no service, or no address to listen on.
    #[error("expected at least one service with an address to listen on, found none")]
    Nothing,
}

/// Counts since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Clients accepted, of all services.
    pub clients: u64,
    /// Clients, or requests, that no back end took.
    pub refused: u64,
    /// Connections, or requests, that each back end took, service after service.
    pub served: Vec<u64>,
}

/// A running balancer; dropping it stops it.
pub struct Balancer {
    addresses: Vec<(String, SocketAddr)>,
    first: SocketAddr,
    shared: Arc<Shared>,
    http: Vec<bool>,
    ears: Mutex<Vec<Ear>>,
    threads: Vec<JoinHandle<()>>,
    keeper: Option<JoinHandle<()>>,
}

impl Balancer {
    /// Starts a balancer. Host names of back ends are looked up now, and only now.
    ///
    /// # Errors
    /// When an address cannot be listened on, a host name has no address, a file of an access list
    /// cannot be used, or no event loop can be had. Nothing is left running then.
    pub fn start(config: &Config, kind: IoKind) -> Result<Balancer, BalancerError> {
        Balancer::start_on(config, kind, &[])
    }

    /// Starts a balancer that takes over this one's listening sockets where both listen on the
    /// same address. Both accept then, until this one is told to [`Balancer::drain`]; no client
    /// is turned away in between. This one goes on as it is when there is an error.
    ///
    /// # Errors
    /// As [`Balancer::start`].
    pub fn start_next(&self, config: &Config, kind: IoKind) -> Result<Balancer, BalancerError> {
        Balancer::start_on(config, kind, &self.ears())
    }

    fn start_on(config: &Config, kind: IoKind, old: &[Ear]) -> Result<Balancer, BalancerError> {
        check(config)?;
        let addresses = resolve::backends(config)?;
        let mut rules = Vec::new();
        for service in &config.services {
            rules.push(
                access_rules(&service.access).map_err(|source| BalancerError::Access {
                    service: service.name.clone(),
                    source: Box::new(source),
                })?,
            );
        }
        let ears = threads::listen(config, old)?;
        let bound = threads::bound(config, &ears)?;
        let first = bound.first().ok_or(BalancerError::Nothing)?.1;
        let (dealt, copies) = threads::deal(ears, config.threads).map_err(BalancerError::Loop)?;
        let shared = Arc::new(Shared::new(config, &addresses, os::now_ns()));
        let config = Arc::new(config.clone());
        let mut balancer = Balancer {
            addresses: bound,
            first,
            http: config
                .services
                .iter()
                .map(|service| service.kind != Kind::Tcp)
                .collect(),
            shared: shared.clone(),
            ears: Mutex::new(copies),
            threads: Vec::new(),
            keeper: None,
        };
        let (opened, results) = std::sync::mpsc::channel();
        let count = dealt.len();
        for (number, ears) in dealt.into_iter().enumerate() {
            let given = Spawn {
                number,
                config: config.clone(),
                shared: shared.clone(),
                rules: rules.clone(),
                ears,
                opened: opened.clone(),
            };
            balancer.threads.push(threads::spawn(kind, given));
        }
        drop(opened);
        // A balancer that is dropped on the way out stops the threads that did start.
        for result in results.iter().take(count) {
            result.map_err(BalancerError::Loop)?;
        }
        balancer.keeper = Some(keeper::spawn(config, shared));
        Ok(balancer)
    }

    fn ears(&self) -> MutexGuard<'_, Vec<Ear>> {
        self.ears.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Each service's name with each address that it listens on, in the configuration's order.
    pub fn addresses(&self) -> Vec<(String, SocketAddr)> {
        self.addresses.clone()
    }

    /// The first address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.first
    }

    /// What its threads share.
    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// What happens to back ends, and in services with logs or commands; can be taken once. What
    /// is not read in time is dropped and counted in [`Shared::events_lost`].
    pub fn take_events(&self) -> Option<Receiver<Happened>> {
        self.shared.take_events()
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        for (service, http) in self.shared.services.iter().zip(&self.http) {
            stats.clients += service.clients.get();
            stats.refused += service.refused.get();
            stats
                .served
                .extend(service.backends.iter().map(|backend| match http {
                    true => backend.requests.get(),
                    false => backend.connections.get(),
                }));
        }
        stats
    }

    /// Closes its listening sockets and waits until the last client has gone, at most so long.
    /// Returns whether all have. It is stopped by dropping it.
    pub fn drain(&self, limit: Duration) -> bool {
        self.shared.draining.store(true, Ordering::Relaxed);
        self.ears().clear();
        let end = Instant::now() + limit;
        loop {
            let stopped = self.shared.listening.load(Ordering::Acquire) == 0;
            let active = |one: &state::ServiceState| one.active.load(Ordering::Relaxed);
            if stopped && self.shared.services.iter().all(|one| active(one) == 0) {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..).chain(self.keeper.take()) {
            let _ = thread.join();
        }
    }
}

/// Refuses what this version does not do, rather than do less than it was asked for.
fn check(config: &Config) -> Result<(), BalancerError> {
    use crate::config::model::Dispatch;
    for service in &config.services {
        if service.kind != Kind::Tcp {
            http::check(service)?;
        }
        let what = if matches!(service.dispatch, Dispatch::External { .. }) {
            "this version does not ask programs for a back end; choose another dispatch mode"
        } else {
            continue;
        };
        return Err(BalancerError::Unsupported {
            service: service.name.clone(),
            what,
        });
    }
    Ok(())
}
