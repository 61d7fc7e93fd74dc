//! Back ends and services as all threads see them: the life of each back end, and counters.
//!
//! A worker reads `usable`, `active` and `share` of each back end without a lock; the lock around
//! [`Health`] is taken only when something happens to a back end. Counters are read for
//! `--status` and the Prometheus page only.
//!
//! When the configuration is replaced, a back end that stays takes its state along, so that for
//! some time the workers of both configurations share it.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use super::counters::{Counter, DurationHistogram};
use super::waker::Waker;
use crate::config::model::{Backend, Service, Weight};
use crate::health::{Health, HealthEvent, HealthPolicy, State};

/// One back end, as all threads see it.
#[derive(Debug)]
pub struct BackendState {
    /// Its name.
    pub name: String,
    health: Mutex<Health>,
    usable: AtomicBool,
    share_millis: AtomicU32,
    /// An answer of it has failed since the last good one.
    suspect: AtomicBool,
    /// Since when an operator has it down, ns; 0 while it is not.
    down_since_ns: AtomicU64,
    address: Mutex<SocketAddr>,
    address_version: AtomicU32,
    /// An operator said where it is; its host name is not looked up again.
    address_overridden: AtomicBool,
    weight: Mutex<Weight>,
    /// When connections to it are cut off, ns; `u64::MAX`: never.
    cutoff_ns: AtomicU64,
    waker: Arc<Waker>,
    /// Connections that clients have to it now; of an HTTP service: requests under way.
    pub active: AtomicU32,
    /// Connections that were opened to it.
    pub connections: Counter,
    /// Connections that could not be opened.
    pub connect_failures: Counter,
    /// Requests sent to it (HTTP only).
    pub requests: Counter,
    /// Answers that failed: none, broken, or with a status from 500 (HTTP only).
    pub response_failures: Counter,
    /// Bytes from clients to it.
    pub bytes_to: Counter,
    /// Bytes from it to clients.
    pub bytes_from: Counter,
    /// Time to open a connection to it.
    pub connect_times: DurationHistogram,
    /// Length of connections; of an HTTP service: time to a complete answer.
    pub service_times: DurationHistogram,
}

impl BackendState {
    fn new(
        backend: &Backend,
        address: SocketAddr,
        policy: &HealthPolicy,
        now_ns: u64,
        waker: &Arc<Waker>,
    ) -> Self {
        let health = Health::new(backend.initial_state, now_ns, policy);
        Self {
            name: backend.name.clone(),
            usable: AtomicBool::new(health.usable()),
            share_millis: AtomicU32::new(1000),
            suspect: AtomicBool::new(false),
            down_since_ns: AtomicU64::new(match health.state() {
                State::Down => now_ns.max(1),
                _ => 0,
            }),
            address: Mutex::new(address),
            address_version: AtomicU32::new(0),
            address_overridden: AtomicBool::new(false),
            weight: Mutex::new(backend.weight),
            cutoff_ns: AtomicU64::new(u64::MAX),
            waker: waker.clone(),
            health: Mutex::new(health),
            active: AtomicU32::new(0),
            connections: Counter::default(),
            connect_failures: Counter::default(),
            requests: Counter::default(),
            response_failures: Counter::default(),
            bytes_to: Counter::default(),
            bytes_from: Counter::default(),
            connect_times: DurationHistogram::default(),
            service_times: DurationHistogram::default(),
        }
    }

    /// Takes a place for one more connection or request, below a limit; gives it back with
    /// [`BackendState::release`].
    pub fn reserve(&self, most: u32) -> bool {
        reserve(&self.active, most)
    }

