//! Runs a configuration file and reloads it.
//!
//! A reload starts a balancer for the new configuration. The old one hands over its listening
//! sockets, stops accepting, and ends with its last client. A connection thus stays under the
//! configuration that accepted it. Changes by `tell` hold until the next reload, except states,
//! which stay.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ::config::nearest::suggestion;
use ::config::units::shown;
use net::{IoKind, os};

use super::access_log;
use crate::command::refusal;
use crate::config::model::Weight;
use crate::config::{Config, ConfigError, Warning, parse_file};
use crate::engine::shared::Shared;
use crate::engine::shared::state::ServiceState;
use crate::engine::{Balancer, BalancerError, Stats, ThreadFailed};
use crate::health::{HealthEvent, State};

/// Old configurations with clients, at most; each has its threads and buffers.
const RETIRED_MAX: usize = 16;
/// How long the old balancer may take to stop accepting: one iteration of its loop.
const TAKEOVER_LIMIT: Duration = Duration::from_secs(2);

/// Why a reload failed. The present configuration stays.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Start(#[from] BalancerError),
    #[error(
        "{RETIRED_MAX} earlier configurations still have clients; reload when some have gone, or \
         stop the balancer"
    )]
    TooMany,
    #[error("the balancer is stopping")]
    Stopping,
}

/// An operator's change to a back end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tell {
    State(State),
    /// Its address: host and port.
    Server(String),
    /// Its weight, from 1.
    Weight(u32),
    /// Take it down: no new clients; existing connections may stay for the service's `drain`.
    Drain,
}

/// Why a change failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TellError {
    #[error("there is no service `{name}`; {help}")]
    Service {
        name: String,
        /// The nearest match, or all names.
        help: String,
    },
    #[error("service `{service}` has no back end `{name}`; {help}")]
    Backend {
        service: String,
        name: String,
        /// The nearest match, or all names.
        help: String,
    },
    #[error("cannot look up `{address}`: {why}")]
    Address {
        address: String,
        /// The cause.
        why: String,
    },
}

/// A running configuration. Dropping it closes connections and flushes logs.
struct Generation {
    // In this order: the log thread ends when the balancer's state is gone.
    balancer: Balancer,
    _access_log: Option<Joined>,
}

/// A thread that is joined on drop.
struct Joined(Option<JoinHandle<()>>);

