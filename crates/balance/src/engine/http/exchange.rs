//! A request's way to a back end, and what follows when its answer is complete.

use net::{ConnId, Io, proxy_protocol};

use super::choosing::choose;
use super::pool::take_idle;
use super::{Back, Front, Pair, Phase, empty};
use crate::config::model::ProxyVersion;
use crate::engine::events::Happened;
use crate::engine::post::Choice;
use crate::engine::side::{Role, Side};
use crate::engine::worker::Worker;
use crate::health::HealthEvent;
use crate::http::read_request;

impl Side {
    /// How far a client of an HTTP service is.
    pub(super) fn front_phase(&mut self, phase: Phase) {
        if let Some(front) = &mut self.front {
            front.phase = phase;
        }
    }
}

impl<I: Io> Worker<I> {
    /// A connection to a back end becomes a client's, for one exchange.
    pub(super) fn http_pair(&mut self, pair: Pair) {
        let now_ns = self.now();
        let side = &mut self.sides[pair.upstream.slot()];
        side.role = Role::HttpBack;
        side.peer = Some(pair.client);
        (side.since_ns, side.taken_ns) = (now_ns, now_ns);
        if let Some(back) = &mut side.back {
            back.begin(now_ns);
        }
        let (service, backend) = (side.service as usize, side.backend);
        let side = &mut self.sides[pair.client.slot()];
        side.peer = Some(pair.upstream);
        side.backend = backend;
        (side.since_ns, side.taken_ns) = (now_ns, now_ns);
        if let Some(front) = &mut side.front {
            front.phase = Phase::Exchanging;
            front.moved_ns = now_ns;
        }
        self.state(service).backends[backend as usize]
            .requests
            .add(1);
    }

    /// Finds a back end for a request that is kept, or a place in the queue.
    pub(in crate::engine) fn http_seek(&mut self, client: ConnId) {
        self.side(client).front_phase(Phase::Seeking);
        let choice = self.http_choose(client);
        let failed = |front: &Front| front.failed;
        let spoiled = self.side(client).front.as_deref().is_some_and(failed);
        match choice {
            // It was asked, and others could not be: that is not for lack of back ends.
            Choice::Nobody if spoiled => self.http_answer_self(client, 502, "no back end answered"),
            choice => self.settle(client, choice),
        }
    }

    /// Whether a request is bound to one back end.
    pub(in crate::engine) fn http_is_bound(&mut self, client: ConnId) -> bool {
        let front = self.side(client).front.as_deref();
        front.is_some_and(|front| front.sticky.is_some())
    }

    /// Chooses a back end for a request that is kept.
    pub(in crate::engine) fn http_choose(&mut self, client: ConnId) -> Choice {
        let now_ns = self.now();
        let Worker {
            sides,
            posts,
            shared,
            rng,
            ..
        } = self;
        let side = &sides[client.slot()];
        let (Some(front), Some(known)) = (side.front.as_deref(), side.client.as_deref()) else {
            return Choice::Nobody;
        };
        let service = side.service as usize;
        let head = read_request(&front.request).ok().flatten();
        let (post, state) = (&mut posts[service], &shared.services[service]);
        choose(post, state, front, known, head.as_ref(), now_ns, rng)
    }

    /// Sends a request that is kept to a back end, where a place was taken for it.
    pub(in crate::engine) fn http_assign(&mut self, client: ConnId, backend: usize) {
        let now_ns = self.now();
        let Worker {
            sides,
            posts,
            shared,
            ..
        } = self;
        let side = &sides[client.slot()];
        let Some(front) = side.front.as_deref() else {
            return;
        };
        let service = side.service as usize;
        let moves = shared.services[service].backends[backend].moves();
        let repeat = front.method.is_idempotent();
        let kept = posts[service].http.as_mut().and_then(|http| {
            let place = &mut http.places[backend];
            place
                .shares
                .then(|| take_idle(sides, &mut place.idle, moves, repeat, now_ns))?
        });
        match kept {
            Some(upstream) => {
                let pair = Pair { client, upstream };
                self.http_pair(pair);
                self.http_send_kept(pair);
            }
            None => self.dial(client, backend),
        }
    }

