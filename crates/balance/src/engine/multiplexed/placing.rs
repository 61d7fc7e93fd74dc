//! Places for streams to back ends.
//!
//! A *place* is room for one stream on a connection. The back end decides how many places a
//! connection has: the limit on concurrent streams in its SETTINGS. Each back end has as few
//! connections as its streams need. A stream takes a free place, waits for a connection that is
//! being opened, or has a new connection opened. If there are as many connections as allowed, the
//! stream waits in a queue until a place is free.

use std::collections::VecDeque;
use std::io;

use net::{ConnId, Io, NO_PLACE, TargetId};

use super::Multiplexed;
use super::backend_connection::BackendConnection;
use super::carrier::Carrier;
use super::stream::{Outgoing, Stream};

/// The most connections to one back end that take streams.
const CONNECTIONS_MAX: usize = 64;
/// The most connections to one back end, with those that finish their last streams.
const CONNECTIONS_TOTAL_MAX: usize = 2 * CONNECTIONS_MAX;
/// The most streams on one connection, whatever the back end allows: a lost packet delays all of
/// them.
const STREAMS_MAX: u32 = 256;
/// The most streams that wait for one connection that is being opened. It is also how many streams
/// a back end is assumed to allow until it says so (RFC 9113 recommends at least 100).
const WAITING_MAX: u32 = 100;

/// A target whose connections are streams.
#[derive(Debug)]
pub(super) struct StreamTarget {
    is_secure: bool,
    pub connections: Vec<ConnId>,
    /// Slots of streams that wait until any connection has a place.
    pub queue: VecDeque<u32>,
    /// How many streams the back end allowed on the last connection that it accepted.
    streams_allowed: u32,
}

/// Where a stream can go.
enum Place {
    Free(ConnId),
    /// Behind others that wait for this connection to be opened.
    Opening(ConnId),
    /// On a connection that has to be opened.
    New,
    /// Behind others in the queue of the back end.
    Queue,
}

impl Carrier {
    /// Whether a connection takes no further streams.
    pub(super) fn is_leaving(&self) -> bool {
        self.is_over || self.session.is_draining()
    }

    /// Whether a stream can be opened now.
    fn has_place(&self) -> bool {
        let Some(backend) = &self.backend else {
            return false;
        };
        // A connection whose PING is not answered may be dead. A back end that does not read gets
        // no more requests, as heads have no flow control.
        let is_alive = backend.is_up && backend.pinged_ns.is_none();
        let may = is_alive && !self.is_paused && !self.is_leaving();
        may && backend.streams < self.session.streams_allowed().min(STREAMS_MAX)
    }
}

impl<I: Io> Multiplexed<I> {
    pub(super) fn note_stream_target(&mut self, target: TargetId, is_secure: bool) {
        let at = target.number();
        if self.targets.len() <= at {
            self.targets.resize_with(at + 1, || None);
        }
        self.targets[at] = Some(StreamTarget {
            is_secure,
            connections: Vec::new(),
            queue: VecDeque::new(),
            streams_allowed: WAITING_MAX,
        });
    }

    #[inline]
    pub(super) fn stream_target(&self, target: TargetId) -> Option<&StreamTarget> {
        self.targets.get(target.number())?.as_ref()
    }

    pub(super) fn stream_target_mut(&mut self, target: TargetId) -> Option<&mut StreamTarget> {
        self.targets.get_mut(target.number())?.as_mut()
    }

    /// Begins a stream to a back end. [`net::Event::Connected`] follows when it has a place on a
    /// connection.
    pub(super) fn open_stream(&mut self, target: TargetId) -> io::Result<ConnId> {
        let is_secure = self.stream_target(target).is_some_and(|one| one.is_secure);
        let Some(slot) = self.table.open(Stream::to_server(target, is_secure)) else {
            return Err(io::Error::other("all places of streams are in use"));
        };
        // First come, first served.
        let target_of = self.stream_target_mut(target);
        if let Some(one) = target_of.filter(|one| !one.queue.is_empty()) {
            one.queue.push_back(slot);
        } else if let Err(error) = self.place(slot, target) {
            self.table.remove(slot);
            return Err(error);
        }
        Ok(self.table.conn(slot))
    }

    fn find_place(&self, target: TargetId) -> Place {
        let Some(one) = self.stream_target(target) else {
            return Place::Queue;
        };
        let waiting_max = one.streams_allowed.clamp(1, WAITING_MAX) as usize;
        let mut opening: Option<(usize, ConnId)> = None;
        let mut staying = 0;
        for &conn in &one.connections {
            let Some(carrier) = self.carriers[conn.slot()].as_deref() else {
                continue;
            };
            let Some(backend) = &carrier.backend else {
                continue;
            };
            if carrier.is_leaving() {
                continue;
            }
            staying += 1;
            if carrier.has_place() {
                return Place::Free(conn);
            }
            let waiting = backend.waiting.len();
            let is_least = opening.is_none_or(|(least, _)| waiting < least);
            if !backend.is_up && waiting < waiting_max && is_least {
                opening = Some((waiting, conn));
            }
        }
        // More connections are of no use if the back end allows no streams.
        let may_open = staying < CONNECTIONS_MAX && (staying == 0 || one.streams_allowed > 0);
        match opening {
            Some((_, conn)) => Place::Opening(conn),
            None if may_open && one.connections.len() < CONNECTIONS_TOTAL_MAX => Place::New,
            None => Place::Queue,
        }
    }

