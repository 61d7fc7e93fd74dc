//! The balancer's threads and their listening sockets.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use net::{Epoll, Io, IoKind, IoOptions, Uring, os};

use super::BalancerError;
use super::counters::set_worker_shard;
use super::external::ExternalChooser;
use super::http::{HttpServiceWorker, IDLE_MAX};
use super::service_worker::ServiceWorker;
use super::shared::Shared;
use super::worker::{Worker, WorkerParts};
use crate::access::AccessRules;
use crate::config::model::{Config, ServiceKind};

/// Connections beyond those of clients that a worker has room for: some that are being closed.
const SPARE: u32 = 64;

/// Receive buffers that a worker begins with: few enough that what is in them stays in the
/// processor's cache.
const BUFFERS: u16 = 128;
/// Their size: large transfers cost less per byte the larger the pieces are, up to about this.
const BUFFER_BYTES: u32 = 32 * 1024;

/// The most receive buffers: more than there are connections, which may each hold one for as long
/// as its peer takes nothing; as far as can be.
fn buffers_max(connections: u32) -> u16 {
    let more = connections.saturating_add(SPARE).saturating_mul(2) + 1;
    let most = more.clamp(1024, 1 << 15).next_power_of_two();
    u16::try_from(most).unwrap_or(1 << 15)
}

/// A listening socket of a service.
pub(super) struct Listener {
    /// The service's place.
    pub service: usize,
    /// The address as the configuration has it.
    pub emits_events: SocketAddr,
    pub socket: TcpListener,
}

impl Listener {
    fn new(service: usize, emits_events: SocketAddr, socket: TcpListener) -> Listener {
        Listener {
            service,
            emits_events,
            socket,
        }
    }

    /// Another descriptor of the same socket.
    pub fn copy(&self) -> io::Result<Listener> {
        let socket = self.socket.try_clone()?;
        Ok(Listener::new(self.service, self.emits_events, socket))
    }

    pub fn bound(&self) -> Result<SocketAddr, BalancerError> {
        let address = self.emits_events;
        let bound = self.socket.local_addr();
        bound.map_err(|source| BalancerError::Listen { address, source })
    }
}

/// Opens the listening sockets, service after service: for each address those that a balancer
/// before this one has there (`old`, and by their places the names of its services), and so many
/// more that each thread has one.
///
/// Sockets that are taken over stay open all the time, so that no client that waits there to be
/// accepted is lost.
pub(super) fn listen(
    config: &Config,
    old: &[Listener],
    names: &[&str],
) -> Result<Vec<Listener>, BalancerError> {
    let mut listeners: Vec<Listener> = Vec::new();
    for (number, service) in config.services.iter().enumerate() {
        let backlog = i32::try_from(service.backlog).unwrap_or(i32::MAX);
        for &emits_events in &service.listen {
            let failed = |source| BalancerError::Listen {
                address: emits_events,
                source,
            };
            let mut address = emits_events;
            let mut have = 0;
            // Several services may have asked for a free port, and got different ones.
            let free = |listener: &&Listener| {
                emits_events.port() != 0
                    || names.get(listener.service) == Some(&service.name.as_str())
            };
            for listener in old
                .iter()
                .filter(|listener| listener.emits_events == emits_events)
                .filter(free)
            {
                let mut listener = listener.copy().map_err(failed)?;
                listener.service = number;
                address = listener.bound()?;
                listeners.push(listener);
                have += 1;
            }
            if have == 0 {
                // Sockets that share a port would take one that is in use without a word.
                os::listen(address, backlog, false).map_err(failed)?;
            }
            for _ in have..config.threads {
                let socket = os::listen(address, backlog, true).map_err(failed)?;
                // All threads take the port that the first was given.
                address = socket.local_addr().map_err(failed)?;
                listeners.push(Listener::new(number, emits_events, socket));
            }
        }
    }
    Ok(listeners)
}

