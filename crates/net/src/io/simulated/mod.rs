//! An event loop without a kernel: connections, bytes, failures and time come from a test.
//!
//! [`SimIo`] is an [`Io`](crate::Io) whose other side is a [`Driver`]: before each poll the driver
//! changes the [`Network`], and the poll reports the changes as events. A driver that acts at
//! random shows a program orders of events that are very rare with real sockets.
//!
//! Available only with the feature `simulated`, for tests.

mod connection;
mod io;
mod random;

use std::cell::Cell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

pub use connection::Fate;
use connection::{Ended, SimConnection};
pub use random::try_random;

use crate::io::{Buf, ConnId, Event, IoOptions};

/// The other side of the simulated connections.
pub trait Driver {
    /// Changes the network and advances its clock, before a poll that may wait for `wait_ns`.
    ///
    /// # Errors
    /// To make the poll fail.
    fn turn(&mut self, network: &mut Network, wait_ns: Option<u64>) -> std::io::Result<()>;
}

/// The event loop. Its parts are public for the test that made it.
pub struct SimIo<D> {
    pub network: Network,
    pub driver: D,
}

impl<D: Driver> SimIo<D> {
    /// A loop of these sizes, with at least one buffer. Its clock begins at `start_ns`.
    pub fn new(options: IoOptions, start_ns: u64, driver: D) -> Self {
        Self {
            network: Network::new(options, start_ns),
            driver,
        }
    }
}

/// What happens in a turn, in the order in which it is reported.
#[derive(Debug)]
enum Ready {
    /// An event, which is reported unless its connection was closed.
    Event(Event),
    /// The connection may have received something.
    Readable(ConnId),
}

/// All connections, with the bytes in transit on each, and the clock.
pub struct Network {
    clock: Rc<Cell<u64>>,
    options: IoOptions,
    /// All connections that ever existed. The generation of a connection is its index here.
    connections: Vec<SimConnection>,
    slots: Vec<Option<usize>>,
    buffers: Vec<Option<Vec<u8>>>,
    payloads: Vec<Arc<[u8]>>,
    targets: u32,
    /// The targets whose connections have `TCP_NODELAY`.
    no_delay: Vec<u32>,
    ready: VecDeque<Ready>,
    is_listening: bool,
    /// Whether sends are carried out in the next poll and data is received before it is reported,
    /// as with io_uring. Otherwise both happen at once, as with epoll.
    pub is_late: bool,
    /// Whether the next poll takes the connections in reverse order.
    pub is_reversed: bool,
    /// Whether the loop says that it holds as much as it may.
    pub is_full: bool,
    /// Errors of the next attempts to open a socket.
    pub socket_errors: VecDeque<i32>,
}

impl Network {
    fn new(options: IoOptions, start_ns: u64) -> Self {
        let buffers = options.buffers.max(options.buffers_max).max(1);
        Self {
            clock: Rc::new(Cell::new(start_ns)),
            slots: vec![None; options.slots()],
            options,
            connections: Vec::new(),
            buffers: vec![None; buffers.into()],
            payloads: Vec::new(),
            targets: 0,
            no_delay: Vec::new(),
            ready: VecDeque::new(),
            is_listening: true,
            is_late: false,
            is_reversed: false,
            is_full: false,
            socket_errors: VecDeque::new(),
        }
    }

    /// The clock, for a program that reads it elsewhere.
    pub fn clock(&self) -> Rc<Cell<u64>> {
        self.clock.clone()
    }

    /// The time, ns.
    pub fn now_ns(&self) -> u64 {
        self.clock.get()
    }

    /// Lets time pass.
    pub fn advance(&self, ns: u64) {
        self.clock.set(self.clock.get() + ns);
    }

    /// A client connects; `None` without a free slot or listener. `peer` is `None` for a client
    /// that is gone already, whose address the loop cannot know.
    pub fn accept(&mut self, listener: u32, peer: Option<SocketAddr>) -> Option<ConnId> {
        if !self.is_listening {
            return None;
        }
        let first = self.options.outgoing as usize;
        let conn = self.occupy(first, self.slots.len())?;
        self.connection(conn).address = peer;
        let accepted = Event::Accepted { conn, listener };
        self.ready.push_back(Ready::Event(accepted));
        Some(conn)
    }

