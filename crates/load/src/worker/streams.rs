//! HTTP/2 and HTTP/3: connections that carry several requests at once.
//!
//! Each stream that may be open has a [`Conn`](crate::conn::Conn), its *place*, with the same states
//! as an HTTP/1.1 connection, so that pacing, stop rules, checks and recording are common to both. A
//! [`Link`] is the connection that carries the streams of its places.

use std::collections::VecDeque;
use std::ops::Range;

use net::h2::ErrorCode;
use net::http::ResponseHead;
use net::{Buf, ConnId, Io};
use readings::WrongKind;

use super::carrier::Carrier;
use super::failures::{CLOSED, IDLE_NS, ends_idle};
use super::segment::SegmentRun;
use super::{REOPENING_NS, Worker};
use crate::clock::Clock;
use crate::conn::{Conn, State};
use crate::h2::Session;
use crate::h3;
use crate::job::Job;
use crate::pacing::Pacer;
use crate::session::Answer;
use crate::stop::StopRule;
use crate::target::Request;

/// In the table of slots, the bit that marks a number as that of a link.
pub(super) const LINK: u32 = 1 << 31;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    Closed,
    Connecting,
    Open,
}

/// An HTTP/2 or HTTP/3 connection, open or not.
pub(super) struct Link {
    pub(super) target: usize,
    pub(super) places: Range<usize>,
    pub(super) state: LinkState,
    pub(super) id: Option<ConnId>,
    pub(super) since: u64,
    /// With HTTP/2: when it was opened or last read from, or a request on it was given up.
    active_ns: u64,
    /// With HTTP/2 while it is open; with HTTP/3 also while it is being opened.
    pub(super) session: Option<Carrier>,
    /// The places whose requests wait for the connection, or for a stream, in the order in which they
    /// are sent.
    waiting: VecDeque<usize>,
    /// Requests since it was opened.
    requests: u64,
    /// Whether it is among the worker's dirty links.
    is_dirty: bool,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum StreamEnd {
    Done,
    Malformed(&'static str),
    Reset(u64),
    NotProcessed,
}

/// The links of all targets with HTTP/2 or HTTP/3, and for each place its link.
pub(super) fn links(job: &Job, places_of: &[Range<usize>]) -> (Vec<Link>, Vec<Option<u32>>) {
    let mut links = Vec::new();
    let mut of_places = Vec::new();
    for (target, places) in places_of.iter().enumerate() {
        let Some(streams) = job.targets[target].streams() else {
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
                is_dirty: false,
            });
        }
    }
    (links, of_places)
}

impl<I: Io, C: Clock> Worker<I, C> {
    pub(super) fn dirty(&mut self, link: usize) {
        if !std::mem::replace(&mut self.links[link].is_dirty, true) {
            self.dirty.push(link as u32);
        }
    }

    /// Sends the frames that this turn of the loop has queued, with one call per connection.
    #[inline]
    pub(super) fn flush_links(&mut self) {
        while let Some(number) = self.dirty.pop() {
            let number = number as usize;
            self.links[number].is_dirty = false;
            match &self.links[number].session {
                Some(Carrier::H2(_)) => self.flush_h2(number),
                Some(Carrier::H3(_)) => self.flush_quic(number),
                None => {}
            }
        }
    }

    #[inline]
    fn flush_h2(&mut self, number: usize) {
        let link = &mut self.links[number];
        if let (Some(id), Some(Carrier::H2(session))) = (link.id, &mut link.session)
            && !session.out.is_empty()
        {
            self.io.send_copy(id, &session.out);
            session.out.clear();
        }
    }

