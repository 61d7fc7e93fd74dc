//! The simulated loop as an [`Io`].

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use super::connection::{Ended, Fate, Send, SimConnection};
use super::{Driver, Network, Ready, SimIo};
use crate::address::Address;
use crate::io::{Buf, ConnId, Event, Io, IoOptions, PayloadId, TargetId};

impl Network {
    fn enqueue(&mut self, conn: ConnId, bytes: Vec<u8>, buffer: Option<u16>, is_tracked: bool) {
        let is_late = self.is_late;
        let is_mute = |one: &SimConnection| one.ended == Ended::Told || one.is_broken;
        let Some(one) = self.alive(conn).filter(|one| !is_mute(one)) else {
            if let Some(id) = buffer {
                self.give_back(id);
            }
            return;
        };
        one.is_tracked |= is_tracked;
        let from = 0;
        one.sends.push_back(Send {
            bytes,
            from,
            buffer,
        });
        if !is_late {
            self.flush(conn);
        }
    }

    fn release(&mut self, conn: ConnId, fate: Fate) {
        if self.alive(conn).is_none() {
            return;
        }
        self.drop_sends(conn);
        let one = self.connection(conn);
        // Closing with unread input resets a connection.
        let is_reset = !one.inbox.is_empty() && one.ended != Ended::Reset;
        (one.is_open, one.fate) = (false, if is_reset { Fate::Aborted } else { fate });
        one.inbox.clear();
        self.slots[conn.slot()] = None;
    }

    /// Collects what has happened since the last poll.
    fn collect(&mut self) {
        let mut open = self.open();
        if self.is_reversed {
            open.reverse();
        }
        for conn in open {
            self.flush(conn);
            if !self.is_late {
                self.ready.push_back(Ready::Readable(conn));
                continue;
            }
            // Already received, so it is reported even if the program pauses the connection.
            while let Some(event) = self.receive(conn) {
                self.ready.push_back(Ready::Event(event));
            }
        }
    }

    fn next(&mut self) -> Option<Event> {
        while let Some(ready) = self.ready.pop_front() {
            match ready {
                Ready::Readable(conn) => {
                    if let Some(event) = self.receive(conn) {
                        // There may be more; the other connections come first.
                        self.ready.push_back(Ready::Readable(conn));
                        return Some(event);
                    }
                }
                Ready::Event(event) => match conn_of(&event) {
                    Some(conn) if self.alive(conn).is_none() => {
                        if let Event::Data { buf, .. } = event {
                            self.give_back(buf.id);
                        }
                    }
                    _ => return Some(event),
                },
            }
        }
        None
    }
}

fn conn_of(event: &Event) -> Option<ConnId> {
    match event {
        Event::Accepted { conn, .. }
        | Event::Connected { conn }
        | Event::ConnectFailed { conn, .. }
        | Event::Data { conn, .. }
        | Event::Eof { conn }
        | Event::Failed { conn, .. }
        | Event::Readable { conn }
        | Event::Drained { conn } => Some(*conn),
        Event::AcceptFailed { .. } => None,
    }
}

impl<D: Driver> Io for SimIo<D> {
    const NAME: &'static str = "simulated";

    fn open(_: IoOptions) -> io::Result<Self> {
        Err(io::Error::other("a simulated loop needs a driver"))
    }

    fn now_ns(&self) -> u64 {
        self.network.now_ns()
    }

    fn coarse_now_ns(&self) -> u64 {
        self.network.now_ns()
    }

    fn listen(&mut self, _: TcpListener) -> io::Result<()> {
        Ok(())
    }

    fn add_target(&mut self, _: &Address, _: &[SocketAddr]) -> TargetId {
        self.network.targets += 1;
        TargetId(self.network.targets - 1)
    }

    fn set_no_delay(&mut self, target: TargetId) {
        self.network.no_delay.push(target.0);
    }

    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId {
        self.network.payloads.push(bytes);
        PayloadId(self.network.payloads.len() as u32 - 1)
    }

