//! HTTP/2, HTTP/3 and WebSocket: connections that carry several requests at once.
//!
//! Each stream or message that may be open has a [`Conn`], its *place*, with the same states as an HTTP/1.1
//! connection, so that pacing, stop rules, checks and recording are common to both. A [`Link`] is the
//! connection that carries the streams of its places.

mod carrier;
mod one_way;
mod quic;
mod streams;
mod websocket;

use std::collections::VecDeque;
use std::ops::Range;

use net::{Buf, ConnId, Io};

use super::Worker;
use crate::exchange::conn::{Conn, State};
use crate::exchange::{Kind, Note, Times};
use crate::http::session::Answer;
use crate::job::Job;
use crate::job::target::Request;
use crate::pacing::clock::Clock;
pub(in crate::worker) use carrier::Carrier;
pub(in crate::worker) use quic::{QuicLinks, add_packets};

/// In the table of slots, the bit that marks a number as that of a link.
pub(in crate::worker) const LINK: u32 = 1 << 31;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum LinkState {
    Closed,
    Connecting,
    Open,
}

/// A connection of HTTP/2, HTTP/3 or WebSocket, open or not.
pub(in crate::worker) struct Link {
    pub(in crate::worker) target: usize,
    pub(in crate::worker) places: Range<usize>,
    pub(in crate::worker) state: LinkState,
    pub(in crate::worker) id: Option<ConnId>,
    pub(in crate::worker) since: u64,
    /// With HTTP/2: when it was opened or last read from, or a request on it was given up.
    active_ns: u64,
    /// With HTTP/2 while it is open; with HTTP/3 also while it is being opened.
    pub(in crate::worker) session: Option<Carrier>,
    /// The places whose requests wait for the connection, or for a stream, in the order in which they
    /// are sent.
    waiting: VecDeque<usize>,
    /// Requests since it was opened.
    requests: u64,
    /// When a WebSocket was lost that is to be opened again.
    pub(in crate::worker) lost: Option<u64>,
    /// Until when the server may answer the close frame of a WebSocket.
    retires_at: Option<u64>,
    /// Connections opened since the last complete answer.
    fruitless: u8,
    /// Whether it is among the worker's dirty links.
    is_dirty: bool,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug)]
pub(in crate::worker) enum StreamEnd {
    Done,
    Malformed(&'static str),
    Reset(u64),
    NotProcessed,
}

/// The links of all targets with HTTP/2 or HTTP/3, and for each place its link.
pub(in crate::worker) fn links(
    job: &Job,
    places_of: &[Range<usize>],
) -> (Vec<Link>, Vec<Option<u32>>) {
    let mut links = Vec::new();
    let mut of_places = Vec::new();
    for (target, places) in places_of.iter().enumerate() {
        let Some(streams) = job.targets[target].places() else {
            of_places.extend(places.clone().map(|_| None));
            continue;
        };
        for first in places.clone().step_by(streams as usize) {
            let own = first..first + streams as usize;
            of_places.extend(own.clone().map(|_| Some(links.len() as u32)));
            links.push(Link {
                target,
                places: own,
                state: LinkState::Closed,
                id: None,
                since: 0,
                active_ns: 0,
                session: None,
                waiting: VecDeque::new(),
                requests: 0,
                lost: None,
                retires_at: None,
                fruitless: 0,
                is_dirty: false,
            });
        }
    }
    (links, of_places)
}

impl<I: Io, C: Clock, K: Kind> Worker<I, C, K> {
    pub(in crate::worker) fn dirty(&mut self, link: usize) {
        if !std::mem::replace(&mut self.links[link].is_dirty, true) {
            self.dirty.push(link as u32);
        }
    }

    /// Sends the frames that this turn of the loop has queued, with one call per connection.
    #[inline]
    pub(in crate::worker) fn flush_links(&mut self) {
        while let Some(number) = self.dirty.pop() {
            let number = number as usize;
            self.links[number].is_dirty = false;
            match &self.links[number].session {
                Some(Carrier::H2(_) | Carrier::WebSocket(_)) => self.flush_tcp(number),
                Some(Carrier::H3(_)) => self.flush_quic(number),
                None => {}
            }
        }
    }

