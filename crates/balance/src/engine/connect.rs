//! From a client to an open connection to a back end.

use std::io::{Error, ErrorKind};

use net::{Buf, ConnId, Io, proxy_protocol};

use super::connection::{Connection, Role};
use super::events::Event;
use super::service_worker::Choice;
use super::worker::Worker;
use crate::config::model::ProxyVersion;
use crate::health::HealthEvent;

/// Buffers held for a back end that is not connected yet.
const HELD_MAX: usize = 4;

impl<I: Io> Worker<I> {
    /// Begins to serve a client that may come in.
    pub(super) fn begin(&mut self, client: ConnId) {
        let service = self.connection(client).service as usize;
        if self.services[service].http.is_some() {
            return self.http_begin(client);
        }
        // Those who wait already go first.
        if !self.services[service].queue.is_empty() && self.services[service].program.is_none() {
            return self.enqueue(client);
        }
        self.select_backend(client);
    }

    /// Keeps what a client sends before its back end is connected.
    pub(super) fn hold_data(&mut self, conn: ConnId, buf: Buf) {
        let Worker {
            io, connections, ..
        } = self;
        let connection = &mut connections[conn.slot()];
        let Some(client) = &mut connection.client else {
            return io.recycle(buf);
        };
        connection.bytes += buf.len() as u64;
        client.held.push(buf);
        if client.held.len() >= HELD_MAX && !connection.paused {
            connection.paused = true;
            io.pause(conn);
        }
    }

    /// Finds a back end for a client, or a place in the queue, or closes it.
    pub(super) fn select_backend(&mut self, client: ConnId) {
        if self.connection(client).downstream.is_some() {
            return self.select_http_backend(client);
        }
        let now_ns = self.now();
        let Worker {
            connections,
            services,
            shared,
            rng,
            ..
        } = self;
        let connection = &connections[client.slot()];
        let Some(client_state) = &connection.client else {
            return;
        };
        let service = connection.service as usize;
        let choice =
            services[service].choose(&shared.services[service], client_state, None, now_ns, rng);
        self.apply_choice(client, choice);
    }

    /// Does what came of choosing.
    pub(super) fn apply_choice(&mut self, client: ConnId, choice: Choice) {
        match choice {
            Choice::Backend(at) if self.connection(client).downstream.is_some() => {
                self.assign_request(client, at);
            }
            Choice::Backend(at) => self.dial(client, at),
            Choice::Full => self.enqueue(client),
            Choice::Ask => self.ask(client),
            Choice::Nobody => {
                let service = self.connection(client).service as usize;
                self.state(service).refused.add(1);
                self.reject_client(client);
            }
        }
    }

    /// Begins to connect a client to a back end, where a place was taken for it.
    pub(super) fn dial(&mut self, client: ConnId, backend: usize) {
        let since_ns = self.now();
        let service = self.connection(client).service;
        let Worker {
            io,
            services,
            shared,
            ..
        } = self;
        let state = &shared.services[service as usize].backends[backend];
        let target = services[service as usize].backends[backend].target(state, io);
        let Ok(conn) = self.io.connect(target, None) else {
            // The machine has no socket to give; no back end is to blame.
            self.release_backend(service as usize, backend);
            self.state(service as usize).overflowed.add(1);
            return self.reject_client(client);
        };
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

    /// An attempt has failed: the same back end is asked again if it may be, then another one.
    pub(super) fn connect_failed(&mut self, conn: ConnId, errno: i32) {
        let Some((client, service, backend)) = self.drop_attempt(conn) else {
            return;
        };
        self.state(service).backends[backend]
            .connect_failures
            .add(1);
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
            self.backend_failed(client, service, backend);
        }
        self.select_backend(client);
    }

    /// Ends an attempt that would have taken longer, and tries another back end.
    pub(super) fn abandon_attempt(&mut self, conn: ConnId) {
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

    /// Closes an attempt; the client, service and back end that it was for.
    fn drop_attempt(&mut self, conn: ConnId) -> Option<(ConnId, usize, usize)> {
        let connection = std::mem::take(self.connection(conn));
        self.io.close(conn);
        let client = connection.peer?;
        self.connection(client).peer = None;
        Some((
            client,
            connection.service as usize,
            connection.backend as usize,
        ))
    }

    /// Notes that a back end could not be reached for a client.
    fn backend_failed(&mut self, client: ConnId, service: usize, backend: usize) {
        self.shared
            .note(service, backend, HealthEvent::ConnectFailed);
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

    /// A connection to a back end is open: what the client has sent goes there.
    pub(super) fn connected(&mut self, conn: ConnId) {
        let now_ns = self.now();
        let connection = self.connection(conn);
        let Some(client) = connection
            .peer
            .filter(|_| connection.role == Role::Connecting)
        else {
            return;
        };
        if self.connection(client).downstream.is_some() {
            return self.http_connected(client, conn);
        }
        let Worker {
            io,
            connections,
            services,
            shared,
            ..
        } = self;
        let connection = &mut connections[conn.slot()];
        let (service, backend) = (connection.service as usize, connection.backend as usize);
        connection.role = Role::Relaying;
        let client_state = &shared.services[service].backends[backend];
        client_state.connections.add(1);
        let took_ns = now_ns.saturating_sub(connection.since_ns);
        client_state.connect_times.record_ns(took_ns);
        // What a back end needs to accept is all that shows of its load without reading bytes.
        services[service].answered(backend, took_ns, now_ns);
        let downstream = &mut connections[client.slot()];
        downstream.role = Role::Relaying;
        (downstream.since_ns, downstream.taken_ns) = (now_ns, now_ns);
        let mut held = Vec::new();
        if let Some(client_state) = &mut downstream.client {
            held = std::mem::take(&mut client_state.held);
            if let Some(version) = services[service].backends[backend].proxy_out {
                let mut header = Vec::with_capacity(64);
                match version {
                    ProxyVersion::V1 => {
                        proxy_protocol::encode_v1(
                            client_state.address,
                            client_state.local,
                            &mut header,
                        );
                    }
                    ProxyVersion::V2 => {
                        proxy_protocol::encode_v2(
                            client_state.address,
                            client_state.local,
                            &mut header,
                        );
                    }
                }
                io.send_copy(conn, &header);
            }
            if services[service].emits_events {
                shared.emit(Event::ConnectionOpened {
                    service,
                    backend,
                    client: client_state.address,
                });
            }
        }
        let (ended, paused) = (downstream.ended, std::mem::take(&mut downstream.paused));
        let connection = &mut connections[conn.slot()];
        (connection.since_ns, connection.taken_ns) = (now_ns, now_ns);
        connection.sends += held.len() as u32;
        let traced = services[service].backends[backend].traced;
        connection.traced = traced;
        connections[client.slot()].traced = traced;
        for buf in held {
            if traced {
                self.trace(client, &buf);
            }
            self.io.forward(conn, buf);
        }
        let Worker { io, .. } = self;
        if ended {
            io.finish(conn);
        }
        if paused {
            io.resume(client);
        }
    }
}

/// Whether an attempt failed for what this machine lacks: free ports, or memory.
fn is_local_error(errno: i32) -> bool {
    matches!(
        Error::from_raw_os_error(errno).kind(),
        ErrorKind::AddrNotAvailable | ErrorKind::OutOfMemory | ErrorKind::WouldBlock
    )
}
