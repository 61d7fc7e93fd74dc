//! A worker thread: the event loop, and what each event means.
//!
//! That depends on the connection's [`Role`]. A new kind of service adds roles, and arms in `data`,
//! `drained`, `ended` and `failed`; accepting, limits, queues and dispatch are common to all.

mod connect;
pub(super) mod connection;
mod external_choices;
mod peek;
mod places;
mod proxy_header;
mod queue;
mod relay;
mod scan;
pub(super) mod service_worker;
mod streams;
pub(super) mod websocket;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use net::{Buf, ConnId, Event as IoEvent, Io, Lingering, STREAM};

use super::external::ExternalChooser;
use super::shared::state::ServiceState;
use super::shared::{ListeningCount, Shared};
use connection::{Client, Connection, Role};
use places::IdleClients;
use scan::{Burst, SCAN_NS};
use service_worker::ServiceWorker;

/// Longest wait in the event loop, after which flags are checked.
const POLL_NS: u64 = 50_000_000;
/// The same while clients wait for capacity that another thread may free, or for an external
/// chooser.
const QUEUE_POLL_NS: u64 = 2_000_000;
/// Where the client's address is not needed.
const NO_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

pub(super) struct WorkerParts {
    pub shared: Arc<Shared>,
    /// Client limit of this worker.
    pub clients_max: u32,
    /// The service of each listener of the event loop.
    pub listener_services: Vec<usize>,
    pub slots: usize,
    /// How many clients, after their last response, may be waited for until they close.
    pub lingering_max: usize,
    pub external_chooser: Option<ExternalChooser>,
    pub listening_count: Arc<ListeningCount>,
}

pub(super) struct Worker<I: Io> {
    pub(super) io: I,
    pub(super) connections: Vec<Connection>,
    /// Number of slots ever used.
    pub(super) used: usize,
    pub(super) services: Vec<ServiceWorker>,
    pub(super) shared: Arc<Shared>,
    pub(super) rng: fastrand::Rng,
    /// Buffers for messages and for header values.
    pub(super) scratch: Vec<u8>,
    pub(super) values: Vec<u8>,
    listener_services: Vec<usize>,
    pub(super) clients_max: u32,
    pub(super) clients: u32,
    /// Streams of clients that speak HTTP/2.
    pub(super) streams: u32,
    pub(super) idle_clients: IdleClients,
    burst: Burst,
    pub(super) lingering: Lingering,
    /// Capacity was released in this iteration.
    pub(super) freed: bool,
    /// Time of this iteration, ns; read on first use.
    now_ns: Option<u64>,
    scanned_ns: u64,
    listening: bool,
    /// The previous balancer may still accept from the same sockets.
    sharing: bool,
    pub(super) external_chooser: Option<ExternalChooser>,
    listening_count: Arc<ListeningCount>,
}

impl<I: Io> Worker<I> {
    pub fn new(io: I, services: Vec<ServiceWorker>, worker_parts: WorkerParts) -> Worker<I> {
        let mut connections = Vec::new();
        connections.resize_with(worker_parts.slots, Connection::default);
        Worker {
            scanned_ns: io.coarse_now_ns(),
            io,
            connections,
            used: 0,
            services,
            shared: worker_parts.shared,
            rng: fastrand::Rng::new(),
            scratch: Vec::new(),
            values: Vec::new(),
            listener_services: worker_parts.listener_services,
            clients_max: worker_parts.clients_max,
            clients: 0,
            streams: 0,
            idle_clients: IdleClients::default(),
            burst: Burst::default(),
            lingering: Lingering::new(worker_parts.lingering_max),
            freed: false,
            now_ns: None,
            listening: true,
            sharing: true,
            external_chooser: worker_parts.external_chooser,
            listening_count: worker_parts.listening_count,
        }
    }

    /// Runs until it is stopped, or drained and idle.
    ///
    /// # Errors
    /// When the event loop fails.
    pub fn run(&mut self) -> io::Result<()> {
        while !self.shared.stop.load(Ordering::Relaxed) {
            let waiting = self
                .services
                .iter()
                .any(|service_worker| !service_worker.queue.is_empty());
            let external_programs = self
                .external_chooser
                .as_ref()
                .is_some_and(ExternalChooser::is_waiting);
            let soon = waiting || external_programs;
            let wait_ns = if soon { QUEUE_POLL_NS } else { POLL_NS };
            #[cfg(test)]
            self.shared.meet_fault()?;
            self.poll_once(wait_ns)?;
            if external_programs {
                self.take_replies();
            }
            if self.freed || waiting {
                self.freed = false;
                self.serve_queues();
            }
            let now_ns = self.io.coarse_now_ns();
            if now_ns.saturating_sub(self.scanned_ns) >= SCAN_NS {
                self.scanned_ns = now_ns;
                self.scan();
            }
            if self.listening && self.shared.is_draining() {
                self.listening = false;
                // Serve the connections that the kernel has completed.
                self.poll_once(0)?;
                self.poll_once(0)?;
                self.io.stop_listening();
                self.poll_once(0)?;
                self.listening_count.end();
            }
            if !self.listening && self.is_done() {
                // Let the loop close what was closed above.
                let _ = self.poll_once(0);
                if self.is_done() {
                    return Ok(());
                }
            }
            if self.sharing {
                self.check_earlier();
            }
        }
        self.close_websockets();
        // What is queued is sent by the next turns of the loop.
        self.poll_once(0)?;
        self.poll_once(0)
    }

