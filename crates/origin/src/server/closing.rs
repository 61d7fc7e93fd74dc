//! The end of connections.

use net::{ConnId, Io, SLOTS_FULL};

use super::{Client, Worker};

impl<I: Io> Worker<I> {
    pub(super) fn accepted(&mut self, conn: ConnId) {
        if self.open >= self.connections_max {
            self.note_accept_failure(SLOTS_FULL);
            return self.io.close(conn);
        }
        self.open += 1;
        self.connections += 1;
        self.clients[conn.slot()] = Client {
            conn: Some(conn),
            ..Client::default()
        };
    }

    /// The client will send no more.
    pub(super) fn client_ended(&mut self, conn: ConnId) {
        let client = &mut self.clients[conn.slot()];
        if client.is_paused && !client.is_held {
            client.is_half_closed = true;
            return;
        }
        // As a rule it does not wait for a delayed answer any more.
        self.forget_all(conn);
        let client = &mut self.clients[conn.slot()];
        (client.is_held, client.is_paused) = (false, false);
        client.unparsed.clear();
        let is_sent = client.body_left == 0 && self.io.queued(conn) == 0;
        if client.is_lingering || is_sent {
            return self.close(conn);
        }
        (client.closing, client.may_send) = (true, false);
    }

    /// Ends a connection on which everything has been sent.
    pub(super) fn end(&mut self, conn: ConnId) {
        let client = &mut self.clients[conn.slot()];
        if client.is_lingering {
            return;
        }
        // If the client is not sending, nothing is lost by closing at once, which costs less.
        if !client.may_send || !self.lingering.begin(conn, self.io.now_ns()) {
            return self.close(conn);
        }
        client.is_lingering = true;
        self.open -= 1;
        self.io.finish(conn);
    }

    /// Discards what arrives on a connection that is to be closed.
    pub(super) fn discard(&mut self, conn: ConnId, bytes: usize) {
        let now_ns = self.io.coarse_now_ns();
        let client = &mut self.clients[conn.slot()];
        client.may_send = true;
        if client.is_lingering && !self.lingering.discard(conn, bytes, now_ns) {
            self.io.pause(conn);
        }
    }

    /// Closes the connections whose clients have not closed in time.
    pub(super) fn close_overdue(&mut self) {
        let now_ns = self.io.now_ns();
        while let Some(conn) = self.lingering.overdue(now_ns) {
            self.close(conn);
        }
    }

    pub(super) fn close(&mut self, conn: ConnId) {
        self.forget_all(conn);
        let client = std::mem::take(&mut self.clients[conn.slot()]);
        match client.is_lingering {
            true => self.lingering.end(conn),
            false => self.open -= 1,
        }
        self.io.close(conn);
    }
}
