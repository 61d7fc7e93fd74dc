//! State of back ends and services that all threads share.
//!
//! Workers read `usable`, `active` and `share` of a back end without a lock. The lock around
//! [`Health`] is taken only for health events. Counters are read only for `--status` and the
//! Prometheus page.
//!
//! When a configuration is replaced, back ends in both keep their state, so the workers of both
//! share it for a while.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use net::os::Waker;

pub use super::counters::{Counter, DurationHistogram};
use crate::config::model::{Backend, Service, Weight};
use crate::health::{Health, HealthEvent, HealthPolicy, State};

/// Shared state of a back end.
#[derive(Debug)]
pub struct BackendState {
    pub name: String,
    health: Mutex<Health>,
    usable: AtomicBool,
    share_millis: AtomicU32,
    /// The last response failed.
    suspect: AtomicBool,
    /// When an operator took it down, ns; 0: it is not down.
    down_since_ns: AtomicU64,
    address: Mutex<SocketAddr>,
    address_version: AtomicU32,
    /// An operator set the address; the name is not resolved again.
    address_overridden: AtomicBool,
    weight: Mutex<Weight>,
    /// When its connections are closed, ns; `u64::MAX`: never.
    cutoff_ns: AtomicU64,
    waker: Arc<Waker>,
    /// Current connections (TCP) or requests (HTTP).
    pub active: AtomicU32,
    /// Connections opened.
    pub connections: Counter,
    /// Connections that failed to open.
    pub connect_failures: Counter,
    /// Requests sent (HTTP only).
    pub requests: Counter,
    /// Failed responses: none, malformed, or status 500 and above (HTTP only).
    pub response_failures: Counter,
    /// Bytes from clients to it.
    pub bytes_to: Counter,
    /// Bytes from it to clients.
    pub bytes_from: Counter,
    /// Time to open a connection.
    pub connect_times: DurationHistogram,
    /// Length of connections; of an HTTP service, time to the complete response.
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

    /// Reserves capacity for one connection or request, unless `most` are active.
    /// [`BackendState::release`] returns it.
    pub fn reserve(&self, most: u32) -> bool {
        reserve(&self.active, most)
    }

