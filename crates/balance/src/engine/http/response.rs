//! Data from back ends: heads and bodies of responses.

use net::{Buf, ConnId, Io};

use super::backend_slot::{HttpBackendSlot, HttpServiceWorker};
use super::close::UpstreamFailure;
use super::edits::filled;
use super::{COPY_MAX, Downstream, Pair, Upstream, empty, queue_max};
use crate::config::Placeholders;
use crate::engine::worker::Worker;
use crate::engine::worker::connection::Client;
use crate::http::{
    BadResponse, BodyPass, BodyTracker, Direction, HEAD_BYTES_MAX, INTERIM_MAX, ResponseHead,
    ResponseRewrite, Rewritten, ToClient, read_response, rewrite_response,
};

struct Plan {
    head_end: usize,
    /// End of what belongs to the response.
    end: usize,
    how: Rewritten,
    interim: bool,
    switches: bool,
    complete: bool,
}

impl<I: Io> Worker<I> {
    pub(in crate::engine) fn http_response(&mut self, server: ConnId, buf: Buf) {
        let connection = &mut self.connections[server.slot()];
        connection.bytes += buf.len() as u64;
        let (Some(client), Some(upstream)) = (connection.peer, connection.upstream.as_deref_mut())
        else {
            return self.io.recycle(buf);
        };
        let pair = Pair { client, server };
        upstream.response_begun = true;
        if connection.traced {
            self.trace_bytes(server, false, self.io.bytes(&buf));
        }
        let Some(upstream) = self.connections[server.slot()].upstream.as_deref_mut() else {
            return self.io.recycle(buf);
        };
        if upstream.body.is_some() {
            return self.forward_response_body(pair, buf);
        }
        if !upstream.head.is_empty() {
            upstream.head.extend_from_slice(self.io.bytes(&buf));
            self.io.recycle(buf);
            return self.response_heads(pair);
        }
        match self.plan_response(pair, Some(&buf)) {
            // If another head may follow, the buffer is not forwarded.
            Ok(Some(plan)) if !plan.interim && !plan.switches => {
                self.forward_response(pair, plan, Some(buf));
            }
            Ok(_) => {
                if let Some(upstream) = &mut self.connections[server.slot()].upstream {
                    upstream.head.extend_from_slice(self.io.bytes(&buf));
                }
                self.io.recycle(buf);
                self.response_heads(pair);
            }
            Err(bad) => {
                self.io.recycle(buf);
                self.exchange_failed(pair, bad.into());
            }
        }
    }

    /// Handles a response that came in pieces: interim heads and the final one.
    fn response_heads(&mut self, pair: Pair) {
        loop {
            let Some(upstream) = self.connection(pair.server).upstream.as_deref_mut() else {
                return;
            };
            if !upstream.scan.ready(&upstream.head) {
                return;
            }
            match self.plan_response(pair, None) {
                Ok(None) => return,
                Ok(Some(plan)) if plan.switches => {
                    return self.http_switch(pair, plan.how, plan.head_end);
                }
                Ok(Some(plan)) if plan.interim => {
                    if !self.forward_interim(pair, &plan) {
                        return self.exchange_failed(pair, UpstreamFailure::Bad);
                    }
                }
                Ok(Some(plan)) => return self.forward_response(pair, plan, None),
                Err(bad) => return self.exchange_failed(pair, bad.into()),
            }
        }
    }

    /// Parses a head from `buf`, or from what was gathered, and plans. A rewritten head is in
    /// `scratch`.
    fn plan_response(
        &mut self,
        pair: Pair,
        buf: Option<&Buf>,
    ) -> Result<Option<Plan>, BadResponse> {
        let draining = self.shared.is_draining();
        let (Some(mut upstream), Some(mut downstream)) = (
            self.connections[pair.server.slot()].upstream.take(),
            self.connections[pair.client.slot()].downstream.take(),
        ) else {
            return Ok(None);
        };
        let connection = &self.connections[pair.server.slot()];
        let service_worker = &self.services[connection.service as usize];
        let client_state = self.connections[pair.client.slot()].client.as_deref();
        let plan = match (&service_worker.http, client_state) {
            (Some(http), Some(client_state)) => {
                let bytes = match buf {
                    Some(buf) => self.io.bytes(buf),
                    None => &[],
                };
                let gathered = std::mem::take(&mut upstream.head);
                let bytes = if buf.is_some() { bytes } else { &gathered[..] };
                let reader = Reader {
                    http,
                    backend_slot: &http.backends[connection.backend as usize],
                    backend: connection.backend,
                    client_state,
                    draining,
                };
                self.scratch.clear();
                let plan = reader.plan(
                    &mut downstream,
                    &mut upstream,
                    bytes,
                    &mut self.scratch,
                    &mut self.values,
                );
                upstream.head = gathered;
                plan
            }
            _ => Ok(None),
        };
        self.connections[pair.server.slot()].upstream = Some(upstream);
        self.connections[pair.client.slot()].downstream = Some(downstream);
        plan
    }

