//! The table of streams, and the pending events for their user.

use std::collections::{HashMap, VecDeque};

use net::h2::Session;
use net::{ConnId, Event, LentBuffers, LoopId, STREAM};

use super::stream::Stream;

struct Slot {
    generation: u32,
    stream: Option<Box<Stream>>,
}

/// How many streams there are, and how many there may be.
#[derive(Clone, Copy)]
struct Places {
    used: u32,
    max: u32,
}

pub(super) struct Table {
    /// The number of connection slots; the slots of streams follow them.
    base: u32,
    /// For streams of clients, and for streams to back ends.
    incoming: Places,
    outgoing: Places,
    slots: Vec<Slot>,
    free: Vec<u32>,
    pub ready: VecDeque<Event>,
    pub buffers: LentBuffers,
    /// Streams whose data wait for a free buffer.
    pub starved: Vec<u32>,
    /// Bytes that streams hold, and the most since [`Table::release_memory`].
    held: usize,
    peak: usize,
    /// The most memory that one stream has had for what it holds, bytes.
    #[cfg(test)]
    pub most_of_one: usize,
}

impl Table {
    pub fn new(base: usize, incoming_max: u32, outgoing_max: u32) -> Self {
        let places = |max| Places { used: 0, max };
        Self {
            base: base as u32,
            incoming: places(incoming_max),
            outgoing: places(outgoing_max),
            slots: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            buffers: LentBuffers::new(LoopId::next()),
            starved: Vec::new(),
            held: 0,
            peak: 0,
            #[cfg(test)]
            most_of_one: 0,
        }
    }

    /// Bytes that streams hold: content to send, and received data that wait.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Notes how much a stream holds now.
    pub fn count(&mut self, slot: u32) {
        let Some(stream) = self.slots[slot as usize].stream.as_deref_mut() else {
            return;
        };
        #[cfg(test)]
        {
            self.most_of_one = self.most_of_one.max(stream.capacity());
        }
        let held = stream.held();
        self.held = self.held - std::mem::replace(&mut stream.counted, held) + held;
        self.peak = self.peak.max(self.held);
    }

    /// See [`net::Io::release_memory`]. Streams free what they held as they go.
    pub fn release_memory(&mut self) -> usize {
        let freed = self.peak - self.held;
        self.peak = self.held;
        freed + self.buffers.release_memory()
    }

    /// Whether a connection is a stream.
    #[inline]
    pub fn has(&self, conn: ConnId) -> bool {
        conn.slot() >= self.base as usize
    }

    /// The connection of the stream in a slot.
    pub fn conn(&self, slot: u32) -> ConnId {
        ConnId::new(self.base + slot, self.slots[slot as usize].generation)
    }

    fn places(&mut self, is_outgoing: bool) -> &mut Places {
        match is_outgoing {
            true => &mut self.outgoing,
            false => &mut self.incoming,
        }
    }