    /// Returns capacity of so many reservations.
    pub fn release(&self, count: u32) {
        self.active.fetch_sub(count, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        // Plain data: valid even if a thread panicked.
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::engine) fn is_suspect(&self) -> bool {
        self.suspect.load(Ordering::Relaxed)
    }

    pub(in crate::engine) fn set_suspect(&self, suspect: bool) {
        self.suspect.store(suspect, Ordering::Relaxed);
    }

    /// The current address.
    pub fn address(&self) -> SocketAddr {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the address for new connections.
    pub fn move_to(&self, address: SocketAddr) {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = address;
        self.address_version.fetch_add(1, Ordering::Release);
    }

    /// Incremented with each change of address.
    pub fn address_version(&self) -> u32 {
        self.address_version.load(Ordering::Acquire)
    }

    /// Whether an operator set the address.
    pub fn address_overridden(&self) -> bool {
        self.address_overridden.load(Ordering::Relaxed)
    }

    /// Sets or clears the operator's override.
    pub fn set_address_overridden(&self, address_overridden: bool) {
        self.address_overridden
            .store(address_overridden, Ordering::Relaxed);
    }

    pub fn weight(&self) -> Weight {
        *self.weight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_weight(&self, weight: Weight) {
        *self.weight.lock().unwrap_or_else(PoisonError::into_inner) = weight;
    }

    /// When its connections are closed, ns of CLOCK_MONOTONIC; `u64::MAX`: never.
    pub fn cutoff_ns(&self) -> u64 {
        self.cutoff_ns.load(Ordering::Relaxed)
    }

    /// Sets when its connections are closed; `u64::MAX`: never.
    pub fn set_cutoff_ns(&self, cutoff_ns: u64) {
        self.cutoff_ns.store(cutoff_ns, Ordering::Relaxed);
    }

    /// Whether clients are sent to it.
    pub fn usable(&self) -> bool {
        self.usable.load(Ordering::Relaxed)
    }

    /// The share of its weight in effect, in (0, 1]: below 1 during slow start.
    pub fn share(&self) -> f64 {
        f64::from(self.share_millis.load(Ordering::Relaxed)) / 1e3
    }

    /// How long an operator has had it down, ns.
    pub fn down_for_ns(&self, now_ns: u64) -> Option<u64> {
        match self.down_since_ns.load(Ordering::Relaxed) {
            0 => None,
            since => Some(now_ns.saturating_sub(since)),
        }
    }

    /// Its health state.
    pub fn state(&self) -> State {
        self.lock().state()
    }

    /// Applies a health event. Returns whether it became usable or unusable.
    /// [`Shared::note`](super::Shared::note) also emits the event.
    pub fn note(&self, event: HealthEvent, now_ns: u64, policy: &HealthPolicy) -> bool {
        let mut health = self.lock();
        let due_ns = health.due_ns();
        let changed = health.note(event, now_ns, policy);
        self.publish(&health, now_ns, policy);
        // The health checker has to recompute its sleep only then.
        if health.due_ns() != due_ns {
            self.waker.wake();
        }
        changed
    }

    /// Whether a probe is due. The health checker calls this, which also updates the share during
    /// slow start.
    pub fn probe_due(&self, now_ns: u64, policy: &HealthPolicy) -> bool {
        let mut health = self.lock();
        let due = health.probe_due(now_ns);
        self.publish(&health, now_ns, policy);
        due
    }

    /// The probe under way was lost with its thread.
    pub(in crate::engine) fn probe_lost(&self, now_ns: u64) {
        self.lock().probe_lost(now_ns);
    }

    /// When the health checker has to look at it next, ns; `None`: after the next event.
    pub fn next_wake_ns(&self, now_ns: u64, policy: &HealthPolicy) -> Option<u64> {
        /// How often the share is updated during slow start, ns.
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

/// Shared state of a service.
#[derive(Debug)]
pub struct ServiceState {
    pub name: String,
    pub policy: HealthPolicy,
    /// Back ends, in the order of the configuration.
    pub backends: Vec<Arc<BackendState>>,
    /// Incremented with each change of a weight.
    weights_version: AtomicU32,
    counts: Arc<ServiceCounts>,
}

#[derive(Debug, Default)]
pub struct ServiceCounts {
    /// Current clients.
    pub active: AtomicU32,
    /// Clients in the queue.
    pub queued: AtomicU32,
    /// Clients accepted.
    pub clients: Counter,
    /// Clients denied by the access lists.
    pub denied: Counter,
    /// Clients rejected as there were too many, or as they waited too long.
    pub overflowed: Counter,
    /// Idle clients that were closed to make room for new ones (HTTP only).
    pub evicted: Counter,
    /// Clients or requests for which there was no back end.
    pub refused: Counter,
    /// Invalid requests (HTTP only).
    pub bad_requests: Counter,
    /// Time limits that expired.
    pub timeouts: Counter,
    /// Of these, responses under way and upgraded connections that were cut after silence (HTTP
    /// only).
    pub cut_silent: Counter,
}

/// The counters outlive a configuration.
impl Deref for ServiceState {
    type Target = ServiceCounts;

    fn deref(&self) -> &ServiceCounts {
        &self.counts
    }
}

impl ServiceState {
    pub(in crate::engine) fn new(
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
        // Same name and address: same back end.
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

    /// Whether both are the same service in two configurations.
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

    /// Incremented with each change of a weight.
    pub fn weights_version(&self) -> u32 {
        self.weights_version.load(Ordering::Acquire)
    }

    /// Reserves capacity for one client, unless `most` are active. [`ServiceState::release`]
    /// returns it.
    pub fn reserve(&self, most: u32) -> bool {
        reserve(&self.active, most)
    }

    /// Returns capacity of so many reservations.
    pub fn release(&self, count: u32) {
        self.active.fetch_sub(count, Ordering::Relaxed);
    }
}

/// Increments below a limit.
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
