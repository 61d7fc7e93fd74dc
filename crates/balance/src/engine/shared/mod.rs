//! What the threads of a balancer share: state of services, flags, and the channel of events.

pub(super) mod counters;
pub mod events;
pub mod notices;
pub mod state;

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use net::os::{self, Waker};

use super::error::ThreadFailed;
use crate::config::model::Config;
use crate::health::HealthEvent;
use counters::Counter;
use events::{EVENTS_MAX, Event, LINE_BYTES_MAX, TRAFFIC_BYTES_MAX};
use notices::Notices;
use state::ServiceState;

/// Shared state of a balancer's threads.
#[derive(Debug)]
pub struct Shared {
    /// Services, in the order of the configuration.
    pub services: Vec<Arc<ServiceState>>,
    /// Start of the process's first balancer, ns of CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// Set to stop at once.
    pub stop: AtomicBool,
    /// Set to stop accepting, and to stop when all clients have gone.
    pub draining: AtomicBool,
    /// Workers that still have listening sockets.
    pub listening: Arc<AtomicU32>,
    /// The same of the previous balancer, which shares sockets with this one.
    pub earlier_listening: Option<Arc<AtomicU32>>,
    /// State that outlives configurations.
    pub process: Arc<ProcessState>,
    /// Wakes the health checker.
    pub waker: Arc<Waker>,
    sender: SyncSender<Event>,
    receiver: Mutex<Option<Receiver<Event>>>,
}

/// A failure that a test injects.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Panic,
    /// A worker's event loop fails.
    Loop,
    HealthCheckerPanic,
    LogPanic,
    HookPanic,
    ChooserPanic,
}

/// A worker's part of [`Shared::listening`], until it has closed its listening sockets.
#[derive(Debug)]
pub(super) struct ListeningCount {
    count: Arc<AtomicU32>,
    counted: AtomicBool,
}

impl ListeningCount {
    pub fn begin(shared: &Shared) -> Arc<ListeningCount> {
        shared.listening.fetch_add(1, Ordering::Release);
        Arc::new(ListeningCount {
            count: shared.listening.clone(),
            counted: AtomicBool::new(true),
        })
    }

    pub fn end(&self) {
        if self.counted.swap(false, Ordering::Relaxed) {
            self.count.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Counters and messages of the process, kept across configurations.
#[derive(Debug, Default)]
pub struct ProcessState {
    /// Events that were dropped as the channel was full or closed.
    pub events_lost: Counter,
    /// Bytes for traffic logs that wait in the channel.
    pub traffic_bytes: AtomicU64,
    /// Bytes of request lines in the channel.
    pub line_bytes: AtomicU64,
    /// Log lines that could not be written.
    pub log_failures: Counter,
    /// Hooks that failed, timed out, or did not fit the queue.
    pub hook_failures: Counter,
    /// How often accepting failed for lack of descriptors, memory or slots.
    pub accept_failures: Counter,
    /// When that was reported last, ns.
    accept_noticed_ns: AtomicU64,
    /// Workers that failed and were started again.
    pub worker_restarts: Counter,
    /// Messages for the operator.
    pub notices: Notices,
    /// Set when a thread failed too often and is not restarted.
    failure: Mutex<Option<ThreadFailed>>,
    /// Failures to inject into the next turns of threads.
    #[cfg(test)]
    pub(super) faults: Mutex<std::collections::VecDeque<Fault>>,
}

impl ProcessState {
    /// The first thread that failed too often, if any.
    pub(super) fn failure(&self) -> Option<ThreadFailed> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone()
    }

    pub(super) fn set_failure(&self, thread: ThreadFailed) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(thread);
    }

    /// Fails or panics if a test has injected such a failure into workers.
    #[cfg(test)]
    pub(super) fn meet_fault(&self) -> std::io::Result<()> {
        match self.take_fault(&[Fault::Panic, Fault::Loop]) {
            None => Ok(()),
            Some(Fault::Loop) => Err(std::io::Error::other("injected")),
            Some(_) => panic!("injected"),
        }
    }

    #[cfg(test)]
    pub(crate) fn inject(&self, fault: Fault) {
        self.faults.lock().unwrap().push_back(fault);
    }

    /// Panics if a test has injected this.
    #[cfg(test)]
    pub(crate) fn meet_panic(&self, fault: Fault) {
        assert!(self.take_fault(&[fault]).is_none(), "injected");
    }

    #[cfg(test)]
    fn take_fault(&self, of: &[Fault]) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap();
        let at = faults.iter().position(|fault| of.contains(fault))?;
        faults.remove(at)
    }

    /// Counts a failure to accept a client, and reports it at most once a minute.
    #[cold]
    pub(super) fn note_accept_failure(&self, errno: i32) {
        const INTERVAL_NS: u64 = 60_000_000_000;
        self.accept_failures.add(1);
        let now_ns = os::now_ns();
        let last_ns = self.accept_noticed_ns.load(Ordering::Relaxed);
        if last_ns > 0 && now_ns.saturating_sub(last_ns) < INTERVAL_NS {
            return;
        }
        self.accept_noticed_ns.store(now_ns, Ordering::Relaxed);
        self.notices.push(match errno {
            net::SLOTS_FULL => "a worker has reached its limit of connections (`connections`); \
                                further clients are closed"
                .to_owned(),
            errno => format!(
                "cannot accept clients: {}; they wait until a connection closes; the limit of open \
                 files is {} (ulimit -n)",
                std::io::Error::from_raw_os_error(errno),
                os::open_files()
            ),
        });
    }
}

