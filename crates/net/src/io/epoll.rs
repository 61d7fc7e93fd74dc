//! The event loop on epoll, edge-triggered: one `recv` and one `send` per answer.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::address::Address;
use crate::io::accepting::Pausing;
use crate::io::lent_buffers::Pool;
use crate::io::stamps::{self, Kept};
use crate::io::target::{Target, all_in_use};
use crate::io::{Buf, ConnId, Event, Io, IoOptions, LoopId, PayloadId, TargetId};
use crate::os;

mod readiness;
mod sending;
#[cfg(test)]
mod tests;
mod wait;

use sending::{Outgoing, SendResult, send_now};

/// Marks a listener in place of a slot.
const LISTENER: u32 = u32::MAX;

#[derive(Default)]
struct Slot {
    generation: u32,
    socket: Option<OwnedFd>,
    outgoing: bool,
    connecting: bool,
    /// A UDP socket, whose user reads it.
    is_watched: bool,
    first: Option<PayloadId>,
    paused: bool,
    readable: bool,
    queued_to_read: bool,
    /// The peer has closed its side, or an error is pending.
    ending: bool,
    finish: bool,
    failed: bool,
    /// The errno of a send that failed; 0 if none has. What was received before is passed on first.
    broken: i32,
    /// [`Event::Eof`] was reported.
    ended: bool,
    tracked: bool,
    sends: VecDeque<Outgoing>,
}

impl Slot {
    /// Whether nothing can be sent any more.
    fn is_mute(&self) -> bool {
        self.failed || self.broken != 0
    }
}

/// The event loop on epoll; see [`Io`].
pub struct Epoll {
    id: LoopId,
    epoll: OwnedFd,
    /// The kernel lacks `epoll_pwait2`.
    waits_in_two_calls: bool,
    slots: Vec<Slot>,
    free_outgoing: Vec<u32>,
    free_accepted: Vec<u32>,
    buffers: Pool,
    /// Bytes of [`Outgoing::Own`] in the queues.
    copied_bytes: usize,
    /// Connections that wait for a free receive buffer.
    starved: Vec<ConnId>,
    ready: Vec<libc::epoll_event>,
    next_ready: usize,
    to_read: VecDeque<ConnId>,
    events: VecDeque<Event>,
    targets: Vec<Target>,
    payloads: Vec<Arc<[u8]>>,
    listeners: Vec<TcpListener>,
    to_accept: VecDeque<usize>,
    pausing: Pausing,
    /// Errors to inject into the next accepts.
    #[cfg(test)]
    accept_errors: VecDeque<i32>,
    /// Reads and accepts left in this turn, so that one busy peer cannot delay timers.
    turn: u32,
    files: bool,
    stamps: bool,
    _kept: Option<Kept>,
    /// See [`stamps::ahead_ns`]; as of this turn's events.
    ahead_ns: i64,
}

const TURN: u32 = 1024;
/// What is watched of a connection.
const STREAM_FLAGS: EventFlags = EventFlags::IN
    .union(EventFlags::OUT)
    .union(EventFlags::RDHUP);

/// What an event of a connection carries.
fn data(conn: ConnId) -> u64 {
    u64::from(conn.generation) << 32 | u64::from(conn.index)
}

impl Epoll {
    fn slot(&mut self, conn: ConnId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(conn.index as usize)?;
        (slot.socket.is_some() && slot.generation == conn.generation).then_some(slot)
    }

    fn register(&self, conn: ConnId, flags: EventFlags) -> io::Result<()> {
        let socket = self.slots[conn.index as usize].socket.as_ref();
        let socket = socket.ok_or(io::ErrorKind::NotConnected)?;
        let data = EventData::new_u64(data(conn));
        Ok(epoll::add(
            &self.epoll,
            socket,
            data,
            flags | EventFlags::ET,
        )?)
    }

    fn fail(&mut self, conn: ConnId, errno: i32) {
        let Some(slot) = self.slot(conn) else { return };
        if slot.failed {
            return;
        }
        slot.failed = true;
        self.discard_sends(conn.index as usize);
        self.events.push_back(Event::Failed { conn, errno });
    }

    /// Handles a failed send. The peer may have answered before it closed, so all that was received
    /// is reported before the failure: the kernel keeps it beyond a reset.
    fn send_failed(&mut self, conn: ConnId, errno: i32) {
        let Some(slot) = self.slot(conn) else { return };
        if slot.is_mute() {
            return;
        }
        if slot.ended {
            return self.fail(conn, errno);
        }
        (slot.broken, slot.ending) = (errno, true);
        // Its user may wait for that before it reads on.
        if std::mem::take(&mut slot.tracked) {
            self.events.push_back(Event::Drained { conn });
        }
        self.discard_sends(conn.index as usize);
        self.mark_readable(conn);
    }

