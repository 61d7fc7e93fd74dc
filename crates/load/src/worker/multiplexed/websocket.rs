//! WebSockets: each message that a connection may have in flight has a place.
//!
//! A connection that is lost is opened again at once, and with a pause if that fails. Its messages in
//! flight are lost; those that were not sent yet wait.

use std::borrow::Cow;

use net::ws::CloseCode;
use net::{Buf, Io};
use readings::WrongKind;

use super::{Carrier, Link, LinkState};
use crate::exchange::Kind;
use crate::exchange::conn::State;
use crate::http::ws::{self, Said, Session};
use crate::job::traffic::Traffic;
use crate::pacing::Pacer;
use crate::pacing::clock::Clock;
use crate::pacing::stop::StopRule;
use crate::worker::Worker;
use crate::worker::backlog::Turns;
use crate::worker::failures::{CLOSED, Failure};
use crate::worker::segment::SegmentRun;

/// How long a server may take to answer a close frame.
const CLOSE_NS: u64 = 1_000_000_000;

/// What is said of a connection that this client closed after a number of messages.
const RETIRED: &str = "retired";

impl<I: Io, C: Clock, K: Kind> Worker<I, C, K> {
    /// Whether a link is of WebSockets.
    pub(in crate::worker) fn is_websocket(&self, number: usize) -> bool {
        let target = &self.job.targets[self.links[number].target];
        matches!(target.traffic, Traffic::WebSocket(_))
    }

    /// The turns of a target's connections, where due messages belong to them: to all in an open loop,
    /// to those that send to topics.
    pub(in crate::worker) fn turns(&self, target: usize, is_open: bool) -> Option<Box<Turns>> {
        let websocket = self.job.targets[target].traffic.websocket()?;
        let step = match websocket.fan_out() {
            Some((members, _)) => members as usize,
            None if websocket.paced_by_connection && is_open => 1,
            None => return None,
        };
        let own = |link: &Link| link.target == target;
        let first = self.links.iter().position(own)?;
        let count = self.links.iter().filter(|link| own(link)).count() / step;
        Some(Box::new(Turns::new(first, step, count, self.job.threads)))
    }

    /// Says that the load is over on the WebSockets that are open.
    pub(in crate::worker) fn close_websockets(&mut self) {
        let mut are_any = false;
        for number in 0..self.links.len() {
            if let Some(Carrier::WebSocket(session)) = &mut self.links[number].session {
                session.flow.close(CloseCode::NORMAL);
                self.dirty(number);
                are_any = true;
            }
        }
        if are_any {
            self.flush_links();
            // What fails now harms nobody.
            let _ = self.io.poll(Some(0));
        }
    }

    /// Closes a link whose messages that were not sent go on waiting.
    fn close_link_but_wait(&mut self, number: usize) {
        let waiting = std::mem::take(&mut self.links[number].waiting);
        self.close_link(number);
        self.links[number].waiting = waiting;
    }

    /// Bytes on a connection whose target has no segment now: pings, and the end. Returns whether it
    /// goes on.
    pub(super) fn websocket_at_rest(session: &mut Session, bytes: &[u8]) -> bool {
        session.feed(bytes, |_| {}).is_ok() && session.flow.closed().is_none()
    }
}