    /// Gives up the request of a place.
    pub(super) fn close_place(&mut self, number: usize, link: usize) {
        let state = std::mem::replace(&mut self.conns[number].state, State::Closed);
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

    pub(super) fn close_link(&mut self, number: usize) {
        self.end_quic(number);
        let link = &mut self.links[number];
        (link.state, link.session, link.requests) = (LinkState::Closed, None, 0);
        link.waiting.clear();
        if let Some(id) = link.id.take() {
            self.io.close(id);
        }
    }

    /// The link of a slot, if it is the one with this connection.
    pub(super) fn link_of(&self, id: ConnId) -> Option<usize> {
        let number = (self.by_slot[id.slot()] & !LINK) as usize;
        (self.links.get(number)?.id == Some(id)).then_some(number)
    }

    /// Handles bytes on a connection whose target has no segment now: SETTINGS, PING and so on.
    pub(super) fn link_data_at_rest(&mut self, id: ConnId, buf: &Buf) {
        let Some(number) = self.link_of(id) else {
            return;
        };
        let bytes = self.io.bytes(buf);
        self.links[number].active_ns = self.clock.now_ns();
        let fed = match &mut self.links[number].session {
            Some(Carrier::H2(session)) => Some(session.feed(bytes, |_| {})),
            _ => None,
        };
        match fed {
            Some(Ok(())) => self.dirty(number),
            _ => self.close_link(number),
        }
    }

    /// Handles the end of a connection whose target has no segment now.
    pub(super) fn link_ended_at_rest(&mut self, id: ConnId) {
        if let Some(number) = self.link_of(id) {
            self.close_link(number);
        }
    }
}

impl<I: Io, C: Clock, P: Pacer, S: StopRule> SegmentRun<'_, I, C, P, S> {
    /// Sends the request of a place once the connection is open and those before it have a stream.
    #[inline]
    pub(super) fn start_stream(&mut self, number: usize, link: usize, now: u64) {
        let conn = &mut self.worker.conns[number];
        conn.since = now;
        conn.state = State::Connecting;
        let one = &self.worker.links[link];
        let is_first = one.state == LinkState::Open && one.waiting.is_empty();
        if is_first && self.send_on(number, link, now) {
            return;
        }
        let one = &mut self.worker.links[link];
        one.waiting.push_back(number);
        match one.state {
            LinkState::Closed => self.open_link(link, now),
            LinkState::Open => self.end_link_at_rest(link, now),
            LinkState::Connecting => {}
        }
    }

    fn open_link(&mut self, number: usize, now: u64) {
        let worker = &mut *self.worker;
        let link = &mut worker.links[number];
        if worker.job.targets[link.target].http3.is_some() {
            return self.open_quic(number, now);
        }
        match worker.io.connect(worker.pickers[link.target].id, None) {
            Ok(id) => {
                worker.by_slot[id.slot()] = LINK | number as u32;
                (link.id, link.since, link.state) = (Some(id), now, LinkState::Connecting);
                let target = link.target;
                worker.announce_before_handshake(target, id);
            }
            Err(e) => self.link_could_not_connect(number, e.raw_os_error().unwrap_or(0), None),
        }
    }

    /// Opens a stream for the request of a place. Returns false if it has to wait for a stream, or for
    /// the next connection.
    #[inline]
    fn send_on(&mut self, number: usize, link: usize, now: u64) -> bool {
        let worker = &mut *self.worker;
        let one = &mut worker.links[link];
        let Some(session) = &mut one.session else {
            return false;
        };
        let picker = &worker.pickers[one.target];
        let most = picker.requests_per_connection;
        if most.is_some_and(|most| one.requests >= most) {
            session.end();
        }
        let conn = &mut worker.conns[number];
        let place = (number - one.places.start) as u32;
        if !session.request(place, picker, conn.request as usize) {
            return false;
        }
        one.requests += 1;
        conn.state = State::Waiting;
        conn.sent = now;
        conn.requests = one.requests;
        worker.dirty(link);
        true
    }

    /// Closes a connection that takes no further requests once it has none, and opens the next one
    /// for those that wait.
    pub(super) fn end_link_at_rest(&mut self, number: usize, now: u64) {
        let link = &mut self.worker.links[number];
        let is_at_rest = |session: &Carrier| session.is_ending() && session.active() == 0;
        if link.session.as_ref().is_some_and(is_at_rest) {
            let waiting = std::mem::take(&mut link.waiting);
            let is_wanted = !waiting.is_empty();
            self.worker.close_link(number);
            self.worker.links[number].waiting = waiting;
            if is_wanted {
                self.open_link(number, now);
            }
        }
    }