    fn give_back(&mut self, id: u16) {
        self.buffers.give(id);
        // Some may be closed or paused in the meantime.
        while let Some(conn) = self.starved.pop() {
            self.mark_readable(conn);
            if self.slot(conn).is_some_and(|slot| slot.queued_to_read) {
                return;
            }
        }
    }

    fn has_work(&self) -> bool {
        !self.to_read.is_empty()
            || !self.events.is_empty()
            || !self.to_accept.is_empty()
            || self.next_ready < self.ready.len()
    }

    fn mark_readable(&mut self, conn: ConnId) {
        let Some(slot) = self.slot(conn) else { return };
        slot.readable = true;
        if !slot.queued_to_read && !slot.paused && !slot.connecting {
            slot.queued_to_read = true;
            self.to_read.push_back(conn);
        }
    }

    /// Tries paused listeners again if it is time. Otherwise shortens a wait to the next attempt.
    fn until_retry(&mut self, wait_ns: Option<u64>) -> Option<u64> {
        let Some(left_ns) = self.pausing.left_ns() else {
            return wait_ns;
        };
        if left_ns == 0 {
            self.to_accept.extend(self.pausing.resume());
        }
        Some(wait_ns.map_or(left_ns, |wait_ns| wait_ns.min(left_ns)))
    }

    fn occupy(&mut self, index: u32, socket: OwnedFd, outgoing: bool) -> ConnId {
        let slot = &mut self.slots[index as usize];
        let generation = slot.generation.wrapping_add(1);
        *slot = Slot {
            generation,
            socket: Some(socket),
            outgoing,
            ..Slot::default()
        };
        ConnId { index, generation }
    }
}

impl Io for Epoll {
    const NAME: &'static str = "epoll";

