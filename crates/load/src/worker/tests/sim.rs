//! An event loop, a server and a clock that are simulated: seconds of load in milliseconds, and
//! exactly the same each time.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use net::{Address, Buf, ConnId, Event, Io, IoOptions, PayloadId, TargetId};

use crate::pacing::clock::Clock;

pub(super) const MS: u64 = 1_000_000;
/// What a poll without events takes.
const POLL_NS: u64 = 1_000;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A clock that the event loop moves.
#[derive(Clone)]
pub(super) struct SimClock {
    now: Rc<Cell<u64>>,
    /// What the thread has of each time, in percent: on the CPU, and in the run queue.
    pub(super) percent: Rc<Cell<(u64, u64)>>,
}

impl Default for SimClock {
    fn default() -> Self {
        Self {
            now: Rc::default(),
            percent: Rc::new(Cell::new((50, 0))),
        }
    }
}

impl Clock for SimClock {
    fn now_ns(&self) -> u64 {
        self.now.get()
    }

    fn thread_cpu_ns(&self) -> u64 {
        self.now.get() * self.percent.get().0 / 100
    }

    fn thread_waited_ns(&self) -> u64 {
        self.now.get() * self.percent.get().1 / 100
    }

    fn sleep_until(&self, at_ns: u64) {
        self.now.set(self.now.get().max(at_ns));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Connected,
    Refused,
    Answer,
    Closed,
}

/// A server that answers each request after `service_ns`, and what else happens.
#[derive(Default)]
pub(super) struct SimIo {
    pub(super) clock: SimClock,
    pub(super) service_ns: u64,
    /// Whether it answers one request after the other; otherwise all at once.
    pub(super) is_single: bool,
    /// The request with this number, from 0, is answered only after this time, ns.
    pub(super) slow: Option<(usize, u64)>,
    /// A request on a connection that was idle for so long, ns, finds it closed.
    pub(super) idle_limit: Option<u64>,
    /// When a single server is free.
    free_at: u64,
    /// Whether connections are refused.
    pub(super) refuses: bool,
    /// The thread loses its CPU: from when, and for how long.
    pub(super) stall: Option<(u64, u64)>,
    /// When a stop from outside comes.
    pub(super) stop_at: Option<(u64, Arc<AtomicBool>)>,
    coming: BinaryHeap<Reverse<(u64, u64, Happens, u32)>>,
    number: u64,
    /// Times at which requests were sent, and their connections.
    pub(super) sent: Rc<std::cell::RefCell<Vec<(u64, usize)>>>,
    /// The bytes of requests that were filled in.
    pub(super) texts: Rc<std::cell::RefCell<Vec<String>>>,
    /// The most connections that were being opened at a time.
    pub(super) most_opening: Rc<std::cell::Cell<usize>>,
    /// When each connection had its last request.
    used: HashMap<ConnId, u64>,
    /// Generations of the open connections, by slot.
    open: Vec<u32>,
    generation: u32,
}

impl SimIo {
    pub(super) fn new(clock: &SimClock, service_ns: u64) -> Self {
        Self {
            clock: clock.clone(),
            service_ns,
            ..Self::default()
        }
    }

    fn happens(&mut self, after_ns: u64, what: Happens, slot: usize) {
        self.number += 1;
        let at = self.clock.now_ns() + after_ns;
        let generation = self.open[slot];
        self.coming.push(Reverse((
            at,
            self.number << 32 | slot as u64,
            what,
            generation,
        )));
    }
}

impl Io for SimIo {
    const NAME: &'static str = "simulated";

    fn open(_: IoOptions) -> io::Result<Self> {
        Ok(Self::default())
    }

    fn add_target(&mut self, _: &Address, _: &[SocketAddr]) -> TargetId {
        TargetId::new(0)
    }

    fn add_payload(&mut self, _: Arc<[u8]>) -> PayloadId {
        PayloadId::new(0)
    }

