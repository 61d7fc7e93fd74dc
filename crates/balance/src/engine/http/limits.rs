//! Time limits of HTTP connections.

use net::{ConnId, Io};

use super::close::UpstreamFailure;
use super::{BodyWait, Pair, Phase};
use crate::engine::worker::Worker;
use crate::engine::worker::connection::Role;

/// How long a back end that was found down may take to begin its response, before the request is
/// sent elsewhere, ns.
const DOWN_NS: u64 = 1_000_000_000;
/// How long a client has to be idle before a draining balancer closes it, ns. A client that asks
/// more often than this does not lose a request that is on its way when the connection is closed.
const DRAINED_IDLE_NS: u64 = 1_000_000_000;
/// How long a stream may stay open after its last response, ns.
const LINGER_NS: u64 = 2_000_000_000;

impl<I: Io> Worker<I> {
    /// Checks the limits of a connection.
    pub(in crate::engine) fn http_scan(&mut self, conn: ConnId, now_ns: u64) {
        let connection = &self.connections[conn.slot()];
        let limits = self.services[connection.service as usize].limits;
        match connection.role {
            Role::HttpIdle => self.scan_idle(conn, now_ns),
            Role::HttpUpstream => self.count_upstream(conn),
            Role::HttpDownstream => self.scan_downstream(conn, now_ns),
            Role::HttpCut if now_ns.saturating_sub(connection.since_ns) >= limits.write_stall => {
                self.end_http_client(conn, true);
            }
            Role::HttpClosing => {
                let since_ns = connection.since_ns;
                if self.stalled_ns(conn, now_ns) >= limits.write_stall {
                    self.end_http_client(conn, true);
                } else if self.io.queued(conn) == 0 && now_ns.saturating_sub(since_ns) >= LINGER_NS
                {
                    self.end_http_client(conn, false);
                }
            }
            _ => {}
        }
    }

    fn scan_downstream(&mut self, client: ConnId, now_ns: u64) {
        if self.io.queued(client) > 0 {
            let stalled_ns = self.stalled_ns(client, now_ns);
            let service = self.connection(client).service as usize;
            if stalled_ns >= self.services[service].limits.write_stall {
                self.state(service).timeouts.add(1);
                return self.end_stalled(client);
            }
        }
        let connection = &self.connections[client.slot()];
        let Some(downstream) = connection.downstream.as_deref() else {
            return;
        };
        match (downstream.phase, connection.peer) {
            (Phase::Reading, _) => self.scan_reading(client, now_ns),
            (Phase::Exchanging, Some(server)) => {
                self.scan_exchange(Pair { client, server }, now_ns);
            }
            // The queue and connecting have limits of their own.
            _ => {}
        }
    }

    /// Resets a client that does not read its response.
    pub(in crate::engine) fn end_stalled(&mut self, client: ConnId) {
        if self.connection(client).role == Role::Carrier {
            return self.end_client(client);
        }
        if let Some(server) = self.connection(client).peer {
            let backend = self.connection(server).backend as usize;
            self.log_request(client, Some(backend));
        }
        self.end_http_client(client, true);
    }

    /// A client between requests, or sending a head.
    fn scan_reading(&mut self, client: ConnId, now_ns: u64) {
        let draining = self.shared.is_draining();
        let connection = &self.connections[client.slot()];
        let service = connection.service as usize;
        let limits = &self.services[service].limits;
        let Some(downstream) = connection.downstream.as_deref() else {
            return;
        };
        let waited_ns = now_ns.saturating_sub(connection.since_ns);
        let head_begun = !downstream.input.is_empty();
        if self.io.queued(client) > 0 {
            return;
        }
        // A request may be on its way. It is answered, and the answer ends the connection.
        let drained_ns = limits.client_idle.min(DRAINED_IDLE_NS);
        if draining && !head_begun && downstream.responses > 0 && waited_ns >= drained_ns {
            return self.http_close(client);
        }
        let limit_ns = match head_begun || downstream.responses == 0 {
            true => limits.client_header,
            false => limits.client_idle,
        };
        if waited_ns < limit_ns {
            return;
        }
        self.state(service).timeouts.add(1);
        match head_begun {
            true => self.respond_locally(client, 408, "the request head did not arrive in time"),
            false => self.http_close(client),
        }
    }

