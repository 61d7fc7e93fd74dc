//! Exceptional ends of exchanges and clients.

use net::h2::ErrorCode;
use net::{Buf, CANCELLED, ConnId, ENHANCE_YOUR_CALM, Io, Lingering, MALFORMED, NOT_PROCESSED};

use super::{Downstream, Pair, Phase};
use crate::engine::worker::Worker;
use crate::engine::worker::connection::{Client, Connection, Role};
use crate::http::{BadResponse, Method, Refusal, text_response};

/// The status that is logged, as by nginx, if the client left before the response began. It is
/// never sent.
const CLIENT_LEFT: u16 = 499;

/// Why an exchange fails on the back end's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpstreamFailure {
    /// The connection ended or was reset.
    Gone,
    /// The back end says that it has not processed the request.
    Refused,
    /// The back end was found down before it responded.
    Down,
    /// The response is malformed.
    Bad,
    /// The head of the response exceeds a limit.
    TooLarge,
    /// It answered a request for a WebSocket over HTTP/2 with success, but did not agree to it.
    NotSwitched,
    /// The response did not come, or the request was not accepted, in time.
    Late,
    /// The client has not ended its request, and both sides are silent.
    Silent,
}

impl From<BadResponse> for UpstreamFailure {
    fn from(bad: BadResponse) -> Self {
        match bad {
            BadResponse::Head(Refusal::HeadTooLarge) => UpstreamFailure::TooLarge,
            BadResponse::NoSwitch => UpstreamFailure::NotSwitched,
            _ => UpstreamFailure::Bad,
        }
    }
}

impl<I: Io> Worker<I> {
    pub(in crate::engine) fn upstream_ended(&mut self, server: ConnId) {
        let connection = &self.connections[server.slot()];
        let Some(client) = connection.peer else {
            return self.close_upstream(server);
        };
        let pair = Pair { client, server };
        let ends = connection
            .upstream
            .as_ref()
            .and_then(|upstream| upstream.body)
            .is_some_and(|body| body.ends_with_connection());
        match ends {
            true => self.finish_exchange(pair),
            false => self.exchange_failed(pair, UpstreamFailure::Gone),
        }
    }

    pub(in crate::engine) fn upstream_reset(&mut self, server: ConnId, errno: i32) {
        let (failure, code) = match errno {
            NOT_PROCESSED => (UpstreamFailure::Refused, Some(ErrorCode::RefusedStream)),
            MALFORMED => (UpstreamFailure::Bad, None),
            CANCELLED => (UpstreamFailure::Gone, Some(ErrorCode::Cancel)),
            ENHANCE_YOUR_CALM => (UpstreamFailure::Gone, Some(ErrorCode::EnhanceYourCalm)),
            _ => (UpstreamFailure::Gone, None),
        };
        match self.connection(server).peer {
            Some(client) => self.exchange_reset(Pair { client, server }, failure, code),
            None => self.close_upstream(server),
        }
    }

    /// Ends a failed exchange. The request is sent again where the client cannot notice; otherwise
    /// the client gets an error, or a truncated response.
    pub(super) fn exchange_failed(&mut self, pair: Pair, failure: UpstreamFailure) {
        self.exchange_reset(pair, failure, None);
    }

