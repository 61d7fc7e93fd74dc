//! The exchanges of a thread, and when each is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::AnswerTo;
use crate::lasting::Exchange;
use crate::pages::ConnectionReuse;

/// Identifies an exchange of a thread. A stale one names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LastingId {
    index: u32,
    generation: u32,
}

/// How an exchange ends once all that it has written is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Complete,
    Cut,
    /// The client sends more than the origin keeps.
    Refused,
}

/// An exchange, and where it is heard.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) exchange: Exchange,
    pub(super) to: AnswerTo,
    pub(super) wire: Wire,
    pub(super) ending: Option<Ending>,
    /// Whether it waits until the client reads.
    pub(super) is_blocked: bool,
    /// Messages that were due before this time were held back by the client.
    pub(super) held_until_ns: u64,
    /// What it holds of the client's messages, bytes.
    pub(super) memory: usize,
    /// When it is due, if it is in the heap.
    pub(super) due_ns: Option<u64>,
}

/// What its bytes are written to.
#[derive(Debug)]
pub(super) enum Wire {
    /// An HTTP/1.1 connection.
    Http1 {
        framing: crate::lasting::Framing,
        persist: ConnectionReuse,
    },
    /// A stream of HTTP/2; with what its windows have not taken yet.
    Http2 { unsent: Vec<u8>, at: usize },
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    entry: Option<Entry>,
}

/// Exchanges, with a heap of due times. Entries of the heap whose exchange has another due time, or is
/// gone, are stale; they are dropped when their time has come, or when they are most of the heap.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    heap: BinaryHeap<Reverse<(u64, LastingId)>>,
    stale: usize,
}

/// So many stale entries are left in the heap.
const STALE_MAX: usize = 1024;

impl Table {
    /// Number of exchanges.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, entry: Entry) -> LastingId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.entry = Some(entry);
        LastingId {
            index,
            generation: slot.generation,
        }
    }

    pub(super) fn get(&mut self, id: LastingId) -> Option<&mut Entry> {
        let slot = self.slots.get_mut(id.index as usize)?;
        slot.entry
            .as_mut()
            .filter(|_| slot.generation == id.generation)
    }

    /// Takes an exchange out, until [`Table::put_back`] or [`Table::remove`].
    pub(super) fn take(&mut self, id: LastingId) -> Option<Entry> {
        let slot = self.slots.get_mut(id.index as usize)?;
        match slot.generation == id.generation {
            true => slot.entry.take(),
            false => None,
        }
    }

    pub(super) fn put_back(&mut self, id: LastingId, entry: Entry) {
        self.slots[id.index as usize].entry = Some(entry);
    }

    /// Frees the place of an exchange that was taken out.
    pub(super) fn remove(&mut self, id: LastingId, entry: &Entry) {
        let slot = &mut self.slots[id.index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index);
        self.stale += usize::from(entry.due_ns.is_some());
        self.drop_stale();
    }

    /// Says when an exchange has something to do; 0 for at once.
    pub(super) fn schedule(&mut self, id: LastingId, due_ns: u64) {
        let Some(entry) = self.get(id).filter(|entry| entry.due_ns != Some(due_ns)) else {
            return;
        };
        let was_in_heap = entry.due_ns.replace(due_ns).is_some();
        self.stale += usize::from(was_in_heap);
        self.heap.push(Reverse((due_ns, id)));
        self.drop_stale();
    }

    fn drop_stale(&mut self) {
        if self.stale > STALE_MAX && self.stale > self.heap.len() / 2 {
            let mut heap = std::mem::take(&mut self.heap);
            heap.retain(|Reverse((due_ns, id))| {
                self.get(*id)
                    .is_some_and(|entry| entry.due_ns == Some(*due_ns))
            });
            (self.heap, self.stale) = (heap, 0);
        }
    }

    /// When something may be due.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    /// An exchange that is due by now.
    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<LastingId> {
        while self.next_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            let Reverse((due_ns, id)) = self.heap.pop()?;
            match self.get(id).filter(|entry| entry.due_ns == Some(due_ns)) {
                Some(entry) => {
                    entry.due_ns = None;
                    return Some(id);
                }
                None => self.stale = self.stale.saturating_sub(1),
            }
        }
        None
    }
}
