//! The exchanges on the streams of links.

use net::h2::ErrorCode;
use net::{Buf, ConnId, Io};
use readings::WrongKind;

use super::{Carrier, LINK, LinkState, StreamEnd, take};
use crate::exchange::Kind;
use crate::exchange::conn::{Conn, State};
use crate::http::h2::Session;
use crate::http::h3;
use crate::job::target::Request;
use crate::job::traffic::Grpc;
use crate::pacing::Pacer;
use crate::pacing::clock::Clock;
use crate::pacing::stop::StopRule;
use crate::worker::failures::{CLOSED, Failure, IDLE_NS, RESET, ends_idle};
use crate::worker::segment::SegmentRun;
use crate::worker::{AGAIN_MAX, FRUITLESS_MAX, REOPENING_NS};

/// Sends the messages of calls for which others were answered.
fn send_more<K: Kind>(
    session: &mut Session,
    conns: &mut [Conn<K>],
    requests: &[Request],
    now: u64,
) {
    for (place, conn) in conns.iter_mut().enumerate() {
        let more = match conn.state {
            State::Waiting => conn.exchange.more_to_send(now) as usize,
            _ => 0,
        };
        if more > 0 {
            let bytes = Grpc::message_bytes(&requests[conn.request as usize]);
            session.release(place as u32, more * bytes);
        }
    }
}