    #[inline]
    fn flush_tcp(&mut self, number: usize) {
        let link = &mut self.links[number];
        let out = match &mut link.session {
            Some(Carrier::H2(session)) => &mut session.out,
            Some(Carrier::WebSocket(session)) => &mut session.flow.out,
            _ => return,
        };
        if let Some(id) = link.id
            && !out.is_empty()
        {
            self.io.send_copy(id, out);
            out.clear();
        }
    }

    /// Gives up the request of a place.
    pub(in crate::worker) fn close_place(&mut self, number: usize, link: usize) {
        let state = std::mem::replace(&mut self.conns[number].state, State::Closed);
        if state == State::Waiting && self.is_one_way(link) {
            return self.leave_socket(link);
        }
        let one = &mut self.links[link];
        match state {
            State::Connecting => one.waiting.retain(|place| *place != number),
            State::Waiting => {
                if let Some(session) = &mut one.session {
                    session.cancel((number - one.places.start) as u32);
                    one.active_ns = self.clock.now_ns();
                    self.dirty(link);
                }
            }
            _ => {}
        }
    }

    pub(in crate::worker) fn close_link(&mut self, number: usize) {
        self.end_quic(number);
        let link = &mut self.links[number];
        (link.state, link.session, link.requests) = (LinkState::Closed, None, 0);
        link.retires_at = None;
        link.waiting.clear();
        if let Some(id) = link.id.take() {
            self.io.close(id);
        }
    }

    /// The link of a slot, if it is the one with this connection.
    pub(in crate::worker) fn link_of(&self, id: ConnId) -> Option<usize> {
        let number = (self.by_slot[id.slot()] & !LINK) as usize;
        (self.links.get(number)?.id == Some(id)).then_some(number)
    }

    /// Handles bytes on a connection whose target has no segment now: SETTINGS, PING and so on.
    pub(in crate::worker) fn link_data_at_rest(&mut self, id: ConnId, buf: &Buf) {
        let Some(number) = self.link_of(id) else {
            return;
        };
        let bytes = self.io.bytes(buf);
        self.links[number].active_ns = self.clock.now_ns();
        let fed = match &mut self.links[number].session {
            Some(Carrier::H2(session)) => session.feed(bytes, |_| {}).is_ok(),
            Some(Carrier::WebSocket(session)) => Self::websocket_at_rest(session, bytes),
            _ => false,
        };
        match fed {
            true => self.dirty(number),
            false => self.close_link(number),
        }
    }

    /// Handles the end of a connection whose target has no segment now.
    pub(in crate::worker) fn link_ended_at_rest(&mut self, id: ConnId) {
        if let Some(number) = self.link_of(id) {
            self.close_link(number);
        }
    }
}

/// Records what arrived on a stream; `conns` are the places of its link, and those behind.
#[inline]
pub(in crate::worker) fn take<K: Kind>(
    answer: Answer<'_>,
    conns: &mut [Conn<K>],
    requests: &[Request],
    arrived: u64,
    mut note: impl FnMut(Times, Note),
    ended: impl FnOnce(usize, StreamEnd),
) {
    match answer {
        Answer::Head {
            place,
            status,
            bytes,
            fields,
        } => {
            let conn = &mut conns[place as usize];
            let times = conn.times(arrived.max(conn.sent));
            let each = |one| note(times, one);
            conn.exchange.take_head(status, fields, times, each);
            conn.bytes += bytes;
            if conn.first_byte == 0 {
                conn.first_byte = arrived.max(conn.sent);
            }
        }
        Answer::Body { place, bytes } => {
            let conn = &mut conns[place as usize];
            conn.bytes += bytes.len() as u64;
            let request = &requests[conn.request as usize];
            let times = conn.times(arrived.max(conn.sent));
            let each = |one| note(times, one);
            conn.exchange.take_content(request, times, bytes, each);
        }
        Answer::Trailers { place, fields } => {
            let conn = &mut conns[place as usize];
            let times = conn.times(arrived.max(conn.sent));
            conn.exchange.take_trailers(fields, times);
        }
        Answer::End { place } => ended(place as usize, StreamEnd::Done),
        Answer::Malformed { place, what } => ended(place as usize, StreamEnd::Malformed(what)),
        Answer::Reset { place, code } => ended(place as usize, StreamEnd::Reset(code)),
        Answer::NotProcessed { place } => ended(place as usize, StreamEnd::NotProcessed),
    }
}
