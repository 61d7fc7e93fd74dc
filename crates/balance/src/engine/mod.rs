//! The balancer at work.
//!
//! A [`Balancer`] has a worker per thread, each with its own event loop, its own listening sockets
//! on every service's addresses, and its own dispatchers. What they have to know of each other is
//! in [`shared::Shared`]: the life of each back end, the places that are taken there, and counters.
//! A thread apart probes back ends ([`health_checker`]).

mod connect;
mod connection;
mod counters;
pub mod events;
mod external;
pub mod health_checker;
mod http;
mod lookups;
pub mod notices;
mod probe;
mod proxy_header;
mod queue;
mod relay;
mod resolve;
mod scan;
mod service_worker;
pub mod shared;
pub mod state;
mod threads;
pub mod waker;
mod worker;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::{IoKind, os};

use crate::config::model::{Config, ServiceKind};
use crate::config::{ConfigError, access_rules};
use events::Event;
use external::ExternalPrograms;
use health_checker::HealthChecker;
use shared::Shared;
use threads::{Listener, WorkerSpec};

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
    /// The system gives no threads to ask programs on.
    #[error("cannot start the threads that ask programs for back ends: {0}")]
    Threads(#[source] io::Error),
    /// Commands cannot run as the account that a service names.
    #[error("service `{service}`: `user_account` cannot be had: {why}")]
    Account {
        /// The service.
        service: String,
        /// Why not.
        why: String,
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
    config: Arc<Config>,
    shared: Arc<Shared>,
    http: Vec<bool>,
    listeners: Mutex<Vec<Listener>>,
    threads: Vec<JoinHandle<()>>,
    health_checker: Mutex<Option<HealthChecker>>,
    /// Ends after the threads that ask.
    external_programs: Option<ExternalPrograms>,
}

impl Balancer {
    /// Starts a balancer. Host names of back ends are looked up now, and only now.
    ///
    /// # Errors
    /// When an address cannot be listened on, a host name has no address, a file of an access list
    /// cannot be used, or no event loop can be had. Nothing is left running then.
    pub fn start(config: &Config, kind: IoKind) -> Result<Balancer, BalancerError> {
        Balancer::start_on(config, kind, None)
    }

    /// Starts a balancer that takes over this one's listening sockets where both listen on the
    /// same address. Both accept then, until this one is told to [`Balancer::drain`]; no client
    /// is turned away in between. Services and back ends that both have keep their states and
    /// counters. This one goes on as it is when there is an error.
    ///
    /// # Errors
    /// As [`Balancer::start`].
    pub fn start_next(&self, config: &Config, kind: IoKind) -> Result<Balancer, BalancerError> {
        Balancer::start_on(config, kind, Some(self))
    }

    fn start_on(
        config: &Config,
        kind: IoKind,
        earlier: Option<&Balancer>,
    ) -> Result<Balancer, BalancerError> {
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
        let listeners = match earlier {
            None => threads::listen(config, &[], &[])?,
            Some(earlier) => {
                let services = earlier.config.services.iter();
                let names: Vec<&str> = services.map(|one| one.name.as_str()).collect();
                threads::listen(config, &earlier.listeners(), &names)?
            }
        };
        let bound = threads::bound(config, &listeners)?;
        let first = bound.first().ok_or(BalancerError::Nothing)?.1;
        let (per_thread, copies) =
            threads::distribute(listeners, config.threads).map_err(BalancerError::Loop)?;
        let now_ns = os::now_ns();
        let shared = Arc::new(match earlier {
            None => Shared::new(config, &addresses, now_ns),
            Some(one) => Shared::after(config, &addresses, (&one.config, &one.shared), now_ns),
        });
        let external_programs =
            ExternalPrograms::start(config, &shared.process).map_err(BalancerError::Threads)?;
        let config = Arc::new(config.clone());
        let mut balancer = Balancer {
            addresses: bound,
            first,
            http: config
                .services
                .iter()
                .map(|service| service.kind != ServiceKind::Tcp)
                .collect(),
            config: config.clone(),
            shared: shared.clone(),
            listeners: Mutex::new(copies),
            threads: Vec::new(),
            health_checker: Mutex::new(None),
            external_programs,
        };
        let (opened, results) = std::sync::mpsc::channel();
        let count = per_thread.len();
        for (number, listeners) in per_thread.into_iter().enumerate() {
            let spec = WorkerSpec {
                number,
                config: config.clone(),
                shared: shared.clone(),
                rules: rules.clone(),
                listeners,
                external_chooser: balancer
                    .external_programs
                    .as_ref()
                    .and_then(ExternalPrograms::external_chooser),
                opened: opened.clone(),
            };
            balancer.threads.push(threads::spawn(kind, spec));
        }
        drop(opened);
        // A balancer that is dropped on the way out stops the threads that did start.
        for result in results.iter().take(count) {
            result.map_err(BalancerError::Loop)?;
        }
        // There is one at a time, as they share a bell.
        if let Some(earlier) = earlier {
            earlier.health_checker().take();
        }
        *balancer.health_checker() = Some(HealthChecker::start(config, shared));
        Ok(balancer)
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn health_checker(&self) -> MutexGuard<'_, Option<HealthChecker>> {
        self.health_checker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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
    /// is not read in time is dropped and counted in [`shared::ProcessState::events_lost`].
    pub fn take_events(&self) -> Option<Receiver<Event>> {
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

    /// What it was started with.
    pub fn config(&self) -> Arc<Config> {
        self.config.clone()
    }

    /// Whether it has listening sockets.
    pub fn is_listening(&self) -> bool {
        self.shared.listening.load(Ordering::Acquire) > 0
    }

    /// Whether it was told to drain and its last client has gone.
    pub fn is_done(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Closes its listening sockets, and ends its threads as soon as their last clients have
    /// gone. Back ends are not probed any more.
    pub fn begin_drain(&self) {
        self.health_checker().take();
        self.shared.draining.store(true, Ordering::Relaxed);
        self.listeners().clear();
    }

    /// Closes its listening sockets and waits until the last client has gone, at most so long.
    /// Returns whether all have. It is stopped by dropping it.
    pub fn drain(&self, limit: Duration) -> bool {
        self.begin_drain();
        let end = Instant::now() + limit;
        loop {
            if self.is_done() {
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
        self.health_checker().take();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Refuses what cannot be done, rather than do less than was asked for.
fn check(config: &Config) -> Result<(), BalancerError> {
    let mut http_services = config
        .services
        .iter()
        .filter(|one| one.kind != ServiceKind::Tcp);
    http_services.try_for_each(http::check)
}