    /// Whether the back end was found down, has not begun to respond, and the request can be sent
    /// elsewhere.
    fn is_lost(&self, pair: Pair, service: usize, backend: usize) -> bool {
        let connection = &self.connections[pair.client.slot()];
        let response_begun = |pair: Pair| {
            let upstream = self.connections[pair.server.slot()].upstream.as_deref();
            upstream.is_none_or(|upstream| upstream.response_begun)
        };
        let (Some(downstream), Some(client_state)) = (
            connection.downstream.as_deref(),
            connection.client.as_deref(),
        ) else {
            return false;
        };
        downstream.can_repeat()
            && downstream.body.is_complete()
            && !response_begun(pair)
            && self.services[service].other_is_usable(
                self.state(service),
                backend,
                &client_state.tried,
            )
    }

    /// Whether the rest of a request's body is overdue. Only time in which the client could send
    /// counts: the back end takes what there is, and reading from the client is not paused.
    fn is_body_late(&mut self, pair: Pair, is_taken: bool, now_ns: u64) -> bool {
        let connection = &mut self.connections[pair.client.slot()];
        let could_send = is_taken && !connection.paused;
        let bytes = connection.bytes;
        let service_worker = &self.services[connection.service as usize];
        let (Some(downstream), Some(http)) =
            (connection.downstream.as_deref_mut(), &service_worker.http)
        else {
            return false;
        };
        let wait = downstream.body_wait.get_or_insert(BodyWait {
            bytes,
            waited_ns: 0,
            scanned_ns: now_ns,
        });
        if could_send {
            wait.waited_ns += now_ns.saturating_sub(wait.scanned_ns);
        }
        wait.scanned_ns = now_ns;
        let earned_ns = match u64::from(http.body_rate_min) {
            0 => 0,
            rate => {
                bytes
                    .saturating_sub(wait.bytes)
                    .saturating_mul(1_000_000_000)
                    / rate
            }
        };
        let limit_ns = service_worker.limits.client_body;
        wait.waited_ns >= limit_ns.saturating_add(earned_ns)
    }

    fn scan_exchange(&mut self, pair: Pair, now_ns: u64) {
        let taken_late_ns = self.stalled_ns(pair.server, now_ns);
        let waits_for_client = self.io.queued(pair.client) > 0;
        let moved = self.connection(pair.server).bytes + self.connection(pair.client).bytes;
        let connection = &mut self.connections[pair.client.slot()];
        let service = connection.service as usize;
        let Some(downstream) = connection.downstream.as_deref_mut() else {
            return;
        };
        if moved != downstream.moved || waits_for_client {
            (downstream.moved, downstream.moved_ns) = (moved, now_ns);
        }
        let quiet_ns = now_ns.saturating_sub(downstream.moved_ns);
        // Once the back end answers, both may go on as slowly as they like: only silence counts.
        let unsent = !downstream.body.is_complete();
        let has_begun = downstream.response_sent;
        if unsent && !has_begun && self.is_body_late(pair, taken_late_ns == 0, now_ns) {
            self.state(service).timeouts.add(1);
            let text = "the request body came too slowly";
            return self.respond_locally(pair.client, 408, text);
        }
        let stall = self.services[service].limits.write_stall;
        let stalled = taken_late_ns >= stall;
        let backend = self.connection(pair.server).backend as usize;
        let limits = &self.services[service].limits;
        let state = &self.shared.services[service].backends[backend];
        let down_ns = state.down_for_ns(now_ns);
        let over = down_ns.is_some_and(|down_ns| down_ns >= limits.drain);
        // Taken down by an operator, or removed by a reload.
        if over || now_ns >= state.cutoff_ns() {
            return self.exchange_failed(pair, UpstreamFailure::Down);
        }
        if down_ns.is_none() && quiet_ns >= DOWN_NS && self.is_lost(pair, service, backend) {
            return self.exchange_failed(pair, UpstreamFailure::Down);
        }
        let limits = &self.services[service].limits;
        if !stalled && quiet_ns < limits.upstream_answer {
            return;
        }
        self.state(service).timeouts.add(1);
        if has_begun {
            let limit = if stalled {
                "write_stall"
            } else {
                "upstream_answer"
            };
            self.state(service).cut_silent.add(u64::from(!stalled));
            if let Some(downstream) = self.connection(pair.client).downstream.as_deref_mut() {
                downstream.cut = Some(limit);
            }
            // The back end may be waiting for the rest of the request.
            let failure = match unsent && !stalled {
                true => UpstreamFailure::Silent,
                false => UpstreamFailure::Late,
            };
            return self.exchange_failed(pair, failure);
        }
        // A client that withholds the body is not the back end's fault.
        match unsent && !stalled {
            true => {
                self.respond_locally(pair.client, 408, "the request body did not arrive in time")
            }
            false => self.exchange_failed(pair, UpstreamFailure::Late),
        }
    }
}