    /// Opens streams for the requests that wait on all connections of the target, after some were given
    /// up: until the server sends something, nothing else would.
    pub(super) fn send_all_waiting(&mut self, now: u64) {
        for number in 0..self.worker.links.len() {
            let link = &self.worker.links[number];
            if link.target == self.target && !link.waiting.is_empty() {
                self.send_waiting(number, now);
                self.end_link_at_rest(number, now);
            }
        }
    }

    /// Opens streams for the requests that wait, as many as the server allows.
    pub(super) fn send_waiting(&mut self, number: usize, now: u64) {
        while let link = &self.worker.links[number]
            && link.state == LinkState::Open
            && let Some(place) = link.waiting.front().copied()
            && self.send_on(place, number, now)
        {
            self.worker.links[number].waiting.pop_front();
        }
    }

    pub(super) fn link_connected(&mut self, id: ConnId) {
        let Some(number) = self.worker.link_of(id) else {
            return;
        };
        let worker = &mut *self.worker;
        let now = worker.clock.now_ns();
        let link = &mut worker.links[number];
        let handshake = worker.io.handshake(id).copied();
        let target = &worker.job.targets[link.target];
        if target.tls.is_some() && handshake.is_none_or(|one| one.alpn != Some("h2")) {
            let why = "the server does not offer HTTP/2 (ALPN)".to_string();
            return self.link_could_not_connect(number, 0, Some(why));
        }
        let recorder = &mut worker.recorders[self.recorder];
        recorder.connects += 1;
        let is_inside = self.window.contains(now);
        let mut opened = now;
        if let Some(handshake) = handshake {
            opened = handshake.opened_ns.max(link.since);
            recorder.handshake(&handshake, is_inside);
        }
        if is_inside {
            recorder.connect.record_ns(opened - link.since);
        }
        let mut session = Session::new(link.places.len() as u32);
        (link.state, link.active_ns) = (LinkState::Open, now);
        let target = link.target;
        let settings = &worker.job.targets[target];
        if settings.tls.is_none() && settings.proxy_header.is_some() {
            worker.next_preamble(target);
            session.out = [worker.preamble.as_slice(), &session.out].concat();
        }
        worker.links[number].session = Some(Carrier::H2(Box::new(session)));
        worker.dirty(number);
        self.send_waiting(number, now);
        // The first requests do not wait for the server's SETTINGS, and leave in one send with the
        // last message of the TLS handshake: nothing costs a round trip of its own.
        self.worker.flush_h2(number);
    }

    pub(super) fn link_connect_failed(&mut self, id: ConnId, errno: i32) {
        if let Some(number) = self.worker.link_of(id) {
            let why = self.worker.io.failure(id).map(str::to_owned);
            self.link_could_not_connect(number, errno, why);
        }
    }

    /// Gives up connections that take too long to open.
    pub(super) fn give_up_links(&mut self, limit: u64) {
        for number in 0..self.worker.links.len() {
            let link = &self.worker.links[number];
            let is_late = link.state == LinkState::Connecting && self.now > link.since + limit;
            if link.target != self.target || !is_late {
                continue;
            }
            for place in self.take_busy(number) {
                let (kind, expected) = (WrongKind::Connection, "an open connection in time");
                self.fail_and_free(place, |e| &mut e.timeout, kind, expected, "none");
            }
        }
    }

    pub(super) fn link_could_not_connect(
        &mut self,
        number: usize,
        errno: i32,
        why: Option<String>,
    ) {
        for place in self.take_busy(number) {
            match &why {
                Some(why) => self.handshake_failed(place, why),
                None => self.could_not_connect(place, errno),
            }
        }
    }

    /// Closes a link. Returns the places that had requests.
    pub(super) fn take_busy(&mut self, number: usize) -> Vec<usize> {
        self.worker.close_link(number);
        let places = self.worker.links[number].places.clone();
        let conns = &mut self.worker.conns;
        let busy: Vec<usize> = places.filter(|place| conns[*place].is_busy()).collect();
        for place in &busy {
            // The requests are lost; nothing of them is to be cancelled.
            conns[*place].state = State::Idle;
        }
        busy
    }