    /// A connection to a back end is open: the request goes there.
    pub(in crate::engine) fn http_connected(&mut self, client: ConnId, upstream: ConnId) {
        let pair = Pair { client, upstream };
        let now_ns = self.now();
        let Worker {
            io,
            sides,
            posts,
            shared,
            ..
        } = self;
        let side = &mut sides[pair.upstream.slot()];
        let (service, backend) = (side.service as usize, side.backend as usize);
        let known = &shared.services[service].backends[backend];
        known.connections.add(1);
        known
            .connect_times
            .note_ns(now_ns.saturating_sub(side.since_ns));
        let moves = known.moves();
        let front = &sides[client.slot()];
        let ended = front.ended;
        if let Some(client) = &front.client {
            let back = Back::new(moves, client.address, now_ns);
            if let Some(version) = posts[service].places[backend].proxy_out {
                let mut header = Vec::with_capacity(64);
                match version {
                    ProxyVersion::V1 => {
                        proxy_protocol::encode_v1(client.address, client.local, &mut header);
                    }
                    ProxyVersion::V2 => {
                        proxy_protocol::encode_v2(client.address, client.local, &mut header);
                    }
                }
                io.send_copy(pair.upstream, &header);
            }
            if posts[service].wanted {
                shared.tell(Happened::ConnectionBegun {
                    service,
                    backend,
                    client: client.address,
                });
            }
            let side = &mut sides[upstream.slot()];
            side.back = Some(Box::new(back));
            side.traced = posts[service].places[backend].traced;
        }
        self.http_pair(pair);
        self.http_send_kept(pair);
        let raw = |front: &Front| front.raw;
        if ended && self.side(pair.client).front.as_deref().is_some_and(raw) {
            self.io.finish(pair.upstream);
        }
    }

    /// An answer is complete: the back end's connection is free, and the client's turn comes.
    pub(super) fn http_finish(&mut self, pair: Pair) {
        let now_ns = self.now();
        let queued = self.io.queued(pair.upstream);
        let side = &mut self.sides[pair.upstream.slot()];
        let (service, backend) = (side.service as usize, side.backend as usize);
        let (keep, sent_ns) = match &side.back {
            Some(back) => (back.keep, back.sent_ns),
            None => (false, now_ns),
        };
        let side = &mut self.sides[pair.client.slot()];
        side.peer = None;
        side.since_ns = now_ns;
        let Some(front) = side.front.as_deref_mut() else {
            return;
        };
        front.phase = Phase::Reading;
        (front.begun, front.whole) = (false, true);
        front.answers += 1;
        front.began_ns = now_ns;
        empty(&mut front.request);
        let unread = !front.body.is_complete();
        let (keep_alive, answer_bytes) = (front.keep_alive && !unread, front.answer_bytes);
        let took_ns = now_ns.saturating_sub(sent_ns);
        self.state(service).backends[backend]
            .service_times
            .note_ns(took_ns);
        self.posts[service].finished(backend, answer_bytes, took_ns);
        self.http_log(pair.client, Some(backend));
        self.give_place_back(service, backend);
        if keep && queued == 0 && !unread {
            self.put_idle(pair.upstream);
        } else {
            self.close_back(pair.upstream);
        }
        match keep_alive {
            true => self.http_next(pair.client),
            false => self.http_close(pair.client),
        }
    }

    /// Tells of a request that is over, where anybody wants to know.
    pub(super) fn http_log(&mut self, client: ConnId, backend: Option<usize>) {
        let now_ns = self.now();
        let side = &mut self.sides[client.slot()];
        let service = side.service as usize;
        if !self.posts[service].wanted {
            return;
        }
        let (Some(front), Some(known)) = (side.front.as_deref_mut(), &side.client) else {
            return;
        };
        self.shared.tell(Happened::RequestOver {
            service,
            backend,
            client: known.address,
            line: front.line.take(),
            status: front.status,
            bytes_from: front.answer_bytes,
            duration_ns: now_ns.saturating_sub(front.began_ns),
        });
    }

    /// Notes how a back end has answered. What is not out of the ordinary takes no lock.
    pub(super) fn http_note(&mut self, service: usize, backend: usize, well: bool) {
        let state = &self.shared.services[service];
        let one = &state.backends[backend];
        if !well {
            one.answer_failures.add(1);
        }
        if state.policy.eject_after == 0 || (well && !one.is_doubted()) {
            return;
        }
        one.doubt(!well);
        let event = match well {
            true => HealthEvent::Answered,
            false => HealthEvent::AnswerFailed,
        };
        self.shared.note(service, backend, event);
    }
}
