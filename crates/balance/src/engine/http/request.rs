//! Data from clients: heads and bodies of requests.

use net::{Buf, ConnId, Io};

use super::plan::{Chooser, Plan, rewrite};
use super::{COPY_MAX, Downstream, INPUT_MAX, Pair, Phase, QUEUE_MAX, empty, make_room, queue_max};
use crate::engine::worker::Worker;
use crate::engine::worker::connection::{Client, Role};
use crate::http::{Rewritten, read_request};

impl<I: Io> Worker<I> {
    /// Starts waiting for a client's first request.
    pub(in crate::engine) fn http_begin(&mut self, client: ConnId) {
        let now_ns = self.now();
        let connection = self.connection(client);
        connection.role = Role::HttpDownstream;
        connection.since_ns = now_ns;
        connection.downstream = Some(Box::new(Downstream::new(now_ns)));
    }

    pub(in crate::engine) fn http_request(&mut self, client: ConnId, buf: Buf) {
        let connection = &mut self.connections[client.slot()];
        connection.bytes += buf.len() as u64;
        let Some(downstream) = connection.downstream.as_deref_mut() else {
            return self.io.recycle(buf);
        };
        match downstream.phase {
            Phase::Reading if downstream.input.is_empty() && self.io.queued(client) < QUEUE_MAX => {
                return self.read_head(client, buf);
            }
            Phase::Exchanging if downstream.raw => {
                if let Some(server) = connection.peer {
                    return self.forward_raw(Pair { client, server }, buf);
                }
            }
            Phase::Exchanging if downstream.input.is_empty() && !downstream.body.is_complete() => {
                if let Some(server) = connection.peer {
                    return self.forward_body(Pair { client, server }, buf);
                }
            }
            _ => {}
        }
        let connection = &mut self.connections[client.slot()];
        if let Some(downstream) = connection.downstream.as_deref_mut() {
            make_room(&mut downstream.input, buf.len());
            downstream.input.extend_from_slice(self.io.bytes(&buf));
            let reading = downstream.phase == Phase::Reading && self.io.queued(client) < QUEUE_MAX;
            if !reading && downstream.input.len() >= INPUT_MAX && !connection.paused {
                connection.paused = true;
                self.io.pause(client);
            }
        }
        self.io.recycle(buf);
        self.next_input(client);
    }

    /// Parses a head in place, and forwards the request from its buffer.
    fn read_head(&mut self, client: ConnId, buf: Buf) {
        let now_ns = self.now();
        let plan = self.with_chooser(client, now_ns, |chooser, downstream, client_state| {
            let bytes = chooser.io.bytes(&buf);
            downstream.began_ns = now_ns;
            let plan = chooser.plan(downstream, client_state, bytes);
            match &plan {
                Ok(Some(plan)) => downstream.input.extend_from_slice(&bytes[plan.end..]),
                Ok(None) => {
                    downstream.input.extend_from_slice(bytes);
                    downstream.scan.ready(bytes);
                }
                Err(_) => {}
            }
            plan
        });
        match plan {
            Some(Ok(Some(plan))) => self.forward_request(client, plan, Some(buf)),
            Some(Ok(None)) => {
                // Starts the time limit of the head.
                self.connections[client.slot()].since_ns = now_ns;
                self.io.recycle(buf);
            }
            Some(Err(refusal)) => {
                self.io.recycle(buf);
                self.refuse_request(client, refusal);
            }
            None => self.io.recycle(buf),
        }
    }

