//! An event loop whose connections may be TLS sessions.

mod as_io;
pub(crate) mod session;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use net::{Buf, ConnId, Event, Io, IoOptions, LentBuffers, LoopId, TLS_FAILED, WireBytes};
use rustls::Connection;

use crate::client::ClientTls;
use crate::server::ServerTls;
use session::Session;

/// How long a client may take for its handshake: one that never ends would hold a connection for
/// nothing.
const HANDSHAKE_NS: u64 = 10_000_000_000;

/// An event loop over another one. Connections to targets and from listeners that have TLS
/// settings are TLS sessions: [`Event::Connected`] comes after the handshake, data are plaintext, and
/// what is sent is encrypted. All other connections are those of the loop below.
///
/// The end of data without `close_notify` is [`Event::Failed`], since what came before may
/// have been cut off.
pub struct Secure<I: Io> {
    inner: I,
    /// By the number that [`Io::add_tls_target`] gets.
    clients: Vec<Option<ClientTls>>,
    /// The number of each target's client settings.
    targets: Vec<Option<u32>>,
    /// By number of the listener.
    servers: Vec<Option<ServerTls>>,
    /// By number of the listener: whether clients send a PROXY protocol header first.
    headers: Vec<bool>,
    payloads: Vec<Arc<[u8]>>,
    /// By slot.
    sessions: Vec<Option<Box<Session>>>,
    ready: VecDeque<Event>,
    /// A session with handshake messages or alerts to send; they wait, so that what its user sends
    /// next leaves with them.
    unsent: Option<ConnId>,
    plaintext: LentBuffers,
    ciphertext: Vec<u8>,
    /// Closed sessions with unsent bytes, and when each is closed in any case.
    lingering: VecDeque<(u64, ConnId)>,
    /// Accepted sessions, and until when each handshake has to be complete.
    handshaking: VecDeque<(u64, ConnId)>,
    handshake_ns: u64,
    wire: WireBytes,
}

impl<I: Io> Secure<I> {
    /// TLS over a loop that was opened with these options.
    pub fn over(inner: I, options: &IoOptions) -> Self {
        Self {
            inner,
            clients: Vec::new(),
            targets: Vec::new(),
            servers: Vec::new(),
            headers: Vec::new(),
            payloads: Vec::new(),
            sessions: (0..options.slots()).map(|_| None).collect(),
            ready: VecDeque::new(),
            unsent: None,
            plaintext: LentBuffers::new(LoopId::next()),
            ciphertext: Vec::new(),
            lingering: VecDeque::new(),
            handshaking: VecDeque::new(),
            handshake_ns: HANDSHAKE_NS,
            wire: WireBytes::default(),
        }
    }

    /// The settings that [`Io::add_tls_target`] refers to by number.
    #[must_use]
    pub fn with_clients(mut self, clients: Vec<Option<ClientTls>>) -> Self {
        self.clients = clients;
        self
    }

    /// The TLS of each listener, in the order in which they are given.
    #[must_use]
    pub fn with_servers(mut self, servers: Vec<Option<ServerTls>>) -> Self {
        self.servers = servers;
        self
    }

    /// Whether the clients of each listener send a PROXY protocol header before the handshake. It is
    /// the first data of the connection then, by itself.
    #[must_use]
    pub fn with_headers(mut self, headers: Vec<bool>) -> Self {
        self.headers = headers;
        self
    }

