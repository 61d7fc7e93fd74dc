//! What clients send: heads that begin exchanges, and bodies.

use net::{Buf, ConnId, Io};

use super::choosing::{Chooser, Plan, rewrite};
use super::{COPY_MAX, Front, INPUT_MAX, Pair, Phase, QUEUE_MAX, empty, queue_max};
use crate::engine::side::Role;
use crate::engine::worker::Worker;
use crate::http::{Rewritten, read_request};

impl<I: Io> Worker<I> {
    /// A client has come in: its first request is awaited.
    pub(in crate::engine) fn http_begin(&mut self, client: ConnId) {
        let now_ns = self.now();
        let side = self.side(client);
        side.role = Role::HttpFront;
        side.since_ns = now_ns;
        side.front = Some(Box::new(Front::new(now_ns)));
    }

    /// A client has sent something.
    pub(in crate::engine) fn http_request(&mut self, client: ConnId, buf: Buf) {
        let side = &mut self.sides[client.slot()];
        side.bytes += buf.len() as u64;
        let Some(front) = side.front.as_deref_mut() else {
            return self.io.recycle(buf);
        };
        match front.phase {
            Phase::Reading if front.input.is_empty() && self.io.queued(client) < QUEUE_MAX => {
                return self.http_head(client, buf);
            }
            Phase::Exchanging if front.raw => {
                if let Some(upstream) = side.peer {
                    return self.http_raw(Pair { client, upstream }, buf);
                }
            }
            Phase::Exchanging if front.input.is_empty() && !front.body.is_complete() => {
                if let Some(upstream) = side.peer {
                    return self.http_body(Pair { client, upstream }, buf);
                }
            }
            _ => {}
        }
        let Worker { io, sides, .. } = self;
        let side = &mut sides[client.slot()];
        if let Some(front) = side.front.as_deref_mut() {
            front.input.extend_from_slice(io.bytes(&buf));
            let reading = front.phase == Phase::Reading && io.queued(client) < QUEUE_MAX;
            if !reading && front.input.len() >= INPUT_MAX && !side.paused {
                side.paused = true;
                io.pause(client);
            }
        }
        io.recycle(buf);
        self.http_next(client);
    }

    /// Reads a head at the front of a buffer, and sends the request on from there.
    fn http_head(&mut self, client: ConnId, buf: Buf) {
        let now_ns = self.now();
        let Worker {
            io,
            sides,
            posts,
            shared,
            rng,
            scratch,
            values,
            ..
        } = self;
        let slot = client.slot();
        let service = sides[slot].service as usize;
        // Out of the table while others of it are looked at.
        let (Some(mut front), Some(mut known)) =
            (sides[slot].front.take(), sides[slot].client.take())
        else {
            return io.recycle(buf);
        };
        let bytes = io.bytes(&buf);
        front.began_ns = now_ns;
        let mut chooser = Chooser {
            post: &mut posts[service],
            state: &shared.services[service],
            sides,
            rng,
            now_ns,
            scratch,
            values,
        };
        let plan = chooser.plan(&mut front, &mut known, bytes);
        match &plan {
            Ok(Some(plan)) => front.input.extend_from_slice(&bytes[plan.end..]),
            Ok(None) => {
                front.input.extend_from_slice(bytes);
                front.scan.ready(bytes);
            }
            Err(_) => {}
        }
        let side = &mut sides[slot];
        (side.front, side.client) = (Some(front), Some(known));
        match plan {
            Ok(Some(plan)) => self.http_go(client, plan, Some(buf)),
            Ok(None) => {
                // The time limit of the head begins.
                self.sides[slot].since_ns = now_ns;
                self.io.recycle(buf);
            }
            Err(refusal) => {
                self.io.recycle(buf);
                self.http_refuse(client, refusal);
            }
        }
    }