    /// The connection was closed by its peer, or broke.
    pub(super) fn link_ended(&mut self, id: ConnId, errno: i32) {
        let Some(number) = self.worker.link_of(id) else {
            return;
        };
        let found = match (self.worker.io.failure(id), errno) {
            (Some(why), _) => why.to_owned(),
            (None, 0) => CLOSED.to_owned(),
            (None, errno) => std::io::Error::from_raw_os_error(errno).to_string(),
        };
        let has_failed = self.worker.io.failure(id).is_some();
        match !has_failed && ends_idle(errno) && self.link_was_idle(number) {
            true => self.send_again(number, &found),
            false => self.link_lost(number, &found),
        }
    }

    /// The connection is over: its requests fail.
    pub(super) fn link_lost(&mut self, number: usize, found: &str) {
        if self.worker.links[number].target != self.target {
            return self.worker.close_link(number);
        }
        for place in self.take_busy(number) {
            self.lose_stream(place, found);
        }
    }

    fn lose_stream(&mut self, place: usize, found: &str) {
        let (kind, expected) = (WrongKind::Connection, "a complete answer");
        self.fail_and_free(place, |e| &mut e.read, kind, expected, found);
    }

    /// Whether a connection had been idle when its requests were sent, and nothing has arrived
    /// since. The server is taken to have closed it for being idle while they were on their way; one
    /// that crashed on them looks the same.
    fn link_was_idle(&self, number: usize) -> bool {
        let link = &self.worker.links[number];
        let conns = self.worker.conns[link.places.clone()].iter();
        let sent = conns.filter(|conn| conn.state == State::Waiting);
        let first_sent = sent.map(|conn| conn.sent).min();
        link.target == self.target
            && first_sent.is_some_and(|sent| sent.saturating_sub(link.active_ns) >= IDLE_NS)
    }

    /// Sends the requests of a link that was closed as idle on a new one. Requests that were sent and
    /// are not idempotent fail: the server may have processed them.
    fn send_again(&mut self, number: usize, found: &str) {
        let now = self.worker.clock.now_ns();
        let places = self.worker.links[number].places.clone();
        let is_sent = |place: &usize| self.worker.conns[*place].state == State::Waiting;
        let sent: Vec<usize> = places.filter(is_sent).collect();
        for place in self.take_busy(number) {
            let conn = &self.worker.conns[place];
            let was_sent = sent.contains(&place);
            let requests = &self.worker.job.targets[self.target].requests;
            if was_sent && !requests[conn.request as usize].is_idempotent() {
                self.lose_stream(place, found);
                continue;
            }
            self.worker.recorders[self.recorder].resent += u64::from(was_sent);
            self.start_stream(place, number, now);
        }
    }

    pub(super) fn link_data(&mut self, id: ConnId, buf: &Buf) {
        let Some(number) = self.worker.link_of(id) else {
            return;
        };
        if self.worker.links[number].target != self.target {
            return self.worker.link_data_at_rest(id, buf);
        }
        let worker = &mut *self.worker;
        let now = worker.clock.now_ns();
        let mut arrived = now;
        if let Some(arrived_ns) = buf.arrived_ns() {
            arrived = arrived_ns.min(now);
            let recorder = &mut worker.recorders[self.recorder];
            if now >= self.window.from {
                recorder.receive_lag.record_ns(now - arrived);
            }
        }
        let mut ended = std::mem::take(&mut worker.ended_streams);
        let link = &mut worker.links[number];
        link.active_ns = now;
        let first = link.places.start;
        let requests = &worker.job.targets[link.target].requests;
        let conns = &mut worker.conns;
        let Some(Carrier::H2(session)) = &mut link.session else {
            return;
        };
        let fed = session.feed(worker.io.bytes(buf), |answer| {
            take(
                answer,
                &mut conns[first..],
                requests,
                arrived,
                |place, end| {
                    ended.push((first + place, end, arrived));
                },
            );
        });
        if !session.out.is_empty() {
            worker.dirty(number);
        }
        self.streams_ended(ended, now);
        if let Err(error) = fed {
            // The server learns why before the connection is closed.
            self.worker.flush_links();
            for place in self.take_busy(number) {
                self.protocol_error(place, error.what);
            }
            return;
        }
        self.send_waiting(number, now);
        self.end_link_at_rest(number, now);
    }