    /// Gives a stream a place, or lets it wait for one.
    fn place(&mut self, slot: u32, target: TargetId) -> io::Result<()> {
        let conn = match self.find_place(target) {
            Place::Free(conn) => {
                self.connect_stream(slot, conn);
                return Ok(());
            }
            Place::Queue => {
                if let Some(one) = self.stream_target_mut(target) {
                    one.queue.push_back(slot);
                }
                return Ok(());
            }
            Place::Opening(conn) => conn,
            Place::New => self.open_backend_connection(target)?,
        };
        if let Some(stream) = self.table.at(slot) {
            stream.carrier = conn;
        }
        if let Some(backend) = self.backend_at(conn) {
            backend.waiting.push_back(slot);
        }
        Ok(())
    }

    fn place_again(&mut self, slot: u32, target: TargetId) {
        if let Some(stream) = self.table.at(slot) {
            stream.carrier = Stream::NO_CARRIER;
        }
        if let Err(error) = self.place(slot, target) {
            let errno = error.raw_os_error().unwrap_or(NO_PLACE);
            self.table.connect_failed(slot, errno);
        }
    }

    fn open_backend_connection(&mut self, target: TargetId) -> io::Result<ConnId> {
        let conn = self.inner.connect(target, None)?;
        let backend = BackendConnection::new(target, self.inner.coarse_now_ns());
        self.carriers[conn.slot()] = Some(Box::new(Carrier::to_server(conn, backend)));
        if let Some(one) = self.stream_target_mut(target) {
            one.connections.push(conn);
        }
        self.backend_connections.push(conn);
        Ok(conn)
    }

    fn connect_stream(&mut self, slot: u32, conn: ConnId) {
        let Some(backend) = self.backend_at(conn) else {
            return;
        };
        backend.streams += 1;
        backend.idle_ns = None;
        let is_reused = std::mem::replace(&mut backend.has_served, true);
        if let Some(stream) = self.table.at(slot) {
            stream.carrier = conn;
            if let Some(outgoing) = &mut stream.outgoing {
                (outgoing.is_connected, outgoing.is_reused) = (true, is_reused);
            }
        }
        self.table.connected(slot);
    }

    /// Notes how many streams the back end allows on a connection that has just been opened, and
    /// gives places to the streams that wait for it. Those that find none go elsewhere.
    pub(super) fn place_those_who_waited(&mut self, conn: ConnId) {
        let Some(carrier) = self.carrier_at(conn) else {
            return;
        };
        let allowed = carrier.session.streams_allowed().min(STREAMS_MAX);
        let Some(backend) = &mut carrier.backend else {
            return;
        };
        let (target, waiting) = (backend.target, std::mem::take(&mut backend.waiting));
        if let Some(one) = self.stream_target_mut(target) {
            one.streams_allowed = allowed;
        }
        for slot in waiting {
            self.place_again(slot, target);
        }
    }

    /// Gives the places that have become free to the streams in the queue of a back end.
    pub(super) fn serve_queue(&mut self, target: TargetId) {
        while let Some(one) = self.stream_target(target) {
            let Some(&slot) = one.queue.front() else {
                return;
            };
            if matches!(self.find_place(target), Place::Queue) {
                return;
            }
            if let Some(one) = self.stream_target_mut(target) {
                one.queue.pop_front();
            }
            self.place_again(slot, target);
        }
    }

    /// Frees the place of a stream that its user has closed, or ends its wait for one.
    pub(super) fn leave_place(&mut self, slot: u32, conn: ConnId, outgoing: Outgoing) {
        if let Some(backend) = self.backend_at(conn) {
            match outgoing.is_connected {
                true => backend.streams -= 1,
                false => backend.waiting.retain(|one| *one != slot),
            }
            // Nothing waits for it any more.
            if backend.is_unused() && !backend.is_up {
                self.drop_backend_connection(conn);
            } else {
                self.end_if_left(conn);
            }
        } else if !outgoing.is_connected
            && let Some(one) = self.stream_target_mut(outgoing.target)
        {
            one.queue.retain(|one| *one != slot);
        }
        self.serve_queue(outgoing.target);
    }

    /// Whether a stream to a back end waits in the queue for a place.
    pub(super) fn is_queued_for_place(&self, conn: ConnId) -> bool {
        let Some(stream) = self.table.peek(conn) else {
            return false;
        };
        let waits = |outgoing: &Outgoing| !outgoing.is_connected;
        stream.carrier == Stream::NO_CARRIER && stream.outgoing.as_ref().is_some_and(waits)
    }
}
