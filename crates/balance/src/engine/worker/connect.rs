//! From an accepted client to a connected back end.

use std::io::{Error, ErrorKind};

use net::{Buf, ConnId, Io, NO_PLACE, proxy_protocol};

use super::Worker;
use super::connection::{Client, Connection, Role};
use super::service_worker::Choice;
use crate::config::model::ProxyVersion;
use crate::engine::http::choose_held;
use crate::engine::shared::events::Event;
use crate::health::HealthEvent;

/// Buffers held for a client until its back end is connected.
const HELD_MAX: usize = 4;

impl<I: Io> Worker<I> {
    /// Starts serving an accepted client.
    pub(in crate::engine) fn begin(&mut self, client: ConnId) {
        let service = self.connection(client).service as usize;
        if self.services[service].speaks_http_2 {
            return self.connection(client).role = Role::Detecting;
        }
        if self.services[service].http.is_some() {
            return self.http_begin(client);
        }
        if !self.services[service].sni.is_empty() {
            return self.connection(client).role = Role::Peeking;
        }
        self.seek_backend(client);
    }

    /// Chooses a back end for a client of a TCP service, unless others wait.
    pub(in crate::engine) fn seek_backend(&mut self, client: ConnId) {
        let service = self.connection(client).service as usize;
        // First come, first served.
        if !self.services[service].queue.is_empty() && self.services[service].program.is_none() {
            return self.enqueue(client);
        }
        self.select_backend(client);
    }

    /// Holds what a client sends before its back end is connected.
    pub(in crate::engine) fn hold_data(&mut self, conn: ConnId, buf: Buf) {
        let connection = &mut self.connections[conn.slot()];
        let Some(client) = &mut connection.client else {
            return self.io.recycle(buf);
        };
        connection.bytes += buf.len() as u64;
        client.held.push(buf);
        if client.held.len() >= HELD_MAX && !connection.paused {
            connection.paused = true;
            self.io.pause(conn);
        }
    }

    /// Chooses a back end for a client, or queues or rejects it.
    pub(in crate::engine) fn select_backend(&mut self, client: ConnId) {
        if self.connection(client).downstream.is_some() {
            return self.select_http_backend(client);
        }
        let choice = self.choose(client);
        self.apply_choice(client, choice);
    }

    /// Chooses a back end for a client, or for the request it holds, and reserves capacity.
    pub(in crate::engine) fn choose(&mut self, client: ConnId) -> Choice {
        let now_ns = self.now();
        let connection = &self.connections[client.slot()];
        let Some(client_state) = connection.client.as_deref() else {
            return Choice::NoneUsable;
        };
        let service = connection.service as usize;
        let state = &self.shared.services[service];
        let (service_worker, rng) = (&mut self.services[service], &mut self.rng);
        match connection.downstream.as_deref() {
            None => service_worker.choose(state, client_state, None, now_ns, rng),
            Some(held) => choose_held(service_worker, state, held, client_state, now_ns, rng),
        }
    }

    pub(in crate::engine) fn apply_choice(&mut self, client: ConnId, choice: Choice) {
        match choice {
            Choice::Backend(at) if self.connection(client).downstream.is_some() => {
                self.assign_request(client, at);
            }
            Choice::Backend(at) => self.dial(client, at),
            Choice::Full => self.enqueue(client),
            Choice::AskProgram => self.ask(client),
            Choice::LastHop => self.answer_as_last_hop(client),
            Choice::NoneUsable => {
                let service = self.connection(client).service as usize;
                self.state(service).refused.add(1);
                self.reject_client(client);
            }
        }
    }

    /// Starts connecting to a back end, on which capacity was reserved.
    pub(in crate::engine) fn dial(&mut self, client: ConnId, backend: usize) {
        let since_ns = self.now();
        let service = self.connection(client).service;
        let state = &self.shared.services[service as usize].backends[backend];
        let target = self.services[service as usize].backends[backend].target(state, &mut self.io);
        let Ok(conn) = self.io.connect(target, None) else {
            // This machine is out of sockets; the back end is not to blame.
            self.release_backend(service as usize, backend);
            self.state(service as usize).overflowed.add(1);
            return self.reject_client(client);
        };
        self.announce_before_handshake(client, conn, backend);
        let connection = self.connection(client);
        connection.peer = Some(conn);
        connection.backend = backend as u32;
        self.used = self.used.max(conn.slot() + 1);
        self.connections[conn.slot()] = Connection {
            role: Role::Connecting,
            conn: Some(conn),
            peer: Some(client),
            service,
            backend: backend as u32,
            since_ns,
            ..Connection::default()
        };
    }

    /// Announces the client by the PROXY protocol where TLS follows.
    fn announce_before_handshake(&mut self, client: ConnId, server: ConnId, backend: usize) {
        let connection = &self.connections[client.slot()];
        let slot = &self.services[connection.service as usize].backends[backend];
        if slot.has_tls()
            && let Some(client) = &connection.client
        {
            let header = announcement(slot.proxy_out, client);
            self.io.send_before_handshake(server, &header);
        }
    }

