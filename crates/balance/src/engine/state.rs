//! What the balancer's threads know together: the life of each back end, and counters.
//!
//! A worker reads `usable`, `active` and `share` of each back end without a lock; the lock around
//! [`Health`] is taken only when something happens to a back end. Counters are read for
//! `--status` and the Prometheus page only.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use net::os;

pub use super::counters::{Counter, Times};
use super::events::{EVENTS_MAX, Happened};
use crate::config::model::{Backend, Config, Service};
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
    doubted: AtomicBool,
    /// Since when an operator has it down, ns; 0 while it is not.
    down_since_ns: AtomicU64,
    address: Mutex<SocketAddr>,
    moves: AtomicU32,
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
    fn new(backend: &Backend, address: SocketAddr, policy: &HealthPolicy, now_ns: u64) -> Self {
        let health = Health::new(backend.initial_state, now_ns, policy);
        Self {
            name: backend.name.clone(),
            usable: AtomicBool::new(health.usable()),
            share_millis: AtomicU32::new(1000),
            doubted: AtomicBool::new(false),
            down_since_ns: AtomicU64::new(match health.state() {
                State::Down => now_ns.max(1),
                _ => 0,
            }),
            address: Mutex::new(address),
            moves: AtomicU32::new(0),
            health: Mutex::new(health),
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

    fn lock(&self) -> MutexGuard<'_, Health> {
        // A thread that died left a whole value behind: it is plain data.
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an answer of it has failed since the last good one.
    pub(super) fn is_doubted(&self) -> bool {
        self.doubted.load(Ordering::Relaxed)
    }

    pub(super) fn doubt(&self, doubted: bool) {
        self.doubted.store(doubted, Ordering::Relaxed);
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves it: whoever is connected stays where it is, new connections go there.
    pub fn move_to(&self, address: SocketAddr) {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = address;
        self.moves.fetch_add(1, Ordering::Release);
    }

    /// How often it was moved.
    pub fn moves(&self) -> u32 {
        self.moves.load(Ordering::Acquire)
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
    /// no longer; [`Shared::note`] also tells of that.
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
    fn new(service: &Service, addresses: &[SocketAddr], now_ns: u64) -> Self {
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
                .zip(addresses)
                .map(|(backend, &address)| BackendState::new(backend, address, &policy, now_ns))
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
    pub services: Vec<ServiceState>,
    /// When it started, ns of the monotonic clock.
    pub started_ns: u64,
    /// Set when it is to stop at once.
    pub stop: AtomicBool,
    /// Set when it accepts no more and waits for what is under way.
    pub draining: AtomicBool,
    /// How many workers still have listening sockets.
    pub listening: AtomicU32,
    /// Events that found the channel full, or nobody at its end.
    pub events_lost: Counter,
    sender: SyncSender<Happened>,
    receiver: Mutex<Option<Receiver<Happened>>>,
}

impl Shared {
    /// The state at the start; `addresses` are those of the back ends, by service.
    pub fn new(config: &Config, addresses: &[Vec<SocketAddr>], now_ns: u64) -> Self {
        let (sender, receiver) = sync_channel(EVENTS_MAX);
        Self {
            services: config
                .services
                .iter()
                .zip(addresses)
                .map(|(service, addresses)| ServiceState::new(service, addresses, now_ns))
                .collect(),
            started_ns: now_ns,
            stop: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            listening: AtomicU32::new(0),
            events_lost: Counter::default(),
            sender,
            receiver: Mutex::new(Some(receiver)),
        }
    }

    /// Tells whoever reads the events; never waits.
    pub fn tell(&self, happened: Happened) {
        if self.sender.try_send(happened).is_err() {
            self.events_lost.add(1);
        }
    }

    /// The end of the channel where events are read; there is one.
    pub(super) fn take_events(&self) -> Option<Receiver<Happened>> {
        let mut receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.take()
    }

    /// Takes note of what happened to a back end, and tells of it when clients are from now on
    /// sent there, or no longer.
    pub fn note(&self, service: usize, backend: usize, event: HealthEvent) {
        let state = &self.services[service];
        let one = &state.backends[backend];
        if one.note(event, os::now_ns(), &state.policy) {
            self.tell(Happened::BackendChanged {
                service,
                backend,
                usable: one.usable(),
            });
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
        let shared = Shared::new(&config, &[vec![address]], 0);
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
