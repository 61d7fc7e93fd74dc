//! Ends of exchanges and of clients that are not the usual ones.

use net::{Buf, ConnId, Io};

use super::{Pair, Phase};
use crate::engine::side::{Role, Side};
use crate::engine::worker::Worker;
use crate::http::{Refusal, small_answer};

/// A client that was told that its connection ends may send so much more, bytes.
const LATE_BYTES_MAX: u64 = 1024 * 1024;

/// What is logged of a request whose client left before its answer had begun; no such status is
/// ever sent. As nginx has it.
const CLIENT_LEFT: u16 = 499;

/// What is wrong with a back end's connection during an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It has ended, or was reset.
    Gone,
    /// Its back end was found dead while the answer was awaited.
    Dead,
    /// The answer cannot be passed on.
    Bad,
    /// The answer does not come, or the request is not taken.
    Late,
}

impl<I: Io> Worker<I> {
    /// A back end has ended its side.
    pub(in crate::engine) fn back_ended(&mut self, upstream: ConnId) {
        let side = &self.sides[upstream.slot()];
        let Some(client) = side.peer else {
            return self.close_back(upstream);
        };
        let pair = Pair { client, upstream };
        let ends = side
            .back
            .as_ref()
            .and_then(|back| back.body)
            .is_some_and(|body| body.ends_with_connection());
        match ends {
            true => self.http_finish(pair),
            false => self.http_trouble(pair, Trouble::Gone),
        }
    }

    /// A back end's connection was reset.
    pub(in crate::engine) fn back_failed(&mut self, upstream: ConnId) {
        match self.side(upstream).peer {
            Some(client) => self.http_trouble(Pair { client, upstream }, Trouble::Gone),
            None => self.close_back(upstream),
        }
    }

    /// An exchange cannot go on. The request is sent again where that can be done without anybody
    /// noticing; otherwise the client is told, or sees that its answer was cut off.
    pub(super) fn http_trouble(&mut self, pair: Pair, trouble: Trouble) {
        let Pair { client, upstream } = pair;
        let side = &self.sides[upstream.slot()];
        let (service, backend) = (side.service as usize, side.backend as usize);
        let (reused, heard) = match &side.back {
            Some(back) => (back.reused, back.heard),
            None => (false, true),
        };
        self.close_back(upstream);
        let side = &mut self.sides[client.slot()];
        side.peer = None;
        let Some(front) = side.front.as_deref_mut() else {
            return;
        };
        let gone = trouble == Trouble::Gone;
        let repeat = (gone || trouble == Trouble::Dead) && !heard && front.can_repeat();
        if repeat && reused && gone {
            // Its back end closed it before the request came there: that says nothing of it.
            front.phase = Phase::Seeking;
            return self.dial(client, backend);
        }
        let begun = front.begun;
        front.failed = true;
        if !(gone && reused && !heard) && trouble != Trouble::Dead {
            self.http_note(service, backend, false);
        }
        self.give_place_back(service, backend);
        if begun {
            self.http_log(client, Some(backend));
            return self.http_cut_off(client);
        }
        if repeat {
            if let Some(known) = &mut self.side(client).client {
                known.tried.push(backend as u32);
            }
            return self.http_seek(client);
        }
        match trouble {
            Trouble::Late => self.http_answer_self(client, 504, "the back end does not answer"),
            Trouble::Gone | Trouble::Dead => {
                self.http_answer_self(client, 502, "the back end ended without an answer");
            }
            Trouble::Bad => {
                self.http_answer_self(client, 502, "the back end's answer is malformed")
            }
        }
    }

    /// Ends a client whose answer was cut off: it gets what there is, then a reset, so that it
    /// does not take it for a whole one.
    fn http_cut_off(&mut self, client: ConnId) {
        if self.io.queued(client) == 0 {
            return self.http_end(client, true);
        }
        let now_ns = self.now();
        self.io.pause(client);
        let side = self.side(client);
        (side.role, side.since_ns, side.front) = (Role::HttpCut, now_ns, None);
    }

    /// Refuses a request: what it said cannot be passed on, and where the next one begins is not
    /// known.
    pub(super) fn http_refuse(&mut self, client: ConnId, refusal: Refusal) {
        let service = self.side(client).service as usize;
        self.state(service).bad_requests.add(1);
        let text = refusal.to_string();
        self.http_answer_self(client, refusal.status(), &text);
    }

    /// There is no back end for a client, or no place in the queue.
    pub(in crate::engine) fn http_turn_away(&mut self, client: ConnId) {
        self.http_answer_self(client, 503, "no back end is available");
    }

