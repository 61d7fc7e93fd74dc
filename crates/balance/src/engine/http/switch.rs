//! From messages to bytes: after an upgrade, and behind the first message where only that is
//! looked at. Client and back end then are a pair like those of a TCP service.

use net::Io;

use super::Pair;
use crate::engine::side::Role;
use crate::engine::worker::Worker;
use crate::http::Rewritten;

impl<I: Io> Worker<I> {
    /// Both sides speak another protocol from here on. The head that says so is in `scratch` or
    /// the first bytes of what was gathered.
    pub(super) fn http_switch(&mut self, pair: Pair, how: Rewritten, head_end: usize) {
        let Worker {
            io, sides, scratch, ..
        } = self;
        let Some(back) = sides[pair.upstream.slot()].back.as_deref_mut() else {
            return;
        };
        if how != Rewritten::AsIs {
            scratch.extend_from_slice(&back.head[head_end..]);
            std::mem::swap(scratch, &mut back.head);
        }
        io.send_copy(pair.client, &back.head);
        let bytes = back.head.len() as u64;
        let side = &mut sides[pair.client.slot()];
        side.sends = side.sends.wrapping_add(1);
        if let Some(front) = side.front.as_deref_mut() {
            (front.status, front.answer_bytes) = (101, bytes);
        }
        self.http_relay(pair);
    }

    /// Makes a pair of both: what one sends goes to the other.
    pub(super) fn http_relay(&mut self, pair: Pair) {
        let now_ns = self.now();
        let backend = self.side(pair.upstream).backend as usize;
        self.http_log(pair.client, Some(backend));
        self.count_back(pair.upstream);
        let side = self.side(pair.client);
        let input = match side.front.take() {
            Some(front) => front.input,
            None => Vec::new(),
        };
        let traced = self.side(pair.upstream).traced;
        if traced {
            self.trace_bytes(pair.upstream, true, &input);
        }
        let Worker { io, sides, .. } = self;
        let side = &mut sides[pair.client.slot()];
        side.traced = traced;
        side.role = Role::Relaying;
        // Counted from here on by the pair's rules.
        (side.bytes, side.counted) = (input.len() as u64, 0);
        (side.since_ns, side.taken_ns) = (now_ns, now_ns);
        let paused = std::mem::take(&mut side.paused);
        let ended = side.ended;
        let side = &mut sides[pair.upstream.slot()];
        side.role = Role::Relaying;
        side.back = None;
        (side.since_ns, side.taken_ns) = (now_ns, now_ns);
        if !input.is_empty() {
            side.sends = side.sends.wrapping_add(1);
            io.send_copy(pair.upstream, &input);
        }
        if ended {
            io.finish(pair.upstream);
        }
        if paused {
            io.resume(pair.client);
        }
    }
}
