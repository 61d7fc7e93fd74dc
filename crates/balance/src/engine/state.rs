//! What the balancer's threads know together: the life of each back end, and counters.
//!
//! A worker reads `usable`, `active` and `share` of each back end without a lock; the lock around
//! [`Health`] is taken only when something happens to a back end. Counters are added to with
//! relaxed atomics; they are read for `--status` and the Prometheus page only.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::notices::Notices;
use crate::config::model::{Backend, Config, Service};
use crate::health::{Health, HealthEvent, HealthPolicy, State};

/// A count that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// What it is now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How often a time fell below each power of two of microseconds: 32 buckets, the first below
/// 1 us, the last without an upper bound.
#[derive(Debug, Default)]
pub struct Times {
    buckets: [Counter; 32],
    sum_us: Counter,
}

impl Times {
    /// Notes a time, ns.
    pub fn note_ns(&self, time_ns: u64) {
        let us = time_ns / 1_000;
        let bucket = (64 - us.leading_zeros() as usize).min(31);
        self.buckets[bucket].add(1);
        self.sum_us.add(us);
    }

    /// Counts by bucket; bucket n holds times below 2^n us.
    pub fn counts(&self) -> [u64; 32] {
        std::array::from_fn(|n| self.buckets[n].get())
    }

    /// The sum of all times, us.
    pub fn sum_us(&self) -> u64 {
        self.sum_us.get()
    }
}

/// One back end, as all threads see it.
#[derive(Debug)]
pub struct BackendState {
    /// Its name.
    pub name: String,
    health: Mutex<Health>,
    usable: AtomicBool,
    share_millis: AtomicU32,
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
    fn new(backend: &Backend, policy: &HealthPolicy, now_ns: u64) -> Self {
        let health = Health::new(backend.initial_state, now_ns, policy);
        Self {
            name: backend.name.clone(),
            usable: AtomicBool::new(health.usable()),
            health: Mutex::new(health),
            share_millis: AtomicU32::new(1000),
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
        let changed = health.note(event, now_ns, policy);
        self.publish(&health, now_ns, policy);
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
    pub backends: Vec<BackendState>,
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

impl ServiceState {
    fn new(service: &Service, now_ns: u64) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let policy = HealthPolicy {
            reviving_interval_ns: ns(service.reviving_interval),
            check_interval_ns: ns(service.check_interval),
            eject_after: service.ejection.map_or(0, |ejection| ejection.failures),
            eject_ns: service.ejection.map_or(0, |ejection| ns(ejection.duration)),
            slow_start_ns: ns(service.slow_start),
        };
        Self {
            name: service.name.clone(),
            backends: service
                .backends
                .iter()
                .map(|backend| BackendState::new(backend, &policy, now_ns))
                .collect(),
            policy,
            active: AtomicU32::new(0),
            queued: AtomicU32::new(0),
            clients: Counter::default(),
            denied: Counter::default(),
            overflowed: Counter::default(),
            refused: Counter::default(),
            bad_requests: Counter::default(),
            timeouts: Counter::default(),
        }
    }
}

/// Everything that the threads of a balancer share.
#[derive(Debug)]
pub struct Shared {
    /// Its services, in the order of the configuration.
    pub services: Vec<ServiceState>,
    /// When it started, ns of the monotonic clock.
    pub started_ns: u64,
    /// Set when it is to stop at once.
    pub stop: AtomicBool,
    /// Set when it accepts no more and waits for what is under way.
    pub draining: AtomicBool,
    /// Events that found the channel to the logs full.
    pub events_lost: Counter,
    /// Lines that could not be written to a log.
    pub log_failures: Counter,
    /// Commands of hooks that failed, took too long, or found too many others under way.
    pub hook_failures: Counter,
    /// What the threads have to say.
    pub notices: Notices,
}

impl Shared {
    /// The state at the start.
    pub fn new(config: &Config, now_ns: u64) -> Self {
        Self {
            services: config
                .services
                .iter()
                .map(|service| ServiceState::new(service, now_ns))
                .collect(),
            started_ns: now_ns,
            stop: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            events_lost: Counter::default(),
            log_failures: Counter::default(),
            hook_failures: Counter::default(),
            notices: Notices::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_powers_of_two() {
        let times = Times::default();
        for ns in [0, 999, 1_000, 1_999, 2_000, 1_000_000, u64::MAX] {
            times.note_ns(ns);
        }
        let counts = times.counts();
        assert_eq!((counts[0], counts[1], counts[2]), (2, 2, 1));
        assert_eq!((counts[10], counts[31]), (1, 1));
    }

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
