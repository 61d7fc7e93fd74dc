//! [`Secure`] as an event loop.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::Arc;

use net::{Address, Buf, ConnId, Event, Handshake, Io, IoOptions, PayloadId, TargetId, WireBytes};

use super::Secure;

/// How long a closed session may take to send its last bytes.
const LINGER_NS: u64 = 1_000_000_000;

impl<I: Io> Io for Secure<I> {
    const NAME: &'static str = I::NAME;

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    fn coarse_now_ns(&self) -> u64 {
        self.inner.coarse_now_ns()
    }

    /// Without TLS on any connection.
    fn open(options: IoOptions) -> io::Result<Self> {
        Ok(Self::over(I::open(options)?, &options))
    }

    fn listen(&mut self, listener: TcpListener) -> io::Result<()> {
        self.inner.listen(listener)
    }

    fn add_target(&mut self, address: &Address, sources: &[SocketAddr]) -> TargetId {
        self.add_tls_target(address, sources, None)
    }

    fn add_tls_target(
        &mut self,
        address: &Address,
        sources: &[SocketAddr],
        tls: Option<u32>,
    ) -> TargetId {
        let id = self.inner.add_target(address, sources);
        debug_assert_eq!(id.number(), self.targets.len());
        self.targets.push(tls);
        id
    }

    fn set_no_delay(&mut self, target: TargetId) {
        self.inner.set_no_delay(target);
    }

    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId {
        let id = self.inner.add_payload(bytes.clone());
        debug_assert_eq!(id.number(), self.payloads.len());
        self.payloads.push(bytes);
        id
    }

    fn connect(&mut self, target: TargetId, first: Option<PayloadId>) -> io::Result<ConnId> {
        let settings = self.targets.get(target.number()).copied().flatten();
        let Some(Some(client)) = settings.and_then(|number| self.clients.get(number as usize))
        else {
            return self.inner.connect(target, first);
        };
        let mut tls = client.open().map_err(io::Error::other)?;
        if let Some(first) = first {
            tls.set_buffer_limit(None);
            io::Write::write_all(&mut tls.writer(), &self.payloads[first.number()])?;
        }
        let conn = self.inner.connect(target, None)?;
        self.begin(conn, tls.into(), 0);
        Ok(conn)
    }

    fn watch(&mut self, socket: &impl AsFd) -> io::Result<ConnId> {
        self.inner.watch(socket)
    }

    fn send_before_handshake(&mut self, conn: ConnId, bytes: &[u8]) -> bool {
        match self.session_mut(conn) {
            Some(session) => {
                session.before_handshake = bytes.to_vec();
                true
            }
            None => false,
        }
    }

    fn handshake(&self, conn: ConnId) -> Option<&Handshake> {
        self.session(conn)?.handshake.as_ref()
    }

    fn failure(&self, conn: ConnId) -> Option<&str> {
        self.session(conn)?.failure.as_deref()
    }

    fn wire_bytes(&self) -> WireBytes {
        self.wire
    }

    #[inline]
    fn send(&mut self, conn: ConnId, payload: PayloadId) {
        match self.session(conn) {
            None => self.inner.send(conn, payload),
            Some(_) => {
                let bytes = self.payloads[payload.number()].clone();
                self.encrypt(conn, &bytes);
            }
        }
    }

    #[inline]
    fn send_ordered(&mut self, conn: ConnId, payload: PayloadId) {
        match self.session(conn) {
            None => self.inner.send_ordered(conn, payload),
            Some(_) => {
                let bytes = self.payloads[payload.number()].clone();
                self.encrypt(conn, &bytes);
            }
        }
    }

    fn send_copy(&mut self, conn: ConnId, bytes: &[u8]) {
        match self.session(conn) {
            None => self.inner.send_copy(conn, bytes),
            Some(_) => self.encrypt(conn, bytes),
        }
    }

    fn send_quietly(&mut self, conn: ConnId, bytes: &[u8]) {
        match self.session(conn) {
            None => self.inner.send_quietly(conn, bytes),
            Some(_) => self.encrypt(conn, bytes),
        }
    }

    #[inline]
    fn forward(&mut self, conn: ConnId, buf: Buf) {
        let is_secure = self.session(conn).is_some();
        if !self.plaintext.has_lent(&buf) {
            if !is_secure {
                return self.inner.forward(conn, buf);
            }
            if let Some(session) = self.sessions[conn.slot()].as_deref_mut() {
                session.write(self.inner.bytes(&buf));
            }
            self.inner.recycle(buf);
            return self.flush(conn);
        }
        match self.sessions[conn.slot()].as_deref_mut() {
            Some(session) if is_secure => {
                session.write(self.plaintext.bytes(&buf));
                self.flush(conn);
            }
            _ => self.inner.send_copy(conn, self.plaintext.bytes(&buf)),
        }
        self.plaintext.give_back(&buf);
    }