    /// Forwards an interim response. Returns whether another may follow.
    fn forward_interim(&mut self, pair: Pair, plan: &Plan) -> bool {
        let Some(upstream) = self.connections[pair.server.slot()].upstream.as_deref_mut() else {
            return false;
        };
        upstream.interims += 1;
        if upstream.interims > INTERIM_MAX {
            return false;
        }
        match plan.how {
            Rewritten::AsIs => self
                .io
                .send_copy(pair.client, &upstream.head[..plan.head_end]),
            Rewritten::Written => self.io.send_copy(pair.client, &self.scratch),
            Rewritten::Dropped => {}
        }
        upstream.head.drain(..plan.head_end);
        upstream.scan.reset();
        if plan.how != Rewritten::Dropped {
            let connection = &mut self.connections[pair.client.slot()];
            connection.sends = connection.sends.wrapping_add(1);
        }
        true
    }

    /// Forwards the final head with the part of the body behind it.
    fn forward_response(&mut self, pair: Pair, plan: Plan, buf: Option<Buf>) {
        let now_ns = self.now();
        let connection = &mut self.connections[pair.server.slot()];
        let (service, backend) = connection.indexes();
        let Some(upstream) = connection.upstream.as_deref_mut() else {
            return;
        };
        let dechunks = upstream.pass == BodyPass::Dechunked;
        self.services[service].answered(backend, now_ns.saturating_sub(upstream.sent_ns), now_ns);
        let client = pair.client;
        let sent_bytes = match plan.how {
            Rewritten::AsIs => plan.end,
            // The decoded part of the body is in `scratch` already.
            _ if dechunks => self.scratch.len(),
            _ => self.scratch.len() + plan.end - plan.head_end,
        };
        let body = plan.head_end..plan.end;
        let mut sends = 1;
        match (buf, plan.how) {
            (Some(buf), Rewritten::AsIs) => self.io.forward_part(client, buf, 0..plan.end),
            (None, Rewritten::AsIs) => self.io.send_copy(client, &upstream.head[..plan.end]),
            (Some(buf), _) if dechunks => {
                self.io.recycle(buf);
                self.io.send_copy(client, &self.scratch);
            }
            (None, _) if dechunks => self.io.send_copy(client, &self.scratch),
            (Some(buf), _) if body.len() <= COPY_MAX => {
                self.scratch.extend_from_slice(&self.io.bytes(&buf)[body]);
                self.io.recycle(buf);
                self.io.send_copy(client, &self.scratch);
            }
            (Some(buf), _) => {
                self.io.send_copy(client, &self.scratch);
                self.io.forward_part(client, buf, body);
                sends = 2;
            }
            (None, _) => {
                self.scratch.extend_from_slice(&upstream.head[body]);
                self.io.send_copy(client, &self.scratch);
            }
        }
        empty(&mut upstream.head);
        empty(&mut self.scratch);
        let connection = &mut self.connections[client.slot()];
        connection.sends = connection.sends.wrapping_add(sends);
        let (mut well, mut raw) = (true, false);
        if let Some(downstream) = connection.downstream.as_deref_mut() {
            (downstream.response_sent, downstream.whole) = (true, false);
            downstream.response_bytes = sent_bytes as u64;
            well = downstream.status < 500;
            raw = downstream.raw;
            // It will not be sent again.
            if !downstream.request.is_empty() {
                empty(&mut downstream.request);
            }
        }
        self.note_response(service, backend, well);
        if raw && !dechunks {
            return self.http_relay(pair);
        }
        match plan.complete {
            true => self.finish_exchange(pair),
            false => self.pause_upstream(pair),
        }
    }