impl Drop for Joined {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

impl Generation {
    fn new(balancer: Balancer) -> Result<Generation, BalancerError> {
        let access_log = balancer.take_events().map(|events| {
            let process = balancer.shared().process.clone();
            access_log::start(balancer.config(), process, events)
        });
        let access_log = access_log.transpose()?;
        Ok(Generation {
            balancer,
            _access_log: access_log.map(|thread| Joined(Some(thread))),
        })
    }
}

struct Generations {
    current: Arc<Generation>,
    retired: Vec<Arc<Generation>>,
}

/// Runs a configuration file.
pub struct Supervisor {
    file: PathBuf,
    /// The event loop that was asked for, if any.
    io: Option<IoKind>,
    generations: Mutex<Generations>,
    reloading: Mutex<()>,
    reloads: AtomicU64,
    reload_failures: AtomicU64,
    stopping: AtomicBool,
    stopped: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Values are replaced as a whole, so they are valid even after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Supervisor {
    /// Starts a balancer for a configuration that was read from `file`, on the event loop that was
    /// asked for or else on the best one.
    ///
    /// # Errors
    /// As [`Balancer::start`], and when commands cannot run as a service's `user_account`.
    pub fn start(
        config: &Config,
        file: &Path,
        io: impl Into<Option<IoKind>>,
    ) -> Result<Arc<Supervisor>, BalancerError> {
        check_accounts(config)?;
        let io = io.into();
        let balancer = on_loop(io, |io| Balancer::start(config, io))?;
        Ok(Arc::new(Supervisor {
            file: file.to_path_buf(),
            io,
            generations: Mutex::new(Generations {
                current: Arc::new(Generation::new(balancer)?),
                retired: Vec::new(),
            }),
            reloading: Mutex::new(()),
            reloads: AtomicU64::new(0),
            reload_failures: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        }))
    }

    fn current(&self) -> Arc<Generation> {
        lock(&self.generations).current.clone()
    }

    /// The configuration file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The kind of event loop.
    pub fn io(&self) -> IoKind {
        self.current().balancer.io()
    }

    /// The first thread that failed too often and is not restarted, if any.
    pub fn failure(&self) -> Option<ThreadFailed> {
        self.current().balancer.failure()
    }

    /// The current configuration.
    pub fn config(&self) -> Arc<Config> {
        self.current().balancer.config()
    }

    /// The shared state of the current balancer.
    pub fn shared(&self) -> Arc<Shared> {
        self.current().balancer.shared()
    }

    /// Counts of the current configuration.
    pub fn stats(&self) -> Stats {
        self.current().balancer.stats()
    }

    /// The name and bound address of each listener.
    pub fn addresses(&self) -> Vec<(String, SocketAddr)> {
        self.current().balancer.addresses()
    }

    /// Successful and failed reloads.
    pub fn reloads(&self) -> (u64, u64) {
        let count = |one: &AtomicU64| one.load(Ordering::Relaxed);
        (count(&self.reloads), count(&self.reload_failures))
    }

    /// Old configurations that still have clients.
    pub fn retired(&self) -> usize {
        lock(&self.generations).retired.len()
    }

    /// Messages for the operator since the last call.
    pub fn notices(&self) -> Vec<String> {
        self.shared().notices.take()
    }

    /// Drops old configurations without clients. Call it now and then.
    pub fn reap_retired(&self) {
        let mut generations = lock(&self.generations);
        let retired = std::mem::take(&mut generations.retired);
        // Another thread may still hold a reference; then the next call drops it.
        let over = |one: &Arc<Generation>| one.balancer.is_done() && Arc::strong_count(one) == 1;
        let (over, left) = retired.into_iter().partition(over);
        generations.retired = left;
        drop(generations);
        // Not under the lock, as logs may have to be flushed.
        drop::<Vec<_>>(over);
    }

    /// Reloads the file. Returns the new configuration and its warnings.
    ///
    /// # Errors
    /// When it cannot be used; nothing changes then.
    pub fn reload(&self) -> Result<(Arc<Config>, Vec<Warning>), ReloadError> {
        let result = self.replace();
        let count = match result {
            Ok(_) => &self.reloads,
            Err(_) => &self.reload_failures,
        };
        count.fetch_add(1, Ordering::Relaxed);
        result
    }

    fn replace(&self) -> Result<(Arc<Config>, Vec<Warning>), ReloadError> {
        let _one_at_a_time = lock(&self.reloading);
        if self.stopping.load(Ordering::Acquire) {
            return Err(ReloadError::Stopping);
        }
        let (config, warnings) = parse_file(&self.file)?;
        check_accounts(&config)?;
        self.reap_retired();
        if self.retired() >= RETIRED_MAX {
            return Err(ReloadError::TooMany);
        }
        let old = self.current();
        let next = on_loop(self.io, |io| old.balancer.start_next(&config, io))?;
        let next = Generation::new(next)?;
        set_cutoffs_of_removed(&old.balancer, &next.balancer);
        self.note_deferred_changes(&old.balancer.config(), &config);
        old.balancer.begin_drain();
        // From now on, new clients are accepted under the new configuration.
        let end = Instant::now() + TAKEOVER_LIMIT;
        while old.balancer.is_listening() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        let config = next.balancer.config();
        let mut generations = lock(&self.generations);
        let old = std::mem::replace(&mut generations.current, Arc::new(next));
        generations.retired.push(old);
        Ok((config, warnings))
    }

    fn note_deferred_changes(&self, old: &Config, new: &Config) {
        for (what, same) in [
            ("status_socket", old.status_socket == new.status_socket),
            ("prometheus", old.prometheus == new.prometheus),
        ] {
            if !same {
                let notice = format!("`{what}` was changed; it takes effect after a restart");
                self.shared().notices.push(notice);
            }
        }
    }

    /// Changes a back end.
    ///
    /// # Errors
    /// When it does not exist, or its new host does not resolve; nothing changes then.
    pub fn tell(&self, service: &str, backend: &str, what: &Tell) -> Result<(), TellError> {
        let current = self.current();
        let (shared, config) = (current.balancer.shared(), current.balancer.config());
        let services = &config.services;
        let at = services.iter().position(|one| one.name == service);
        let at = at.ok_or_else(|| TellError::Service {
            name: shown(service),
            help: suggestion(
                service,
                "services",
                services.iter().map(|one| one.name.as_str()),
            ),
        })?;
        let backends = &services[at].backends;
        let number = backends.iter().position(|one| one.name == backend);
        let number = number.ok_or_else(|| TellError::Backend {
            service: service.to_owned(),
            name: shown(backend),
            help: suggestion(
                backend,
                "back ends",
                backends.iter().map(|one| one.name.as_str()),
            ),
        })?;
        let state = &shared.services[at];
        let backend_state = &state.backends[number];
        match what {
            Tell::State(told) => shared.note(at, number, HealthEvent::SetByOperator(*told)),
            Tell::Server(address) => {
                let to = look_up(address)?;
                backend_state.set_address_overridden(true);
                backend_state.move_to(to);
            }
            Tell::Weight(weight) => state.set_weight(
                number,
                match backend_state.weight() {
                    Weight::Share(_) => Weight::Share(*weight),
                    Weight::Penalty(_) => Weight::Penalty(*weight),
                },
            ),
            // Workers close what is left after the service's `drain`.
            Tell::Drain => shared.note(at, number, HealthEvent::SetByOperator(State::Down)),
        }
        Ok(())
    }

    /// Stops accepting, waits up to `limit` for clients to go, then stops. Returns how many clients
    /// were cut off.
    pub fn stop(&self, limit: Duration) -> u64 {
        self.stopping.store(true, Ordering::Release);
        let one_at_a_time = lock(&self.reloading);
        let all: Vec<Arc<Generation>> = {
            let generations = lock(&self.generations);
            let current = std::iter::once(&generations.current);
            current.chain(&generations.retired).cloned().collect()
        };
        all.iter().for_each(|one| one.balancer.begin_drain());
        let end = Instant::now() + limit;
        while !all.iter().all(|one| one.balancer.is_done()) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(one_at_a_time);
        // Configurations share the counters of a service.
        let mut services: Vec<Arc<ServiceState>> = Vec::new();
        for one in &all {
            for service in &one.balancer.shared().services {
                if !services.iter().any(|seen| service.is_same_service(seen)) {
                    services.push(service.clone());
                }
            }
        }
        let active = |one: &Arc<ServiceState>| u64::from(one.active.load(Ordering::Relaxed));
        let cut_off = services.iter().map(active).sum();
        self.stopped.store(true, Ordering::Release);
        cut_off
    }

    /// Whether [`Supervisor::stop`] has finished.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

/// Starts a balancer on the loop that was asked for, or on the best one that can be opened.
fn on_loop(
    asked: Option<IoKind>,
    start: impl FnMut(IoKind) -> Result<Balancer, BalancerError>,
) -> Result<Balancer, BalancerError> {
    fn refusal(error: &BalancerError) -> Option<&std::io::Error> {
        match error {
            BalancerError::Loop(error) => Some(error),
            _ => None,
        }
    }
    IoKind::choose(asked, refusal, start)
}

/// The deadline after `drain`; zero means none.
fn cutoff_ns(drain: Duration) -> u64 {
    match u64::try_from(drain.as_nanos()) {
        Ok(0) | Err(_) => u64::MAX,
        Ok(ns) => os::now_ns().saturating_add(ns),
    }
}

/// Sets a deadline for connections to back ends that the new configuration does not have.
fn set_cutoffs_of_removed(old: &Balancer, new: &Balancer) {
    let (config, shared, next) = (old.config(), old.shared(), new.shared());
    for (service, state) in config.services.iter().zip(&shared.services) {
        for backend_state in &state.backends {
            let stays = next.services.iter().flat_map(|one| &one.backends);
            if !stays.into_iter().any(|one| Arc::ptr_eq(one, backend_state)) {
                backend_state.set_cutoff_ns(cutoff_ns(service.drain));
            }
        }
    }
}

/// Whether commands can run as the services' `user_account`.
fn check_accounts(config: &Config) -> Result<(), BalancerError> {
    for service in &config.services {
        if let Some(why) = refusal(service) {
            return Err(BalancerError::Account {
                service: service.name.clone(),
                why,
            });
        }
    }
    Ok(())
}

fn look_up(address: &str) -> Result<SocketAddr, TellError> {
    let failed = |why: String| TellError::Address {
        address: shown(address),
        why,
    };
    let mut found = address
        .to_socket_addrs()
        .map_err(|error| failed(error.to_string()))?;
    let found = found
        .next()
        .ok_or_else(|| failed("the name has no address".to_owned()))?;
    match found.port() {
        0 => Err(failed("a port is from 1 to 65535".to_owned())),
        _ => Ok(found),
    }
}
