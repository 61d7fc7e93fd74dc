//! Connections to back ends that carry streams.

use std::collections::VecDeque;

use net::{ConnId, Event, Io, NOT_PROCESSED, TLS_FAILED, TargetId};

use super::carrier::Carrier;
use super::{CONNECTION_RESET, Multiplexed};

/// How often connections are checked, ns.
const CHECK_NS: u64 = 1_000_000_000;
/// A back end that has been silent for this long gets a PING, ns.
const QUIET_NS: u64 = 5_000_000_000;
/// How long a back end may take to answer a PING, ns.
const PING_NS: u64 = 5_000_000_000;
/// How long a connection is kept without streams, ns.
const IDLE_NS: u64 = 60_000_000_000;

/// The part of a carrier that only connections to back ends have.
#[derive(Debug)]
pub(super) struct BackendConnection {
    pub target: TargetId,
    /// Whether it is open, with TLS after the handshake, and the SETTINGS of the back end have
    /// come.
    pub is_up: bool,
    /// Whether it has carried a stream.
    pub has_served: bool,
    /// Slots of streams that wait until it is open.
    pub waiting: VecDeque<u32>,
    /// The number of streams that have a place.
    pub streams: u32,
    /// Whether anything has been received since the last check.
    has_heard: bool,
    /// When a check last found that something had been received, ns.
    heard_ns: u64,
    /// When the PING was sent that has not been answered.
    pub pinged_ns: Option<u64>,
    /// Since when it has no streams.
    pub idle_ns: Option<u64>,
}

impl BackendConnection {
    pub fn new(target: TargetId, now_ns: u64) -> Self {
        Self {
            target,
            is_up: false,
            has_served: false,
            waiting: VecDeque::new(),
            streams: 0,
            has_heard: false,
            heard_ns: now_ns,
            pinged_ns: None,
            idle_ns: None,
        }
    }

    pub fn is_unused(&self) -> bool {
        self.streams == 0 && self.waiting.is_empty()
    }
}

impl Carrier {
    /// Notes that a back end has sent something.
    pub(super) fn note_heard(&mut self) {
        if let Some(backend) = &mut self.backend {
            (backend.has_heard, backend.pinged_ns) = (true, None);
        }
    }
}

impl<I: Io> Multiplexed<I> {
    pub(super) fn backend_at(&mut self, conn: ConnId) -> Option<&mut BackendConnection> {
        self.carrier_at(conn)?.backend.as_mut()
    }

    pub(super) fn backend_event(&mut self, conn: ConnId, event: Event) {
        match event {
            Event::Connected { .. } => self.backend_connected(conn),
            Event::ConnectFailed { errno, .. } => self.fail_backend_connection(conn, errno),
            Event::Data { buf, .. } => {
                if self.receive_buf(conn, buf) {
                    self.received_from_backend(conn);
                } else {
                    self.flush(conn);
                    self.fail_backend_connection(conn, net::MALFORMED);
                }
            }
            Event::Drained { .. } => {
                self.flush(conn);
                if let Some(target) = self.backend_at(conn).map(|backend| backend.target) {
                    self.serve_queue(target);
                }
            }
            Event::Failed { errno, .. } => self.fail_backend_connection(conn, errno),
            _ => self.fail_backend_connection(conn, CONNECTION_RESET),
        }
    }

    fn backend_connected(&mut self, conn: ConnId) {
        let alpn = self.inner.handshake(conn).map(|one| one.alpn);
        if alpn.is_some_and(|alpn| alpn != Some("h2")) {
            return self.fail_backend_connection(conn, TLS_FAILED);
        }
        // Sends the preface and SETTINGS. The streams wait for the SETTINGS of the back end.
        self.flush(conn);
    }

