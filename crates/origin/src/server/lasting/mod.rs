//! The part of a thread that serves exchanges that last.

mod table;
mod wires;

use net::{ConnId, Io, os};
use readings::Histogram;

use super::{AnswerTo, Worker};
use crate::lasting::{Plan, Step};
use table::{Ending, Entry, Table, Wire};

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
}

impl Exchanges {
    /// When something is due, ns of CLOCK_MONOTONIC.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.table.next_ns()
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
        let id = self.exchanges.table.insert(Entry {
            exchange: plan.begin(arrived_ns),
            to,
            wire,
            ending: None,
            is_blocked: false,
            held_until_ns: 0,
            due_ns: None,
        });
        self.exchanges.table.schedule(id, 0);
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
        let is_over = self.submit(id, &mut entry, &frames);
        frames.clear();
        (self.exchanges.message, self.exchanges.frames) = (message, frames);
        if is_over {
            return self.exchanges.table.remove(id);
        }
        self.exchanges.table.put_back(id, entry);
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
        self.exchanges.table.remove(id);
    }

    /// Frees all exchanges of a connection.
    pub(super) fn forget_all(&mut self, conn: ConnId) {
        let client = &mut self.clients[conn.slot()];
        let own = client.exchange.take();
        let streams = client
            .h2
            .as_mut()
            .map(|h2| std::mem::take(&mut h2.exchanges));
        for id in own
            .into_iter()
            .chain(streams.into_iter().flatten().map(|(_, id)| id))
        {
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
        own.lasting.store(exchanges.table.len() as u64, Relaxed);
    }
}