    /// Once the previous balancer no longer accepts: takes clients whose arrival only it was
    /// notified of.
    fn check_earlier(&mut self) {
        let accepts = |count: &Arc<AtomicU32>| count.load(Ordering::Acquire) > 0;
        self.sharing = self.shared.earlier_listening.as_ref().is_some_and(accepts);
        if !self.sharing && self.shared.earlier_listening.is_some() && self.listening {
            self.io.listen_again();
        }
    }

    fn is_done(&self) -> bool {
        let ending = |connection: &Connection| connection.role == Role::Ending;
        self.clients == 0
            && self.lingering.is_empty()
            && !self.connections[..self.used].iter().any(ending)
    }

    fn poll_once(&mut self, wait_ns: u64) -> io::Result<()> {
        self.io.poll(Some(wait_ns))?;
        self.now_ns = None;
        while let Some(event) = self.io.next_event() {
            self.handle(event);
        }
        Ok(())
    }

    /// The time of this iteration, ns.
    pub(super) fn now(&mut self) -> u64 {
        let io = &self.io;
        *self.now_ns.get_or_insert_with(|| io.now_ns())
    }

    pub(super) fn connection(&mut self, conn: ConnId) -> &mut Connection {
        &mut self.connections[conn.slot()]
    }

    pub(super) fn state(&self, service: usize) -> &ServiceState {
        &self.shared.services[service]
    }

    fn handle(&mut self, event: IoEvent) {
        match event {
            IoEvent::Data { conn, buf } => self.data(conn, buf),
            IoEvent::Drained { conn } => self.drained(conn),
            IoEvent::Accepted { conn, listener } => self.accepted(conn, listener),
            IoEvent::Connected { conn } => self.connected(conn),
            IoEvent::ConnectFailed { conn, errno } => self.connect_failed(conn, errno),
            IoEvent::Eof { conn } => self.ended(conn),
            IoEvent::Failed { conn, errno } => self.failed(conn, errno),
            IoEvent::AcceptFailed { errno } => self.shared.note_accept_failure(errno),
            // No UDP sockets are watched.
            IoEvent::Readable { .. } => {}
        }
    }

    pub(super) fn data(&mut self, conn: ConnId, buf: Buf) {
        match self.connections[conn.slot()].role {
            Role::Relaying => self.relay(conn, buf),
            Role::Waiting => self.hold_data(conn, buf),
            Role::Greeting => self.proxy_header_data(conn, buf),
            Role::Peeking => self.peek_data(conn, buf),
            Role::Detecting => self.detect_http(conn, buf),
            Role::HttpDownstream => self.http_request(conn, buf),
            Role::HttpUpstream => self.http_response(conn, buf),
            Role::HttpIdle => {
                self.io.recycle(buf);
                self.close_idle(conn);
            }
            Role::HttpClosing => self.closing_data(conn, buf),
            Role::Lingering => self.lingering_data(conn, buf),
            Role::Free | Role::Connecting | Role::Ending | Role::HttpCut | Role::Carrier => {
                self.io.recycle(buf);
            }
        }
    }

    fn drained(&mut self, conn: ConnId) {
        match self.connections[conn.slot()].role {
            Role::Relaying => self.relay_drained(conn),
            Role::Ending if self.io.queued(conn) == 0 => self.end_by_reset(conn),
            // Whatever it has sent before it closed, it cannot be answered.
            Role::HttpDownstream if self.io.has_failed_send(conn) => self.downstream_reset(conn),
            Role::HttpDownstream => self.downstream_drained(conn),
            Role::HttpUpstream => self.upstream_drained(conn),
            Role::HttpClosing => self.closing_ended(conn, false),
            Role::HttpCut if self.io.queued(conn) == 0 => self.end_http_client(conn, true),
            _ => {}
        }
    }

    fn ended(&mut self, conn: ConnId) {
        match self.connections[conn.slot()].role {
            Role::Relaying => self.relay_ended(conn),
            Role::Waiting => self.waiting_ended(conn),
            Role::Greeting | Role::Peeking | Role::Detecting => self.end_client(conn),
            Role::Carrier => self.http_close(conn),
            Role::HttpDownstream => self.downstream_ended(conn),
            Role::HttpUpstream => self.upstream_ended(conn),
            Role::HttpIdle => self.close_idle(conn),
            Role::HttpClosing => self.closing_ended(conn, true),
            Role::Lingering => self.end_lingering(conn),
            Role::Free | Role::Connecting | Role::Ending | Role::HttpCut => {}
        }
    }

