//! What back ends send: heads of answers, and bodies.

use net::{Buf, ConnId, Io};

use super::edits::filled;
use super::ends::Trouble;
use super::places::{HttpPlace, HttpPost};
use super::{Back, COPY_MAX, Front, Pair, empty, queue_max};
use crate::config::Facts;
use crate::engine::side::Client;
use crate::engine::worker::Worker;
use crate::http::{
    Answered, BadAnswer, BodyPass, BodyTracker, Direction, HEAD_BYTES_MAX, INTERIM_MAX,
    ResponseHead, Rewritten, ToClient, read_response, rewrite_response,
};

/// What is to be done with an answer whose head was read.
struct Plan {
    head_end: usize,
    /// Where what belongs to the answer ends.
    end: usize,
    how: Rewritten,
    interim: bool,
    switches: bool,
    complete: bool,
}

impl<I: Io> Worker<I> {
    /// A back end has sent something.
    pub(in crate::engine) fn http_answer(&mut self, upstream: ConnId, buf: Buf) {
        let Worker { io, sides, .. } = self;
        let side = &mut sides[upstream.slot()];
        side.bytes += buf.len() as u64;
        let (Some(client), Some(back)) = (side.peer, side.back.as_deref_mut()) else {
            return io.recycle(buf);
        };
        let pair = Pair { client, upstream };
        back.heard = true;
        if side.traced {
            self.trace_bytes(upstream, false, self.io.bytes(&buf));
        }
        let Worker { io, sides, .. } = self;
        let Some(back) = sides[upstream.slot()].back.as_deref_mut() else {
            return io.recycle(buf);
        };
        if back.body.is_some() {
            return self.answer_body(pair, buf);
        }
        if !back.head.is_empty() {
            back.head.extend_from_slice(io.bytes(&buf));
            io.recycle(buf);
            return self.answer_heads(pair);
        }
        match self.answer_plan(pair, Some(&buf)) {
            // One that is followed by another is not sent on from its buffer.
            Ok(Some(plan)) if !plan.interim && !plan.switches => {
                self.answer_go(pair, plan, Some(buf));
            }
            Ok(_) => {
                let Worker { io, sides, .. } = self;
                if let Some(back) = &mut sides[upstream.slot()].back {
                    back.head.extend_from_slice(io.bytes(&buf));
                }
                io.recycle(buf);
                self.answer_heads(pair);
            }
            Err(_) => {
                self.io.recycle(buf);
                self.http_trouble(pair, Trouble::Bad);
            }
        }
    }

    /// Reads what has come of an answer in pieces: its interim heads and the final one.
    fn answer_heads(&mut self, pair: Pair) {
        loop {
            let Some(back) = self.side(pair.upstream).back.as_deref_mut() else {
                return;
            };
            if !back.scan.ready(&back.head) {
                return;
            }
            match self.answer_plan(pair, None) {
                Ok(None) => return,
                Ok(Some(plan)) if plan.switches => {
                    return self.http_switch(pair, plan.how, plan.head_end);
                }
                Ok(Some(plan)) if plan.interim => {
                    if !self.answer_interim(pair, &plan) {
                        return self.http_trouble(pair, Trouble::Bad);
                    }
                }
                Ok(Some(plan)) => return self.answer_go(pair, plan, None),
                Err(_) => return self.http_trouble(pair, Trouble::Bad),
            }
        }
    }

    /// Reads the head of an answer, and says how it goes on; a head that is changed is in
    /// `scratch` then. Its bytes are in the buffer, or were gathered.
    fn answer_plan(&mut self, pair: Pair, buf: Option<&Buf>) -> Result<Option<Plan>, BadAnswer> {
        let draining = self
            .shared
            .draining
            .load(std::sync::atomic::Ordering::Relaxed);
        let Worker {
            io,
            sides,
            posts,
            scratch,
            values,
            ..
        } = self;
        let (Some(mut back), Some(mut front)) = (
            sides[pair.upstream.slot()].back.take(),
            sides[pair.client.slot()].front.take(),
        ) else {
            return Ok(None);
        };
        let side = &sides[pair.upstream.slot()];
        let post = &posts[side.service as usize];
        let known = sides[pair.client.slot()].client.as_deref();
        let plan = match (&post.http, known) {
            (Some(http), Some(known)) => {
                let bytes = match buf {
                    Some(buf) => io.bytes(buf),
                    None => &[],
                };
                let gathered = std::mem::take(&mut back.head);
                let bytes = if buf.is_some() { bytes } else { &gathered[..] };
                let reader = Reader {
                    http,
                    place: &http.places[side.backend as usize],
                    backend: side.backend,
                    known,
                    draining,
                };
                scratch.clear();
                let plan = reader.plan(&mut front, &mut back, bytes, scratch, values);
                back.head = gathered;
                plan
            }
            _ => Ok(None),
        };
        sides[pair.upstream.slot()].back = Some(back);
        sides[pair.client.slot()].front = Some(front);
        plan
    }