    /// A listener cannot accept.
    pub fn accept_fails(&mut self, errno: i32) {
        let failed = Event::AcceptFailed { errno };
        self.ready.push_back(Ready::Event(failed));
    }

    /// The connections that the program is opening, oldest first. See [`Network::decide`].
    pub fn opening(&self) -> Vec<ConnId> {
        self.those(|one| one.is_open && one.is_opening)
    }

    /// All connections that the program has opened, closed ones included, oldest first.
    pub fn opened(&self) -> Vec<ConnId> {
        self.those(|one| one.target.is_some() && !one.is_opening)
    }

    /// The connections that the program has not closed.
    pub fn open(&self) -> Vec<ConnId> {
        self.those(|one| one.is_open)
    }

    fn those(&self, which: impl Fn(&SimConnection) -> bool) -> Vec<ConnId> {
        let all = self.connections.iter().filter(|one| which(one));
        all.map(|one| one.id).collect()
    }

    /// The number of the target that a connection was opened to.
    pub fn target(&self, conn: ConnId) -> Option<u32> {
        self.connections[conn.generation as usize].target
    }

    /// Ends an attempt to connect: it succeeds, or fails with this `errno`.
    pub fn decide(&mut self, conn: ConnId, errno: Option<i32>) {
        let one = self.connection(conn);
        if !std::mem::take(&mut one.is_opening) || !one.is_open {
            return;
        }
        let event = match errno {
            None => Event::Connected { conn },
            Some(errno) => {
                one.ended = Ended::Told;
                Event::ConnectFailed { conn, errno }
            }
        };
        self.ready.push_back(Ready::Event(event));
        if errno.is_none() {
            self.flush(conn);
        }
    }

    /// The peer sends bytes.
    pub fn arrive(&mut self, conn: ConnId, bytes: &[u8]) {
        let one = self.connection(conn);
        if one.ended == Ended::No {
            one.inbox.extend(bytes);
        }
    }

    /// Whether a connection has data, its end or a failure that the program does not know yet.
    pub fn has_unread(&self, conn: ConnId) -> bool {
        let is_of = |ready: &Ready| match ready {
            Ready::Event(
                Event::Data { conn: of, .. }
                | Event::Eof { conn: of }
                | Event::Failed { conn: of, .. },
            ) => *of == conn,
            _ => false,
        };
        let one = &self.connections[conn.generation as usize];
        let is_there = !one.inbox.is_empty() || matches!(one.ended, Ended::Eof | Ended::Reset);
        one.is_open && (is_there || self.ready.iter().any(is_of))
    }

    /// The peer shuts down its side.
    pub fn end(&mut self, conn: ConnId) {
        let one = self.connection(conn);
        if one.ended == Ended::No {
            one.ended = Ended::Eof;
        }
    }

    /// The peer resets the connection. What arrived before can still be read, as on Linux.
    pub fn reset(&mut self, conn: ConnId) {
        let one = self.connection(conn);
        if one.ended != Ended::Told {
            one.ended = Ended::Reset;
        }
    }

    /// Sets how many more bytes the peer accepts before sends have to wait.
    pub fn set_room(&mut self, conn: ConnId, bytes: usize) {
        self.connection(conn).room = bytes;
        self.flush(conn);
    }

    /// Takes what the program has sent since the last call.
    pub fn take_sent(&mut self, conn: ConnId) -> Vec<u8> {
        let one = self.connection(conn);
        one.send_ends.clear();
        std::mem::take(&mut one.sent)
    }

    /// As [`Network::take_sent`], each send by itself.
    pub fn take_sends(&mut self, conn: ConnId) -> Vec<Vec<u8>> {
        let ends = std::mem::take(&mut self.connection(conn).send_ends);
        let mut rest = self.take_sent(conn);
        let mut sends = Vec::new();
        let mut from = 0;
        for end in ends {
            let after = rest.split_off(end - from);
            sends.push(std::mem::replace(&mut rest, after));
            from = end;
        }
        sends.extend((!rest.is_empty()).then_some(rest));
        sends
    }

    /// Whether connections to a target have `TCP_NODELAY`.
    pub fn has_no_delay(&self, target: u32) -> bool {
        self.no_delay.contains(&target)
    }

    /// What the program has done with a connection.
    pub fn fate(&self, conn: ConnId) -> Fate {
        self.connections[conn.generation as usize].fate
    }