    fn connect(&mut self, _: TargetId, _: Option<PayloadId>) -> io::Result<ConnId> {
        self.generation += 1;
        let slot = match self.open.iter().position(|generation| *generation == 0) {
            Some(free) => free,
            None => {
                self.open.push(0);
                self.open.len() - 1
            }
        };
        self.open[slot] = self.generation;
        let what = match self.refuses {
            true => Happens::Refused,
            false => Happens::Connected,
        };
        self.happens(0, what, slot);
        let is_opening = |one: &&Reverse<(u64, u64, Happens, u32)>| {
            matches!(one.0.2, Happens::Connected | Happens::Refused)
        };
        let opening = self.coming.iter().filter(is_opening).count();
        self.most_opening.set(self.most_opening.get().max(opening));
        Ok(ConnId::new(slot as u32, self.generation))
    }

    fn send(&mut self, conn: ConnId, _: PayloadId) {
        let number = self.sent.borrow().len();
        self.sent
            .borrow_mut()
            .push((self.clock.now_ns(), conn.slot()));
        let now = self.clock.now_ns();
        let last = self.used.insert(conn, now).unwrap_or(now);
        if self.idle_limit.is_some_and(|limit| now - last > limit) {
            return self.happens(self.service_ns, Happens::Closed, conn.slot());
        }
        let mut after = self.service_ns;
        if self.is_single {
            self.free_at = self.free_at.max(now) + self.service_ns;
            after = self.free_at - now;
        }
        if let Some((slow, slow_ns)) = self.slow
            && slow == number
        {
            after = slow_ns;
        }
        self.happens(after, Happens::Answer, conn.slot());
    }

    fn close(&mut self, conn: ConnId) {
        self.open[conn.slot()] = 0;
    }

    fn poll(&mut self, wait_ns: Option<u64>) -> io::Result<()> {
        let now = self.clock.now_ns();
        let next = self.coming.peek().map_or(u64::MAX, |next| next.0.0);
        let wait = wait_ns.unwrap_or(u64::MAX).max(POLL_NS);
        let mut until = next.max(now).min(now.saturating_add(wait));
        if let Some((from, length)) = self.stall
            && until >= from
        {
            until += length;
            self.stall = None;
        }
        self.clock.sleep_until(until);
        if let Some((at, stop)) = &self.stop_at
            && until >= *at
        {
            stop.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event> {
        while let Some(Reverse((at, number, what, generation))) = self.coming.peek().copied() {
            if at > self.clock.now_ns() {
                return None;
            }
            self.coming.pop();
            let slot = number as u32;
            if self.open[slot as usize] != generation {
                continue;
            }
            let conn = ConnId::new(slot, generation);
            return Some(match what {
                Happens::Connected => Event::Connected { conn },
                Happens::Refused => Event::ConnectFailed { conn, errno: 111 },
                Happens::Closed => Event::Eof { conn },
                Happens::Answer => Event::Data {
                    conn,
                    buf: Buf::new(0, 0, ANSWER.len() as u32),
                },
            });
        }
        None
    }

    fn bytes(&self, _: &Buf) -> &[u8] {
        ANSWER
    }

    fn queued(&self, _: ConnId) -> usize {
        0
    }

    fn recycle(&mut self, _: Buf) {}

    fn listen(&mut self, _: TcpListener) -> io::Result<()> {
        unreachable!("a load does not ask for this")
    }
    fn send_ordered(&mut self, _: ConnId, _: PayloadId) {
        unreachable!("a load does not ask for this")
    }
    fn send_copy(&mut self, conn: ConnId, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.texts.borrow_mut().push(text);
        self.send(conn, PayloadId::new(0));
    }
    fn forward(&mut self, _: ConnId, _: Buf) {
        unreachable!("a load does not ask for this")
    }
    fn finish(&mut self, _: ConnId) {
        unreachable!("a load does not ask for this")
    }
    fn pause(&mut self, _: ConnId) {
        unreachable!("a load does not ask for this")
    }
    fn resume(&mut self, _: ConnId) {
        unreachable!("a load does not ask for this")
    }
    fn abort(&mut self, _: ConnId) {
        unreachable!("a load does not ask for this")
    }
    fn listen_again(&mut self) {
        unreachable!("a load does not ask for this")
    }
    fn stop_listening(&mut self) {
        unreachable!("a load does not ask for this")
    }
    fn scarce(&self) -> bool {
        unreachable!("a load does not ask for this")
    }
    fn peer(&self, _: ConnId) -> Option<SocketAddr> {
        unreachable!("a load does not ask for this")
    }
    fn local(&self, _: ConnId) -> Option<SocketAddr> {
        unreachable!("a load does not ask for this")
    }
}
