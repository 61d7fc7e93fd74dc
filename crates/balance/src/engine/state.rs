//! What the balancer's threads know together: the life of each back end, and counters.
//!
//! A worker reads `usable`, `active` and `share` of each back end without a lock; the lock around
//! [`Health`] is taken only when something happens to a back end. Counters are added to with
//! relaxed atomics; they are read for `--status` and the Prometheus page only.
//!
//! When the configuration is replaced, a back end that stays takes its state along, so that for
//! some time the workers of both configurations share it.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::alarm::Alarm;
pub use super::counts::{Counter, Times};
use super::notices::Notices;
use crate::config::model::{Backend, Config, Service, Weight};
use crate::health::{Health, HealthEvent, HealthPolicy, State};

/// What of a back end can be changed while the balancer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where it is; `None` while its host name has no address.
    pub address: Option<SocketAddr>,
    /// An operator said where it is; its host name is not looked up again.
    pub told: bool,
    /// Its weight.
    pub weight: Weight,
}

/// One back end, as all threads see it.
#[derive(Debug)]
pub struct BackendState {
    /// Its name.
    pub name: String,
    health: Mutex<Health>,
    usable: AtomicBool,
    share_millis: AtomicU32,
    settings: Mutex<Settings>,
    /// When connections to it are cut off, ns; `u64::MAX`: never.
    cut_ns: AtomicU64,
    alarm: Arc<Alarm>,
    /// Connections that clients have to it now; of an HTTP service: requests under way.
    pub active: AtomicU32,
    /// Connections that were opened to it.
    pub connections: Counter,
    /// Connections that could not be opened.
    pub connect_failures: Counter,
    /// Requests sent to it (HTTP only).
    pub requests: Counter,
    /// Answers that failed: none, broken, or with a status from 500 (HTTP only).
    pub answer_failures: Counter,
    /// Bytes from clients to it.
    pub bytes_to: Counter,
    /// Bytes from it to clients.
    pub bytes_from: Counter,
    /// Time to open a connection to it.
    pub connect_times: Times,
    /// Length of connections; of an HTTP service: time to a complete answer.
    pub service_times: Times,
}