    fn failed(&mut self, conn: ConnId, errno: i32) {
        match self.connections[conn.slot()].role {
            Role::Relaying => self.relay_failed(conn),
            Role::Waiting | Role::Greeting | Role::Peeking | Role::Detecting | Role::Carrier => {
                self.end_client(conn)
            }
            Role::Ending => self.end_by_reset(conn),
            Role::HttpDownstream => self.downstream_reset(conn),
            Role::HttpUpstream => self.upstream_reset(conn, errno),
            Role::HttpIdle => self.close_idle(conn),
            Role::HttpClosing | Role::HttpCut => self.end_http_client(conn, false),
            Role::Lingering => self.end_lingering(conn),
            // Failed attempts have their own event; this is a fallback.
            Role::Connecting => self.connect_failed(conn, 0),
            Role::Free => self.io.close(conn),
        }
    }

    fn accepted(&mut self, conn: ConnId, listener: u32) {
        if listener == STREAM {
            return self.stream_accepted(conn);
        }
        let service = self.listener_services[listener as usize];
        let now_ns = self.now();
        let (service_worker, state) = (&mut self.services[service], &self.shared.services[service]);
        state.clients.add(1);
        let mut address = NO_ADDRESS;
        if service_worker.needs_client {
            // It has disconnected already.
            let Some(peer) = self.io.peer(conn) else {
                return self.io.close(conn);
            };
            address = peer;
            if !service_worker.may_connect(peer.ip()) {
                state.denied.add(1);
                return self.io.close(conn);
            }
        }
        if !self.take_place(service) {
            self.state(service).overflowed.add(1);
            return self.io.close(conn);
        }
        self.clients += 1;
        self.services[service].clients += 1;
        let service_worker = &self.services[service];
        let local = match service_worker.needs_local {
            true => self.io.local(conn).unwrap_or(NO_ADDRESS),
            false => NO_ADDRESS,
        };
        let role = match service_worker.proxy_in {
            true => Role::Greeting,
            false => Role::Waiting,
        };
        self.used = self.used.max(conn.slot() + 1);
        self.connections[conn.slot()] = Connection {
            role,
            conn: Some(conn),
            service: service as u32,
            since_ns: now_ns,
            client: Some(Box::new(Client {
                trusted: service_worker.trusts(address.ip()),
                ..Client::new(address, local, now_ns)
            })),
            ..Connection::default()
        };
        if role == Role::Waiting {
            self.begin(conn);
        }
    }

    /// Handles the end of a client's side before its back end is connected. The client may only
    /// have shut down its side, so its data is held. A queued client that has sent nothing is
    /// closed.
    fn waiting_ended(&mut self, conn: ConnId) {
        let connection = self.connection(conn);
        connection.ended = true;
        let gone = |client: &Client| client.queued_ns.is_some() && client.held.is_empty();
        if connection.client.as_deref().is_some_and(gone) {
            self.end_client(conn);
        }
    }

    /// Closes a client without a back end.
    pub(super) fn end_client(&mut self, conn: ConnId) {
        if self.connection(conn).downstream.is_some() {
            return self.end_http_client(conn, false);
        }
        let connection = std::mem::take(self.connection(conn));
        if let Some(server) = connection.peer {
            // Still connecting.
            self.connections[server.slot()] = Connection::default();
            self.io.close(server);
            self.release_backend(connection.service as usize, connection.backend as usize);
        }
        let mut is_stream = false;
        if let Some(client) = connection.client {
            for buf in client.held {
                self.io.recycle(buf);
            }
            if client.queued_ns.is_some() {
                self.left_queue(connection.service as usize, conn);
            }
            is_stream = client.carrier.is_some();
        }
        // Since the last scan, of a client that speaks HTTP/2.
        let malformed = self.io.carrier_state(conn).malformed;
        if malformed > 0 {
            self.state(connection.service as usize)
                .bad_requests
                .add(malformed);
        }
        self.io.close(conn);
        self.client_closed(connection.service as usize, is_stream);
    }

    /// Rejects a client for which there is no back end.
    pub(super) fn reject_client(&mut self, conn: ConnId) {
        match self.connection(conn).downstream.is_some() {
            true => self.reject_http_client(conn),
            false => self.end_client(conn),
        }
    }

    pub(super) fn client_closed(&mut self, service: usize, is_stream: bool) {
        if is_stream {
            self.streams -= 1;
            return;
        }
        self.clients -= 1;
        self.services[service].clients -= 1;
        self.state(service).release(1);
    }

    /// Releases the capacity of a connection or attempt that has ended.
    pub(super) fn release_backend(&mut self, service: usize, backend: usize) {
        self.services[service].release(&self.shared.services[service], backend);
        self.freed = true;
    }
}

impl<I: Io> Drop for Worker<I> {
    /// Releases what a failed worker had reserved: the shared state outlives it.
    fn drop(&mut self) {
        for (service_worker, state) in self.services.iter_mut().zip(&self.shared.services) {
            service_worker.release_all(state);
        }
    }
}