    fn has_unread(&self, conn: ConnId) -> bool {
        let is_ready = |event: &Event| match event {
            Event::Data { conn: other, .. } | Event::Eof { conn: other } => *other == conn,
            Event::Failed { conn: other, .. } => *other == conn,
            _ => false,
        };
        self.ready.iter().any(is_ready) || self.inner.has_unread(conn)
    }

    #[inline]
    fn has_failed_send(&self, conn: ConnId) -> bool {
        self.inner.has_failed_send(conn)
    }

    #[inline]
    fn queued(&self, conn: ConnId) -> usize {
        let held = self.session(conn).map_or(0, |session| session.held_sends);
        held + self.inner.queued(conn)
    }

    fn finish(&mut self, conn: ConnId) {
        if let Some(session) = self.session_mut(conn) {
            if !session.is_established() {
                session.finish_pending = true;
                return;
            }
            session.tls.send_close_notify();
            self.flush(conn);
        }
        self.inner.finish(conn);
    }

    fn pause(&mut self, conn: ConnId) {
        match self.session_mut(conn) {
            Some(session) if !session.is_established() => session.pause_pending = true,
            _ => self.inner.pause(conn),
        }
    }

    fn resume(&mut self, conn: ConnId) {
        match self.session_mut(conn) {
            Some(session) if !session.is_established() => session.pause_pending = false,
            _ => self.inner.resume(conn),
        }
    }

    fn close(&mut self, conn: ConnId) {
        let had_unsent = self.queued(conn) > 0;
        let Some(session) = self.session_mut(conn) else {
            return self.inner.close(conn);
        };
        if session.is_lingering {
            return;
        }
        // What the user has sent before is dropped, as on any connection; an alert is not.
        let is_failed = session.failure.is_some();
        if had_unsent && !is_failed {
            self.forget_events(conn);
            return self.release(conn);
        }
        if session.is_established() && !is_failed {
            session.tls.send_close_notify();
        }
        self.flush(conn);
        self.forget_events(conn);
        if self.inner.queued(conn) == 0 {
            return self.release(conn);
        }
        if let Some(session) = self.session_mut(conn) {
            session.is_lingering = true;
        }
        let until = self.inner.coarse_now_ns() + LINGER_NS;
        self.lingering.push_back((until, conn));
    }

    fn abort(&mut self, conn: ConnId) {
        if self.session(conn).is_some() {
            self.forget_events(conn);
            self.sessions[conn.slot()] = None;
        }
        self.inner.abort(conn);
    }

    fn listen_again(&mut self) {
        self.inner.listen_again();
    }

    fn stop_listening(&mut self) {
        self.inner.stop_listening();
    }

    fn poll(&mut self, wait_ns: Option<u64>) -> io::Result<()> {
        self.flush_unsent();
        self.close_lingering();
        self.limit_handshakes();
        let wait_ns = match self.ready.is_empty() {
            true => wait_ns,
            false => Some(0),
        };
        self.inner.poll(wait_ns)
    }

    #[inline]
    fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            self.flush_unsent();
            let event = self.inner.next_event()?;
            // Most events of connections without TLS: the call below would copy each twice.
            if let Event::Data { conn, .. } = &event
                && self.session(*conn).is_none()
            {
                return Some(event);
            }
            if let Some(event) = self.translate(event) {
                return Some(event);
            }
        }
    }

    fn scarce(&self) -> bool {
        self.plaintext.is_scarce() || self.inner.scarce()
    }

    fn is_full(&self) -> bool {
        self.plaintext.is_full() || self.inner.is_full()
    }

    fn release_memory(&mut self) -> usize {
        self.plaintext.release_memory() + self.inner.release_memory()
    }

    #[inline]
    fn bytes(&self, buf: &Buf) -> &[u8] {
        match self.plaintext.has_lent(buf) {
            true => self.plaintext.bytes(buf),
            false => self.inner.bytes(buf),
        }
    }

    fn unacknowledged(&self, conn: ConnId) -> usize {
        self.inner.unacknowledged(conn)
    }

    fn peer(&self, conn: ConnId) -> Option<SocketAddr> {
        self.inner.peer(conn)
    }

    fn local(&self, conn: ConnId) -> Option<SocketAddr> {
        self.inner.local(conn)
    }

    #[inline]
    fn recycle(&mut self, buf: Buf) {
        match self.plaintext.has_lent(&buf) {
            true => self.plaintext.give_back(&buf),
            false => self.inner.recycle(buf),
        }
    }
}
