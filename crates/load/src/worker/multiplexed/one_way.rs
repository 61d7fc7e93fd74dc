//! WebSockets on which messages come that are no answers: each is an exchange that lasts.

use net::Io;
use net::ws::CloseCode;
use readings::WrongKind;

use super::{Carrier, LinkState};
use crate::exchange::conn::State;
use crate::exchange::stamp::Stamp;
use crate::exchange::{Kind, Note};
use crate::pacing::Pacer;
use crate::pacing::clock::Clock;
use crate::pacing::stop::StopRule;
use crate::worker::Worker;
use crate::worker::failures::Failure;
use crate::worker::segment::SegmentRun;

impl<I: Io, C: Clock, K: Kind> Worker<I, C, K> {
    /// Whether a link's messages are no answers.
    pub(super) fn is_one_way(&self, number: usize) -> bool {
        let target = &self.job.targets[self.links[number].target];
        target.traffic.is_one_way()
    }

    /// Ends the WebSocket of a link, which is an exchange that is given up.
    pub(super) fn leave_socket(&mut self, number: usize) {
        if let Some(Carrier::WebSocket(session)) = &mut self.links[number].session {
            session.flow.close(CloseCode::NORMAL);
            self.flush_tcp(number);
        }
        self.close_link(number);
    }
}

impl<I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'_, I, C, K, P, S> {
    /// The WebSocket of a link has opened, for the exchange that waits for it.
    pub(super) fn socket_opened(
        &mut self,
        number: usize,
        is_own_clock: bool,
        (arrived, now): (u64, u64),
    ) {
        self.send_waiting(number, now);
        let span = self.span();
        let worker = &mut *self.worker;
        let link = &worker.links[number];
        let conn = &mut worker.conns[link.places.start];
        if conn.state != State::Waiting {
            return worker.leave_socket(number);
        }
        // Its request is the handshake.
        conn.sent = link.since;
        conn.first_byte = arrived.max(conn.sent);
        let times = conn.times(conn.first_byte);
        let recorder = &mut worker.recorders[self.recorder];
        let is_own_clock = is_own_clock || self.topics.is_some();
        conn.exchange.socket_opened(is_own_clock, times, |note| {
            Self::record_note(recorder, span, times, note);
        });
        self.joined(number);
    }

    pub(super) fn message_came(
        &mut self,
        number: usize,
        stamp: Option<Stamp>,
        bytes: u64,
        arrived: u64,
    ) {
        let span = self.span();
        let worker = &mut *self.worker;
        let link = &mut worker.links[number];
        let conn = &mut worker.conns[link.places.start];
        let is_expected = match (&self.topics, stamp) {
            (Some(topics), Some(stamp)) => topics.expects(number, stamp.number),
            // Of others in the topic, or of the server itself.
            (Some(_), None) => false,
            (None, _) => true,
        };
        if conn.state != State::Waiting || !is_expected {
            return;
        }
        link.fruitless = 0;
        conn.bytes += bytes;
        let times = conn.times(arrived.max(conn.sent));
        let recorder = &mut worker.recorders[self.recorder];
        let topics = &mut self.topics;
        conn.exchange.take_message(stamp, bytes, times, |note| {
            if let (Note::Message(message), Some(topics)) = (note, &mut *topics)
                && !message.is_repeated
            {
                topics.reached(number);
            }
            Self::record_note(recorder, span, times, note);
        });
    }

    /// The WebSocket of a link is over, in this way: complete if the server has closed it as the
    /// format says, and was the only one to send.
    pub(super) fn one_way_over(&mut self, number: usize, how: &str, found: &str) {
        let now = self.worker.clock.now_ns();
        let link = &self.worker.links[number];
        let (is_own, place) = (link.target == self.target, link.places.start);
        let closed = match &link.session {
            Some(Carrier::WebSocket(session)) => session.flow.closed(),
            _ => None,
        };
        let is_normal = matches!(closed, Some(None | Some(CloseCode::NORMAL)));
        self.worker.close_link(number);
        if !is_own || self.worker.conns[place].state != State::Waiting {
            return;
        }
        if is_normal && self.topics.is_none() {
            return self.complete(place, (now, now), false);
        }
        self.exchange_failed(place, now, how);
        // Nothing of it is to be cancelled.
        self.worker.conns[place].state = State::Idle;
        let expected = "a WebSocket that goes on";
        let failure = Failure::new(|e| &mut e.read, WrongKind::Connection, expected, found);
        self.fail_and_free(place, failure);
    }

    /// Whether a link that is closed at the start of a segment has to be opened for itself: an
    /// exchange opens its own.
    pub(super) fn opens_itself(&self, number: usize) -> bool {
        let link = &self.worker.links[number];
        let is_closed = link.state == LinkState::Closed;
        is_closed && (!self.worker.is_one_way(number) || !link.waiting.is_empty())
    }
}
