//! The running balancer.
//!
//! A [`Balancer`] has one worker per thread. Each worker has its own event loop, its own listening
//! sockets for every service, and its own dispatchers. [`shared::Shared`] holds what they share:
//! the health of each back end, how many connections it has, and counters. A separate thread probes
//! back ends ([`health_checker`]).

mod error;
mod external;
pub mod health_checker;
mod http;
mod multiplexed;
mod restarts;
pub mod shared;
#[cfg(test)]
mod simulated;
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

use crate::config::access_rules;
use crate::config::model::{Backend, Config, ServiceKind};
pub use error::{BalancerError, ThreadFailed};
use external::ExternalPrograms;
use health_checker::HealthChecker;
pub(crate) use restarts::restart_on_panic;
use shared::events::Event;
use shared::{ListeningCount, Shared};
pub use shared::{events, notices, state};
use threads::tls_setup::WorkerTls;
use threads::{Copies, WorkerSpec};

/// Counts since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Accepted clients, over all services.
    pub clients: u64,
    /// Clients or requests for which there was no back end.
    pub refused: u64,
    /// Connections (TCP) or requests (HTTP) per back end, in the order of the configuration.
    pub served: Vec<u64>,
}

/// A running balancer; dropping it stops it.
pub struct Balancer {
    addresses: Vec<(String, SocketAddr)>,
    first: SocketAddr,
    config: Arc<Config>,
    shared: Arc<Shared>,
    io: IoKind,
    listeners: Arc<Copies>,
    threads: Vec<JoinHandle<()>>,
    health_checker: Mutex<Option<HealthChecker>>,
    /// Dropped after the worker threads.
    external_programs: Option<ExternalPrograms>,
}

impl Balancer {
    /// Starts a balancer. Host names of back ends are resolved once, now.
    ///
    /// # Errors
    /// When an address cannot be listened on, a host name does not resolve, an access list file is
    /// invalid, or no event loop can be opened. Nothing keeps running then.
    pub fn start(config: &Config, kind: IoKind) -> Result<Balancer, BalancerError> {
        Balancer::start_on(config, kind, None)
    }

    /// Starts a balancer that shares this one's listening sockets where both listen on the same
    /// address. Both accept until [`Balancer::drain`] is called on this one, so no client is
    /// refused in between. Services and back ends that exist in both keep their state and counters.
    /// On an error, this balancer goes on unchanged.
    pub fn start_next(&self, config: &Config, kind: IoKind) -> Result<Balancer, BalancerError> {
        Balancer::start_on(config, kind, Some(self))
    }

