//! Topics: what one member sends all members get, also those of other threads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use net::os::Waker;
use net::{ConnId, Io};

use super::super::{AnswerTo, Worker};
use super::{Ending, Entry, LastingId, Wire};
use crate::lasting::close;
use net::ws::CloseCode;

/// So many bytes wait for a member at most; one that falls further behind is closed.
const MEMBER_BYTES_MAX: usize = 256 * 1024;
/// So many bytes wait for a thread at most; what comes beyond is lost to its members.
const LETTERS_BYTES_MAX: usize = 64 << 20;

/// Frames of messages for the members of a topic.
#[derive(Clone)]
pub(super) struct Letter {
    topic: Arc<str>,
    messages: u64,
    frames: Arc<[u8]>,
}

/// What other threads have for the members of a thread.
#[derive(Default)]
pub(in crate::server) struct Mailbox {
    letters: Mutex<Vec<Letter>>,
    bytes: AtomicUsize,
    /// How many members the thread has.
    members: AtomicUsize,
    pub(in crate::server) waker: Waker,
}

impl Mailbox {
    fn post(&self, letter: &Letter) -> bool {
        let before = self.bytes.fetch_add(letter.frames.len(), Ordering::Relaxed);
        if before > LETTERS_BYTES_MAX {
            self.bytes.fetch_sub(letter.frames.len(), Ordering::Relaxed);
            return false;
        }
        if let Ok(mut letters) = self.letters.lock() {
            letters.push(letter.clone());
        }
        self.waker.wake();
        true
    }

    fn empty(&self) -> Vec<Letter> {
        let letters = self.letters.lock().map(|mut all| std::mem::take(&mut *all));
        let letters = letters.unwrap_or_default();
        let bytes = letters.iter().map(|one| one.frames.len()).sum();
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        letters
    }
}

/// The members of a thread, by topic.
#[derive(Default)]
pub(super) struct Topics {
    members: HashMap<Arc<str>, Vec<LastingId>>,
    count: usize,
    /// What the members of this thread have sent in this turn.
    published: Vec<(Arc<str>, u64, Vec<u8>)>,
    /// The socket that says that a letter has come.
    pub(super) bell: Option<ConnId>,
    /// The thread's number, and the mailboxes of all threads.
    number: usize,
    mailboxes: Arc<Vec<Mailbox>>,
}

impl Topics {
    fn own(&self) -> Option<&Mailbox> {
        self.mailboxes.get(self.number)
    }

    pub(super) fn join(&mut self, topic: &Arc<str>, id: LastingId) {
        self.members.entry(topic.clone()).or_default().push(id);
        self.count += 1;
        if let Some(own) = self.own() {
            own.members.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn leave(&mut self, topic: &Arc<str>, id: LastingId) {
        let Some(members) = self.members.get_mut(topic) else {
            return;
        };
        if let Some(at) = members.iter().position(|one| *one == id) {
            members.swap_remove(at);
            self.count -= 1;
            if members.is_empty() {
                self.members.remove(topic);
            }
            if let Some(own) = self.own() {
                own.members.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn publish(&mut self, topic: &Arc<str>, messages: u64, frames: &[u8]) {
        match self.published.last_mut() {
            Some((last, count, all)) if last == topic => {
                *count += messages;
                all.extend_from_slice(frames);
            }
            _ => {
                let one = (topic.clone(), messages, frames.to_vec());
                self.published.push(one);
            }
        }
    }

    pub(super) fn has_published(&self) -> bool {
        !self.published.is_empty()
    }

    pub(super) fn members(&self) -> usize {
        self.count
    }
}

impl<I: Io> Worker<I> {
    /// Takes the thread's place among those that share topics.
    pub(in crate::server) fn with_mailboxes(mut self, mailboxes: Arc<Vec<Mailbox>>) -> Self {
        let topics = &mut self.exchanges.topics;
        (topics.number, topics.mailboxes) = (self.number, mailboxes);
        // Without a bell, letters are found when the thread looks.
        let bell = topics.own().and_then(|own| own.waker.descriptor());
        topics.bell = bell.and_then(|bell| self.io.watch(&bell).ok());
        self
    }

    /// Takes what other threads have sent, if it is this socket that says so.
    pub(in crate::server) fn take_letters(&mut self, conn: ConnId) {
        if self.exchanges.topics.bell != Some(conn) {
            return;
        }
        let mailboxes = self.exchanges.topics.mailboxes.clone();
        if let Some(own) = mailboxes.get(self.number) {
            own.waker.drain();
            for letter in own.empty() {
                self.deliver(&letter);
            }
        }
    }

    /// Delivers what the members of this thread have sent.
    pub(super) fn deliver_published(&mut self) {
        for (topic, messages, frames) in std::mem::take(&mut self.exchanges.topics.published) {
            let letter = Letter {
                topic,
                messages,
                frames: frames.into(),
            };
            self.deliver(&letter);
            let mailboxes = self.exchanges.topics.mailboxes.clone();
            for (number, other) in mailboxes.iter().enumerate() {
                let members = other.members.load(Ordering::Relaxed) as u64;
                if number != self.number && members > 0 && !other.post(&letter) {
                    self.exchanges.lost += messages * members;
                }
            }
        }
    }

    /// Sends a letter to the members of this thread.
    fn deliver(&mut self, letter: &Letter) {
        let members = self.exchanges.topics.members.get(&letter.topic);
        for id in members.cloned().unwrap_or_default() {
            let Some(mut entry) = self.exchanges.table.take(id) else {
                continue;
            };
            let mut frames = std::mem::take(&mut self.exchanges.frames);
            match self.waiting_bytes(&entry) {
                0 => self.put_letter(&mut entry, letter, &mut frames),
                some if some + letter.frames.len() <= MEMBER_BYTES_MAX => {
                    self.put_letter(&mut entry, letter, &mut frames);
                }
                _ => {
                    self.exchanges.lost += letter.messages;
                    let mut farewell = Vec::new();
                    close(&mut farewell, CloseCode(1013), "too slow");
                    self.put(&mut entry, &farewell, &mut frames);
                    entry.ending = Some(Ending::Complete);
                }
            }
            self.settle(id, entry, frames);
        }
    }

    fn put_letter(&mut self, entry: &mut Entry, letter: &Letter, frames: &mut Vec<u8>) {
        self.exchanges.messages += letter.messages;
        self.put_behind(entry, &letter.frames, frames);
    }

    /// Bytes for a member that wait until its client reads.
    fn waiting_bytes(&self, entry: &Entry) -> usize {
        match (entry.to, &entry.wire) {
            (AnswerTo::Http1(conn), _) => self.clients[conn.slot()].unsent,
            // Not what waits for other streams of its connection.
            (AnswerTo::Http2(..), Wire::Http2 { unsent, at }) => unsent.len() - at,
            _ => 0,
        }
    }
}