impl<I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'_, I, C, K, P, S> {
    /// Sends the request of a place once the connection is open and those before it have a stream.
    #[inline]
    pub(in crate::worker) fn start_stream(&mut self, number: usize, link: usize, now: u64) {
        self.worker.conns[number].since = now;
        self.queue_stream(number, link, now);
    }

    #[inline]
    fn queue_stream(&mut self, number: usize, link: usize, now: u64) {
        self.worker.conns[number].state = State::Connecting;
        let one = &self.worker.links[link];
        let is_first = one.state == LinkState::Open && one.waiting.is_empty();
        if is_first && self.send_on(number, link, now) {
            return;
        }
        let one = &mut self.worker.links[link];
        one.waiting.push_back(number);
        match one.state {
            LinkState::Closed => self.open_or_rest(link, now),
            LinkState::Open => self.end_link_at_rest(link, now),
            LinkState::Connecting => {}
        }
    }

    /// Opens a connection. If several in a row have ended without an answer, leaves that to the next
    /// check of the time limits: otherwise a server that refuses everything would be asked without a
    /// pause.
    pub(super) fn open_or_rest(&mut self, number: usize, now: u64) {
        if self.worker.links[number].fruitless < FRUITLESS_MAX {
            self.open_link(number, now);
        }
    }

    pub(super) fn open_link(&mut self, number: usize, now: u64) {
        let worker = &mut *self.worker;
        let link = &mut worker.links[number];
        link.fruitless = link.fruitless.saturating_add(1);
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
        if !session.request(place, picker, conn.request as usize, &conn.rendered) {
            return false;
        }
        one.requests += 1;
        conn.leaves(now);
        conn.requests = one.requests;
        worker.dirty(link);
        true
    }

    /// Closes a connection that takes no further requests once it has none, and opens the next one
    /// for those that wait.
    pub(in crate::worker) fn end_link_at_rest(&mut self, number: usize, now: u64) {
        if let Some(Carrier::WebSocket(_)) = &self.worker.links[number].session {
            return self.retire_websocket(number, now);
        }
        let link = &mut self.worker.links[number];
        let is_at_rest = |session: &Carrier| session.is_ending() && session.active() == 0;
        if link.session.as_ref().is_some_and(is_at_rest) {
            let waiting = std::mem::take(&mut link.waiting);
            let is_wanted = !waiting.is_empty();
            self.worker.close_link(number);
            self.worker.links[number].waiting = waiting;
            if is_wanted {
                self.open_or_rest(number, now);
            }
        }
    }

    /// Opens streams for the requests that wait on all connections of the target, after some were given
    /// up: until the server sends something, nothing else would. Opens connections that rested.
    pub(in crate::worker) fn send_all_waiting(&mut self, now: u64) {
        for number in 0..self.worker.links.len() {
            let link = &self.worker.links[number];
            if link.target != self.target || link.waiting.is_empty() {
                continue;
            }
            if link.state == LinkState::Closed {
                self.open_link(number, now);
                continue;
            }
            self.send_waiting(number, now);
            self.end_link_at_rest(number, now);
        }
    }

    /// Opens streams for the requests that wait, as many as the server allows.
    pub(in crate::worker) fn send_waiting(&mut self, number: usize, now: u64) {
        while let link = &self.worker.links[number]
            && link.state == LinkState::Open
            && let Some(place) = link.waiting.front().copied()
            && self.send_on(place, number, now)
        {
            self.worker.links[number].waiting.pop_front();
        }
    }

    pub(in crate::worker) fn link_connected(&mut self, id: ConnId) {
        let Some(number) = self.worker.link_of(id) else {
            return;
        };
        if self.worker.is_websocket(number) {
            return self.websocket_connected(number);
        }
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
        let places = link.places.len() as u32;
        let mut session = match K::HAS_MESSAGES {
            true => Session::keeping_fields(places),
            false => Session::new(places),
        };
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
        self.worker.flush_tcp(number);
    }

    pub(in crate::worker) fn link_connect_failed(&mut self, id: ConnId, errno: i32) {
        if let Some(number) = self.worker.link_of(id) {
            let why = self.worker.io.failure(id).map(str::to_owned);
            self.link_could_not_connect(number, errno, why);
        }
    }

    /// Gives up connections that take too long to open.
    pub(in crate::worker) fn give_up_links(&mut self, limit: u64) {
        for number in 0..self.worker.links.len() {
            let link = &self.worker.links[number];
            let is_late = link.state == LinkState::Connecting && self.now > link.since + limit;
            if link.target != self.target || !is_late || link.lost.is_some() {
                continue;
            }
            for place in self.take_busy(number) {
                let (kind, expected) = (WrongKind::Connection, "an open connection in time");
                let failure = Failure::new(|e| &mut e.timeout, kind, expected, "none");
                self.fail_and_free(place, failure);
            }
        }
    }

    pub(in crate::worker) fn link_could_not_connect(
        &mut self,
        number: usize,
        errno: i32,
        why: Option<String>,
    ) {
        if self.worker.links[number].lost.is_some() {
            return self.websocket_refused(number, why.as_deref().unwrap_or("none"));
        }
        for place in self.take_busy(number) {
            match &why {
                Some(why) => self.handshake_failed(place, why),
                None => self.could_not_connect(place, errno),
            }
        }
    }

    /// Closes a link. Returns the places that had requests.
    pub(in crate::worker) fn take_busy(&mut self, number: usize) -> Vec<usize> {
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
    pub(in crate::worker) fn link_ended(&mut self, id: ConnId, errno: i32) {
        let Some(number) = self.worker.link_of(id) else {
            return;
        };
        if self.worker.is_websocket(number) {
            let why = self.worker.io.failure(id).map(str::to_owned);
            return self.websocket_ended(number, errno, why);
        }
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
    pub(in crate::worker) fn link_lost(&mut self, number: usize, found: &str) {
        if self.worker.links[number].target != self.target {
            return self.worker.close_link(number);
        }
        for place in self.take_busy(number) {
            self.lose_stream(place, found);
        }
    }

    fn lose_stream(&mut self, place: usize, found: &str) {
        let (kind, expected) = (WrongKind::Connection, "a complete answer");
        let failure = Failure::new(|e| &mut e.read, kind, expected, found);
        self.fail_and_free(place, failure);
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
            if was_sent && !K::is_repeatable(&requests[conn.request as usize]) {
                self.lose_stream(place, found);
                continue;
            }
            match was_sent {
                true => self.not_processed(place, now),
                false => self.queue_stream(place, number, now),
            }
        }
    }

    /// Sends a request again that the server has not processed, up to [`AGAIN_MAX`] times.
    fn not_processed(&mut self, place: usize, now: u64) {
        let conn = &mut self.worker.conns[place];
        let why = match (conn.bytes > 0, conn.again) {
            (true, _) => "after it had begun an answer".to_owned(),
            (false, AGAIN_MAX..) => format!("each of {} times", u32::from(AGAIN_MAX) + 1),
            _ => {
                conn.again += 1;
                self.worker.recorders[self.recorder].resent += 1;
                if let Some(link) = conn.link {
                    self.start_stream(place, link as usize, now);
                }
                return;
            }
        };
        // It is over, so there is nothing to cancel.
        conn.state = State::Idle;
        self.lose_stream(place, &format!("the server refused the request {why}"));
    }

    pub(in crate::worker) fn link_data(&mut self, id: ConnId, buf: &Buf) {
        let Some(number) = self.worker.link_of(id) else {
            return;
        };
        if self.worker.links[number].target != self.target {
            return self.worker.link_data_at_rest(id, buf);
        }
        let span = self.span();
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
        let link = &mut worker.links[number];
        link.active_ns = now;
        if let Some(Carrier::WebSocket(_)) = &link.session {
            return self.websocket_data(number, buf, (arrived, now));
        }
        let mut ended = std::mem::take(&mut worker.ended_streams);
        let first = link.places.start;
        let requests = &worker.job.targets[link.target].requests;
        let conns = &mut worker.conns;
        let Some(Carrier::H2(session)) = &mut link.session else {
            return;
        };
        let recorder = &mut worker.recorders[self.recorder];
        let mut note = |times, note| Self::record_note(recorder, span, times, note);
        let fed = session.feed(worker.io.bytes(buf), |answer| {
            let places = &mut conns[first..];
            take(
                answer,
                places,
                requests,
                arrived,
                &mut note,
                |place, end| {
                    ended.push((first + place, end, arrived));
                },
            );
        });
        if K::HAS_MESSAGES && worker.job.targets[link.target].traffic.streams_both_ways() {
            send_more(session, &mut conns[link.places.clone()], requests, now);
        }
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
    pub(in crate::worker) fn streams_ended(
        &mut self,
        mut ended: Vec<(usize, StreamEnd, u64)>,
        now: u64,
    ) {
        let is_answer = |(_, end, _): &(usize, StreamEnd, u64)| matches!(end, StreamEnd::Done);
        if let Some((place, ..)) = ended.iter().find(|one| is_answer(one))
            && let Some(link) = self.worker.conns[*place].link
        {
            self.worker.links[link as usize].fruitless = 0;
        }
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
                let failure = Failure::new(|e| &mut e.read, kind, expected, found);
                self.fail_and_free(place, failure.how(RESET));
            }
            StreamEnd::NotProcessed => self.not_processed(place, now),
        }
    }

    /// Number of open connections of the segment's target.
    pub(in crate::worker) fn open_links(&self) -> Option<u64> {
        self.worker.job.targets[self.target].places()?;
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