    fn start_on(
        config: &Config,
        kind: IoKind,
        earlier: Option<&Balancer>,
    ) -> Result<Balancer, BalancerError> {
        check(config)?;
        let addresses = health_checker::lookups::all_backends(config)?;
        let mut rules = Vec::new();
        for service in &config.services {
            rules.push(
                access_rules(&service.access).map_err(|source| BalancerError::Access {
                    service: service.name.clone(),
                    source: Box::new(source),
                })?,
            );
        }
        let tls = Arc::new(WorkerTls::open(config)?);
        let listeners = match earlier {
            None => threads::listen(config, &[], &[])?,
            Some(earlier) => {
                let services = earlier.config.services.iter();
                let names: Vec<&str> = services.map(|one| one.name.as_str()).collect();
                threads::listen(config, &earlier.listeners.lock(), &names)?
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
        let external_programs = ExternalPrograms::start(config, &shared.process)?;
        let config = Arc::new(config.clone());
        let mut balancer = Balancer {
            addresses: bound,
            first,
            config: config.clone(),
            shared: shared.clone(),
            io: kind,
            listeners: Arc::new(copies),
            threads: Vec::new(),
            health_checker: Mutex::new(None),
            external_programs,
        };
        // On an error, dropping the balancer stops the threads that did start.
        let (opened, results) = std::sync::mpsc::channel();
        let count = per_thread.len();
        for (number, listeners) in per_thread.into_iter().enumerate() {
            let spec = WorkerSpec {
                number,
                config: config.clone(),
                shared: shared.clone(),
                rules: rules.clone(),
                tls: tls.clone(),
                listeners: Some(listeners),
                copies: balancer.listeners.clone(),
                external_chooser: balancer
                    .external_programs
                    .as_ref()
                    .and_then(ExternalPrograms::external_chooser),
                opened: Some(opened.clone()),
                listening_count: ListeningCount::begin(&shared),
            };
            balancer.threads.push(threads::start(kind, spec)?);
        }
        drop(opened);
        for _ in 0..count {
            results
                .recv()
                .unwrap_or_else(|_| Err(io::Error::other("a worker thread ended")))
                .map_err(BalancerError::Loop)?;
        }
        // One at a time: both would read the same waker.
        if let Some(earlier) = earlier {
            earlier.health_checker().take();
        }
        let health_checker = HealthChecker::start(config, shared, tls.for_backends())?;
        *balancer.health_checker() = Some(health_checker);
        Ok(balancer)
    }

    fn health_checker(&self) -> MutexGuard<'_, Option<HealthChecker>> {
        self.health_checker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The name and bound address of each listener, in the order of the configuration.
    pub fn addresses(&self) -> Vec<(String, SocketAddr)> {
        self.addresses.clone()
    }

    /// The first bound address.
    pub fn address(&self) -> SocketAddr {
        self.first
    }

    /// The state that its threads share.
    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// The stream of events; can be taken once. Events that find the channel full are dropped and
    /// counted in [`shared::ProcessState::events_lost`].
    pub fn take_events(&self) -> Option<Receiver<Event>> {
        self.shared.take_events()
    }

    /// Counts since the start.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        for (service, config) in self.shared.services.iter().zip(&self.config.services) {
            stats.clients += service.clients.get();
            stats.refused += service.refused.get();
            stats
                .served
                .extend(service.backends.iter().map(|backend| match config.kind {
                    ServiceKind::Tcp => backend.connections.get(),
                    ServiceKind::Http { .. } => backend.requests.get(),
                }));
        }
        stats
    }

    pub fn config(&self) -> Arc<Config> {
        self.config.clone()
    }

    /// The event loop that it runs on.
    pub fn io(&self) -> IoKind {
        self.io
    }

    /// The first thread that failed too often and is not restarted, if any. If it is
    /// a worker, only the others serve clients then.
    pub fn failure(&self) -> Option<ThreadFailed> {
        self.shared.failure()
    }

    /// Whether it has listening sockets.
    pub fn is_listening(&self) -> bool {
        self.shared.listening.load(Ordering::Acquire) > 0
    }

    /// Whether it was drained and its last client has gone.
    pub fn is_done(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Closes the listening sockets and stops probing. Worker threads end when their last client
    /// has gone.
    pub fn begin_drain(&self) {
        self.health_checker().take();
        self.shared.draining.store(true, Ordering::Relaxed);
        self.listeners.lock().clear();
    }

    /// Closes the listening sockets and waits up to `limit` for the last client to go. Returns
    /// whether all have gone. Dropping the balancer stops it in any case.
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

/// Rejects a configuration that could be carried out only in part.
fn check(config: &Config) -> Result<(), BalancerError> {
    for service in &config.services {
        let is_bad = |one: &Backend| {
            one.speaks_http_2()
                && (service.kind != ServiceKind::HTTP || one.proxy_protocol_out.is_some())
        };
        if service.backends.iter().any(is_bad) {
            return Err(BalancerError::Unsupported {
                service: service.name.clone(),
                what: "HTTP/2 to a back end needs an HTTP service that inspects every message, and \
                       no PROXY protocol header",
            });
        }
    }
    let mut http_services = config
        .services
        .iter()
        .filter(|one| one.kind != ServiceKind::Tcp);
    http_services.try_for_each(http::check)
}