    /// An attempt failed: retry the same back end as configured, then another one.
    pub(in crate::engine) fn connect_failed(&mut self, conn: ConnId, errno: i32) {
        let Some((client, service, backend)) = self.drop_attempt(conn) else {
            return;
        };
        if errno != NO_PLACE {
            self.state(service).backends[backend]
                .connect_failures
                .add(1);
        }
        let retries = self.services[service].backends[backend].retries;
        if let Some(client_state) = &mut self.connection(client).client {
            if client_state.again < retries {
                client_state.again += 1;
                return self.dial(client, backend);
            }
            client_state.again = 0;
            client_state.tried.push(backend as u32);
        }
        self.release_backend(service, backend);
        if !is_local_error(errno) {
            self.backend_failed(client, service, backend, errno);
        }
        self.select_backend(client);
    }

    /// Abandons an attempt that still hangs, and tries another back end.
    pub(in crate::engine) fn abandon_attempt(&mut self, conn: ConnId) {
        let Some((client, service, backend)) = self.drop_attempt(conn) else {
            return;
        };
        if let Some(client_state) = &mut self.connection(client).client {
            client_state.again = 0;
            client_state.tried.push(backend as u32);
        }
        self.release_backend(service, backend);
        self.select_backend(client);
    }

    /// Closes an attempt. Returns its client, service and back end.
    fn drop_attempt(&mut self, conn: ConnId) -> Option<(ConnId, usize, usize)> {
        let connection = std::mem::take(self.connection(conn));
        self.io.close(conn);
        let client = connection.peer?;
        self.connection(client).peer = None;
        let (service, backend) = connection.indexes();
        Some((client, service, backend))
    }

    /// Reports that a back end could not be reached.
    fn backend_failed(&mut self, client: ConnId, service: usize, backend: usize, errno: i32) {
        // 0: the connection ended while it was being opened.
        let errno_known = Some(errno).filter(|errno| *errno != 0);
        self.shared
            .note_with(service, backend, HealthEvent::ConnectFailed, errno_known);
        if self.services[service].emits_events {
            let address = self
                .connection(client)
                .client
                .as_ref()
                .map(|one| one.address);
            self.shared.emit(Event::BackendFailed {
                service,
                backend,
                client: address,
            });
        }
    }

    /// A back end is connected.
    pub(in crate::engine) fn connected(&mut self, conn: ConnId) {
        let now_ns = self.now();
        let connection = self.connection(conn);
        let connecting = connection.role == Role::Connecting;
        let Some(client) = connection.peer.filter(|_| connecting) else {
            return;
        };
        let took_ns = now_ns.saturating_sub(connection.since_ns);
        let (service, backend) = connection.indexes();
        let state = &self.state(service).backends[backend];
        // Only the first stream of a connection counts as one.
        if !self.io.is_reused(conn) {
            state.connections.add(1);
            state.connect_times.record_ns(took_ns);
        }
        let service_worker = &self.services[service];
        let backend_slot = &service_worker.backends[backend];
        if let Some(client) = &self.connections[client.slot()].client {
            let src = client.address;
            // With TLS it was sent before the handshake.
            if backend_slot.proxy_out.is_some() && !backend_slot.has_tls() {
                self.io
                    .send_copy(conn, &announcement(backend_slot.proxy_out, client));
            }
            // A ClientHello that was read to choose the back end.
            if !client.header.is_empty() {
                self.io.send_copy(conn, &client.header);
            }
            if service_worker.emits_events {
                self.shared.emit(Event::ConnectionOpened {
                    service,
                    backend,
                    client: src,
                });
            }
        }
        self.connections[conn.slot()].traced = backend_slot.traced;
        if self.connections[client.slot()].downstream.is_some() {
            return self.http_connected(client, conn);
        }
        // For TCP, the connect time is the only sign of a back end's load.
        self.services[service].answered(backend, took_ns, now_ns);
        self.start_relay(client, conn);
    }

    /// Forwards what a client has sent so far, and starts relaying.
    fn start_relay(&mut self, client: ConnId, server: ConnId) {
        let now_ns = self.now();
        let connection = self.connection(server);
        let traced = connection.traced;
        connection.role = Role::Relaying;
        (connection.since_ns, connection.taken_ns) = (now_ns, now_ns);
        let connection = self.connection(client);
        connection.role = Role::Relaying;
        connection.traced = traced;
        (connection.since_ns, connection.taken_ns) = (now_ns, now_ns);
        let (ended, paused) = (connection.ended, std::mem::take(&mut connection.paused));
        let held = match &mut connection.client {
            Some(client_state) => std::mem::take(&mut client_state.held),
            None => Vec::new(),
        };
        self.connection(server).sends += held.len() as u32;
        for buf in held {
            if traced {
                self.trace(client, &buf);
            }
            self.io.forward(server, buf);
        }
        if ended {
            self.io.finish(server);
        }
        if paused {
            self.io.resume(client);
        }
    }
}

/// The PROXY protocol header for a client; empty without a version.
fn announcement(version: Option<ProxyVersion>, client: &Client) -> Vec<u8> {
    let mut header = Vec::new();
    match version {
        None => {}
        Some(ProxyVersion::V1) => {
            proxy_protocol::encode_v1(client.address, client.local, &mut header);
        }
        Some(ProxyVersion::V2) => {
            proxy_protocol::encode_v2(client.address, client.local, &mut header);
        }
    }
    header
}

/// Whether this machine caused the failure: no free port, no memory, or no place for a stream.
fn is_local_error(errno: i32) -> bool {
    errno == NO_PLACE
        || matches!(
            Error::from_raw_os_error(errno).kind(),
            ErrorKind::AddrNotAvailable | ErrorKind::OutOfMemory | ErrorKind::WouldBlock
        )
}