impl Deref for Shared {
    type Target = ProcessState;

    fn deref(&self) -> &ProcessState {
        &self.process
    }
}

impl Shared {
    /// Initial state. `addresses` are those of the back ends, by service.
    pub fn new(config: &Config, addresses: &[Vec<SocketAddr>], now_ns: u64) -> Self {
        let waker = Arc::new(Waker::new());
        let services = config.services.iter().zip(addresses);
        let services = services.map(|(service, addresses)| {
            Arc::new(ServiceState::new(service, addresses, None, now_ns, &waker))
        });
        Self::of(services.collect(), now_ns, Arc::default(), waker)
    }

    /// The state for a configuration that replaces another. Services and back ends that exist in
    /// both keep their state, with the addresses and weights of the new one.
    pub fn after(
        config: &Config,
        addresses: &[Vec<SocketAddr>],
        earlier: (&Config, &Shared),
        now_ns: u64,
    ) -> Self {
        let (old, state) = earlier;
        let services = config.services.iter().zip(addresses);
        let services = services.map(|(service, addresses)| {
            let mut pairs = old.services.iter().zip(&state.services);
            let same = pairs
                .find(|(one, _)| one.name == service.name)
                .map(|(one, state)| (one, &**state));
            let waker = &state.waker;
            Arc::new(ServiceState::new(service, addresses, same, now_ns, waker))
        });
        let (process, waker) = (state.process.clone(), state.waker.clone());
        Self {
            earlier_listening: Some(state.listening.clone()),
            ..Self::of(services.collect(), state.started_ns, process, waker)
        }
    }

    fn of(
        services: Vec<Arc<ServiceState>>,
        started_ns: u64,
        process: Arc<ProcessState>,
        waker: Arc<Waker>,
    ) -> Self {
        let (sender, receiver) = sync_channel(EVENTS_MAX);
        Self {
            services,
            started_ns,
            stop: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            listening: Arc::default(),
            earlier_listening: None,
            process,
            waker,
            sender,
            receiver: Mutex::new(Some(receiver)),
        }
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(super) fn is_ending(&self) -> bool {
        self.is_draining() || self.stop.load(Ordering::Relaxed)
    }

    /// Sends an event; never blocks.
    pub fn emit(&self, happened: Event) {
        let line = match &happened {
            Event::RequestFinished { line, .. } => line.as_ref().map_or(0, |line| line.bytes()),
            _ => 0,
        };
        if line == 0 {
            if self.sender.try_send(happened).is_err() {
                self.events_lost.add(1);
            }
            return;
        }
        let waiting = self.line_bytes.fetch_add(line, Ordering::Relaxed) + line;
        if waiting > LINE_BYTES_MAX || self.sender.try_send(happened).is_err() {
            self.line_bytes.fetch_sub(line, Ordering::Relaxed);
            self.events_lost.add(1);
        }
    }

    /// Sends relayed data for a traffic log; never blocks.
    pub fn emit_traffic(
        &self,
        index: (usize, usize),
        client: SocketAddr,
        to_backend: bool,
        bytes: &[u8],
    ) {
        let len = bytes.len() as u64;
        if self.traffic_bytes.fetch_add(len, Ordering::Relaxed) + len > TRAFFIC_BYTES_MAX {
            self.traffic_bytes.fetch_sub(len, Ordering::Relaxed);
            return self.events_lost.add(1);
        }
        let sent = self.sender.try_send(Event::Traffic {
            service: index.0,
            backend: index.1,
            client,
            to_backend,
            bytes: bytes.into(),
        });
        if sent.is_err() {
            self.traffic_bytes.fetch_sub(len, Ordering::Relaxed);
            self.events_lost.add(1);
        }
    }

    /// The receiver of the events; once.
    pub(super) fn take_events(&self) -> Option<Receiver<Event>> {
        let mut receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.take()
    }

    /// Applies a health event, and emits [`Event::BackendChanged`] if the back end became usable or
    /// unusable.
    pub fn note(&self, service: usize, backend: usize, event: HealthEvent) {
        self.note_with(service, backend, event, None);
    }

    /// The same with the `errno` of a connection that failed.
    pub(super) fn note_with(
        &self,
        service: usize,
        backend: usize,
        event: HealthEvent,
        errno: Option<i32>,
    ) {
        let state = &self.services[service];
        let one = &state.backends[backend];
        if one.note(event, os::now_ns(), &state.policy) {
            self.emit(Event::BackendChanged {
                service,
                backend,
                usable: one.usable(),
                cause: event,
                errno,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::events::RequestLine;
    use super::*;
    use crate::config::model::{Backend, Service};

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

    #[test]
    fn request_lines_that_wait_are_bounded_in_bytes() {
        let shared = Shared::new(&Config::new(), &[], 0);
        let events = shared.take_events().unwrap();
        let finished = || Event::RequestFinished {
            service: 0,
            backend: None,
            client: "127.0.0.1:1".parse().unwrap(),
            line: Some(Box::new(RequestLine {
                method: "GET".into(),
                target: "x".repeat(1 << 20).into(),
                version: "1.1",
                referer: None,
                user_agent: None,
            })),
            status: 200,
            bytes_to: 0,
            bytes_from: 0,
            duration_ns: 0,
            cut: None,
        };
        for _ in 0..100 {
            shared.emit(finished());
        }
        let kept = events.try_iter().count();
        assert!((15..=16).contains(&kept), "{kept} MiB");
        assert_eq!(shared.events_lost.get(), 100 - kept as u64);
    }
}
