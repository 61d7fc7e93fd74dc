//! Assigning requests to back ends, and the end of an exchange.

use net::{ConnId, Io};

use super::pool::take_idle;
use super::{Pair, Phase, Upstream, empty};
use crate::engine::shared::events::Event;
use crate::engine::worker::Worker;
use crate::engine::worker::connection::{Connection, Role};
use crate::engine::worker::service_worker::Choice;
use crate::health::HealthEvent;

impl Connection {
    pub(super) fn downstream_phase(&mut self, phase: Phase) {
        if let Some(downstream) = &mut self.downstream {
            downstream.phase = phase;
        }
    }
}

impl<I: Io> Worker<I> {
    /// Pairs a connection to a back end with a client for one exchange.
    pub(super) fn start_exchange(&mut self, pair: Pair) {
        let now_ns = self.now();
        let connection = &mut self.connections[pair.server.slot()];
        connection.role = Role::HttpUpstream;
        connection.peer = Some(pair.client);
        (connection.since_ns, connection.taken_ns) = (now_ns, now_ns);
        if let Some(upstream) = &mut connection.upstream {
            upstream.begin(now_ns);
        }
        let (service, backend) = (connection.service as usize, connection.backend);
        let connection = &mut self.connections[pair.client.slot()];
        connection.peer = Some(pair.server);
        connection.backend = backend;
        (connection.since_ns, connection.taken_ns) = (now_ns, now_ns);
        if let Some(downstream) = &mut connection.downstream {
            downstream.phase = Phase::Exchanging;
            downstream.moved_ns = now_ns;
        }
        self.state(service).backends[backend as usize]
            .requests
            .add(1);
    }

    /// Chooses a back end for the held request, or queues it.
    pub(in crate::engine) fn select_http_backend(&mut self, client: ConnId) {
        self.connection(client).downstream_phase(Phase::Seeking);
        let choice = self.choose(client);
        let spoiled = self.connection(client).downstream_is(|one| one.failed);
        match choice {
            // A back end failed after it got the request, and no other is left: 502, not 503.
            Choice::NoneUsable if spoiled => {
                self.respond_locally(client, 502, "no back end responded")
            }
            choice => self.apply_choice(client, choice),
        }
    }

    /// Whether the request is bound to one back end.
    pub(in crate::engine) fn is_sticky(&mut self, client: ConnId) -> bool {
        self.connection(client)
            .downstream_is(|one| one.sticky.is_some())
    }

    /// Sends the held request to a back end, on which capacity was reserved.
    pub(in crate::engine) fn assign_request(&mut self, client: ConnId, backend: usize) {
        let now_ns = self.now();
        let connection = &self.connections[client.slot()];
        let Some(downstream) = connection.downstream.as_deref() else {
            return;
        };
        let service = connection.service as usize;
        let address_version = self.shared.services[service].backends[backend].address_version();
        let repeat = downstream.may_repeat();
        let kept = self.services[service].http.as_mut().and_then(|http| {
            let backend_slot = &mut http.backends[backend];
            backend_slot.reusable.then(|| {
                take_idle(
                    &self.io,
                    &self.connections,
                    &mut backend_slot.idle,
                    address_version,
                    repeat,
                    now_ns,
                )
            })?
        });
        match kept {
            Some(server) => {
                let pair = Pair { client, server };
                self.start_exchange(pair);
                self.send_held_request(pair);
            }
            None => self.dial(client, backend),
        }
    }

    /// A back end is connected: send the request.
    pub(in crate::engine) fn http_connected(&mut self, client: ConnId, server: ConnId) {
        let now_ns = self.now();
        let (service, backend) = self.connection(server).indexes();
        let address_version = self.state(service).backends[backend].address_version();
        let connection = &self.connections[client.slot()];
        let ended = connection.ended;
        if let Some(client) = &connection.client {
            let reused = self.io.is_reused(server);
            let upstream = Upstream::new(address_version, client.address, now_ns, reused);
            self.connection(server).upstream = Some(Box::new(upstream));
        }
        let pair = Pair { client, server };
        self.start_exchange(pair);
        self.send_held_request(pair);
        if ended && self.connection(client).downstream_is(|one| one.raw) {
            self.io.finish(server);
        }
    }