    /// The same where the back end gave a code that concerns the client.
    fn exchange_reset(&mut self, pair: Pair, failure: UpstreamFailure, code: Option<ErrorCode>) {
        let Pair { client, server } = pair;
        let connection = &self.connections[server.slot()];
        let (service, backend) = connection.indexes();
        let (reused, response_begun) = match &connection.upstream {
            Some(upstream) => (upstream.reused, upstream.response_begun),
            None => (false, true),
        };
        self.close_upstream(server);
        let connection = &mut self.connections[client.slot()];
        connection.peer = None;
        let Some(downstream) = connection.downstream.as_deref_mut() else {
            return;
        };
        let gone = failure == UpstreamFailure::Gone;
        let refused = failure == UpstreamFailure::Refused;
        let may_repeat = match failure {
            UpstreamFailure::Gone | UpstreamFailure::Down => downstream.can_repeat(),
            UpstreamFailure::Refused => downstream.can_send_again(),
            UpstreamFailure::Bad
            | UpstreamFailure::TooLarge
            | UpstreamFailure::NotSwitched
            | UpstreamFailure::Late
            | UpstreamFailure::Silent => false,
        };
        let repeat = may_repeat && !response_begun;
        if repeat {
            downstream.resends_left -= 1;
        }
        if repeat && (refused || (reused && gone)) {
            // The back end shuts down in an orderly way, or this is a race with its idle timeout.
            // Neither says anything about its health.
            downstream.phase = Phase::Seeking;
            return self.dial(client, backend);
        }
        let response_sent = downstream.response_sent;
        downstream.failed = true;
        // It answered before the end of the request, and closed: sending the rest has cut off what
        // it still had to send.
        let is_early = gone && response_sent && !downstream.body.is_complete();
        let is_race = gone && reused && !response_begun;
        // What a client asks for, or may still send, says nothing about the back end's health.
        let is_asked = matches!(
            failure,
            UpstreamFailure::Down | UpstreamFailure::NotSwitched | UpstreamFailure::Silent
        );
        if !is_race && !is_early && !is_asked {
            self.note_response(service, backend, false);
        }
        self.release_backend(service, backend);
        // A part of the response shows that the request was processed.
        let code = code.filter(|code| !response_sent || *code != ErrorCode::RefusedStream);
        if response_sent {
            if let Some(code) = code {
                self.io.reset_with(client, code);
            }
            self.log_request(client, Some(backend));
            return self.truncate_response(client);
        }
        if repeat {
            if let Some(client_state) = &mut self.connection(client).client {
                client_state.tried.push(backend as u32);
            }
            return self.select_http_backend(client);
        }
        if code.is_some_and(|code| self.io.reset_with(client, code)) {
            if let Some(downstream) = self.connection(client).downstream.as_deref_mut() {
                downstream.status = if refused { 503 } else { 502 };
            }
            self.log_request(client, Some(backend));
            return self.end_http_client(client, true);
        }
        match failure {
            UpstreamFailure::Late | UpstreamFailure::Silent => {
                self.respond_locally(client, 504, "the back end did not respond in time")
            }
            UpstreamFailure::Refused => {
                self.respond_locally(client, 503, "the back end refused the request")
            }
            UpstreamFailure::Gone | UpstreamFailure::Down => {
                self.respond_locally(
                    client,
                    502,
                    "the back end closed the connection without a response",
                );
            }
            UpstreamFailure::Bad => {
                self.respond_locally(client, 502, "the back end's response is malformed")
            }
            UpstreamFailure::NotSwitched => {
                self.respond_locally(client, 502, "the back end did not agree to a WebSocket")
            }
            UpstreamFailure::TooLarge => self.respond_locally(
                client,
                502,
                "the back end's response has a head of more than 64 KiB or 100 fields",
            ),
        }
    }

    /// Ends a client whose response was truncated: it gets what is queued, then a reset, so that it
    /// cannot take the response for complete.
    fn truncate_response(&mut self, client: ConnId) {
        if self.io.queued(client) == 0 {
            return self.end_http_client(client, true);
        }
        let now_ns = self.now();
        self.io.pause(client);
        let connection = self.connection(client);
        (connection.role, connection.since_ns, connection.downstream) =
            (Role::HttpCut, now_ns, None);
    }

    /// Refuses an invalid request. The connection is closed, as the start of the next request is
    /// unknown.
    pub(super) fn refuse_request(&mut self, client: ConnId, refusal: Refusal) {
        let service = self.connection(client).service as usize;
        self.state(service).bad_requests.add(1);
        let text = refusal.to_string();
        self.respond_locally(client, refusal.status(), &text);
    }

    /// Answers a request that has counted its hops, as its final recipient (RFC 9110 7.6.2).
    pub(in crate::engine) fn answer_as_last_hop(&mut self, client: ConnId) {
        let is_trace = |downstream: &Downstream| downstream.method == Method::Trace;
        match self.connection(client).downstream_is(is_trace) {
            true => {
                self.respond_locally(client, 501, "Max-Forwards is 0: TRACE is not served here")
            }
            false => self.respond_locally(client, 200, "Max-Forwards is 0: the balancer answers"),
        }
    }

    /// No usable back end, or no room in the queue.
    pub(in crate::engine) fn reject_http_client(&mut self, client: ConnId) {
        self.respond_locally(client, 503, "no back end is available");
    }

    /// Ends the exchange, if any, and sends the balancer's own response, unless one has begun. The
    /// connection is closed after it.
    pub(super) fn respond_locally(&mut self, client: ConnId, status: u16, text: &str) {
        self.leave_exchange(client);
        let Some(downstream) = self.connection(client).downstream.as_deref_mut() else {
            return;
        };
        if downstream.response_sent {
            return self.truncate_response(client);
        }
        downstream.status = status;
        self.scratch.clear();
        text_response(status, text.as_bytes(), &mut self.scratch);
        self.io.send_copy(client, &self.scratch);
        let connection = &mut self.connections[client.slot()];
        connection.sends = connection.sends.wrapping_add(1);
        if let Some(downstream) = connection.downstream.as_deref_mut() {
            downstream.response_bytes = self.scratch.len() as u64;
        }
        self.log_request(client, None);
        self.http_close(client);
    }

    /// Takes a client out of its exchange or the queue.
    fn leave_exchange(&mut self, client: ConnId) {
        let connection = &mut self.connections[client.slot()];
        let (service, backend) = connection.indexes();
        if let Some(server) = connection.peer.take() {
            match self.connection(server).role {
                Role::HttpUpstream => self.close_upstream(server),
                _ => {
                    *self.connection(server) = Connection::default();
                    self.io.close(server);
                }
            }
            self.release_backend(service, backend);
        }
        let client_state = self.connection(client).client.as_deref_mut();
        if client_state
            .and_then(|client_state| client_state.queued_ns.take())
            .is_some()
        {
            self.left_queue(service, client);
        }
    }

