//! What a worker looks at from time to time: limits of waits, and counters.

use net::{ConnId, Io};

use super::side::Role;
use super::worker::Worker;

/// How often that is, ns: time limits are exact to about as much.
pub(super) const SCAN_NS: u64 = 100_000_000;

impl<I: Io> Worker<I> {
    /// Looks at all connections. A few nanoseconds for each.
    pub(super) fn scan(&mut self) {
        let now_ns = self.now();
        self.scan_queues(now_ns);
        for slot in 0..self.used {
            let side = &self.sides[slot];
            let Some(conn) = side.conn else { continue };
            let limits = &self.posts[side.service as usize].limits;
            let passed = now_ns.saturating_sub(side.since_ns);
            match side.role {
                Role::Greeting if passed >= limits.client_header => {
                    self.state(self.sides[slot].service as usize)
                        .timeouts
                        .add(1);
                    self.end_client(conn);
                }
                Role::Connecting if passed >= limits.connect => {
                    self.state(self.sides[slot].service as usize)
                        .timeouts
                        .add(1);
                    self.connect_failed(conn, 0);
                }
                Role::Connecting => self.scan_attempt(conn),
                Role::Ending if passed >= limits.write_stall => self.end_by_reset(conn),
                Role::HttpFront
                | Role::HttpBack
                | Role::HttpIdle
                | Role::HttpClosing
                | Role::HttpCut => self.http_scan(conn, now_ns),
                Role::Relaying if side.client.is_some() => self.scan_pair(conn, now_ns),
                _ => {}
            }
        }
    }

    /// Gives up an attempt where others have found out that the back end is gone.
    fn scan_attempt(&mut self, conn: ConnId) {
        let side = &self.sides[conn.slot()];
        let (service, backend) = (side.service as usize, side.backend as usize);
        let Some(client) = side.peer else { return };
        let Some(known) = &self.sides[client.slot()].client else {
            return;
        };
        let post = &self.posts[service];
        if post.better_elsewhere(self.state(service), backend, &known.tried) {
            self.give_up(conn);
        }
    }

    fn scan_pair(&mut self, conn: ConnId, now_ns: u64) {
        let Some(peer) = self.side(conn).peer else {
            return;
        };
        let moved = [conn, peer].map(|one| self.count_bytes(one.slot()));
        let side = &mut self.sides[conn.slot()];
        if moved.contains(&true) {
            side.since_ns = now_ns;
        }
        let quiet_ns = now_ns.saturating_sub(side.since_ns);
        let post = &self.posts[side.service as usize];
        let idle = post.places[side.backend as usize].idle;
        let stall = post.limits.write_stall;
        for one in [conn, peer] {
            if self.stalled_ns(one, now_ns) >= stall {
                return self.end_late_pair(conn, true);
            }
        }
        if quiet_ns >= idle {
            return self.end_late_pair(conn, false);
        }
        let side = &self.sides[conn.slot()];
        let (service, backend) = (side.service as usize, side.backend as usize);
        let down_ns = self.state(service).backends[backend].down_for_ns(now_ns);
        if down_ns.is_some_and(|down_ns| down_ns >= self.posts[service].limits.drain) {
            self.close_pair(conn, false);
        }
    }

    /// For how long a side has taken nothing of what waits for it, ns.
    pub(super) fn stalled_ns(&mut self, conn: ConnId, now_ns: u64) -> u64 {
        let queued = self.io.queued(conn) as u32;
        let side = &mut self.sides[conn.slot()];
        let taken = side.sends.wrapping_sub(queued);
        if queued == 0 || taken != side.taken {
            (side.taken, side.taken_ns) = (taken, now_ns);
        }
        now_ns.saturating_sub(side.taken_ns)
    }
}