/// Deals the sockets out to threads, so that each has about as many of each address; gives back
/// copies, which keep them open for a balancer that comes after this one.
pub(super) fn distribute(
    listeners: Vec<Listener>,
    threads: usize,
) -> io::Result<(Vec<Vec<Listener>>, Vec<Listener>)> {
    let copies = listeners
        .iter()
        .map(Listener::copy)
        .collect::<io::Result<_>>()?;
    let mut per_thread: Vec<Vec<Listener>> = Vec::new();
    per_thread.resize_with(threads, Vec::new);
    let mut position = 0;
    let mut last = None;
    for listener in listeners {
        let next = Some((listener.service, listener.emits_events));
        position = if last == next { position + 1 } else { 0 };
        last = next;
        if let Some(thread) = per_thread.get_mut(position % threads.max(1)) {
            thread.push(listener);
        }
    }
    Ok((per_thread, copies))
}

/// Each service's name with each address that it listens on.
pub(super) fn bound(
    config: &Config,
    listeners: &[Listener],
) -> Result<Vec<(String, SocketAddr)>, BalancerError> {
    let mut all = Vec::new();
    for (number, service) in config.services.iter().enumerate() {
        for &emits_events in &service.listen {
            let same = |listener: &&Listener| {
                listener.service == number && listener.emits_events == emits_events
            };
            if let Some(listener) = listeners.iter().find(same) {
                all.push((service.name.clone(), listener.bound()?));
            }
        }
    }
    Ok(all)
}

/// What a thread is given.
pub(super) struct WorkerSpec {
    pub number: usize,
    pub config: Arc<Config>,
    pub shared: Arc<Shared>,
    pub rules: Vec<AccessRules>,
    pub listeners: Vec<Listener>,
    /// Where a service has its back ends chosen by a program.
    pub external_chooser: Option<ExternalChooser>,
    pub opened: Sender<io::Result<()>>,
}

/// Starts a thread. It says by `opened` whether it could open its event loop.
pub(super) fn spawn(kind: IoKind, spec: WorkerSpec) -> JoinHandle<()> {
    spec.shared.listening.fetch_add(1, Ordering::Release);
    std::thread::spawn(move || match kind {
        IoKind::Uring => run_worker::<Uring>(spec),
        IoKind::Epoll => run_worker::<Epoll>(spec),
    })
}

fn run_worker<I: Io>(spec: WorkerSpec) {
    set_worker_shard(spec.number);
    let http = spec.config.services.iter();
    let http = http.filter(|service| service.kind != ServiceKind::Tcp);
    let backends: usize = http.map(|service| service.backends.len()).sum();
    // Each keeps one connection at least.
    let idle = if backends > 0 {
        IDLE_MAX.max(backends) as u32
    } else {
        0
    };
    let options = IoOptions {
        outgoing: spec.config.connections_per_thread + SPARE + idle,
        accepted: spec.config.connections_per_thread + SPARE,
        buffers: BUFFERS,
        buffers_max: buffers_max(spec.config.connections_per_thread),
        buffer_size: BUFFER_BYTES,
        files: true,
        stamps: false,
    };
    let listener_services = spec
        .listeners
        .iter()
        .map(|listener| listener.service)
        .collect();
    let opened = I::open(options).and_then(|mut io| {
        for listener in spec.listeners {
            io.listen(listener.socket)?;
        }
        Ok(io)
    });
    let mut io = match opened {
        Ok(io) => io,
        Err(e) => return drop(spec.opened.send(Err(e))),
    };
    let services = spec
        .config
        .services
        .iter()
        .zip(spec.rules)
        .zip(&spec.shared.services)
        .map(|((service, rules), state)| {
            let http = HttpServiceWorker::new(service, state, backends);
            ServiceWorker::new(service, state, rules, http, &mut io)
        })
        .collect();
    let worker_parts = WorkerParts {
        shared: spec.shared,
        clients_max: spec.config.connections_per_thread,
        listener_services,
        slots: options.slots(),
        external_chooser: spec.external_chooser,
    };
    let _ = spec.opened.send(Ok(()));
    Worker::new(io, services, worker_parts).run();
}