    /// Gives a place back.
    pub fn release(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        // A thread that died left a whole value behind: it is plain data.
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an answer of it has failed since the last good one.
    pub(super) fn is_suspect(&self) -> bool {
        self.suspect.load(Ordering::Relaxed)
    }

    pub(super) fn set_suspect(&self, suspect: bool) {
        self.suspect.store(suspect, Ordering::Relaxed);
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves it: whoever is connected stays where it is, new connections go there.
    pub fn move_to(&self, address: SocketAddr) {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = address;
        self.address_version.fetch_add(1, Ordering::Release);
    }

    /// How often it was moved.
    pub fn address_version(&self) -> u32 {
        self.address_version.load(Ordering::Acquire)
    }

    /// Whether an operator said where it is, and no longer the configuration.
    pub fn address_overridden(&self) -> bool {
        self.address_overridden.load(Ordering::Relaxed)
    }

    /// Says whether an operator said where it is.
    pub fn set_address_overridden(&self, address_overridden: bool) {
        self.address_overridden
            .store(address_overridden, Ordering::Relaxed);
    }

    /// Its weight.
    pub fn weight(&self) -> Weight {
        *self.weight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_weight(&self, weight: Weight) {
        *self.weight.lock().unwrap_or_else(PoisonError::into_inner) = weight;
    }

    /// When connections to it are cut off, ns of the monotonic clock; `u64::MAX`: never.
    pub fn cutoff_ns(&self) -> u64 {
        self.cutoff_ns.load(Ordering::Relaxed)
    }

    /// Says when connections to it are cut off; `u64::MAX`: never.
    pub fn set_cutoff_ns(&self, cutoff_ns: u64) {
        self.cutoff_ns.store(cutoff_ns, Ordering::Relaxed);
    }

    /// Whether clients may be sent to it.
    pub fn usable(&self) -> bool {
        self.usable.load(Ordering::Relaxed)
    }

    /// The share of its weight that it gets now, in (0, 1].
    pub fn share(&self) -> f64 {
        f64::from(self.share_millis.load(Ordering::Relaxed)) / 1e3
    }

    /// For how long an operator has it down, ns; `None` while it is not.
    pub fn down_for_ns(&self, now_ns: u64) -> Option<u64> {
        match self.down_since_ns.load(Ordering::Relaxed) {
            0 => None,
            since => Some(now_ns.saturating_sub(since)),
        }
    }

    /// Its state.
    pub fn state(&self) -> State {
        self.lock().state()
    }

    /// Takes note of what happened to it. Returns whether clients are from now on sent to it, or
    /// no longer; [`Shared::note`](super::shared::Shared::note) also tells of that.
    pub fn note(&self, event: HealthEvent, now_ns: u64, policy: &HealthPolicy) -> bool {
        let mut health = self.lock();
        let due_ns = health.due_ns();
        let changed = health.note(event, now_ns, policy);
        self.publish(&health, now_ns, policy);
        // Whoever probes has to look up only where there is something new for it.
        if health.due_ns() != due_ns {
            self.waker.wake();
        }
        changed
    }

    /// Whether a probe of it is due; asked by the thread that probes, which also brings the share
    /// of a back end that starts slowly up to date.
    pub fn probe_due(&self, now_ns: u64, policy: &HealthPolicy) -> bool {
        let mut health = self.lock();
        let due = health.probe_due(now_ns);
        self.publish(&health, now_ns, policy);
        due
    }

    /// A probe of it has got lost with the thread that made it.
    pub(super) fn probe_lost(&self, now_ns: u64) {
        self.lock().probe_lost(now_ns);
    }

    /// When the thread that probes has to look at it again, ns; `None`: not before something
    /// happens to it.
    pub fn next_wake_ns(&self, now_ns: u64, policy: &HealthPolicy) -> Option<u64> {
        /// How often the share of a back end that starts slowly is brought up to date, ns.
        const STEP_NS: u64 = 50_000_000;
        let health = self.lock();
        let starting = health.usable() && health.share(now_ns, policy) < 1.0;
        let step_ns = starting.then_some(now_ns.saturating_add(STEP_NS));
        [health.due_ns(), step_ns].into_iter().flatten().min()
    }

    fn publish(&self, health: &Health, now_ns: u64, policy: &HealthPolicy) {
        self.usable.store(health.usable(), Ordering::Relaxed);
        let millis = (health.share(now_ns, policy) * 1e3).max(1.0) as u32;
        self.share_millis.store(millis, Ordering::Relaxed);
        let since = match health.state() {
            State::Down => match self.down_since_ns.load(Ordering::Relaxed) {
                0 => now_ns.max(1),
                since => since,
            },
            _ => 0,
        };
        self.down_since_ns.store(since, Ordering::Relaxed);
    }
}

/// One service, as all threads see it.
#[derive(Debug)]
pub struct ServiceState {
    /// Its name.
    pub name: String,
    /// How it treats its back ends.
    pub policy: HealthPolicy,
    /// Its back ends, in the order of the configuration.
    pub backends: Vec<Arc<BackendState>>,
    /// Grows whenever the weight of a back end has changed.
    weights_version: AtomicU32,
    counts: Arc<ServiceCounts>,
}

/// What is counted of a service.
#[derive(Debug, Default)]
pub struct ServiceCounts {
    /// Clients that are connected now.
    pub active: AtomicU32,
    /// Clients that wait for a back end now.
    pub queued: AtomicU32,
    /// Clients accepted.
    pub clients: Counter,
    /// Clients that the lists did not let in.
    pub denied: Counter,
    /// Clients turned away because there were too many, or who waited too long.
    pub overflowed: Counter,
    /// Clients, or requests, that no back end took.
    pub refused: Counter,
    /// Requests that were refused for what they said (HTTP only).
    pub bad_requests: Counter,
    /// Waits that ended by their time limit.
    pub timeouts: Counter,
}

/// A service's counts outlive the configuration that it was made for.
impl Deref for ServiceState {
    type Target = ServiceCounts;

    fn deref(&self) -> &ServiceCounts {
        &self.counts
    }
}

impl ServiceState {
    pub(super) fn new(
        service: &Service,
        addresses: &[SocketAddr],
        earlier: Option<(&Service, &ServiceState)>,
        now_ns: u64,
        waker: &Arc<Waker>,
    ) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let policy = HealthPolicy {
            reviving_interval_ns: ns(service.reviving_interval),
            check_interval_ns: ns(service.check_interval),
            rise: service.probing.rise,
            fall: service.probing.fall,
            eject_after: service.ejection.map_or(0, |ejection| ejection.failures),
            eject_ns: service.ejection.map_or(0, |ejection| ns(ejection.duration)),
            slow_start_ns: ns(service.slow_start),
        };
        // One with the same name and address is the same.
        let same = |backend: &Backend| {
            let (service, state) = earlier?;
            let at = service
                .backends
                .iter()
                .position(|one| one.name == backend.name && one.address == backend.address)?;
            state.backends.get(at).cloned()
        };
        let backends = service.backends.iter().zip(addresses);
        let backends = backends.map(|(backend, &address)| match same(backend) {
            None => Arc::new(BackendState::new(backend, address, &policy, now_ns, waker)),
            Some(state) => {
                if state.address() != address {
                    state.move_to(address);
                }
                state.set_address_overridden(false);
                state.set_weight(backend.weight);
                state
            }
        });
        Self {
            name: service.name.clone(),
            backends: backends.collect(),
            policy,
            weights_version: AtomicU32::new(0),
            counts: earlier.map_or_else(Arc::default, |(_, state)| state.counts.clone()),
        }
    }

    /// Whether both are the same service, under one configuration or two.
    pub fn is_same_service(&self, other: &ServiceState) -> bool {
        Arc::ptr_eq(&self.counts, &other.counts)
    }

    /// Changes the weight of a back end.
    pub fn set_weight(&self, backend: usize, weight: Weight) {
        if let Some(state) = self.backends.get(backend) {
            state.set_weight(weight);
            self.weights_version.fetch_add(1, Ordering::Release);
        }
    }

    /// How often a weight was changed.
    pub fn weights_version(&self) -> u32 {
        self.weights_version.load(Ordering::Acquire)
    }

    /// Takes a place for one more client, below a limit; it is given back with
    /// [`ServiceState::release`].
    pub fn reserve(&self, most: u32) -> bool {
        reserve(&self.active, most)
    }

    /// Gives a place back.
    pub fn release(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts one more unless there are as many as may be.
fn reserve(count: &AtomicU32, most: u32) -> bool {
    if most == u32::MAX {
        count.fetch_add(1, Ordering::Relaxed);
        return true;
    }
    count
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
            (now < most).then_some(now + 1)
        })
        .is_ok()
}
