//! The part of a thread that serves exchanges that last.

mod table;
mod taking;
mod topics;
mod wires;

use net::{ConnId, Io, os};
use readings::Histogram;

use super::{AnswerTo, Worker};
use crate::lasting::{Plan, Step};
use table::{Ending, Entry, Table, Wire};
use topics::Topics;

pub(super) use topics::Mailbox;

pub(crate) use table::LastingId;

/// How many exchanges are served between two looks at the sockets.
const BATCH: usize = 32;
/// How many messages of an exchange that is late are written in a row.
const MESSAGES_IN_A_ROW: usize = 64;
/// With this many bytes queued for a client, its exchanges write no more until it has read.
const UNSENT_MAX: usize = 64 * 1024;

/// The exchanges of a thread.
#[derive(Default)]
pub(super) struct Exchanges {
    table: Table,
    /// Due times of the messages that were written in this turn, ns.
    written: Vec<u64>,
    /// A message, and its frames, while they are written.
    message: Vec<u8>,
    frames: Vec<u8>,
    /// HTTP/2 connections that have something to send.
    touched: Vec<ConnId>,
    lateness: Histogram,
    messages: u64,
    messages_held: u64,
    /// Messages that were lost because clients were too slow, or sent too much.
    lost: u64,
    topics: Topics,
    /// What a client has sent to its topic, in frames.
    sent: Vec<u8>,
    /// What all clients' unfinished messages hold, bytes.
    memory: usize,
}

impl Exchanges {
    /// When something is due, ns of CLOCK_MONOTONIC.
    pub(super) fn next_ns(&self) -> Option<u64> {
        match self.topics.has_published() || !self.touched.is_empty() {
            true => Some(0),
            false => self.table.next_ns(),
        }
    }
}

impl<I: Io> Worker<I> {
    /// Begins an exchange; its head has been sent.
    fn begin_exchange(
        &mut self,
        plan: Plan,
        arrived_ns: Option<u64>,
        to: AnswerTo,
        wire: Wire,
    ) -> LastingId {
        let now_ns = os::now_ns();
        let arrived_ns = arrived_ns.map_or(now_ns, |at| at.min(now_ns));
        let exchange = plan.begin(arrived_ns);
        let (topic, first_ns) = (exchange.topic().cloned(), exchange.first_ns());
        let id = self.exchanges.table.insert(Entry {
            exchange,
            to,
            wire,
            ending: None,
            is_blocked: false,
            held_until_ns: 0,
            memory: 0,
            due_ns: None,
        });
        if let Some(topic) = topic {
            self.exchanges.topics.join(&topic, id);
        }
        if let Some(first_ns) = first_ns {
            self.exchanges.table.schedule(id, first_ns);
        }
        id
    }

    /// Lets an exchange go on at the end of the turn.
    fn wake(&mut self, id: LastingId) {
        self.exchanges.table.schedule(id, 0);
    }

    /// Serves exchanges that are due.
    pub(super) fn turn_exchanges(&mut self) {
        for _ in 0..BATCH {
            let Some(id) = self.exchanges.table.pop_due(os::now_ns()) else {
                break;
            };
            self.advance(id);
        }
        if self.exchanges.topics.has_published() {
            self.deliver_published();
        }
        let mut touched = std::mem::take(&mut self.exchanges.touched);
        for conn in touched.drain(..) {
            self.send_h2(conn);
        }
        self.exchanges.touched = touched;
    }

    /// Whether messages were written whose lateness is not recorded: their sends have to be submitted
    /// before.
    pub(super) fn has_written(&self) -> bool {
        !self.exchanges.written.is_empty()
    }

    /// Records how late the messages were that are now in the kernel.
    pub(super) fn record_lateness(&mut self) {
        let now_ns = os::now_ns();
        let exchanges = &mut self.exchanges;
        for due_ns in exchanges.written.drain(..) {
            exchanges.lateness.record_ns(now_ns.saturating_sub(due_ns));
        }
    }

    fn advance(&mut self, id: LastingId) {
        let now_ns = os::now_ns();
        let Some(mut entry) = self.exchanges.table.take(id) else {
            return;
        };
        if std::mem::take(&mut entry.is_blocked) {
            entry.held_until_ns = now_ns;
        }
        self.flush(&mut entry);
        let mut message = std::mem::take(&mut self.exchanges.message);
        let mut frames = std::mem::take(&mut self.exchanges.frames);
        let next_ns = self.write_due(&mut entry, now_ns, &mut message, &mut frames);
        self.exchanges.message = message;
        self.settle(id, entry, frames);
        if let Some(next_ns) = next_ns {
            self.exchanges.table.schedule(id, next_ns);
        }
    }

    /// Writes what is due, as far as the client has room. Returns when there is more to do.
    fn write_due(
        &mut self,
        entry: &mut Entry,
        now_ns: u64,
        message: &mut Vec<u8>,
        frames: &mut Vec<u8>,
    ) -> Option<u64> {
        for _ in 0..MESSAGES_IN_A_ROW {
            if entry.ending.is_some() {
                return None;
            }
            if !self.has_room(entry, frames.len()) {
                entry.is_blocked = true;
                return None;
            }
            message.clear();
            let step = entry.exchange.step(now_ns, message);
            if !message.is_empty() {
                self.put(entry, message, frames);
            }
            match step {
                Step::Message { due_ns } => self.count_message(entry, due_ns),
                Step::Remark => {}
                Step::Until(next_ns) => return Some(next_ns),
                Step::Idle => return None,
                Step::End => entry.ending = Some(Ending::Complete),
                Step::Cut => entry.ending = Some(Ending::Cut),
            }
        }
        // The others have their turn.
        Some(0)
    }

    fn count_message(&mut self, entry: &Entry, due_ns: Option<u64>) {
        self.exchanges.messages += 1;
        match due_ns {
            Some(due_ns) if due_ns < entry.held_until_ns => self.exchanges.messages_held += 1,
            Some(due_ns) => self.exchanges.written.push(due_ns),
            None => {}
        }
    }

    /// Frees an exchange whose client is gone.
    pub(super) fn forget(&mut self, id: LastingId) {
        let entry = self.exchanges.table.take(id);
        self.free(id, entry);
    }

    fn free(&mut self, id: LastingId, entry: Option<Entry>) {
        let Some(entry) = entry else { return };
        let exchanges = &mut self.exchanges;
        if let Some(topic) = entry.exchange.topic() {
            exchanges.topics.leave(topic, id);
        }
        exchanges.memory -= entry.memory;
        exchanges.table.remove(id, &entry);
    }

    /// Frees all exchanges of a connection.
    pub(super) fn forget_all(&mut self, conn: ConnId) {
        let client = &mut self.clients[conn.slot()];
        if let Some(id) = client.exchange.take() {
            return self.forget(id);
        }
        let Some(h2) = &mut client.h2 else { return };
        for id in std::mem::take(&mut h2.exchanges).into_values().flatten() {
            self.forget(id);
        }
    }

    /// Publishes the counts.
    pub(super) fn publish_exchanges(&mut self) {
        use std::sync::atomic::Ordering::Relaxed;
        let (exchanges, own) = (&mut self.exchanges, &self.all[self.number]);
        super::counters::publish(&mut exchanges.lateness, &own.lateness);
        own.messages.store(exchanges.messages, Relaxed);
        own.messages_held.store(exchanges.messages_held, Relaxed);
        own.messages_lost.store(exchanges.lost, Relaxed);
        let members = exchanges.topics.members();
        own.members.store(members as u64, Relaxed);
        own.lasting.store(exchanges.table.len() as u64, Relaxed);
    }
}