    /// With another time limit for the handshakes of clients.
    #[must_use]
    pub fn with_handshake_limit(mut self, limit: Duration) -> Self {
        self.handshake_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX / 2);
        self
    }

    #[inline]
    fn session(&self, conn: ConnId) -> Option<&Session> {
        let session = self.sessions[conn.slot()].as_deref()?;
        (session.conn == conn).then_some(session)
    }

    #[inline]
    fn session_mut(&mut self, conn: ConnId) -> Option<&mut Session> {
        let session = self.sessions[conn.slot()].as_deref_mut()?;
        (session.conn == conn).then_some(session)
    }

    fn begin(&mut self, conn: ConnId, tls: Connection, opened_ns: u64) {
        self.sessions[conn.slot()] = Some(Box::new(Session::new(conn, tls, opened_ns)));
    }

    /// Sends what a session has to send.
    fn flush(&mut self, conn: ConnId) {
        if self.unsent == Some(conn) {
            self.unsent = None;
        }
        let Some(session) = self.sessions[conn.slot()].as_deref_mut() else {
            return;
        };
        session.collect(&mut self.ciphertext);
        if !self.ciphertext.is_empty() {
            self.wire.sent += self.ciphertext.len() as u64;
            self.inner.send_copy(conn, &self.ciphertext);
            self.ciphertext.clear();
        }
    }

    fn flush_unsent(&mut self) {
        if let Some(conn) = self.unsent {
            self.flush(conn);
        }
    }

    /// Encrypts and sends bytes on a connection that has a session.
    fn encrypt(&mut self, conn: ConnId, bytes: &[u8]) {
        if let Some(session) = self.session_mut(conn) {
            session.write(bytes);
            self.flush(conn);
        }
    }

    fn fail(&mut self, conn: ConnId, why: String) {
        // An alert tells the peer.
        self.flush(conn);
        let Some(session) = self.session_mut(conn) else {
            return;
        };
        session.failure = Some(why);
        let errno = TLS_FAILED;
        let event = match session.is_client && !session.is_established() {
            true => Event::ConnectFailed { conn, errno },
            false => Event::Failed { conn, errno },
        };
        if !std::mem::replace(&mut session.is_ended, true) {
            session.has_failed = true;
            self.ready.push_back(event);
        }
    }

    /// Decrypts received bytes; events for the user go to `ready`.
    fn decrypt(&mut self, conn: ConnId, buf: Buf) {
        let arrived_ns = buf.arrived_ns().unwrap_or(0);
        let now_ns = self.inner.now_ns();
        let mut failed = None;
        let mut is_closed = false;
        let mut is_new = false;
        let mut input = self.inner.bytes(&buf);
        self.wire.read += input.len() as u64;
        if let Some(session) = self.sessions[conn.slot()].as_deref_mut()
            && !session.is_ended
        {
            let (taken, header) = session.take_header(input);
            input = &input[taken..];
            if let Some(header) = header {
                let filled = self.plaintext.fill(|bytes| {
                    let count = header.len().min(bytes.len());
                    bytes[..count].copy_from_slice(&header[..count]);
                    count
                });
                if let Some(plain) = filled {
                    let buf = plain.at(arrived_ns);
                    self.ready.push_back(Event::Data { conn, buf });
                }
            }
            while !input.is_empty() {
                let before = input.len();
                match session.take(&mut input) {
                    Ok(closed) => is_closed |= closed,
                    Err(why) => failed = Some(why),
                }
                if session.notes_handshake(now_ns) {
                    is_new = true;
                    if session.is_client {
                        self.ready.push_back(Event::Connected { conn });
                    }
                }
                // rustls takes no more while plaintext waits.
                while let Some(plain) = self.plaintext.fill(|bytes| session.read(bytes)) {
                    let buf = plain.at(arrived_ns);
                    self.ready.push_back(Event::Data { conn, buf });
                }
                // After `close_notify` rustls takes nothing more.
                if failed.is_some() || input.len() == before {
                    break;
                }
            }
            if self.plaintext.is_exhausted() {
                failed = Some("all buffers for plaintext are in use".into());
            }
            if failed.is_none() && is_closed && session.is_established() {
                session.is_ended = true;
                self.ready.push_back(Event::Eof { conn });
            }
            if session.tls.wants_write() {
                self.unsent = Some(conn);
            }
        }
        self.inner.recycle(buf);
        if is_new {
            self.catch_up(conn);
        }
        if let Some(why) = failed {
            self.fail(conn, why);
        }
    }

    /// Does what the user of a session asked for during the handshake.
    fn catch_up(&mut self, conn: ConnId) {
        let Some(session) = self.session_mut(conn) else {
            return;
        };
        let held = std::mem::take(&mut session.held_sends);
        let (is_finished, is_paused) = (session.finish_pending, session.pause_pending);
        if is_paused {
            self.inner.pause(conn);
        }
        if held > 0 {
            self.flush(conn);
        }
        if is_finished {
            self.finish(conn);
        }
    }

    /// The event for the user that an event of the loop below leads to; further ones are in `ready`.
    fn translate(&mut self, event: Event) -> Option<Event> {
        match event {
            Event::Accepted { conn, listener } => {
                if let Some(Some(server)) = self.servers.get(listener as usize) {
                    match server.accept() {
                        Ok(tls) => {
                            let now_ns = self.inner.now_ns();
                            self.begin(conn, tls.into(), now_ns);
                            if self.headers.get(listener as usize) == Some(&true)
                                && let Some(session) = self.session_mut(conn)
                            {
                                session.header = Some(Vec::new());
                            }
                            self.handshaking
                                .push_back((now_ns + self.handshake_ns, conn));
                        }
                        Err(_) => {
                            self.inner.close(conn);
                            return None;
                        }
                    }
                }
                Some(event)
            }
            Event::Connected { conn } => {
                let now_ns = self.inner.now_ns();
                let Some(session) = self.session_mut(conn) else {
                    return Some(event);
                };
                session.opened_ns = now_ns;
                // Before the ClientHello, and in one send with it.
                self.ciphertext = std::mem::take(&mut session.before_handshake);
                self.flush(conn);
                None
            }
            Event::Data { conn, buf } => match self.session(conn) {
                None => Some(Event::Data { conn, buf }),
                Some(session) if session.is_lingering => {
                    self.inner.recycle(buf);
                    None
                }
                Some(_) => {
                    self.decrypt(conn, buf);
                    None
                }
            },
            Event::Eof { conn } | Event::Failed { conn, .. } => {
                let Some(session) = self.session_mut(conn) else {
                    return Some(event);
                };
                if session.is_lingering {
                    self.release(conn);
                    return None;
                }
                if let Event::Failed { errno, .. } = event {
                    // It may follow the end of data, when an answer cannot be sent any more.
                    if std::mem::replace(&mut session.has_failed, true) {
                        return None;
                    }
                    session.is_ended = true;
                    let is_connecting = session.is_client && !session.is_established();
                    return Some(match is_connecting {
                        true => Event::ConnectFailed { conn, errno },
                        false => event,
                    });
                }
                if session.is_ended {
                    return None;
                }
                let during = match session.is_established() {
                    true => "without close_notify",
                    false => "during the TLS handshake",
                };
                self.fail(conn, format!("the connection was closed {during}"));
                None
            }
            Event::Drained { conn } => {
                let Some(session) = self.session(conn) else {
                    return Some(event);
                };
                if session.is_lingering {
                    if self.inner.queued(conn) == 0 {
                        self.release(conn);
                    }
                    return None;
                }
                session.is_established().then_some(event)
            }
            Event::ConnectFailed { .. } | Event::AcceptFailed { .. } | Event::Readable { .. } => {
                Some(event)
            }
        }
    }

    /// Closes the connection of a session that its user has closed.
    fn release(&mut self, conn: ConnId) {
        self.sessions[conn.slot()] = None;
        self.inner.close(conn);
    }

    /// Drops the events of a connection that its user closes.
    fn forget_events(&mut self, conn: ConnId) {
        if self.unsent == Some(conn) {
            self.unsent = None;
        }
        for _ in 0..self.ready.len() {
            match self.ready.pop_front() {
                Some(Event::Data { conn: other, buf }) if other == conn => {
                    self.plaintext.give_back(&buf);
                }
                Some(
                    Event::Eof { conn: other }
                    | Event::Connected { conn: other }
                    | Event::Failed { conn: other, .. }
                    | Event::ConnectFailed { conn: other, .. },
                ) if other == conn => {}
                Some(event) => self.ready.push_back(event),
                None => return,
            }
        }
    }

    /// Fails the sessions whose handshakes take too long.
    fn limit_handshakes(&mut self) {
        let now_ns = match self.handshaking.is_empty() {
            true => return,
            false => self.inner.coarse_now_ns(),
        };
        while let Some(&(until, conn)) = self.handshaking.front()
            && now_ns >= until
        {
            self.handshaking.pop_front();
            let is_late = |session: &Session| !session.is_established() && !session.is_lingering;
            if self.session(conn).is_some_and(is_late) {
                self.fail(conn, "the TLS handshake took too long".into());
            }
        }
    }

    fn close_lingering(&mut self) {
        let now_ns = match self.lingering.is_empty() {
            true => return,
            false => self.inner.coarse_now_ns(),
        };
        while let Some(&(until, conn)) = self.lingering.front()
            && now_ns >= until
        {
            self.lingering.pop_front();
            if self
                .session(conn)
                .is_some_and(|session| session.is_lingering)
            {
                self.release(conn);
            }
        }
    }
}
