//! One thread of the relay.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use net::{Buf, ConnId, Event, Io, TargetId, os};

use crate::plain::BalancerConfig;

/// What one thread has done; written by it alone, once a turn.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) clients: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) served: Vec<AtomicU64>,
}

/// A side stops reading when its peer has this many buffers still to send.
const QUEUE_MAX: usize = 8;
/// Buffers held for an upstream that is not connected yet.
const HELD_MAX: usize = 4;
/// A thread looks at its flags and time limits at least this often.
const TURN_NS: u64 = 50_000_000;

/// One side of a relayed connection.
#[derive(Default)]
struct Side {
    conn: Option<ConnId>,
    peer: Option<ConnId>,
    /// Set on the upstream's side while it is being connected: when that began, ns.
    connecting_since: Option<u64>,
    /// Which upstream was asked first, and how many were asked; on the client's side.
    first: usize,
    asked: usize,
    /// Which upstream this is; on the upstream's side.
    upstream: usize,
    held: Vec<Buf>,
    ended: bool,
    paused: bool,
}

pub(crate) struct Relay<I: Io> {
    io: I,
    sides: Vec<Side>,
    targets: Vec<TargetId>,
    turn: usize,
    connect_timeout_ns: u64,
    connecting: u32,
    counters: Arc<Counters>,
    clients: u64,
    refused: u64,
    served: Vec<u64>,
    checked_ns: u64,
}

impl<I: Io> Relay<I> {
    pub(crate) fn new(
        mut io: I,
        slots: usize,
        config: &BalancerConfig,
        counters: Arc<Counters>,
    ) -> Self {
        let targets = config
            .upstreams
            .iter()
            .map(|&address| io.add_target(&address.into(), &[]))
            .collect();
        let mut sides = Vec::new();
        sides.resize_with(slots, Side::default);
        Self {
            io,
            sides,
            targets,
            turn: 0,
            connect_timeout_ns: config.connect_timeout.as_nanos() as u64,
            connecting: 0,
            counters,
            clients: 0,
            refused: 0,
            served: vec![0; config.upstreams.len()],
            checked_ns: 0,
        }
    }