    /// Puts a stream into a free slot; `None` if all are in use. A stream of a client is reported
    /// as accepted.
    pub fn open(&mut self, stream: Stream) -> Option<u32> {
        let is_outgoing = stream.outgoing.is_some();
        let places = self.places(is_outgoing);
        if places.used >= places.max {
            return None;
        }
        places.used += 1;
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(Slot {
                    generation: 0,
                    stream: None,
                });
                (self.slots.len() - 1) as u32
            }
        };
        self.slots[slot as usize].stream = Some(Box::new(stream));
        if !is_outgoing {
            let conn = self.conn(slot);
            let listener = STREAM;
            self.ready.push_back(Event::Accepted { conn, listener });
        }
        Some(slot)
    }

    pub fn at(&mut self, slot: u32) -> Option<&mut Stream> {
        self.slots[slot as usize].stream.as_deref_mut()
    }

    /// A stream by its identifier on its connection, with its slot.
    pub fn by_stream_id(
        &mut self,
        slots: &HashMap<u32, u32>,
        number: u32,
    ) -> Option<(u32, &mut Stream)> {
        let slot = *slots.get(&number)?;
        Some((slot, self.at(slot)?))
    }

    /// The slot and stream of a connection, unless the stream is gone.
    pub fn get(&mut self, conn: ConnId) -> Option<(u32, &mut Stream)> {
        let slot = (conn.slot() as u32).checked_sub(self.base)?;
        if self.conn(slot) != conn {
            return None;
        }
        Some((slot, self.at(slot)?))
    }

    pub fn peek(&self, conn: ConnId) -> Option<&Stream> {
        let slot = (conn.slot() as u32).checked_sub(self.base)?;
        if self.conn(slot) != conn {
            return None;
        }
        self.slots[slot as usize].stream.as_deref()
    }

    /// Frees the slot of a stream that its user has closed.
    pub fn remove(&mut self, slot: u32) {
        let one = &mut self.slots[slot as usize];
        let Some(stream) = one.stream.take() else {
            return;
        };
        one.generation = one.generation.wrapping_add(1);
        self.held -= stream.counted;
        self.free.push(slot);
        self.places(stream.outgoing.is_some()).used -= 1;
    }

    /// The slots of the streams of a carrier.
    pub fn slots_on(&self, carrier: ConnId) -> Vec<u32> {
        let is_of = |slot: &Slot| {
            let stream = slot.stream.as_deref();
            stream.is_some_and(|stream| stream.carrier == carrier)
        };
        let slots = (0..).zip(&self.slots);
        slots
            .filter(|(_, slot)| is_of(slot))
            .map(|(at, _)| at)
            .collect()
    }

    /// Passes on what was received of a message, and lets the peer send as much again.
    /// There is no session if the connection has ended behind a complete response.
    pub fn deliver(&mut self, slot: u32, session: Option<&mut Session>) {
        self.pass_on(slot, session);
        self.count(slot);
    }

    fn pass_on(&mut self, slot: u32, session: Option<&mut Session>) {
        let conn = self.conn(slot);
        let Some(stream) = self.slots[slot as usize].stream.as_deref_mut() else {
            return;
        };
        if stream.is_paused || stream.is_over {
            return;
        }
        let mut passed = 0;
        while passed < stream.inbox.len() {
            let rest = &stream.inbox[passed..];
            let filled = self.buffers.fill(|buffer| {
                let count = rest.len().min(buffer.len());
                buffer[..count].copy_from_slice(&rest[..count]);
                count
            });
            let Some(buf) = filled else { break };
            passed += buf.len();
            self.ready.push_back(Event::Data { conn, buf });
        }
        if passed > 0 {
            stream.open_chunk = None;
        }
        if passed == stream.inbox.len() {
            stream.inbox.clear();
            stream.inbox.shrink_to(4096);
            if let Some(session) = session
                && stream.early.is_empty()
            {
                session.release(stream.id, std::mem::take(&mut stream.flow));
            }
            if stream.has_end_to_tell() {
                stream.has_told_end = true;
                self.ready.push_back(Event::Eof { conn });
            }
        } else {
            stream.inbox.drain(..passed);
            self.starved.push(slot);
        }
    }

    /// Reports that a stream to a back end can be used.
    pub fn connected(&mut self, slot: u32) {
        let conn = self.conn(slot);
        self.ready.push_back(Event::Connected { conn });
    }

    /// Reports that a stream to a back end cannot be opened.
    pub fn connect_failed(&mut self, slot: u32, errno: i32) {
        let conn = self.conn(slot);
        if let Some(stream) = self.at(slot)
            && !std::mem::replace(&mut stream.is_over, true)
        {
            self.ready.push_back(Event::ConnectFailed { conn, errno });
        }
    }

    /// Reports that a stream failed.
    pub fn fail(&mut self, slot: u32, errno: i32) {
        let conn = self.conn(slot);
        if let Some(stream) = self.at(slot)
            && !std::mem::replace(&mut stream.is_over, true)
        {
            self.ready.push_back(Event::Failed { conn, errno });
        }
    }

    /// Reports that a stream's response was sent.
    pub fn end(&mut self, slot: u32) {
        let conn = self.conn(slot);
        if let Some(stream) = self.at(slot)
            && !std::mem::replace(&mut stream.is_over, true)
        {
            self.ready.push_back(Event::Eof { conn });
        }
    }

    /// Reports that the carrier has taken all that the user sent on a stream.
    pub fn drained(&mut self, slot: u32) {
        let conn = self.conn(slot);
        self.ready.push_back(Event::Drained { conn });
    }

    /// The next event, without those of streams that have been closed since.
    pub fn next(&mut self) -> Option<Event> {
        loop {
            let event = self.ready.pop_front()?;
            let conn = match &event {
                Event::Accepted { conn, .. }
                | Event::Data { conn, .. }
                | Event::Eof { conn }
                | Event::Failed { conn, .. }
                | Event::Drained { conn }
                | Event::Connected { conn }
                | Event::Readable { conn }
                | Event::ConnectFailed { conn, .. } => *conn,
                Event::AcceptFailed { .. } => return Some(event),
            };
            if !self.has(conn) {
                return Some(event);
            }
            let is_data = matches!(event, Event::Data { .. });
            if let Some((_, stream)) = self.get(conn) {
                stream.is_given |= is_data;
                return Some(event);
            }
            if let Event::Data { buf, .. } = event {
                self.buffers.give_back(&buf);
            }
        }
    }
}