    /// Passes an interim answer on. Returns whether it may be followed by another.
    fn answer_interim(&mut self, pair: Pair, plan: &Plan) -> bool {
        let Worker {
            io, sides, scratch, ..
        } = self;
        let Some(back) = sides[pair.upstream.slot()].back.as_deref_mut() else {
            return false;
        };
        back.interims += 1;
        if back.interims > INTERIM_MAX {
            return false;
        }
        match plan.how {
            Rewritten::AsIs => io.send_copy(pair.client, &back.head[..plan.head_end]),
            Rewritten::Written => io.send_copy(pair.client, scratch),
            Rewritten::Dropped => {}
        }
        back.head.drain(..plan.head_end);
        back.scan.reset();
        if plan.how != Rewritten::Dropped {
            let side = &mut sides[pair.client.slot()];
            side.sends = side.sends.wrapping_add(1);
        }
        true
    }

    /// Sends the head of the final answer on, with what of its body has come.
    fn answer_go(&mut self, pair: Pair, plan: Plan, buf: Option<Buf>) {
        let now_ns = self.now();
        let Worker {
            io,
            sides,
            posts,
            scratch,
            ..
        } = self;
        let side = &mut sides[pair.upstream.slot()];
        let (service, backend) = (side.service as usize, side.backend as usize);
        let Some(back) = side.back.as_deref_mut() else {
            return;
        };
        posts[service].answered(backend, now_ns.saturating_sub(back.sent_ns), now_ns);
        let client = pair.client;
        let sent_bytes = match plan.how {
            Rewritten::AsIs => plan.end,
            // What came of a body without its chunks is in `scratch` already.
            _ if back.pass == BodyPass::Dechunked => scratch.len(),
            _ => scratch.len() + plan.end - plan.head_end,
        };
        let body = plan.head_end..plan.end;
        let mut sends = 1;
        match (buf, plan.how) {
            (Some(buf), Rewritten::AsIs) => io.forward_part(client, buf, 0..plan.end),
            (None, Rewritten::AsIs) => io.send_copy(client, &back.head[..plan.end]),
            (Some(buf), _) if back.pass == BodyPass::Dechunked => {
                io.recycle(buf);
                io.send_copy(client, scratch);
            }
            (None, _) if back.pass == BodyPass::Dechunked => io.send_copy(client, scratch),
            (Some(buf), _) if body.len() <= COPY_MAX => {
                scratch.extend_from_slice(&io.bytes(&buf)[body]);
                io.recycle(buf);
                io.send_copy(client, scratch);
            }
            (Some(buf), _) => {
                io.send_copy(client, scratch);
                io.forward_part(client, buf, body);
                sends = 2;
            }
            (None, _) => {
                scratch.extend_from_slice(&back.head[body]);
                io.send_copy(client, scratch);
            }
        }
        empty(&mut back.head);
        empty(scratch);
        let side = &mut sides[client.slot()];
        side.sends = side.sends.wrapping_add(sends);
        let (mut well, mut raw) = (true, false);
        if let Some(front) = side.front.as_deref_mut() {
            (front.begun, front.whole) = (true, false);
            front.answer_bytes = sent_bytes as u64;
            well = front.status < 500;
            raw = front.raw;
            // It will not be sent again.
            if !front.request.is_empty() {
                empty(&mut front.request);
            }
        }
        self.http_note(service, backend, well);
        let dechunks = |back: &Back| back.pass == BodyPass::Dechunked;
        let dechunks = self.sides[pair.upstream.slot()]
            .back
            .as_deref()
            .is_some_and(dechunks);
        if raw && !dechunks {
            return self.http_relay(pair);
        }
        match plan.complete {
            true => self.http_finish(pair),
            false => self.slow_down(pair),
        }
    }

    /// Passes on a buffer of an answer's body.
    fn answer_body(&mut self, pair: Pair, buf: Buf) {
        let Worker {
            io, sides, scratch, ..
        } = self;
        let Some(back) = sides[pair.upstream.slot()].back.as_deref_mut() else {
            return io.recycle(buf);
        };
        let Some(body) = &mut back.body else {
            return io.recycle(buf);
        };
        let bytes = io.bytes(&buf);
        scratch.clear();
        let taken = match back.pass {
            BodyPass::AsIs => body.take(bytes),
            BodyPass::Dechunked => {
                body.take_content(bytes, |content| scratch.extend_from_slice(content))
            }
        };
        let Ok(taken) = taken else {
            io.recycle(buf);
            return self.http_trouble(pair, Trouble::Bad);
        };
        // What comes behind an answer belongs to nobody.
        back.keep &= taken.bytes == bytes.len();
        let sent = match back.pass {
            BodyPass::AsIs => {
                io.forward_part(pair.client, buf, 0..taken.bytes);
                taken.bytes
            }
            BodyPass::Dechunked => {
                io.recycle(buf);
                if !scratch.is_empty() {
                    io.send_copy(pair.client, scratch);
                }
                scratch.len()
            }
        };
        let side = &mut sides[pair.client.slot()];
        side.sends = side.sends.wrapping_add(1);
        if let Some(front) = side.front.as_deref_mut() {
            front.answer_bytes += sent as u64;
        }
        match taken.complete {
            true => self.http_finish(pair),
            false => self.slow_down(pair),
        }
    }