    /// Lends what planning needs. The client's own state is taken out meanwhile, as planning reads
    /// other entries of the table.
    #[inline]
    fn with_chooser<T>(
        &mut self,
        client: ConnId,
        now_ns: u64,
        act: impl FnOnce(&mut Chooser<'_, I>, &mut Downstream, &mut Client) -> T,
    ) -> Option<T> {
        let slot = client.slot();
        let service = self.connections[slot].service as usize;
        let mut downstream = self.connections[slot].downstream.take()?;
        let Some(mut client_state) = self.connections[slot].client.take() else {
            self.connections[slot].downstream = Some(downstream);
            return None;
        };
        let mut chooser = Chooser {
            io: &self.io,
            service_worker: &mut self.services[service],
            state: &self.shared.services[service],
            connections: &self.connections,
            rng: &mut self.rng,
            now_ns,
            scratch: &mut self.scratch,
            values: &mut self.values,
        };
        let result = act(&mut chooser, &mut downstream, &mut client_state);
        let connection = &mut self.connections[slot];
        (connection.downstream, connection.client) = (Some(downstream), Some(client_state));
        Some(result)
    }

    /// Goes on with held input: the next request, or the rest of the body.
    pub(super) fn next_input(&mut self, client: ConnId) {
        let now_ns = self.now();
        let slot = client.slot();
        let connection = &mut self.connections[slot];
        let service = connection.service as usize;
        let Some(downstream) = connection.downstream.as_deref_mut() else {
            return;
        };
        match downstream.phase {
            Phase::Reading => {}
            Phase::Exchanging => return self.forward_held_body(client),
            Phase::Seeking => return,
        }
        if connection.ended && !self.services[service].half_close() {
            return self.http_close(client);
        }
        if downstream.input.is_empty() {
            if connection.ended {
                return self.http_close(client);
            }
            return self.resume_client(client);
        }
        // Responses to a client that does not read must not pile up.
        if self.io.queued(client) >= QUEUE_MAX {
            return;
        }
        if !downstream.scan.ready(&downstream.input) {
            return match connection.ended {
                true => self.http_close(client),
                false => self.resume_client(client),
            };
        }
        let plan = self.with_chooser(client, now_ns, |chooser, downstream, client_state| {
            let mut input = std::mem::take(&mut downstream.input);
            let plan = chooser.plan(downstream, client_state, &input);
            if let Ok(Some(plan)) = &plan {
                // On a pooled connection it is sent now; otherwise it stays in `request`.
                if let Some((_, how)) = plan.kept {
                    let from = match how {
                        Rewritten::AsIs => plan.begin,
                        _ => plan.head_end,
                    };
                    chooser.scratch.extend_from_slice(&input[from..plan.end]);
                }
                input.drain(..plan.end);
                if input.is_empty() {
                    empty(&mut input);
                }
            }
            downstream.input = input;
            plan
        });
        match plan {
            Some(Ok(Some(plan))) => {
                self.forward_request(client, plan, None);
                self.resume_client(client);
            }
            Some(Ok(None)) if self.connections[slot].ended => self.http_close(client),
            Some(Ok(None)) => self.resume_client(client),
            Some(Err(refusal)) => self.refuse_request(client, refusal),
            None => {}
        }
    }

    /// Carries out the plan. Without `buf`, all that is sent is in `scratch`.
    fn forward_request(&mut self, client: ConnId, plan: Plan, buf: Option<Buf>) {
        let Some((server, how)) = plan.kept else {
            if let Some(buf) = buf {
                self.io.recycle(buf);
            }
            self.connection(client).downstream_phase(Phase::Seeking);
            return self.apply_choice(client, plan.choice);
        };
        let pair = Pair { client, server };
        self.start_exchange(pair);
        let bytes = plan.end - plan.begin;
        if self.connection(server).traced {
            self.trace_request(server, &plan, how, buf.as_ref());
        }
        let mut sends = 1;
        match (buf, how) {
            (None, _) => self.io.send_copy(server, &self.scratch),
            (Some(buf), Rewritten::AsIs) => self.io.forward_part(server, buf, plan.begin..plan.end),
            (Some(buf), _) if plan.end - plan.head_end <= COPY_MAX => {
                self.scratch
                    .extend_from_slice(&self.io.bytes(&buf)[plan.head_end..plan.end]);
                self.io.recycle(buf);
                self.io.send_copy(server, &self.scratch);
            }
            (Some(buf), _) => {
                self.io.send_copy(server, &self.scratch);
                self.io.forward_part(server, buf, plan.head_end..plan.end);
                sends = 2;
            }
        }
        self.count_sent(pair, bytes, sends);
    }

    /// Copies the sent part of a request to the traffic log.
    #[cold]
    fn trace_request(&self, server: ConnId, plan: &Plan, how: Rewritten, buf: Option<&Buf>) {
        let from = match (buf, how) {
            (Some(_), Rewritten::AsIs) => plan.begin,
            _ => {
                self.trace_bytes(server, true, &self.scratch);
                plan.head_end
            }
        };
        if let Some(buf) = buf {
            self.trace_bytes(server, true, &self.io.bytes(buf)[from..plan.end]);
        }
    }

    /// Sends the held request on a connection that was just opened or taken.
    pub(super) fn send_held_request(&mut self, pair: Pair) {
        let connection = &self.connections[pair.client.slot()];
        let (Some(downstream), Some(client_state)) = (
            connection.downstream.as_deref(),
            connection.client.as_deref(),
        ) else {
            return;
        };
        let service_worker = &self.services[connection.service as usize];
        let backend = self.connections[pair.server.slot()].backend as usize;
        let (Some(http), Ok(Some(head))) =
            (&service_worker.http, read_request(&downstream.request))
        else {
            return;
        };
        self.scratch.clear();
        let backend_slot = &http.backends[backend];
        let how = rewrite(
            http,
            backend_slot,
            client_state,
            &head,
            &mut self.scratch,
            &mut self.values,
        );
        let from = match how {
            Rewritten::AsIs => 0,
            _ => head.len(),
        };
        self.scratch.extend_from_slice(&downstream.request[from..]);
        self.io.send_copy(pair.server, &self.scratch);
        let bytes = self.scratch.len();
        if self.connection(pair.server).traced {
            self.trace_bytes(pair.server, true, &self.scratch);
        }
        empty(&mut self.scratch);
        self.count_sent(pair, bytes, 1);
        self.forward_held_body(pair.client);
    }

    /// Counts what was sent, and pauses the client while the back end does not drain.
    fn count_sent(&mut self, pair: Pair, bytes: usize, sends: u32) {
        let connection = &mut self.connections[pair.server.slot()];
        connection.sends = connection.sends.wrapping_add(sends);
        if let Some(upstream) = &mut connection.upstream {
            upstream.sent += bytes as u64;
        }
        let connection = &mut self.connections[pair.client.slot()];
        if self.io.queued(pair.server) >= queue_max(&self.io) && !connection.paused {
            connection.paused = true;
            self.io.pause(pair.client);
        }
    }

    /// Forwards a buffer of a connection that is not inspected further.
    fn forward_raw(&mut self, pair: Pair, buf: Buf) {
        let bytes = buf.len();
        if let Some(downstream) = self.connection(pair.client).downstream.as_deref_mut() {
            // Cannot be sent again: the back end may have read any part of it.
            downstream.whole = false;
        }
        if self.connection(pair.server).traced {
            self.trace_bytes(pair.server, true, self.io.bytes(&buf));
        }
        self.io.forward(pair.server, buf);
        self.count_sent(pair, bytes, 1);
    }

    fn forward_body(&mut self, pair: Pair, buf: Buf) {
        let connection = &mut self.connections[pair.client.slot()];
        let (Some(downstream), Some(http)) = (
            connection.downstream.as_deref_mut(),
            &self.services[connection.service as usize].http,
        ) else {
            return self.io.recycle(buf);
        };
        let bytes = self.io.bytes(&buf);
        let taken = match downstream.body.take_guarded(bytes, &http.guarded) {
            Ok(taken) => taken.bytes,
            Err(refusal) => {
                self.io.recycle(buf);
                return self.refuse_request(pair.client, refusal);
            }
        };
        downstream.keep(&bytes[..taken]);
        downstream.input.extend_from_slice(&bytes[taken..]);
        if self.connection(pair.server).traced {
            self.trace_bytes(pair.server, true, &self.io.bytes(&buf)[..taken]);
        }
        self.io.forward_part(pair.server, buf, 0..taken);
        self.count_sent(pair, taken, 1);
    }

    /// Forwards the body received before the back end was connected.
    fn forward_held_body(&mut self, client: ConnId) {
        let connection = &mut self.connections[client.slot()];
        let (Some(server), Some(downstream), Some(http)) = (
            connection.peer,
            connection.downstream.as_deref_mut(),
            &self.services[connection.service as usize].http,
        ) else {
            return;
        };
        if downstream.input.is_empty() || (!downstream.raw && downstream.body.is_complete()) {
            return self.resume_client(client);
        }
        let taken = match downstream.raw {
            true => Ok(downstream.input.len()),
            false => downstream
                .body
                .take_guarded(&downstream.input, &http.guarded)
                .map(|taken| taken.bytes),
        };
        let taken = match taken {
            Ok(taken) => taken,
            Err(refusal) => return self.refuse_request(client, refusal),
        };
        let mut input = std::mem::take(&mut downstream.input);
        // As in `forward_raw`.
        downstream.whole &= !downstream.raw;
        downstream.keep(&input[..taken]);
        self.io.send_copy(server, &input[..taken]);
        if self.connection(server).traced {
            self.trace_bytes(server, true, &input[..taken]);
        }
        input.drain(..taken);
        if input.is_empty() {
            empty(&mut input);
        }
        if let Some(downstream) = self.connection(client).downstream.as_deref_mut() {
            downstream.input = input;
        }
        self.count_sent(Pair { client, server }, taken, 1);
        let connection = &self.connections[client.slot()];
        let cut = |downstream: &Downstream| !downstream.raw && !downstream.body.is_complete();
        if connection.ended && connection.downstream_is(cut) {
            // The rest of the request will not come.
            return self.downstream_reset(client);
        }
        self.resume_client(client);
    }

    /// Resumes reading a client if there is room.
    pub(super) fn resume_client(&mut self, client: ConnId) {
        let connection = &mut self.connections[client.slot()];
        let Some(downstream) = connection
            .downstream
            .as_deref()
            .filter(|_| connection.paused)
        else {
            return;
        };
        let room = downstream.input.len() < INPUT_MAX;
        let taken = match (downstream.phase, connection.peer) {
            (Phase::Exchanging, Some(server)) => self.io.queued(server) < QUEUE_MAX,
            _ => true,
        };
        if room && taken {
            connection.paused = false;
            self.io.resume(client);
        }
    }
}