impl<I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'_, I, C, K, P, S> {
    /// Opens the WebSockets of the target that are not open, at the start of a segment.
    pub(in crate::worker) fn open_websockets(&mut self, now: u64) {
        for number in 0..self.worker.links.len() {
            let link = &self.worker.links[number];
            if link.target != self.target || !self.worker.is_websocket(number) {
                continue;
            }
            if link.state == LinkState::Connecting && link.since < self.start {
                // What came of it between two segments was not seen.
                self.worker.close_link_but_wait(number);
            }
            if self.opens_itself(number) {
                // What was lost between two segments does not count.
                self.worker.links[number].lost = None;
                self.open_link(number, now);
            }
        }
    }

    /// Whether more messages were given up than may be in flight: it would take messages for ever.
    fn is_mute(&self, number: usize) -> bool {
        let link = &self.worker.links[number];
        match &link.session {
            Some(Carrier::WebSocket(one)) => one.flow.given_up() >= link.places.len(),
            _ => false,
        }
    }

    /// The connection is open, its TLS too: the handshake follows.
    pub(super) fn websocket_connected(&mut self, number: usize) {
        let worker = &mut *self.worker;
        let is_inside = self.window.contains(worker.clock.now_ns());
        let recorder = &mut worker.recorders[self.recorder];
        recorder.connects += 1;
        let id = worker.links[number].id;
        if let Some(handshake) = id.and_then(|id| worker.io.handshake(id)) {
            recorder.handshake(handshake, is_inside);
        }
        let target = worker.links[number].target;
        let settings = &worker.job.targets[target];
        let Traffic::WebSocket(websocket) = settings.traffic else {
            return;
        };
        let has_preamble = settings.tls.is_none() && settings.proxy_header.is_some();
        worker.preamble.clear();
        if has_preamble {
            worker.next_preamble(target);
        }
        let settings = &worker.job.targets[target];
        let request = &settings.requests[number % settings.requests.len()].bytes;
        let request = match worker.topic_number(number) {
            Some(topic) => ws::of_topic(request, topic).into(),
            None => Cow::Borrowed(request.as_slice()),
        };
        // A seed for each connection, so that keys and masks differ.
        worker.handshakes += 1;
        let seed = worker.job.seed
            ^ (worker.job.number_of(worker.thread) as u64) << 40
            ^ worker.handshakes << 8
            ^ 0x3b;
        let session = Session::new(&request, &worker.preamble, seed, websocket);
        worker.links[number].session = Some(Carrier::WebSocket(Box::new(session)));
        worker.dirty(number);
        worker.flush_links();
    }

    pub(super) fn websocket_data(&mut self, number: usize, buf: &Buf, (arrived, now): (u64, u64)) {
        let worker = &mut *self.worker;
        let link = &mut worker.links[number];
        let first = link.places.start;
        let Some(Carrier::WebSocket(session)) = &mut link.session else {
            return;
        };
        let mut heard = std::mem::take(&mut worker.heard);
        let fed = session.feed(worker.io.bytes(buf), |said| heard.push(said));
        if !session.flow.out.is_empty() {
            worker.dirty(number);
        }
        for said in heard.drain(..) {
            self.websocket_said(number, first, said, (arrived, now));
        }
        self.worker.heard = heard;
        if let Err(why) = fed {
            // The server learns why before the connection is closed.
            self.worker.flush_links();
            return match self.worker.links[number].state {
                LinkState::Open => self.websocket_lost(number, "malformed", &why),
                _ => self.websocket_refused(number, &why),
            };
        }
        let Some(Carrier::WebSocket(session)) = &self.worker.links[number].session else {
            return;
        };
        if let Some(code) = session.flow.closed() {
            self.worker.flush_links();
            let code = code.map_or_else(|| "without a code".to_owned(), |code| code.0.to_string());
            let how = format!("close {code}");
            let found = format!("the server closed the WebSocket, {how}");
            return self.websocket_lost(number, &how, &found);
        }
        if self.worker.links[number].state == LinkState::Open {
            self.send_waiting(number, now);
            self.end_link_at_rest(number, now);
        }
    }

    fn websocket_said(
        &mut self,
        number: usize,
        first: usize,
        said: Said,
        (arrived, now): (u64, u64),
    ) {
        let recorder = &mut self.worker.recorders[self.recorder];
        match said {
            Said::Opened { is_own_clock } => {
                let link = &mut self.worker.links[number];
                (link.state, link.active_ns) = (LinkState::Open, now);
                let (since, lost) = (link.since, link.lost.take());
                if self.window.contains(now) {
                    recorder.connect.record_ns(arrived.saturating_sub(since));
                }
                self.connection_opened(lost, now);
                if self.worker.is_one_way(number) {
                    self.socket_opened(number, is_own_clock, (arrived, now));
                }
            }
            Said::Message { stamp, bytes } => self.message_came(number, stamp, bytes, arrived),
            Said::Echo {
                place,
                bytes,
                wrong,
            } => {
                let place = first + place as usize;
                let conn = &mut self.worker.conns[place];
                if conn.state != State::Waiting {
                    return;
                }
                let arrived = arrived.max(conn.sent);
                (conn.bytes, conn.first_byte) = (bytes, arrived);
                self.worker.links[number].fruitless = 0;
                self.completed(place, (arrived, now), wrong, false);
            }
            Said::Unasked { wrong, is_repeated } => {
                if let Some(connections) = &mut recorder.connections {
                    connections.reading.repeated += u64::from(is_repeated);
                }
                recorder.keep_sample(wrong);
                self.count_error(now, None, |errors| &mut errors.verify);
            }
            Said::Lost(count) => {
                if let Some(connections) = &mut recorder.connections {
                    connections.reading.lost += count;
                }
            }
            Said::Reordered => {
                if let Some(connections) = &mut recorder.connections {
                    connections.reading.reordered += 1;
                }
            }
        }
    }

    /// The connection ended without a close frame.
    pub(super) fn websocket_ended(&mut self, number: usize, errno: i32, why: Option<String>) {
        let (how, found) = match (why, errno) {
            (Some(why), _) => ("closed", why),
            (None, 0) => ("closed", CLOSED.to_owned()),
            (None, errno) => (
                "reset",
                std::io::Error::from_raw_os_error(errno).to_string(),
            ),
        };
        match self.worker.links[number].state {
            LinkState::Open => self.websocket_lost(number, how, &found),
            _ => self.websocket_refused(number, &found),
        }
    }

    /// The connection is over, in this way: its messages in flight are lost, and it is opened again.
    pub(super) fn websocket_lost(&mut self, number: usize, how: &str, found: &str) {
        if self.worker.is_one_way(number) {
            return self.one_way_over(number, how, found);
        }
        let now = self.worker.clock.now_ns();
        let link = &mut self.worker.links[number];
        let retires = matches!(&link.session, Some(Carrier::WebSocket(one)) if one.flow.is_ending())
            && link.retires_at.take().is_some();
        let is_own = link.target == self.target;
        if !retires {
            link.lost = Some(now);
        }
        let places = link.places.clone();
        self.worker.close_link_but_wait(number);
        if !is_own {
            return;
        }
        match retires {
            true => self.connection_ended(RETIRED, false, now),
            false => self.connection_ended(how, true, now),
        }
        let is_sent = |place: &usize| self.worker.conns[*place].state == State::Waiting;
        let sent: Vec<usize> = places.filter(is_sent).collect();
        for place in &sent {
            // Nothing of it is to be cancelled, whatever begins on other places meanwhile.
            self.worker.conns[*place].state = State::Idle;
        }
        for place in sent {
            let expected = "its message back";
            let kind = WrongKind::Connection;
            let failure = Failure::new(|e| &mut e.read, kind, expected, found);
            self.fail_and_free(place, failure);
        }
        if self.worker.links[number].state == LinkState::Closed && now < self.window.end {
            self.open_or_rest(number, now);
        }
    }

    /// The handshake failed, or the connection could not be opened: what waits fails, unless the
    /// connection was lost and is tried again.
    pub(super) fn websocket_refused(&mut self, number: usize, why: &str) {
        let now = self.worker.clock.now_ns();
        if self.worker.links[number].lost.is_some() {
            self.worker.close_link_but_wait(number);
            return self.reconnection_failed(now);
        }
        for place in self.take_busy(number) {
            self.opening_failed(place, "a WebSocket", why.to_owned());
        }
    }

    /// A connection that has had its number of messages is closed, once all have come back.
    pub(super) fn retire_websocket(&mut self, number: usize, now: u64) {
        let link = &mut self.worker.links[number];
        let Some(Carrier::WebSocket(session)) = &mut link.session else {
            return;
        };
        if session.flow.is_ending() && session.flow.active() == 0 && link.retires_at.is_none() {
            session.flow.close(CloseCode::NORMAL);
            link.retires_at = Some(now + CLOSE_NS);
            self.worker.dirty(number);
        }
    }

    /// Opens WebSockets again that could not be opened before, and closes those whose server does not
    /// answer the close frame.
    pub(in crate::worker) fn scan_websockets(&mut self, connect_ns: u64) {
        for number in 0..self.worker.links.len() {
            let link = &self.worker.links[number];
            if link.target != self.target || !self.worker.is_websocket(number) {
                continue;
            }
            let link = &self.worker.links[number];
            let is_late = link.retires_at.is_some_and(|at| self.now > at);
            if is_late {
                self.websocket_lost(number, RETIRED, CLOSED);
                continue;
            }
            if self.is_mute(number) {
                self.websocket_lost(number, "silent", "no echo in time");
                continue;
            }
            let link = &self.worker.links[number];
            let is_lost = link.lost.is_some() && self.now < self.window.end;
            match link.state {
                LinkState::Closed if is_lost => self.open_link(number, self.now),
                LinkState::Connecting if is_lost && self.now > link.since + connect_ns => {
                    self.websocket_refused(number, "none in time");
                }
                _ => {}
            }
        }
    }
}