    /// Goes on with what was received before: the next request, or the body of this one.
    pub(super) fn http_next(&mut self, client: ConnId) {
        let now_ns = self.now();
        let slot = client.slot();
        let side = &mut self.sides[slot];
        let service = side.service as usize;
        let Some(front) = side.front.as_deref_mut() else {
            return;
        };
        match front.phase {
            Phase::Reading => {}
            Phase::Exchanging => return self.http_body_next(client),
            Phase::Seeking => return,
        }
        if front.input.is_empty() {
            if side.ended {
                return self.http_close(client);
            }
            return self.http_unpause(client);
        }
        // What waits for a client that does not read must not grow.
        if self.io.queued(client) >= QUEUE_MAX {
            return;
        }
        if !front.scan.ready(&front.input) {
            return match side.ended {
                true => self.http_close(client),
                false => self.http_unpause(client),
            };
        }
        let Worker {
            sides,
            posts,
            shared,
            rng,
            scratch,
            values,
            ..
        } = self;
        let (Some(mut front), Some(mut known)) =
            (sides[slot].front.take(), sides[slot].client.take())
        else {
            return;
        };
        let mut input = std::mem::take(&mut front.input);
        let mut chooser = Chooser {
            post: &mut posts[service],
            state: &shared.services[service],
            sides,
            rng,
            now_ns,
            scratch,
            values,
        };
        let plan = chooser.plan(&mut front, &mut known, &input);
        if let Ok(Some(plan)) = &plan {
            // A connection that was kept gets it now; otherwise it is kept in `request`.
            if plan.kept.is_some_and(|(_, how)| how == Rewritten::AsIs) {
                scratch.extend_from_slice(&input[plan.begin..plan.end]);
            } else if plan.kept.is_some() {
                scratch.extend_from_slice(&input[plan.head_end..plan.end]);
            }
            input.drain(..plan.end);
            if input.is_empty() {
                empty(&mut input);
            }
        }
        front.input = input;
        let side = &mut sides[slot];
        (side.front, side.client) = (Some(front), Some(known));
        match plan {
            Ok(Some(plan)) => {
                self.http_go(client, plan, None);
                self.http_unpause(client);
            }
            Ok(None) if self.sides[slot].ended => self.http_close(client),
            Ok(None) => self.http_unpause(client),
            Err(refusal) => self.http_refuse(client, refusal),
        }
    }

    /// Does as planned. Without a buffer everything that is to be sent is in `scratch`.
    fn http_go(&mut self, client: ConnId, plan: Plan, buf: Option<Buf>) {
        let Some((upstream, how)) = plan.kept else {
            if let Some(buf) = buf {
                self.io.recycle(buf);
            }
            self.side(client).front_phase(Phase::Seeking);
            return self.settle(client, plan.choice);
        };
        let pair = Pair { client, upstream };
        self.http_pair(pair);
        let bytes = plan.end - plan.begin;
        if self.side(upstream).traced {
            self.trace_request(upstream, &plan, how, buf.as_ref());
        }
        let Worker { io, scratch, .. } = self;
        let mut sends = 1;
        match (buf, how) {
            (None, _) => io.send_copy(upstream, scratch),
            (Some(buf), Rewritten::AsIs) => io.forward_part(upstream, buf, plan.begin..plan.end),
            (Some(buf), _) if plan.end - plan.head_end <= COPY_MAX => {
                scratch.extend_from_slice(&io.bytes(&buf)[plan.head_end..plan.end]);
                io.recycle(buf);
                io.send_copy(upstream, scratch);
            }
            (Some(buf), _) => {
                io.send_copy(upstream, scratch);
                io.forward_part(upstream, buf, plan.head_end..plan.end);
                sends = 2;
            }
        }
        self.sent_up(pair, bytes, sends);
    }

    /// Has what is sent of a request copied to a traffic log.
    #[cold]
    fn trace_request(&self, upstream: ConnId, plan: &Plan, how: Rewritten, buf: Option<&Buf>) {
        let from = match (buf, how) {
            (Some(_), Rewritten::AsIs) => plan.begin,
            _ => {
                self.trace_bytes(upstream, true, &self.scratch);
                plan.head_end
            }
        };
        if let Some(buf) = buf {
            self.trace_bytes(upstream, true, &self.io.bytes(buf)[from..plan.end]);
        }
    }

    /// Sends the request that is kept to a connection that was just opened or taken.
    pub(super) fn http_send_kept(&mut self, pair: Pair) {
        let Worker {
            io,
            sides,
            posts,
            scratch,
            values,
            ..
        } = self;
        let side = &sides[pair.client.slot()];
        let (Some(front), Some(known)) = (side.front.as_deref(), side.client.as_deref()) else {
            return;
        };
        let post = &posts[side.service as usize];
        let backend = sides[pair.upstream.slot()].backend as usize;
        let (Some(http), Ok(Some(head))) = (&post.http, read_request(&front.request)) else {
            return;
        };
        scratch.clear();
        let place = &http.places[backend];
        let how = rewrite(http, place, known, &head, scratch, values);
        let from = match how {
            Rewritten::AsIs => 0,
            _ => head.len(),
        };
        scratch.extend_from_slice(&front.request[from..]);
        io.send_copy(pair.upstream, scratch);
        let bytes = scratch.len();
        if self.side(pair.upstream).traced {
            self.trace_bytes(pair.upstream, true, &self.scratch);
        }
        empty(&mut self.scratch);
        self.sent_up(pair, bytes, 1);
        self.http_body_next(pair.client);
    }