    fn open(options: IoOptions) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let slots = options.slots();
        let mut table = Vec::with_capacity(slots);
        table.resize_with(slots, Slot::default);
        let buffers = options.buffers.max(1);
        Ok(Self {
            id: LoopId::next(),
            epoll,
            waits_in_two_calls: false,
            slots: table,
            free_outgoing: (0..options.outgoing).rev().collect(),
            free_accepted: (options.outgoing..slots as u32).rev().collect(),
            buffers: Pool::new(
                options.buffer_size as usize,
                buffers.into(),
                options.buffers_max.max(buffers).into(),
            ),
            copied_bytes: 0,
            starved: Vec::new(),
            ready: Vec::with_capacity(1024),
            next_ready: 0,
            to_read: VecDeque::new(),
            events: VecDeque::new(),
            targets: Vec::new(),
            payloads: Vec::new(),
            listeners: Vec::new(),
            to_accept: VecDeque::new(),
            pausing: Pausing::default(),
            #[cfg(test)]
            accept_errors: VecDeque::new(),
            turn: TURN,
            files: options.files,
            stamps: options.stamps,
            _kept: options.stamps.then(Kept::begin).flatten(),
            ahead_ns: 0,
        })
    }

    fn listen(&mut self, listener: TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        if self.stamps {
            stamps::ask(listener.as_raw_fd())?;
        }
        let number = self.listeners.len() as u64;
        let data = EventData::new_u64(number << 32 | u64::from(LISTENER));
        epoll::add(
            &self.epoll,
            &listener,
            data,
            EventFlags::IN | EventFlags::ET,
        )?;
        self.listeners.push(listener);
        Ok(())
    }

    fn add_target(&mut self, address: &Address, sources: &[SocketAddr]) -> TargetId {
        self.targets.push(Target::new(address, sources, self.files));
        TargetId(self.targets.len() as u32 - 1)
    }

    fn set_no_delay(&mut self, target: TargetId) {
        self.targets[target.number()].no_delay = true;
    }

    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId {
        self.payloads.push(bytes);
        PayloadId(self.payloads.len() as u32 - 1)
    }

    fn connect(&mut self, target: TargetId, first: Option<PayloadId>) -> io::Result<ConnId> {
        let target = &mut self.targets[target.number()];
        let socket = target.socket(true, self.stamps)?;
        let fd = socket.as_raw_fd();
        let index = self.free_outgoing.pop().ok_or_else(all_in_use)?;
        let (address, len) = &*target.address;
        // SAFETY: `address` holds a socket address of length `len`.
        let result = unsafe { libc::connect(fd, (&raw const *address).cast(), *len) };
        let errno = if result == 0 {
            0
        } else {
            io::Error::last_os_error().raw_os_error().unwrap_or(0)
        };
        let conn = self.occupy(index, socket, true);
        let slot = &mut self.slots[index as usize];
        slot.connecting = true;
        slot.first = first;
        if errno != 0 && errno != libc::EINPROGRESS {
            slot.connecting = false;
            slot.failed = true;
            self.events.push_back(Event::ConnectFailed { conn, errno });
            return Ok(conn);
        }
        if let Err(e) = self.register(conn, STREAM_FLAGS) {
            self.close(conn);
            return Err(e);
        }
        Ok(conn)
    }

    fn watch(&mut self, socket: &impl AsFd) -> io::Result<ConnId> {
        let own = socket.as_fd().try_clone_to_owned()?;
        let index = self.free_outgoing.pop().ok_or_else(all_in_use)?;
        let conn = self.occupy(index, own, true);
        self.slots[index as usize].is_watched = true;
        if let Err(e) = self.register(conn, EventFlags::IN) {
            self.close(conn);
            return Err(e);
        }
        Ok(conn)
    }

    fn send(&mut self, conn: ConnId, payload: PayloadId) {
        let bytes = self.payloads[payload.0 as usize].clone();
        let Some(slot) = self.slot(conn) else { return };
        if slot.is_mute() {
            return;
        }
        let Some(fd) = slot.socket.as_ref().map(|s| s.as_raw_fd()) else {
            return;
        };
        if !slot.sends.is_empty() || slot.connecting {
            slot.sends.push_back(Outgoing::Shared(bytes, 0));
            return;
        }
        match send_now(fd, &bytes) {
            SendResult::All => {}
            SendResult::Part(n) => slot.sends.push_back(Outgoing::Shared(bytes, n)),
            SendResult::Error(errno) => self.send_failed(conn, errno),
        }
    }

    fn send_ordered(&mut self, conn: ConnId, payload: PayloadId) {
        let bytes = self.payloads[payload.0 as usize].clone();
        self.enqueue(conn, Outgoing::Shared(bytes, 0), true);
    }

    fn send_copy(&mut self, conn: ConnId, bytes: &[u8]) {
        self.send_bytes(conn, bytes, true);
    }

    fn send_quietly(&mut self, conn: ConnId, bytes: &[u8]) {
        self.send_bytes(conn, bytes, false);
    }

    fn forward(&mut self, conn: ConnId, buf: Buf) {
        self.id.check(&buf);
        self.enqueue(conn, Outgoing::Lent(buf, 0), true);
    }

    fn has_unread(&self, conn: ConnId) -> bool {
        let slot = self.slots.get(conn.index as usize);
        let Some(slot) = slot.filter(|slot| slot.generation == conn.generation) else {
            return false;
        };
        let Some(socket) = &slot.socket else {
            return false;
        };
        let data = data(conn);
        let reads = libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLERR | libc::EPOLLHUP;
        let reported = |event: &libc::epoll_event| {
            let (bits, of) = (event.events as i32, event.u64);
            of == data && bits & reads != 0
        };
        // This list is usually short: its events are handled before anything is read.
        let may = slot.readable || self.ready[self.next_ready..].iter().any(reported);
        // An edge is also reported if its data has been read meanwhile, so the socket is asked.
        slot.is_mute() || (may && os::is_receivable(socket.as_raw_fd()))
    }

    #[inline]
    fn has_failed_send(&self, conn: ConnId) -> bool {
        let slot = self.slots.get(conn.index as usize);
        slot.is_some_and(|slot| slot.generation == conn.generation && slot.broken != 0)
    }

    fn queued(&self, conn: ConnId) -> usize {
        self.slots
            .get(conn.index as usize)
            .filter(|slot| slot.socket.is_some() && slot.generation == conn.generation)
            .map_or(0, |slot| slot.sends.len())
    }

    fn finish(&mut self, conn: ConnId) {
        let Some(slot) = self.slot(conn) else { return };
        slot.finish = true;
        if slot.sends.is_empty() {
            self.flush(conn);
        }
    }

    fn pause(&mut self, conn: ConnId) {
        if let Some(slot) = self.slot(conn) {
            slot.paused = true;
        }
    }

    fn resume(&mut self, conn: ConnId) {
        let Some(slot) = self.slot(conn) else { return };
        slot.paused = false;
        if slot.readable {
            self.mark_readable(conn);
        }
    }

    fn close(&mut self, conn: ConnId) {
        if self.slot(conn).is_none() {
            return;
        }
        let index = conn.index as usize;
        self.discard_sends(index);
        let slot = &mut self.slots[index];
        if slot.is_watched
            && let Some(socket) = &slot.socket
        {
            // Its user still has a descriptor of it, so that closing this one is not enough.
            let _ = epoll::delete(&self.epoll, socket);
        }
        slot.socket = None;
        if slot.outgoing {
            self.free_outgoing.push(conn.index);
        } else {
            self.free_accepted.push(conn.index);
        }
        if self.pausing.is_paused() {
            self.to_accept.extend(self.pausing.resume());
        }
    }

    fn abort(&mut self, conn: ConnId) {
        if let Some(socket) = self.slot(conn).and_then(|slot| slot.socket.as_ref()) {
            os::reset_when_closed(socket.as_raw_fd());
        }
        self.close(conn);
    }

    fn listen_again(&mut self) {
        self.to_accept.extend(0..self.listeners.len());
    }

    fn stop_listening(&mut self) {
        self.to_accept.clear();
        self.pausing.resume();
        for listener in self.listeners.drain(..) {
            // Closing is not enough if another descriptor of the same socket stays open.
            let _ = epoll::delete(&self.epoll, &listener);
        }
    }

    fn poll(&mut self, wait_ns: Option<u64>) -> io::Result<()> {
        if self.next_ready < self.ready.len() {
            return Ok(());
        }
        let wait_ns = self.until_retry(wait_ns);
        let wait_ns = if self.has_work() { Some(0) } else { wait_ns };
        self.ready.clear();
        self.next_ready = 0;
        self.turn = TURN;
        self.wait(wait_ns)?;
        if self.stamps && !self.ready.is_empty() {
            self.ahead_ns = stamps::ahead_ns();
        }
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                let stale = match &event {
                    Event::ConnectFailed { conn, .. }
                    | Event::Connected { conn }
                    | Event::Failed { conn, .. }
                    | Event::Readable { conn }
                    | Event::Drained { conn } => self.slot(*conn).is_none(),
                    _ => false,
                };
                if stale {
                    continue;
                }
                return Some(event);
            }
            if self.next_ready < self.ready.len() {
                let event = self.ready[self.next_ready];
                self.next_ready += 1;
                self.handle(event);
                continue;
            }
            if self.turn == 0 {
                return None;
            }
            self.turn -= 1;
            if let Some(listener) = self.to_accept.pop_front() {
                if let Some(event) = self.accept_one(listener) {
                    return Some(event);
                }
                continue;
            }
            let conn = self.to_read.pop_front()?;
            if let Some(event) = self.read_one(conn) {
                return Some(event);
            }
        }
    }

    fn scarce(&self) -> bool {
        self.buffers.is_scarce(self.copied_bytes)
    }

    fn is_full(&self) -> bool {
        self.buffers.is_full(self.copied_bytes)
    }

    fn release_memory(&mut self) -> usize {
        self.buffers.shrink()
    }

    fn bytes(&self, buf: &Buf) -> &[u8] {
        self.id.check(buf);
        &self.buffers.get(buf.id)[buf.start as usize..][..buf.len()]
    }

    fn peer(&self, conn: ConnId) -> Option<SocketAddr> {
        let slot = self.slots.get(conn.index as usize)?;
        if slot.generation != conn.generation {
            return None;
        }
        os::peer(slot.socket.as_ref()?.as_raw_fd())
    }

    fn local(&self, conn: ConnId) -> Option<SocketAddr> {
        let slot = self.slots.get(conn.index as usize)?;
        if slot.generation != conn.generation {
            return None;
        }
        os::local(slot.socket.as_ref()?.as_raw_fd())
    }

    fn unacknowledged(&self, conn: ConnId) -> usize {
        let slot = self.slots.get(conn.index as usize);
        let slot = slot.filter(|slot| slot.generation == conn.generation);
        let socket = slot.and_then(|slot| slot.socket.as_ref());
        socket.map_or(0, |socket| os::unacknowledged(socket.as_raw_fd()))
    }

    fn recycle(&mut self, buf: Buf) {
        self.id.check(&buf);
        self.give_back(buf.id);
    }
}
