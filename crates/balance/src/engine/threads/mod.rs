//! Worker threads and their listening sockets.

pub(super) mod tls_setup;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use net::{Epoll, Io, IoKind, IoOptions, Uring, os};
use tls::Secure;

use super::error::{BalancerError, ThreadFailed};
use super::external::ExternalChooser;
use super::http::{HttpServiceWorker, IDLE_MAX};
use super::multiplexed::{Multiplexed, StreamsMax};
use super::restarts::{PAUSE, Restarts, ThreadError};
use super::shared::counters::set_worker_shard;
use super::shared::{ListeningCount, Shared};
use super::worker::service_worker::ServiceWorker;
use super::worker::{Worker, WorkerParts};
use crate::access::AccessRules;
use crate::config::model::{Backend, Config, Service, ServiceKind};
use tls_setup::WorkerTls;

/// Connection slots beyond the client limit, for connections that are closing.
const SPARE: u32 = 64;
/// Further slots, for clients that were sent their last response and may still be sending.
const LINGERING_MAX: u32 = 256;

/// Initial number of receive buffers: few, so that they stay in the cache.
const BUFFERS: u16 = 128;
/// Their size. Larger ones hardly lower the cost per byte.
const BUFFER_BYTES: u32 = 32 * 1024;

/// Upper limit of receive buffers: each connection may hold one while its peer does not drain.
fn buffers_max(connections: u32) -> u16 {
    let more = connections.saturating_add(SPARE).saturating_mul(2) + 1;
    let most = more.clamp(1024, 1 << 15).next_power_of_two();
    u16::try_from(most).unwrap_or(1 << 15)
}

pub(super) struct Listener {
    /// Index of the service.
    pub service: usize,
    /// The configured address; its port may be 0.
    pub configured: SocketAddr,
    /// Number of the worker that accepts from it.
    pub worker: usize,
    pub socket: TcpListener,
}

impl Listener {
    fn new(service: usize, configured: SocketAddr, socket: TcpListener) -> Listener {
        Listener {
            service,
            configured,
            worker: 0,
            socket,
        }
    }

    /// Duplicates the descriptor.
    pub fn copy(&self) -> io::Result<Listener> {
        let socket = self.socket.try_clone()?;
        Ok(Listener {
            worker: self.worker,
            ..Listener::new(self.service, self.configured, socket)
        })
    }

    pub fn bound(&self) -> Result<SocketAddr, BalancerError> {
        let address = self.configured;
        let bound = self.socket.local_addr();
        bound.map_err(|source| BalancerError::Listen { address, source })
    }
}

/// Opens the listening sockets: for each address those of the previous balancer (`old`, with the
/// names of its services), and more until each thread has one.
///
/// Inherited sockets are never closed in between, so no pending client is lost.
pub(super) fn listen(
    config: &Config,
    old: &[Listener],
    names: &[&str],
) -> Result<Vec<Listener>, BalancerError> {
    let mut listeners: Vec<Listener> = Vec::new();
    for (number, service) in config.services.iter().enumerate() {
        let backlog = i32::try_from(service.backlog).unwrap_or(i32::MAX);
        for &configured in &service.listen {
            let failed = |source| BalancerError::Listen {
                address: configured,
                source,
            };
            let mut address = configured;
            let mut have = 0;
            // Port 0 gave each service its own port.
            let free = |listener: &&Listener| {
                configured.port() != 0
                    || names.get(listener.service) == Some(&service.name.as_str())
            };
            for listener in old
                .iter()
                .filter(|listener| listener.configured == configured)
                .filter(free)
            {
                let mut listener = listener.copy().map_err(failed)?;
                listener.service = number;
                address = listener.bound()?;
                listeners.push(listener);
                have += 1;
            }
            if have == 0 {
                // SO_REUSEPORT would silently share a port that is in use.
                os::listen(address, backlog, false).map_err(failed)?;
            }
            for _ in have..config.threads {
                let socket = os::listen(address, backlog, true).map_err(failed)?;
                // All threads use the port that the first socket got.
                address = socket.local_addr().map_err(failed)?;
                listeners.push(Listener::new(number, configured, socket));
            }
        }
    }
    Ok(listeners)
}

/// Duplicates of the listening sockets, which keep them open for the next balancer and for workers
/// that are started again.
pub(super) struct Copies(Mutex<Vec<Listener>>);