    /// Stops reading a back end while its client does not take what there is.
    fn slow_down(&mut self, pair: Pair) {
        let Worker { io, sides, .. } = self;
        let side = &mut sides[pair.upstream.slot()];
        if io.queued(pair.client) >= queue_max(io) && !side.paused {
            side.paused = true;
            io.pause(pair.upstream);
        }
    }

    /// A client has got everything that was for it.
    pub(in crate::engine) fn front_drained(&mut self, client: ConnId) {
        if let Some(upstream) = self.side(client).peer
            && std::mem::take(&mut self.side(upstream).paused)
        {
            self.io.resume(upstream);
        }
        let reading =
            |front: &Front| front.phase == super::Phase::Reading && !front.input.is_empty();
        if self.side(client).front.as_deref().is_some_and(reading) {
            self.http_next(client);
        }
    }

    /// A back end has got everything that was for it.
    pub(in crate::engine) fn back_drained(&mut self, upstream: ConnId) {
        if let Some(client) = self.side(upstream).peer {
            self.http_unpause(client);
        }
    }
}

/// What an answer's head is read with.
struct Reader<'w> {
    http: &'w HttpPost,
    place: &'w HttpPlace,
    backend: u32,
    known: &'w Client,
    draining: bool,
}

impl Reader<'_> {
    fn plan(
        &self,
        front: &mut Front,
        back: &mut Back,
        bytes: &[u8],
        scratch: &mut Vec<u8>,
        values: &mut Vec<u8>,
    ) -> Result<Option<Plan>, BadAnswer> {
        let Some(head) = read_response(bytes, front.asked)? else {
            return match bytes.len() > HEAD_BYTES_MAX {
                true => Err(crate::http::Refusal::HeadTooLarge.into()),
                false => Ok(None),
            };
        };
        let answered = self.rewrite(front, &head, scratch, values);
        let head_end = head.len();
        let mut plan = Plan {
            head_end,
            end: head_end,
            how: answered.head,
            interim: head.is_interim(),
            switches: head.switches(),
            complete: false,
        };
        if plan.interim || plan.switches {
            return Ok(Some(plan));
        }
        front.status = head.status();
        front.keep_alive &= answered.keep_alive;
        back.pass = answered.body;
        let mut body = BodyTracker::new(Direction::Answer, head.framing());
        let rest = &bytes[head_end..];
        let taken = match (front.raw, answered.body) {
            (true, BodyPass::AsIs) => crate::http::Taken {
                bytes: rest.len(),
                complete: false,
            },
            (_, BodyPass::AsIs) => body.take(rest)?,
            (_, BodyPass::Dechunked) => {
                body.take_content(rest, |content| scratch.extend_from_slice(content))?
            }
        };
        plan.end += taken.bytes;
        plan.complete = taken.complete;
        back.body = Some(body);
        back.keep = head.keep_alive() && taken.bytes == rest.len() && self.place.shares;
        Ok(Some(plan))
    }

    /// Says how the head goes to the client.
    fn rewrite(
        &self,
        front: &Front,
        head: &ResponseHead<'_>,
        scratch: &mut Vec<u8>,
        values: &mut Vec<u8>,
    ) -> Answered {
        let facts = Facts {
            client: self.known.address.ip(),
            backend: &self.place.name,
            service: &self.http.name,
        };
        // Who has the cookie already need not be given it.
        let cookie = self
            .place
            .cookie
            .as_ref()
            .and_then(|cookie| cookie.set.as_ref());
        let cookie = cookie.filter(|_| front.sticky != Some(self.backend));
        let edits = self.place.to_client.iter().chain(cookie);
        filled(edits, &facts, values, |edits| {
            let to = ToClient {
                edits,
                keep_alive: match self.http.every {
                    true => front.keep_alive && front.body.is_complete() && !self.draining,
                    false => head.keep_alive(),
                },
                minor_version: front.minor_version,
                via: None,
            };
            rewrite_response(head, &to, scratch)
        })
    }
}