    /// Closes a client after its queue has drained. What it still sends is discarded for a while:
    /// an immediate close would reset the connection, and the client might lose its response. See
    /// [`net::Lingering`].
    pub(in crate::engine) fn http_close(&mut self, client: ConnId) {
        let now_ns = self.now();
        let connection = &mut self.connections[client.slot()];
        (connection.role, connection.downstream) = (Role::HttpClosing, None);
        (connection.since_ns, connection.bytes) = (now_ns, 0);
        if std::mem::take(&mut connection.paused) {
            self.io.resume(client);
        }
        self.io.finish(client);
        self.closing_ended(client, false);
    }

    pub(in crate::engine) fn closing_data(&mut self, client: ConnId, buf: Buf) {
        let connection = &mut self.connections[client.slot()];
        connection.bytes += buf.len() as u64;
        // Beyond that nothing more is read while its last response is being sent.
        let is_too_much = connection.bytes > Lingering::BYTES_MAX;
        self.io.recycle(buf);
        if is_too_much {
            self.io.pause(client);
        }
    }

    pub(in crate::engine) fn closing_ended(&mut self, client: ConnId, ended: bool) {
        let connection = &mut self.connections[client.slot()];
        connection.ended |= ended;
        if self.io.queued(client) > 0 {
            return;
        }
        if connection.ended {
            return self.end_http_client(client, false);
        }
        // Of a stream, the loop reports the end itself.
        let is_stream = |client: &Client| client.carrier.is_some();
        if !connection.client.as_deref().is_some_and(is_stream) {
            self.linger(client);
        }
    }

    /// Frees a client's place, and waits for the client to close.
    fn linger(&mut self, conn: ConnId) {
        let now_ns = self.now();
        let service = std::mem::take(self.connection(conn)).service;
        self.client_closed(service as usize, false);
        if !self.lingering.begin(conn, now_ns) {
            return self.io.close(conn);
        }
        *self.connection(conn) = Connection {
            role: Role::Lingering,
            conn: Some(conn),
            service,
            ..Connection::default()
        };
    }

    pub(in crate::engine) fn lingering_data(&mut self, conn: ConnId, buf: Buf) {
        let now_ns = self.now();
        let reads_on = self.lingering.discard(conn, buf.len(), now_ns);
        self.io.recycle(buf);
        if !reads_on {
            self.io.pause(conn);
        }
    }

    pub(in crate::engine) fn end_lingering(&mut self, conn: ConnId) {
        self.lingering.end(conn);
        *self.connection(conn) = Connection::default();
        self.io.close(conn);
    }

    pub(in crate::engine) fn close_lingering(&mut self, now_ns: u64) {
        while let Some(conn) = self.lingering.overdue(now_ns) {
            self.end_lingering(conn);
        }
    }

    pub(in crate::engine) fn downstream_reset(&mut self, client: ConnId) {
        let connection = self.connection(client);
        let peer = connection.peer;
        if let Some(downstream) = connection.downstream.as_deref_mut()
            && downstream.phase != Phase::Reading
        {
            if !downstream.response_sent {
                (downstream.status, downstream.response_bytes) = (CLIENT_LEFT, 0);
            }
            let backend = peer.map(|server| self.connection(server).backend as usize);
            self.log_request(client, backend);
        }
        self.end_http_client(client, false);
    }

    pub(in crate::engine) fn downstream_ended(&mut self, client: ConnId) {
        let connection = &mut self.connections[client.slot()];
        if std::mem::replace(&mut connection.ended, true) {
            return;
        }
        let Some(downstream) = connection.downstream.as_deref() else {
            return;
        };
        let waits = self.services[connection.service as usize].half_close();
        let cut = !downstream.body.is_complete() && downstream.input.is_empty();
        match (downstream.phase, connection.peer) {
            (Phase::Reading, _) => self.next_input(client),
            (Phase::Exchanging, Some(server)) if downstream.raw => self.io.finish(server),
            // The rest of the request will not come, or the client is taken to have gone.
            (Phase::Exchanging | Phase::Seeking, _) if cut || !waits => {
                self.downstream_reset(client);
            }
            // It waits for its response.
            _ => {}
        }
    }

    pub(in crate::engine) fn end_http_client(&mut self, client: ConnId, reset: bool) {
        self.leave_exchange(client);
        let connection = std::mem::take(self.connection(client));
        match reset {
            true => self.io.abort(client),
            false => self.io.close(client),
        }
        let is_stream = connection.client.is_some_and(|one| one.carrier.is_some());
        self.client_closed(connection.service as usize, is_stream);
    }
}