    fn connect(&mut self, target: TargetId, first: Option<PayloadId>) -> io::Result<ConnId> {
        let network = &mut self.network;
        if let Some(errno) = network.socket_errors.pop_front() {
            return Err(io::Error::from_raw_os_error(errno));
        }
        let last = network.options.outgoing as usize;
        let Some(conn) = network.occupy(0, last) else {
            return Err(io::Error::other("all connection slots are in use"));
        };
        let one = network.connection(conn);
        (one.target, one.is_opening) = (Some(target.0), true);
        if let Some(payload) = first {
            self.send(conn, payload);
        }
        Ok(conn)
    }

    fn send(&mut self, conn: ConnId, payload: PayloadId) {
        let bytes = self.network.payloads[payload.0 as usize].to_vec();
        self.network.enqueue(conn, bytes, None, false);
    }

    fn send_ordered(&mut self, conn: ConnId, payload: PayloadId) {
        let bytes = self.network.payloads[payload.0 as usize].to_vec();
        self.network.enqueue(conn, bytes, None, true);
    }

    fn send_copy(&mut self, conn: ConnId, bytes: &[u8]) {
        self.network.enqueue(conn, bytes.to_vec(), None, true);
    }

    fn forward(&mut self, conn: ConnId, buf: Buf) {
        let bytes = self.bytes(&buf).to_vec();
        self.network.enqueue(conn, bytes, Some(buf.id), true);
    }

    fn has_unread(&self, conn: ConnId) -> bool {
        self.network.has_unread(conn)
    }

    fn has_failed_send(&self, conn: ConnId) -> bool {
        let one = self.network.connections.get(conn.generation as usize);
        one.is_some_and(|one| one.is_broken)
    }

    fn queued(&self, conn: ConnId) -> usize {
        let one = self.network.connections.get(conn.generation as usize);
        one.filter(|one| one.is_open && one.id == conn)
            .map_or(0, |one| one.sends.len())
    }

    fn finish(&mut self, conn: ConnId) {
        let is_late = self.network.is_late;
        let Some(one) = self.network.alive(conn) else {
            return;
        };
        one.is_finishing = true;
        if !is_late {
            self.network.flush(conn);
        }
    }

    fn pause(&mut self, conn: ConnId) {
        if let Some(one) = self.network.alive(conn) {
            one.is_paused = true;
        }
    }

    fn resume(&mut self, conn: ConnId) {
        if let Some(one) = self.network.alive(conn) {
            one.is_paused = false;
        }
        if !self.network.is_late {
            self.network.ready.push_back(Ready::Readable(conn));
        }
    }

    fn close(&mut self, conn: ConnId) {
        self.network.release(conn, Fate::Closed);
    }

    fn abort(&mut self, conn: ConnId) {
        self.network.release(conn, Fate::Aborted);
    }

    fn listen_again(&mut self) {}

    fn stop_listening(&mut self) {
        self.network.is_listening = false;
    }

    fn poll(&mut self, wait_ns: Option<u64>) -> io::Result<()> {
        // Earlier sends are carried out before anything else happens.
        for conn in self.network.open() {
            self.network.flush(conn);
        }
        self.driver.turn(&mut self.network, wait_ns)?;
        self.network.collect();
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event> {
        self.network.next()
    }

    fn scarce(&self) -> bool {
        self.network.lent() * 2 > self.network.buffers.len()
    }

    fn is_full(&self) -> bool {
        self.network.is_full
    }

    fn bytes(&self, buf: &Buf) -> &[u8] {
        let bytes = self.network.buffers[usize::from(buf.id)].as_deref();
        let bytes = bytes.unwrap_or_else(|| panic!("{buf:?} was given back"));
        &bytes[buf.start as usize..(buf.start + buf.len) as usize]
    }

    fn peer(&self, conn: ConnId) -> Option<SocketAddr> {
        self.network.connections[conn.generation as usize].address
    }

    fn local(&self, conn: ConnId) -> Option<SocketAddr> {
        self.peer(conn)
    }

    fn recycle(&mut self, buf: Buf) {
        self.network.give_back(buf.id);
    }
}