    /// Ends an exchange, if there is one, and answers in the back end's place, unless it has begun
    /// to answer already. The client's connection is closed behind it.
    pub(super) fn http_answer_self(&mut self, client: ConnId, status: u16, text: &str) {
        self.http_leave(client);
        let Some(front) = self.side(client).front.as_deref_mut() else {
            return;
        };
        if front.begun {
            return self.http_cut_off(client);
        }
        front.status = status;
        let Worker {
            io, sides, scratch, ..
        } = self;
        scratch.clear();
        small_answer(status, text.as_bytes(), scratch);
        io.send_copy(client, scratch);
        let side = &mut sides[client.slot()];
        side.sends = side.sends.wrapping_add(1);
        if let Some(front) = side.front.as_deref_mut() {
            front.answer_bytes = scratch.len() as u64;
        }
        self.http_log(client, None);
        self.http_close(client);
    }

    /// Takes a client out of its exchange, or out of the queue.
    fn http_leave(&mut self, client: ConnId) {
        let side = &mut self.sides[client.slot()];
        let (service, backend) = (side.service as usize, side.backend as usize);
        if let Some(upstream) = side.peer.take() {
            match self.side(upstream).role {
                Role::HttpBack => self.close_back(upstream),
                _ => {
                    *self.side(upstream) = Side::default();
                    self.io.close(upstream);
                }
            }
            self.give_place_back(service, backend);
        }
        let known = self.side(client).client.as_deref_mut();
        if known.and_then(|known| known.queued_ns.take()).is_some() {
            self.left_queue(service, client);
        }
    }

    /// Closes a client once it has got everything that was sent. What it still sends is dropped
    /// for a while: closing at once would reset the connection, and the client might never see
    /// its answer.
    pub(super) fn http_close(&mut self, client: ConnId) {
        let now_ns = self.now();
        let Worker { io, sides, .. } = self;
        let side = &mut sides[client.slot()];
        (side.role, side.front) = (Role::HttpClosing, None);
        (side.since_ns, side.bytes) = (now_ns, 0);
        if std::mem::take(&mut side.paused) {
            io.resume(client);
        }
        io.finish(client);
        self.closing_ended(client, false);
    }

    /// What comes from a client whose connection ends.
    pub(in crate::engine) fn closing_data(&mut self, client: ConnId, buf: Buf) {
        let side = self.side(client);
        side.bytes += buf.len() as u64;
        let too_much = side.bytes > LATE_BYTES_MAX;
        self.io.recycle(buf);
        if too_much {
            self.http_end(client, true);
        }
    }

    /// A client whose connection ends has ended its side, or has got everything.
    pub(in crate::engine) fn closing_ended(&mut self, client: ConnId, ended: bool) {
        let side = &mut self.sides[client.slot()];
        side.ended |= ended;
        if side.ended && self.io.queued(client) == 0 {
            self.http_end(client, false);
        }
    }

    /// A client's connection was reset: there is nobody to answer.
    pub(in crate::engine) fn front_failed(&mut self, client: ConnId) {
        let side = self.side(client);
        let peer = side.peer;
        if let Some(front) = side.front.as_deref_mut()
            && front.phase != Phase::Reading
        {
            if !front.begun {
                (front.status, front.answer_bytes) = (CLIENT_LEFT, 0);
            }
            let backend = peer.map(|upstream| self.side(upstream).backend as usize);
            self.http_log(client, backend);
        }
        self.http_end(client, false);
    }

    /// A client has ended its side.
    pub(in crate::engine) fn front_ended(&mut self, client: ConnId) {
        let side = &mut self.sides[client.slot()];
        if std::mem::replace(&mut side.ended, true) {
            return;
        }
        let Some(front) = side.front.as_deref() else {
            return;
        };
        match (front.phase, side.peer) {
            (Phase::Reading, _) => self.http_next(client),
            (Phase::Exchanging, Some(upstream)) if front.raw => self.io.finish(upstream),
            // The rest of its request will never come.
            (Phase::Exchanging | Phase::Seeking, _)
                if !front.body.is_complete() && front.input.is_empty() =>
            {
                self.front_failed(client);
            }
            // It waits for its answer.
            _ => {}
        }
    }

    /// Lets go of a client.
    pub(in crate::engine) fn http_end(&mut self, client: ConnId, reset: bool) {
        self.http_leave(client);
        let service = self.side(client).service as usize;
        *self.side(client) = Side::default();
        match reset {
            true => self.io.abort(client),
            false => self.io.close(client),
        }
        self.client_gone(service);
    }
}
