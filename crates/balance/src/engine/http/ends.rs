//! Ends of exchanges and of clients that are not the usual ones.

use net::{Buf, ConnId, Io};

use super::{Pair, Phase};
use crate::engine::connection::{Connection, Role};
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
    pub(in crate::engine) fn upstream_ended(&mut self, server: ConnId) {
        let connection = &self.connections[server.slot()];
        let Some(client) = connection.peer else {
            return self.close_upstream(server);
        };
        let pair = Pair { client, server };
        let ends = connection
            .upstream
            .as_ref()
            .and_then(|upstream| upstream.body)
            .is_some_and(|body| body.ends_with_connection());
        match ends {
            true => self.http_finish(pair),
            false => self.http_trouble(pair, Trouble::Gone),
        }
    }

    /// A back end's connection was reset.
    pub(in crate::engine) fn upstream_failed(&mut self, server: ConnId) {
        match self.connection(server).peer {
            Some(client) => self.http_trouble(Pair { client, server }, Trouble::Gone),
            None => self.close_upstream(server),
        }
    }

    /// An exchange cannot go on. The request is sent again where that can be done without anybody
    /// noticing; otherwise the client is told, or sees that its answer was cut off.
    pub(super) fn http_trouble(&mut self, pair: Pair, trouble: Trouble) {
        let Pair { client, server } = pair;
        let connection = &self.connections[server.slot()];
        let (service, backend) = (connection.service as usize, connection.backend as usize);
        let (reused, heard) = match &connection.upstream {
            Some(upstream) => (upstream.reused, upstream.heard),
            None => (false, true),
        };
        self.close_upstream(server);
        let connection = &mut self.connections[client.slot()];
        connection.peer = None;
        let Some(downstream) = connection.downstream.as_deref_mut() else {
            return;
        };
        let gone = trouble == Trouble::Gone;
        let repeat = (gone || trouble == Trouble::Dead) && !heard && downstream.can_repeat();
        if repeat && reused && gone {
            // Its back end closed it before the request came there: that says nothing of it.
            downstream.phase = Phase::Seeking;
            return self.dial(client, backend);
        }
        let begun = downstream.begun;
        downstream.failed = true;
        if !(gone && reused && !heard) && trouble != Trouble::Dead {
            self.http_note(service, backend, false);
        }
        self.release_backend(service, backend);
        if begun {
            self.http_log(client, Some(backend));
            return self.http_cut_off(client);
        }
        if repeat {
            if let Some(known) = &mut self.connection(client).client {
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
        let connection = self.connection(client);
        (connection.role, connection.since_ns, connection.downstream) =
            (Role::HttpCut, now_ns, None);
    }

    /// Refuses a request: what it said cannot be passed on, and where the next one begins is not
    /// known.
    pub(super) fn http_refuse(&mut self, client: ConnId, refusal: Refusal) {
        let service = self.connection(client).service as usize;
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
        let Some(downstream) = self.connection(client).downstream.as_deref_mut() else {
            return;
        };
        if downstream.begun {
            return self.http_cut_off(client);
        }
        downstream.status = status;
        let Worker {
            io,
            connections,
            scratch,
            ..
        } = self;
        scratch.clear();
        small_answer(status, text.as_bytes(), scratch);
        io.send_copy(client, scratch);
        let connection = &mut connections[client.slot()];
        connection.sends = connection.sends.wrapping_add(1);
        if let Some(downstream) = connection.downstream.as_deref_mut() {
            downstream.answer_bytes = scratch.len() as u64;
        }
        self.http_log(client, None);
        self.http_close(client);
    }

    /// Takes a client out of its exchange, or out of the queue.
    fn http_leave(&mut self, client: ConnId) {
        let connection = &mut self.connections[client.slot()];
        let (service, backend) = (connection.service as usize, connection.backend as usize);
        if let Some(server) = connection.peer.take() {
            match self.connection(server).role {
                Role::HttpUpstream => self.close_upstream(server),
                _ => {
                    *self.connection(server) = Connection::default();
                    self.io.close(server);
                }
            }
            self.release_backend(service, backend);
        }
        let known = self.connection(client).client.as_deref_mut();
        if known.and_then(|known| known.queued_ns.take()).is_some() {
            self.left_queue(service, client);
        }
    }

    /// Closes a client once it has got everything that was sent. What it still sends is dropped
    /// for a while: closing at once would reset the connection, and the client might never see
    /// its answer.
    pub(super) fn http_close(&mut self, client: ConnId) {
        let now_ns = self.now();
        let Worker {
            io, connections, ..
        } = self;
        let connection = &mut connections[client.slot()];
        (connection.role, connection.downstream) = (Role::HttpClosing, None);
        (connection.since_ns, connection.bytes) = (now_ns, 0);
        if std::mem::take(&mut connection.paused) {
            io.resume(client);
        }
        io.finish(client);
        self.closing_ended(client, false);
    }

    /// What comes from a client whose connection ends.
    pub(in crate::engine) fn closing_data(&mut self, client: ConnId, buf: Buf) {
        let connection = self.connection(client);
        connection.bytes += buf.len() as u64;
        let too_much = connection.bytes > LATE_BYTES_MAX;
        self.io.recycle(buf);
        if too_much {
            self.http_end(client, true);
        }
    }

    /// A client whose connection ends has ended its side, or has got everything.
    pub(in crate::engine) fn closing_ended(&mut self, client: ConnId, ended: bool) {
        let connection = &mut self.connections[client.slot()];
        connection.ended |= ended;
        if connection.ended && self.io.queued(client) == 0 {
            self.http_end(client, false);
        }
    }

    /// A client's connection was reset: there is nobody to answer.
    pub(in crate::engine) fn downstream_failed(&mut self, client: ConnId) {
        let connection = self.connection(client);
        let peer = connection.peer;
        if let Some(downstream) = connection.downstream.as_deref_mut()
            && downstream.phase != Phase::Reading
        {
            if !downstream.begun {
                (downstream.status, downstream.answer_bytes) = (CLIENT_LEFT, 0);
            }
            let backend = peer.map(|server| self.connection(server).backend as usize);
            self.http_log(client, backend);
        }
        self.http_end(client, false);
    }

    /// A client has ended its side.
    pub(in crate::engine) fn downstream_ended(&mut self, client: ConnId) {
        let connection = &mut self.connections[client.slot()];
        if std::mem::replace(&mut connection.ended, true) {
            return;
        }
        let Some(downstream) = connection.downstream.as_deref() else {
            return;
        };
        match (downstream.phase, connection.peer) {
            (Phase::Reading, _) => self.http_next(client),
            (Phase::Exchanging, Some(server)) if downstream.raw => self.io.finish(server),
            // The rest of its request will never come.
            (Phase::Exchanging | Phase::Seeking, _)
                if !downstream.body.is_complete() && downstream.input.is_empty() =>
            {
                self.downstream_failed(client);
            }
            // It waits for its answer.
            _ => {}
        }
    }

    /// Lets go of a client.
    pub(in crate::engine) fn http_end(&mut self, client: ConnId, reset: bool) {
        self.http_leave(client);
        let service = self.connection(client).service as usize;
        *self.connection(client) = Connection::default();
        match reset {
            true => self.io.abort(client),
            false => self.io.close(client),
        }
        self.client_gone(service);
    }
}