    pub(crate) fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            if self.io.poll(Some(TURN_NS)).is_err() {
                return;
            }
            while let Some(event) = self.io.next_event() {
                self.handle(event);
            }
            if self.connecting > 0 {
                self.check_time();
            }
            self.publish();
        }
    }

    fn publish(&self) {
        self.counters.clients.store(self.clients, Ordering::Relaxed);
        self.counters.refused.store(self.refused, Ordering::Relaxed);
        for (shared, own) in self.counters.served.iter().zip(&self.served) {
            shared.store(*own, Ordering::Relaxed);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Accepted { conn, .. } => {
                self.clients += 1;
                let first = self.turn;
                self.turn = (self.turn + 1) % self.targets.len();
                self.sides[conn.slot()] = Side {
                    conn: Some(conn),
                    first,
                    ..Side::default()
                };
                self.ask(conn);
            }
            Event::Connected { conn } => self.connected(conn),
            Event::ConnectFailed { conn, .. } => self.refused(conn),
            Event::Data { conn, buf } => self.data(conn, buf),
            Event::Drained { conn } => self.drained(conn),
            Event::Eof { conn } => self.ended(conn),
            Event::Failed { conn, .. } => self.drop_pair(conn),
            Event::AcceptFailed { .. } => {}
        }
    }

    fn side(&mut self, conn: ConnId) -> &mut Side {
        &mut self.sides[conn.slot()]
    }

    /// Asks the client's next upstream; closes the client when all were asked.
    fn ask(&mut self, client: ConnId) {
        loop {
            let count = self.targets.len();
            let side = self.side(client);
            if side.asked >= count {
                self.refused += 1;
                return self.drop_pair(client);
            }
            let upstream = (side.first + side.asked) % count;
            side.asked += 1;
            let Ok(conn) = self.io.connect(self.targets[upstream], None) else {
                continue;
            };
            self.side(client).peer = Some(conn);
            self.sides[conn.slot()] = Side {
                conn: Some(conn),
                peer: Some(client),
                connecting_since: Some(os::now_ns()),
                upstream,
                ..Side::default()
            };
            self.connecting += 1;
            return;
        }
    }

    fn connected(&mut self, conn: ConnId) {
        self.connecting = self.connecting.saturating_sub(1);
        let side = self.side(conn);
        side.connecting_since = None;
        let (peer, upstream) = (side.peer, side.upstream);
        self.served[upstream] += 1;
        let Some(client) = peer else { return };
        let held = std::mem::take(&mut self.side(client).held);
        for buf in held {
            self.io.forward(conn, buf);
        }
        if self.side(client).ended {
            self.io.finish(conn);
        }
        if std::mem::take(&mut self.side(client).paused) {
            self.io.resume(client);
        }
    }

    fn refused(&mut self, conn: ConnId) {
        self.connecting = self.connecting.saturating_sub(1);
        let client = self.side(conn).peer.take();
        self.side(conn).conn = None;
        self.io.close(conn);
        if let Some(client) = client {
            self.side(client).peer = None;
            self.ask(client);
        }
    }

    fn data(&mut self, conn: ConnId, buf: Buf) {
        let Some(peer) = self.side(conn).peer else {
            return self.io.recycle(buf);
        };
        if self.side(peer).connecting_since.is_some() {
            let side = self.side(conn);
            side.held.push(buf);
            if side.held.len() >= HELD_MAX && !side.paused {
                side.paused = true;
                self.io.pause(conn);
            }
            return;
        }
        self.io.forward(peer, buf);
        if self.io.queued(peer) >= QUEUE_MAX && !self.side(conn).paused {
            self.side(conn).paused = true;
            self.io.pause(conn);
        }
    }

    fn drained(&mut self, conn: ConnId) {
        let Some(peer) = self.side(conn).peer else {
            return;
        };
        if std::mem::take(&mut self.side(peer).paused) {
            self.io.resume(peer);
        }
        self.close_if_done(conn);
    }

    fn ended(&mut self, conn: ConnId) {
        self.side(conn).ended = true;
        let Some(peer) = self.side(conn).peer else {
            return self.drop_pair(conn);
        };
        // A peer that has ended too is closed at once, which tells it the same.
        if self.side(peer).connecting_since.is_none() && !self.side(peer).ended {
            self.io.finish(peer);
        }
        self.close_if_done(conn);
    }

    /// Closes both sides once both have ended and everything was passed on.
    fn close_if_done(&mut self, conn: ConnId) {
        let Some(peer) = self.side(conn).peer else {
            return;
        };
        let done = self.side(conn).ended
            && self.side(peer).ended
            && self.io.queued(conn) == 0
            && self.io.queued(peer) == 0;
        if done {
            self.drop_pair(conn);
        }
    }

    fn drop_pair(&mut self, conn: ConnId) {
        let peer = self.side(conn).peer;
        for one in [Some(conn), peer].into_iter().flatten() {
            let side = std::mem::take(self.side(one));
            if side.connecting_since.is_some() {
                self.connecting = self.connecting.saturating_sub(1);
            }
            for buf in side.held {
                self.io.recycle(buf);
            }
            self.io.close(one);
        }
    }

    /// Gives up on upstreams that take too long to accept.
    fn check_time(&mut self) {
        let now = os::now_ns();
        if now - self.checked_ns < TURN_NS {
            return;
        }
        self.checked_ns = now;
        let limit = self.connect_timeout_ns;
        let late: Vec<ConnId> = self
            .sides
            .iter()
            .filter(|side| {
                side.connecting_since
                    .is_some_and(|since| now - since > limit)
            })
            .filter_map(|side| side.conn)
            .collect();
        for conn in late {
            self.side(conn).connecting_since = None;
            self.refused(conn);
        }
    }
}