    fn forward_response_body(&mut self, pair: Pair, buf: Buf) {
        let Some(upstream) = self.connections[pair.server.slot()].upstream.as_deref_mut() else {
            return self.io.recycle(buf);
        };
        let Some(body) = &mut upstream.body else {
            return self.io.recycle(buf);
        };
        let bytes = self.io.bytes(&buf);
        self.scratch.clear();
        let taken = match upstream.pass {
            BodyPass::AsIs => body.take(bytes),
            BodyPass::Dechunked => {
                body.take_content(bytes, |content| self.scratch.extend_from_slice(content))
            }
        };
        let Ok(taken) = taken else {
            self.io.recycle(buf);
            return self.exchange_failed(pair, UpstreamFailure::Bad);
        };
        // Data behind a response makes the connection unusable.
        upstream.keep &= taken.bytes == bytes.len();
        let sent = match upstream.pass {
            BodyPass::AsIs => {
                self.io.forward_part(pair.client, buf, 0..taken.bytes);
                taken.bytes
            }
            BodyPass::Dechunked => {
                self.io.recycle(buf);
                if !self.scratch.is_empty() {
                    self.io.send_copy(pair.client, &self.scratch);
                }
                self.scratch.len()
            }
        };
        let connection = &mut self.connections[pair.client.slot()];
        connection.sends = connection.sends.wrapping_add(1);
        if let Some(downstream) = connection.downstream.as_deref_mut() {
            downstream.response_bytes += sent as u64;
        }
        match taken.complete {
            true => self.finish_exchange(pair),
            false => self.pause_upstream(pair),
        }
    }

    /// Pauses the back end while the client does not drain.
    fn pause_upstream(&mut self, pair: Pair) {
        let connection = &mut self.connections[pair.server.slot()];
        if self.io.queued(pair.client) >= queue_max(&self.io) && !connection.paused {
            connection.paused = true;
            self.io.pause(pair.server);
        }
    }

    pub(in crate::engine) fn downstream_drained(&mut self, client: ConnId) {
        if let Some(server) = self.connection(client).peer
            && std::mem::take(&mut self.connection(server).paused)
        {
            self.io.resume(server);
        }
        let reading = |downstream: &Downstream| {
            downstream.phase == super::Phase::Reading && !downstream.input.is_empty()
        };
        if self.connection(client).downstream_is(reading) {
            self.next_input(client);
        }
    }

    pub(in crate::engine) fn upstream_drained(&mut self, server: ConnId) {
        if let Some(client) = self.connection(server).peer {
            self.resume_client(client);
        }
    }
}

struct Reader<'w> {
    http: &'w HttpServiceWorker,
    backend_slot: &'w HttpBackendSlot,
    backend: u32,
    client_state: &'w Client,
    draining: bool,
}

impl Reader<'_> {
    fn plan(
        &self,
        downstream: &mut Downstream,
        upstream: &mut Upstream,
        bytes: &[u8],
        scratch: &mut Vec<u8>,
        values: &mut Vec<u8>,
    ) -> Result<Option<Plan>, BadResponse> {
        let Some(head) = read_response(bytes, downstream.context)? else {
            return match bytes.len() > HEAD_BYTES_MAX {
                true => Err(crate::http::Refusal::HeadTooLarge.into()),
                false => Ok(None),
            };
        };
        let asks_tunnel = downstream.context.upgrade && self.client_state.carrier.is_some();
        if asks_tunnel && matches!(head.status(), 200..300) {
            return Err(BadResponse::NoSwitch);
        }
        let answered = self.rewrite(downstream, &head, scratch, values);
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
        downstream.status = head.status();
        downstream.keep_alive &= answered.keep_alive;
        upstream.pass = answered.body;
        let mut body = BodyTracker::new(Direction::Response, head.framing());
        let rest = &bytes[head_end..];
        let taken = match (downstream.raw, answered.body) {
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
        upstream.body = Some(body);
        upstream.keep =
            head.keep_alive() && taken.bytes == rest.len() && self.backend_slot.reusable;
        Ok(Some(plan))
    }

    fn rewrite(
        &self,
        downstream: &Downstream,
        head: &ResponseHead<'_>,
        scratch: &mut Vec<u8>,
        values: &mut Vec<u8>,
    ) -> ResponseRewrite {
        let placeholders = Placeholders {
            client: self.client_state.address.ip(),
            backend: &self.backend_slot.name,
            service: &self.http.name,
        };
        // The client has the cookie already.
        let cookie = self
            .backend_slot
            .cookie
            .as_ref()
            .and_then(|cookie| cookie.set.as_ref());
        let cookie = cookie.filter(|_| downstream.sticky != Some(self.backend));
        let edits = self.backend_slot.to_client.iter().chain(cookie);
        filled(edits, &placeholders, values, |edits| {
            let to = ToClient {
                edits,
                keep_alive: match self.http.inspect_all {
                    true => {
                        downstream.keep_alive && downstream.body.is_complete() && !self.draining
                    }
                    false => head.keep_alive(),
                },
                minor_version: downstream.minor_version,
            };
            rewrite_response(head, &to, scratch)
        })
    }
}