impl BackendState {
    fn new(backend: &Backend, policy: &HealthPolicy, now_ns: u64, alarm: &Arc<Alarm>) -> Self {
        let health = Health::new(backend.initial_state, now_ns, policy);
        Self {
            name: backend.name.clone(),
            usable: AtomicBool::new(health.usable()),
            health: Mutex::new(health),
            share_millis: AtomicU32::new(1000),
            settings: Mutex::new(Settings {
                address: backend.address.socket(),
                told: false,
                weight: backend.weight,
            }),
            cut_ns: AtomicU64::new(u64::MAX),
            alarm: alarm.clone(),
            active: AtomicU32::new(0),
            connections: Counter::default(),
            connect_failures: Counter::default(),
            requests: Counter::default(),
            answer_failures: Counter::default(),
            bytes_to: Counter::default(),
            bytes_from: Counter::default(),
            connect_times: Times::default(),
            service_times: Times::default(),
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

    /// Where it is, and its weight.
    pub fn settings(&self) -> Settings {
        *self.lock_settings()
    }

    /// Changes where it is or its weight. Workers find out by [`Shared::version`].
    pub(crate) fn change(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.lock_settings());
    }

    fn lock_settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When connections to it are cut off, ns; `u64::MAX`: never.
    pub fn cut_ns(&self) -> u64 {
        self.cut_ns.load(Ordering::Relaxed)
    }

    /// Says when connections to it are cut off, ns; `u64::MAX`: never.
    pub fn cut_at(&self, cut_ns: u64) {
        self.cut_ns.store(cut_ns, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        // A thread that died left a whole value behind: it is plain data.
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether clients may be sent to it.
    pub fn usable(&self) -> bool {
        self.usable.load(Ordering::Relaxed)
    }

    /// The share of its weight that it gets now, in (0, 1].
    pub fn share(&self) -> f64 {
        f64::from(self.share_millis.load(Ordering::Relaxed)) / 1e3
    }

    /// Its state.
    pub fn state(&self) -> State {
        self.lock().state()
    }

    /// Takes note of what happened to it. Returns whether clients are from now on sent to it, or
    /// no longer.
    pub fn note(&self, event: HealthEvent, now_ns: u64, policy: &HealthPolicy) -> bool {
        let mut health = self.lock();
        let due_ns = health.due_ns();
        let changed = health.note(event, now_ns, policy);
        self.publish(&health, now_ns, policy);
        // Whoever probes has to look up only where there is something new for it.
        if health.due_ns() != due_ns {
            self.alarm.ring();
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

    /// When the thread that probes has to look at it again, ns; `None`: not before something
    /// happens to it.
    pub fn look_ns(&self, now_ns: u64, policy: &HealthPolicy) -> Option<u64> {
        /// How often the share of a back end that starts slowly is brought up to date, ns.
        const STEP_NS: u64 = 50_000_000;
        let health = self.lock();
        let starting = health.share(now_ns, policy) < 1.0;
        let step_ns = (starting && health.usable()).then_some(now_ns + STEP_NS);
        [health.due_ns(), step_ns].into_iter().flatten().min()
    }

    fn publish(&self, health: &Health, now_ns: u64, policy: &HealthPolicy) {
        self.usable.store(health.usable(), Ordering::Relaxed);
        let millis = (health.share(now_ns, policy) * 1e3).max(1.0) as u32;
        self.share_millis.store(millis, Ordering::Relaxed);
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
    fn new(
        service: &Service,
        earlier: Option<(&Service, &ServiceState)>,
        now_ns: u64,
        alarm: &Arc<Alarm>,
    ) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let policy = HealthPolicy {
            reviving_interval_ns: ns(service.reviving_interval),
            check_interval_ns: ns(service.check_interval),
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
        Self {
            name: service.name.clone(),
            backends: service
                .backends
                .iter()
                .map(|backend| {
                    same(backend).unwrap_or_else(|| {
                        Arc::new(BackendState::new(backend, &policy, now_ns, alarm))
                    })
                })
                .collect(),
            policy,
            counts: earlier.map_or_else(Arc::default, |(_, state)| state.counts.clone()),
        }
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

/// Everything that the threads of a balancer share.
#[derive(Debug)]
pub struct Shared {
    /// Its services, in the order of the configuration.
    pub services: Vec<Arc<ServiceState>>,
    /// When it started, ns of the monotonic clock.
    pub started_ns: u64,
    /// Set when it is to stop at once.
    pub stop: AtomicBool,
    /// Set when it accepts no more and waits for what is under way.
    pub draining: AtomicBool,
    /// How many workers still have listening sockets.
    pub listening: AtomicU32,
    /// Grows whenever [`Settings`] of a back end have changed.
    pub version: AtomicU32,
    /// What is counted of the balancer itself.
    pub own: Arc<Own>,
    /// Wakes the thread that probes.
    pub alarm: Arc<Alarm>,
}

/// What is counted of the balancer itself, whatever its configuration.
#[derive(Debug, Default)]
pub struct Own {
    /// Events that found the channel to the logs full.
    pub events_lost: Counter,
    /// Lines that could not be written to a log.
    pub log_failures: Counter,
    /// Commands of hooks that failed, took too long, or found too many others under way.
    pub hook_failures: Counter,
    /// What the threads have to say.
    pub notices: Notices,
}

impl Deref for Shared {
    type Target = Own;

    fn deref(&self) -> &Own {
        &self.own
    }
}

impl Shared {
    /// The state at the start.
    pub fn new(config: &Config, now_ns: u64) -> Self {
        let alarm = Arc::new(Alarm::new());
        let services = config.services.iter();
        Self {
            services: services
                .map(|service| Arc::new(ServiceState::new(service, None, now_ns, &alarm)))
                .collect(),
            started_ns: now_ns,
            stop: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            listening: AtomicU32::new(0),
            version: AtomicU32::new(0),
            own: Arc::default(),
            alarm,
        }
    }

    /// The state of a configuration that takes the place of an earlier one: services and back
    /// ends that stay go on with theirs.
    pub fn after(config: &Config, earlier: &Config, state: &Shared, now_ns: u64) -> Self {
        let services = config.services.iter().map(|service| {
            let same = earlier
                .services
                .iter()
                .zip(&state.services)
                .find(|(one, _)| one.name == service.name)
                .map(|(one, state)| (one, &**state));
            Arc::new(ServiceState::new(service, same, now_ns, &state.alarm))
        });
        Self {
            services: services.collect(),
            started_ns: state.started_ns,
            stop: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            listening: AtomicU32::new(0),
            version: AtomicU32::new(0),
            own: state.own.clone(),
            alarm: state.alarm.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_back_end_that_failed_is_not_used_until_a_probe_went_well() {
        let mut service = Service::new("web");
        let address = "127.0.0.1:80".parse::<std::net::SocketAddr>().unwrap();
        service.backends.push(Backend::new("one", address.into()));
        let mut config = Config::new();
        config.services.push(service);
        let shared = Shared::new(&config, 0);
        let service = &shared.services[0];
        let (one, policy) = (&service.backends[0], &service.policy);
        assert!(one.usable());
        assert!(one.note(HealthEvent::ConnectFailed, 1, policy));
        assert!(!one.usable());
        assert!(!one.probe_due(2, policy));
        assert!(one.probe_due(policy.reviving_interval_ns + 1, policy));
        assert!(one.note(
            HealthEvent::ProbeOk,
            policy.reviving_interval_ns + 2,
            policy
        ));
        assert!(one.usable());
    }
}
