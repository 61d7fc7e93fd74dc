//! The switch from messages to a byte stream: after an upgrade, or after the first message if only
//! that is inspected. From then on the pair is relayed as in a TCP service.

use net::Io;

use super::Pair;
use crate::engine::worker::Worker;
use crate::engine::worker::connection::Role;
use crate::engine::worker::websocket::FrameEnds;
use crate::http::{RequestContext, Rewritten, read_response};

const UPGRADE: RequestContext = RequestContext {
    head: false,
    upgrade: true,
};

impl<I: Io> Worker<I> {
    /// Forwards the head of status 101, which is in `scratch` or at the front of what was gathered,
    /// and starts relaying.
    pub(super) fn http_switch(&mut self, pair: Pair, how: Rewritten, head_end: usize) {
        let Some(upstream) = self.connections[pair.server.slot()].upstream.as_deref_mut() else {
            return;
        };
        let is_websocket = read_response(&upstream.head, UPGRADE)
            .ok()
            .flatten()
            .and_then(|head| head.value(b"upgrade"))
            .is_some_and(|protocol| protocol.eq_ignore_ascii_case(b"websocket"));
        let frames = is_websocket.then(|| {
            let mut frames = Box::<FrameEnds>::default();
            frames.pass(&upstream.head[head_end..]);
            frames
        });
        if how != Rewritten::AsIs {
            self.scratch.extend_from_slice(&upstream.head[head_end..]);
            std::mem::swap(&mut self.scratch, &mut upstream.head);
        }
        self.io.send_copy(pair.client, &upstream.head);
        let bytes = upstream.head.len() as u64;
        let connection = &mut self.connections[pair.client.slot()];
        connection.sends = connection.sends.wrapping_add(1);
        if let Some(downstream) = connection.downstream.as_deref_mut() {
            (downstream.status, downstream.response_bytes) = (101, bytes);
        }
        self.http_relay(pair);
        self.connection(pair.server).frames = frames;
    }

    /// Turns the exchange into a relayed pair.
    pub(super) fn http_relay(&mut self, pair: Pair) {
        let now_ns = self.now();
        let backend = self.connection(pair.server).backend as usize;
        self.log_request(pair.client, Some(backend));
        self.count_upstream(pair.server);
        let connection = self.connection(pair.client);
        let input = match connection.downstream.take() {
            Some(downstream) => downstream.input,
            None => Vec::new(),
        };
        let traced = self.connection(pair.server).traced;
        if traced {
            self.trace_bytes(pair.server, true, &input);
        }
        let connection = &mut self.connections[pair.client.slot()];
        connection.traced = traced;
        connection.role = Role::Relaying;
        // From here on counted as a pair.
        (connection.bytes, connection.counted) = (input.len() as u64, 0);
        (connection.since_ns, connection.taken_ns) = (now_ns, now_ns);
        let paused = std::mem::take(&mut connection.paused);
        let ended = connection.ended;
        let connection = &mut self.connections[pair.server.slot()];
        connection.role = Role::Relaying;
        connection.upstream = None;
        (connection.since_ns, connection.taken_ns) = (now_ns, now_ns);
        if !input.is_empty() {
            connection.sends = connection.sends.wrapping_add(1);
            self.io.send_copy(pair.server, &input);
        }
        if ended {
            self.io.finish(pair.server);
        }
        if paused {
            self.io.resume(pair.client);
        }
    }
}