    /// A response is complete: release the back end, and go on with the client.
    pub(super) fn finish_exchange(&mut self, pair: Pair) {
        let now_ns = self.now();
        let queued = self.io.queued(pair.server);
        let connection = &mut self.connections[pair.server.slot()];
        let (service, backend) = connection.indexes();
        let (keep, sent_ns) = match &connection.upstream {
            Some(upstream) => (upstream.keep, upstream.sent_ns),
            None => (false, now_ns),
        };
        let connection = &mut self.connections[pair.client.slot()];
        connection.peer = None;
        connection.since_ns = now_ns;
        let Some(downstream) = connection.downstream.as_deref_mut() else {
            return;
        };
        downstream.phase = Phase::Reading;
        (downstream.response_sent, downstream.whole) = (false, true);
        downstream.responses += 1;
        empty(&mut downstream.request);
        let unread = !downstream.body.is_complete();
        // Many servers refuse a request without reading its body, and close without saying so: the
        // connection must not carry the next request into that.
        let keep = keep && !(downstream.has_body && downstream.status >= 400);
        let (keep_alive, response_bytes) =
            (downstream.keep_alive && !unread, downstream.response_bytes);
        let took_ns = now_ns.saturating_sub(sent_ns);
        self.state(service).backends[backend]
            .service_times
            .record_ns(took_ns);
        self.services[service].finished(backend, response_bytes, took_ns);
        self.log_request(pair.client, Some(backend));
        self.release_backend(service, backend);
        if keep && queued == 0 && !unread {
            self.put_idle(pair.server);
        } else {
            self.close_upstream(pair.server);
        }
        match keep_alive {
            true => self.next_input(pair.client),
            false => self.http_close(pair.client),
        }
    }

    /// Emits the event of a finished request.
    pub(super) fn log_request(&mut self, client: ConnId, backend: Option<usize>) {
        let now_ns = self.now();
        let connection = &mut self.connections[client.slot()];
        let service = connection.service as usize;
        if !self.services[service].emits_events {
            return;
        }
        let (Some(downstream), Some(client_state)) =
            (connection.downstream.as_deref_mut(), &connection.client)
        else {
            return;
        };
        // Pipelined requests that follow are not part of this one. Without a complete head, all
        // that came is.
        let following = match (backend, downstream.phase) {
            (None, Phase::Reading) => 0,
            _ => downstream.input.len() as u64,
        };
        let used = connection.bytes.saturating_sub(following);
        let used_before = std::mem::replace(&mut downstream.logged, used);
        // A pipelined request begins when this one ends.
        let began_ns = std::mem::replace(&mut downstream.began_ns, now_ns);
        self.shared.emit(Event::RequestFinished {
            service,
            backend,
            client: client_state.address,
            line: downstream.line.take(),
            status: downstream.status,
            bytes_to: used.saturating_sub(used_before),
            bytes_from: downstream.response_bytes,
            duration_ns: now_ns.saturating_sub(began_ns),
            cut: downstream.cut.take(),
        });
    }

    /// Reports a response to the health state. Takes no lock unless something changed.
    pub(super) fn note_response(&mut self, service: usize, backend: usize, well: bool) {
        let state = &self.shared.services[service];
        let one = &state.backends[backend];
        if !well {
            one.response_failures.add(1);
        }
        if state.policy.eject_after == 0 || (well && !one.is_suspect()) {
            return;
        }
        one.set_suspect(!well);
        let event = match well {
            true => HealthEvent::ResponseOk,
            false => HealthEvent::ResponseFailed,
        };
        self.shared.note(service, backend, event);
    }
}