impl Copies {
    pub fn lock(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn copies_for(&self, worker: usize) -> io::Result<Vec<Listener>> {
        let copies = self.lock();
        let own = copies.iter().filter(|listener| listener.worker == worker);
        own.map(Listener::copy).collect()
    }
}

/// Distributes the sockets evenly over threads. Also returns duplicates.
pub(super) fn distribute(
    listeners: Vec<Listener>,
    threads: usize,
) -> io::Result<(Vec<Vec<Listener>>, Copies)> {
    let mut copies = Vec::new();
    let mut per_thread: Vec<Vec<Listener>> = Vec::new();
    per_thread.resize_with(threads, Vec::new);
    let mut position = 0;
    let mut last = None;
    for mut listener in listeners {
        let next = Some((listener.service, listener.configured));
        position = if last == next { position + 1 } else { 0 };
        last = next;
        listener.worker = position % threads.max(1);
        copies.push(listener.copy()?);
        if let Some(thread) = per_thread.get_mut(listener.worker) {
            thread.push(listener);
        }
    }
    Ok((per_thread, Copies(Mutex::new(copies))))
}

/// The name and bound address of each listener.
pub(super) fn bound(
    config: &Config,
    listeners: &[Listener],
) -> Result<Vec<(String, SocketAddr)>, BalancerError> {
    let mut all = Vec::new();
    for (number, service) in config.services.iter().enumerate() {
        for &configured in &service.listen {
            let same = |listener: &&Listener| {
                listener.service == number && listener.configured == configured
            };
            if let Some(listener) = listeners.iter().find(same) {
                all.push((service.name.clone(), listener.bound()?));
            }
        }
    }
    Ok(all)
}

pub(super) struct WorkerSpec {
    pub number: usize,
    pub config: Arc<Config>,
    pub shared: Arc<Shared>,
    pub rules: Vec<AccessRules>,
    pub tls: Arc<WorkerTls>,
    /// Its listening sockets, until it has begun to listen.
    pub listeners: Option<Vec<Listener>>,
    pub copies: Arc<Copies>,
    /// Where a service uses an external chooser.
    pub external_chooser: Option<ExternalChooser>,
    /// Where it reports whether its event loop opened, until it has done so.
    pub opened: Option<Sender<io::Result<()>>>,
    pub listening_count: Arc<ListeningCount>,
}

/// Starts a worker thread, which reports through `opened` whether its event loop opened. A worker
/// that fails later is started again on its thread.
///
/// # Errors
/// When the thread cannot be started.
pub(super) fn start(
    kind: IoKind,
    spec: WorkerSpec,
) -> Result<JoinHandle<()>, os::StartThreadError> {
    os::start_thread("of a worker", move || match kind {
        IoKind::Uring => keep_running::<Uring>(spec),
        IoKind::Epoll => keep_running::<Epoll>(spec),
    })
}

/// Runs a worker until it is stopped or drained, or has failed too often.
fn keep_running<I: Io>(mut spec: WorkerSpec) {
    set_worker_shard(spec.number);
    let (number, shared) = (spec.number, spec.shared.clone());
    let mut restarts = Restarts::default();
    loop {
        // Unwind safety: a panic drops the worker with its connections. It shares only counters,
        // which its drop corrects, and values that are valid at any time.
        let ended = catch_unwind(AssertUnwindSafe(|| run_worker::<I>(&mut spec)));
        let failure = match ended {
            Ok(Ok(())) => break,
            Ok(Err(failure)) => failure,
            Err(payload) => ThreadError::of_panic(&*payload),
        };
        let thread = format!("worker {}", number + 1);
        if shared.is_ending() {
            let notice = format!("{thread} failed while it drained: {failure}");
            shared.notices.push(notice);
            break;
        }
        if !restarts.allow(Instant::now()) {
            // On a listening socket that nobody accepts from, clients would wait for ever.
            spec.copies.lock().retain(|one| one.worker != number);
            let last = failure.to_string();
            match spec.opened.take() {
                // Then the balancer does not start; an earlier one goes on.
                Some(opened) => drop(opened.send(Err(io::Error::other(last)))),
                None => shared.set_failure(ThreadFailed { thread, last }),
            }
            break;
        }
        shared.worker_restarts.add(1);
        shared.notices.push(format!(
            "{thread} failed and is restarted; its clients' connections are closed: {failure}"
        ));
        std::thread::sleep(PAUSE);
    }
    spec.listening_count.end();
}

fn run_worker<I: Io>(spec: &mut WorkerSpec) -> Result<(), ThreadError> {
    let http = spec.config.services.iter();
    let http = http.filter(|service| service.kind != ServiceKind::Tcp);
    let backends: usize = http.map(|service| service.backends.len()).sum();
    // At least one idle connection per back end.
    let idle = if backends > 0 {
        IDLE_MAX.max(backends) as u32
    } else {
        0
    };
    let options = IoOptions {
        outgoing: spec.config.connections_per_thread + SPARE + idle,
        accepted: spec.config.connections_per_thread + SPARE + LINGERING_MAX,
        buffers: BUFFERS,
        buffers_max: buffers_max(spec.config.connections_per_thread),
        buffer_size: BUFFER_BYTES,
        files: true,
        stamps: false,
    };
    let listeners = match spec.listeners.take() {
        Some(listeners) => listeners,
        None => spec
            .copies
            .copies_for(spec.number)
            .map_err(ThreadError::Open)?,
    };
    let listener_services: Vec<usize> = listeners.iter().map(|one| one.service).collect();
    let servers = spec.tls.for_listeners(&listener_services);
    let headers = listener_services
        .iter()
        .map(|&service| spec.config.services[service].proxy_protocol_in)
        .collect();
    let opened = I::open(options).and_then(|io| {
        let io = Secure::over(io, &options).with_servers(servers);
        let io = io.with_headers(headers);
        let mut io = io.with_clients(spec.tls.for_backends());
        for listener in listeners {
            io.listen(listener.socket)?;
        }
        Ok(io)
    });
    let io = match (opened, spec.opened.take()) {
        (Ok(io), opened) => {
            spec.opened = opened;
            io
        }
        // Then the balancer does not start.
        (Err(error), Some(opened)) => {
            let _ = opened.send(Err(error));
            return Ok(());
        }
        (Err(error), None) => return Err(ThreadError::Open(error)),
    };
    // Without HTTP/2, requests do not pay for it.
    let most = streams_max(&spec.config);
    match most.incoming + most.outgoing {
        0 => serve(spec, io, options.slots(), listener_services, backends),
        streams => {
            let io = Multiplexed::over(io, &options, most);
            let slots = options.slots() + streams as usize;
            serve(spec, io, slots, listener_services, backends)
        }
    }
}

/// How many streams there may be: as many of clients, and as many to back ends, as a thread may
/// have clients; none where nothing speaks HTTP/2.
fn streams_max(config: &Config) -> StreamsMax {
    let streams = config.connections_per_thread + SPARE;
    let if_any = |any| if any { streams } else { 0 };
    let mut backends = config.services.iter().flat_map(|one| &one.backends);
    StreamsMax {
        incoming: if_any(config.services.iter().any(Service::speaks_http_2)),
        outgoing: if_any(backends.any(Backend::speaks_http_2)),
    }
}

fn serve<I: Io>(
    spec: &mut WorkerSpec,
    mut io: I,
    slots: usize,
    listener_services: Vec<usize>,
    backends: usize,
) -> Result<(), ThreadError> {
    let mut first_profile = 0;
    let services = spec
        .config
        .services
        .iter()
        .zip(spec.rules.iter().cloned())
        .zip(&spec.shared.services)
        .map(|((service, rules), state)| {
            let http = HttpServiceWorker::new(service, state, backends);
            let worker = ServiceWorker::new(service, state, rules, http, first_profile, &mut io);
            first_profile += service.backends.len() as u32;
            worker
        })
        .collect();
    let worker_parts = WorkerParts {
        shared: spec.shared.clone(),
        clients_max: spec.config.connections_per_thread,
        listener_services,
        slots,
        lingering_max: LINGERING_MAX as usize,
        external_chooser: spec.external_chooser.as_ref().map(ExternalChooser::fresh),
        listening_count: spec.listening_count.clone(),
    };
    let mut worker = Worker::new(io, services, worker_parts);
    if let Some(opened) = spec.opened.take() {
        let _ = opened.send(Ok(()));
    }
    worker.run().map_err(ThreadError::Loop)
}