    /// Counts what was sent to a back end, and stops reading its client while it takes too little.
    fn sent_up(&mut self, pair: Pair, bytes: usize, sends: u32) {
        let Worker { io, sides, .. } = self;
        let side = &mut sides[pair.upstream.slot()];
        side.sends = side.sends.wrapping_add(sends);
        if let Some(back) = &mut side.back {
            back.sent += bytes as u64;
        }
        let side = &mut sides[pair.client.slot()];
        if io.queued(pair.upstream) >= queue_max(io) && !side.paused {
            side.paused = true;
            io.pause(pair.client);
        }
    }

    /// Passes on a buffer of a connection whose first head alone was looked at.
    fn http_raw(&mut self, pair: Pair, buf: Buf) {
        let bytes = buf.len();
        if let Some(front) = self.side(pair.client).front.as_deref_mut() {
            // It could not be sent again: what of it was read is not known.
            front.whole = false;
        }
        if self.side(pair.upstream).traced {
            self.trace_bytes(pair.upstream, true, self.io.bytes(&buf));
        }
        self.io.forward(pair.upstream, buf);
        self.sent_up(pair, bytes, 1);
    }

    /// Passes on a buffer of a body.
    fn http_body(&mut self, pair: Pair, buf: Buf) {
        let Worker { io, sides, .. } = self;
        let Some(front) = sides[pair.client.slot()].front.as_deref_mut() else {
            return io.recycle(buf);
        };
        let bytes = io.bytes(&buf);
        let taken = match front.body.take(bytes) {
            Ok(taken) => taken.bytes,
            Err(refusal) => {
                io.recycle(buf);
                return self.http_refuse(pair.client, refusal);
            }
        };
        front.keep(&bytes[..taken]);
        front.input.extend_from_slice(&bytes[taken..]);
        if self.side(pair.upstream).traced {
            self.trace_bytes(pair.upstream, true, &self.io.bytes(&buf)[..taken]);
        }
        self.io.forward_part(pair.upstream, buf, 0..taken);
        self.sent_up(pair, taken, 1);
    }

    /// Passes on what was received of a body before its back end was connected.
    fn http_body_next(&mut self, client: ConnId) {
        let Worker { io, sides, .. } = self;
        let side = &mut sides[client.slot()];
        let (Some(upstream), Some(front)) = (side.peer, side.front.as_deref_mut()) else {
            return;
        };
        if front.input.is_empty() || (!front.raw && front.body.is_complete()) {
            return self.http_unpause(client);
        }
        let taken = match front.raw {
            true => Ok(front.input.len()),
            false => front.body.take(&front.input).map(|taken| taken.bytes),
        };
        let taken = match taken {
            Ok(taken) => taken,
            Err(refusal) => return self.http_refuse(client, refusal),
        };
        let mut input = std::mem::take(&mut front.input);
        front.keep(&input[..taken]);
        io.send_copy(upstream, &input[..taken]);
        if self.side(upstream).traced {
            self.trace_bytes(upstream, true, &input[..taken]);
        }
        input.drain(..taken);
        if input.is_empty() {
            empty(&mut input);
        }
        if let Some(front) = self.side(client).front.as_deref_mut() {
            front.input = input;
        }
        self.sent_up(Pair { client, upstream }, taken, 1);
        let side = &self.sides[client.slot()];
        let cut = |front: &Front| !front.raw && !front.body.is_complete();
        if side.ended && side.front.as_deref().is_some_and(cut) {
            // The rest of the request will never come.
            return self.front_failed(client);
        }
        self.http_unpause(client);
    }

    /// Reads a client again that was not read for a while, where nothing speaks against it.
    pub(super) fn http_unpause(&mut self, client: ConnId) {
        let Worker { io, sides, .. } = self;
        let side = &mut sides[client.slot()];
        let Some(front) = side.front.as_deref().filter(|_| side.paused) else {
            return;
        };
        let room = front.input.len() < INPUT_MAX;
        let taken = match (front.phase, side.peer) {
            (Phase::Exchanging, Some(upstream)) => io.queued(upstream) < QUEUE_MAX,
            _ => true,
        };
        if room && taken {
            side.paused = false;
            io.resume(client);
        }
    }
}