    /// Handles the ends of streams, each with the time at which it arrived.
    pub(super) fn streams_ended(&mut self, mut ended: Vec<(usize, StreamEnd, u64)>, now: u64) {
        for (place, end, arrived) in ended.drain(..) {
            let sent = self.worker.conns[place].sent;
            self.stream_ended(place, end, (arrived.max(sent), now));
        }
        self.worker.ended_streams = ended;
    }

    fn stream_ended(&mut self, place: usize, end: StreamEnd, (arrived, now): (u64, u64)) {
        if self.worker.conns[place].state != State::Waiting {
            return;
        }
        match end {
            StreamEnd::Done => self.complete(place, (arrived, now), false),
            StreamEnd::Malformed(what) => {
                // The session has ended the stream.
                self.worker.conns[place].state = State::Idle;
                self.protocol_error(place, what);
            }
            StreamEnd::Reset(code) => {
                let http3 = self.worker.job.targets[self.target].http3;
                let name = match http3 {
                    Some(_) => h3::error_name(code),
                    None => u32::try_from(code)
                        .ok()
                        .and_then(ErrorCode::of)
                        .map(ErrorCode::name),
                };
                let name = name.unwrap_or("an unknown reason");
                let found = format!("the server reset the stream: {name}");
                let (kind, expected) = (WrongKind::Connection, "a complete answer");
                // It is over, so there is nothing to cancel.
                self.worker.conns[place].state = State::Idle;
                self.fail_and_free(place, |e| &mut e.read, kind, expected, found);
            }
            StreamEnd::NotProcessed => {
                self.worker.recorders[self.recorder].resent += 1;
                if let Some(link) = self.worker.conns[place].link {
                    self.start_stream(place, link as usize, now);
                }
            }
        }
    }

    /// Number of open connections of the segment's target.
    pub(super) fn open_links(&self) -> Option<u64> {
        self.worker.job.targets[self.target].streams()?;
        let own = self
            .worker
            .links
            .iter()
            .filter(|link| link.target == self.target);
        let open = own.filter(|link| match link.state {
            LinkState::Open => true,
            LinkState::Connecting => link.since + REOPENING_NS > self.now,
            LinkState::Closed => false,
        });
        Some(open.count() as u64)
    }
}

/// Records what arrived on a stream; `conns` are the places of its link, and those behind.
#[inline]
pub(super) fn take(
    answer: Answer<'_>,
    conns: &mut [Conn],
    requests: &[Request],
    arrived: u64,
    ended: impl FnOnce(usize, StreamEnd),
) {
    match answer {
        Answer::Head {
            place,
            status,
            bytes,
        } => {
            let conn = &mut conns[place as usize];
            let keep_alive = true;
            conn.head = ResponseHead { status, keep_alive };
            conn.bytes += bytes;
            if conn.first_byte == 0 {
                conn.first_byte = arrived.max(conn.sent);
            }
        }
        Answer::Body { place, bytes } => {
            let conn = &mut conns[place as usize];
            conn.bytes += bytes.len() as u64;
            let rule = &requests[conn.request as usize].expect.body;
            conn.check.take(rule, bytes);
        }
        Answer::End { place } => ended(place as usize, StreamEnd::Done),
        Answer::Malformed { place, what } => ended(place as usize, StreamEnd::Malformed(what)),
        Answer::Reset { place, code } => ended(place as usize, StreamEnd::Reset(code)),
        Answer::NotProcessed { place } => ended(place as usize, StreamEnd::NotProcessed),
    }
}