    /// Receive buffers that the program holds, those in send queues included.
    pub fn lent(&self) -> usize {
        self.buffers.iter().flatten().count()
    }

    /// Bytes that the program holds to be sent on a connection.
    pub fn held(&self, conn: ConnId) -> usize {
        let sends = &self.connections[conn.generation as usize].sends;
        sends.iter().map(|send| send.bytes.len()).sum()
    }

    /// The entry of a connection, closed or not.
    fn connection(&mut self, conn: ConnId) -> &mut SimConnection {
        &mut self.connections[conn.generation as usize]
    }

    /// The entry of a connection that is open.
    fn alive(&mut self, conn: ConnId) -> Option<&mut SimConnection> {
        let one = self.connections.get_mut(conn.generation as usize)?;
        (one.is_open && one.id == conn).then_some(one)
    }

    fn occupy(&mut self, from: usize, to: usize) -> Option<ConnId> {
        let slot = (from..to).find(|&slot| self.slots[slot].is_none())?;
        let number = self.connections.len();
        let conn = ConnId::new(slot as u32, number as u32);
        self.connections.push(SimConnection::new(conn));
        self.slots[slot] = Some(number);
        Some(conn)
    }

    fn lend(&mut self, bytes: Vec<u8>) -> Option<Buf> {
        let id = self.buffers.iter().position(Option::is_none)?;
        let buf = Buf::new(id as u16, 0, bytes.len() as u32);
        self.buffers[id] = Some(bytes);
        Some(buf)
    }

    fn give_back(&mut self, id: u16) {
        let buffer = self.buffers[usize::from(id)].take();
        assert!(buffer.is_some(), "buffer {id} is given back twice");
    }

    /// What a program could read now.
    fn receive(&mut self, conn: ConnId) -> Option<Event> {
        let most = self.options.buffer_size as usize;
        let is_free = self.buffers.iter().any(Option::is_none);
        let one = self.alive(conn)?;
        if one.is_paused || one.is_opening || one.ended == Ended::Told {
            return None;
        }
        if !one.inbox.is_empty() {
            if !is_free {
                return None;
            }
            let taken = most.min(one.inbox.len());
            let bytes: Vec<u8> = one.inbox.drain(..taken).collect();
            // There has to be a free buffer.
            let buf = self.lend(bytes)?;
            return Some(Event::Data { conn, buf });
        }
        match one.ended {
            Ended::No | Ended::EofTold | Ended::Told => None,
            Ended::Eof => {
                one.ended = Ended::EofTold;
                Some(Event::Eof { conn })
            }
            Ended::Reset => self.fail(conn, libc::ECONNRESET),
        }
    }

    fn fail(&mut self, conn: ConnId, errno: i32) -> Option<Event> {
        let one = self.alive(conn)?;
        one.ended = Ended::Told;
        self.drop_sends(conn);
        Some(Event::Failed { conn, errno })
    }

    fn drop_sends(&mut self, conn: ConnId) {
        let sends = std::mem::take(&mut self.connection(conn).sends);
        for id in sends.into_iter().filter_map(|send| send.buffer) {
            self.give_back(id);
        }
    }

    /// Sends as much as the peer accepts.
    fn flush(&mut self, conn: ConnId) {
        loop {
            let Some(one) = self.alive(conn) else { return };
            if one.is_opening || one.ended == Ended::Told {
                return;
            }
            if one.sends.is_empty() {
                break;
            }
            if one.ended == Ended::Reset {
                // The failure is reported behind what arrived before it.
                one.is_broken = true;
                self.drop_sends(conn);
                break;
            }
            let Some(send) = one.sends.front_mut() else {
                return;
            };
            let taken = one.room.min(send.bytes.len() - send.from);
            one.room -= taken;
            one.sent
                .extend_from_slice(&send.bytes[send.from..send.from + taken]);
            send.from += taken;
            if send.from < send.bytes.len() {
                return;
            }
            one.send_ends.push(one.sent.len());
            let buffer = one.sends.pop_front().and_then(|send| send.buffer);
            if let Some(id) = buffer {
                self.give_back(id);
            }
        }
        let one = self.connection(conn);
        if one.is_finishing && one.fate == Fate::Open {
            one.fate = Fate::Finished;
        }
        if std::mem::take(&mut one.is_tracked) {
            let drained = Event::Drained { conn };
            self.ready.push_back(Ready::Event(drained));
        }
    }
}