    /// Acts on what a back end has sent: SETTINGS, GOAWAY, the end of a stream, a sign of life.
    fn received_from_backend(&mut self, conn: ConnId) {
        let Some(carrier) = self.carrier_at(conn) else {
            return;
        };
        carrier.note_heard();
        let has_settings = carrier.session.has_settings();
        let is_leaving = carrier.is_leaving();
        let Some(backend) = &mut carrier.backend else {
            return;
        };
        let target = backend.target;
        let was_up = std::mem::replace(&mut backend.is_up, has_settings);
        if is_leaving || (has_settings && !was_up) {
            self.place_those_who_waited(conn);
            self.end_if_left(conn);
        }
        self.serve_queue(target);
    }

    /// Closes a connection that takes no further streams when its last one has ended.
    pub(super) fn end_if_left(&mut self, conn: ConnId) {
        let Some(carrier) = self.carrier_at(conn) else {
            return;
        };
        if carrier.is_leaving() && carrier.backend.as_ref().is_some_and(|one| one.is_unused()) {
            self.drop_backend_connection(conn);
        }
    }

    /// Ends a connection that failed. Its streams fail, also those that wait for it to be opened.
    fn fail_backend_connection(&mut self, conn: ConnId, errno: i32) {
        let Some(backend) = self.backend_at(conn) else {
            return;
        };
        let target = backend.target;
        let waiting = std::mem::take(&mut backend.waiting);
        self.drop_backend_connection(conn);
        for slot in waiting {
            self.table.connect_failed(slot, errno);
        }
        for slot in self.table.slots_on(conn) {
            let Some(stream) = self.table.at(slot) else {
                continue;
            };
            // The whole response has been received; only a slow client has not taken all of it yet.
            if stream.is_complete && !stream.inbox.is_empty() {
                continue;
            }
            let errno = if stream.id != 0 { errno } else { NOT_PROCESSED };
            self.table.fail(slot, errno);
        }
        self.serve_queue(target);
    }

    /// Closes a connection that has no streams, or whose streams fail.
    pub(super) fn drop_backend_connection(&mut self, conn: ConnId) {
        let Some(target) = self.backend_at(conn).map(|backend| backend.target) else {
            return;
        };
        if let Some(one) = self.stream_target_mut(target) {
            one.connections.retain(|one| *one != conn);
        }
        self.backend_connections.retain(|one| *one != conn);
        self.carriers[conn.slot()] = None;
        self.inner.close(conn);
    }

    /// Once a second, closes the connections that are not used, and those whose back end does not
    /// answer.
    pub(super) fn check_backend_connections(&mut self) {
        if self.backend_connections.is_empty() {
            return;
        }
        let now_ns = self.inner.coarse_now_ns();
        if now_ns.saturating_sub(self.checked_ns) < CHECK_NS {
            return;
        }
        self.checked_ns = now_ns;
        for conn in self.backend_connections.clone() {
            self.check_backend_connection(conn, now_ns);
        }
    }

    fn check_backend_connection(&mut self, conn: ConnId, now_ns: u64) {
        let Some(carrier) = self.carriers[conn.slot()].as_deref_mut() else {
            return;
        };
        let Some(backend) = carrier.backend.as_mut() else {
            return;
        };
        carrier.session.forgive(10 * Carrier::FORGIVEN);
        // The user limits the time to open it.
        if !backend.is_up {
            return;
        }
        if backend.is_unused() {
            let idle_ns = *backend.idle_ns.get_or_insert(now_ns);
            if now_ns.saturating_sub(idle_ns) >= IDLE_NS {
                let target = backend.target;
                carrier.session.send_go_away();
                self.flush(conn);
                self.drop_backend_connection(conn);
                return self.serve_queue(target);
            }
        }
        if std::mem::take(&mut backend.has_heard) {
            backend.heard_ns = now_ns;
        } else if let Some(pinged_ns) = backend.pinged_ns {
            if now_ns.saturating_sub(pinged_ns) >= PING_NS {
                self.fail_backend_connection(conn, CONNECTION_RESET);
            }
        } else if now_ns.saturating_sub(backend.heard_ns) >= QUIET_NS {
            backend.pinged_ns = Some(now_ns);
            carrier.session.ping();
            self.flush(conn);
        }
    }
}
