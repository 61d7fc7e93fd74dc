//! Periodic work of a worker: time limits and byte counters.

use net::{ConnId, Io, NO_PLACE};

use super::Worker;
use super::connection::Role;
use super::places::STALLED_NS;

/// Interval in ns, and so the resolution of time limits.
pub(in crate::engine) const SCAN_NS: u64 = 100_000_000;
/// The `errno` of a connection that was not opened in time.
const ETIMEDOUT: i32 = 110;

/// After so long in a stall the socket is asked what the peer has not acknowledged, ns.
const ASKED_NS: u64 = 1_000_000_000;

/// A peer that has acknowledged so many bytes since then does not stall.
const MOVED_BYTES: u32 = 16 * 1024;

/// Interval in which the memory of a burst is freed, ns. The second time frees it, as what was in use
/// since the last time stays.
const RELEASE_NS: u64 = 2_000_000_000;
/// Once this many bytes are freed, the allocator gives them back to the system.
const TRIM_BYTES: usize = 1 << 20;
/// Roughly the memory that a closed client leaves to the allocator, without buffers, bytes.
const CLIENT_BYTES: usize = 8 * 1024;

/// For so many of these periods there are less than half as many clients and streams before a burst
/// is over: an ordinary load swings too, and giving memory back takes time.
const OVER_PERIODS: u32 = 2;

/// What tells that a burst is over.
#[derive(Default)]
pub(in crate::engine) struct Burst {
    released_ns: u64,
    /// The most clients and streams that a scan has found since then.
    peak: u32,
    /// The most that any scan has found in this burst.
    highest: u32,
    /// For how many periods there have been far less.
    periods: u32,
    /// Bytes that the allocator has got back and may keep.
    freed: usize,
}

impl Burst {
    /// Ends a period in which so many bytes were freed. Returns how many the allocator may keep, once
    /// the burst is over.
    fn end_period(&mut self, freed: usize) -> usize {
        self.freed += freed;
        let peak = std::mem::take(&mut self.peak);
        if peak > self.highest / 2 {
            (self.highest, self.periods) = (self.highest.max(peak), 0);
            return 0;
        }
        self.periods += 1;
        if self.periods < OVER_PERIODS {
            return 0;
        }
        let left = std::mem::replace(&mut self.highest, peak) - peak;
        self.periods = 0;
        std::mem::take(&mut self.freed) + left as usize * CLIENT_BYTES
    }
}

/// Whether a peer is slow rather than stalled, by the bytes that it had not acknowledged. There are
/// more of them if the kernel has taken a part of a send.
fn has_moved(before: u32, after: u32) -> bool {
    after > before || before - after >= MOVED_BYTES
}

impl<I: Io> Worker<I> {
    /// Walks the connection table: a few nanoseconds per connection.
    pub(in crate::engine) fn scan(&mut self) {
        let now_ns = self.now();
        self.scan_queues(now_ns);
        self.close_lingering(now_ns);
        self.release_memory(now_ns);
        for slot in 0..self.used {
            let connection = &self.connections[slot];
            let Some(conn) = connection.conn else {
                continue;
            };
            // An empty queue is no stall, so that the next send begins with none.
            let stalled_ns = self.stalled_ns(conn, now_ns);
            if stalled_ns < STALLED_NS {
                self.note_moving(slot, now_ns);
            }
            let connection = &self.connections[slot];
            let limits = &self.services[connection.service as usize].limits;
            let passed = now_ns.saturating_sub(connection.since_ns);
            match connection.role {
                Role::Greeting | Role::Peeking | Role::Detecting
                    if passed >= limits.client_header =>
                {
                    self.state(self.connections[slot].service as usize)
                        .timeouts
                        .add(1);
                    self.end_client(conn);
                }
                Role::Carrier => self.scan_carrier(conn, now_ns),
                Role::Connecting if passed >= limits.connect => {
                    self.state(self.connections[slot].service as usize)
                        .timeouts
                        .add(1);
                    let errno = match self.io.waits_for_place(conn) {
                        true => NO_PLACE,
                        false => ETIMEDOUT,
                    };
                    self.connect_failed(conn, errno);
                }
                Role::Connecting => self.scan_attempt(conn),
                Role::Ending if passed >= limits.write_stall => self.end_by_reset(conn),
                Role::HttpDownstream
                | Role::HttpUpstream
                | Role::HttpIdle
                | Role::HttpClosing
                | Role::HttpCut => self.http_scan(conn, now_ns),
                Role::Relaying if connection.client.is_some() => self.scan_pair(conn, now_ns),
                _ => {}
            }
        }
    }

    /// Gives memory back after a burst.
    fn release_memory(&mut self, now_ns: u64) {
        let open = self.clients + self.streams;
        self.burst.peak = self.burst.peak.max(open);
        if now_ns.saturating_sub(self.burst.released_ns) < RELEASE_NS {
            return;
        }
        self.burst.released_ns = now_ns;
        let freed = self.io.release_memory();
        if self.burst.end_period(freed) >= TRIM_BYTES {
            net::os::trim_heap();
        }
    }

    /// Notes at the connection that carries this stream that not all of its streams stall.
    fn note_moving(&mut self, slot: usize, now_ns: u64) {
        let client = self.connections[slot].client.as_deref();
        if let Some(carrier) = client.and_then(|client| client.carrier)
            && let Some(client) = &mut self.connections[carrier.slot()].client
        {
            client.moving_ns = now_ns;
        }
    }

    /// Abandons an attempt on a back end that was found down meanwhile.
    fn scan_attempt(&mut self, conn: ConnId) {
        let connection = &self.connections[conn.slot()];
        let (service, backend) = connection.indexes();
        let Some(client) = connection.peer else {
            return;
        };
        let Some(client_state) = &self.connections[client.slot()].client else {
            return;
        };
        let service_worker = &self.services[service];
        if service_worker.other_is_usable(self.state(service), backend, &client_state.tried) {
            self.abandon_attempt(conn);
        }
    }

    fn scan_pair(&mut self, conn: ConnId, now_ns: u64) {
        let Some(peer) = self.connection(conn).peer else {
            return;
        };
        let connection = &self.connections[conn.slot()];
        let (service, backend) = connection.indexes();
        if now_ns >= self.shared.services[service].backends[backend].cutoff_ns() {
            return self.cut_pair(conn);
        }
        let moved = [conn, peer].map(|one| self.count_bytes(one.slot()));
        let connection = &mut self.connections[conn.slot()];
        if moved.contains(&true) {
            connection.since_ns = now_ns;
        }
        let quiet_ns = now_ns.saturating_sub(connection.since_ns);
        let ended = connection.ended || self.connections[peer.slot()].ended;
        let service_worker = &self.services[service];
        let idle = match service_worker.backends[backend].idle {
            idle if ended => idle.min(service_worker.limits.half_closed),
            idle => idle,
        };
        let stall = service_worker.limits.write_stall;
        for one in [conn, peer] {
            if self.stalled_ns(one, now_ns) >= stall {
                return self.end_late_pair(conn, true);
            }
        }
        if quiet_ns >= idle {
            return self.end_late_pair(conn, false);
        }
        let connection = &self.connections[conn.slot()];
        let (service, backend) = connection.indexes();
        let down_ns = self.state(service).backends[backend].down_for_ns(now_ns);
        if down_ns.is_some_and(|down_ns| down_ns >= self.services[service].limits.drain) {
            self.cut_pair(conn);
        }
    }

    /// How long a connection has had sends in its queue and none of them was taken, ns. It is called
    /// at every scan, so it knows when that began to within the interval of scans.
    ///
    /// The kernel takes more only when a third of its buffer is free again, which a slow peer needs
    /// longer for than [`STALLED_NS`]. So a peer does not stall if it has acknowledged
    /// [`MOVED_BYTES`] of it meanwhile.
    pub(in crate::engine) fn stalled_ns(&mut self, conn: ConnId, now_ns: u64) -> u64 {
        let queued = self.io.queued(conn) as u32;
        let connection = &mut self.connections[conn.slot()];
        let taken = connection.sends.wrapping_sub(queued);
        let is_first_look = connection.taken_ns == 0;
        if queued == 0 || taken != connection.taken || is_first_look {
            (connection.taken, connection.taken_ns) = (taken, now_ns);
            connection.unacknowledged = None;
            return 0;
        }
        let stalled_ns = now_ns.saturating_sub(connection.taken_ns);
        let is_late = stalled_ns >= STALLED_NS;
        // Not at once: what was sent may be on its way.
        if is_late || (stalled_ns >= ASKED_NS && connection.unacknowledged.is_none()) {
            let left = self.io.unacknowledged(conn) as u32;
            let before = *connection.unacknowledged.get_or_insert(left);
            if is_late && has_moved(before, left) {
                (connection.unacknowledged, connection.taken_ns) = (Some(left), now_ns);
                return 0;
            }
        }
        stalled_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_over_once_and_swings_are_none() {
        let mut burst = Burst::default();
        let mut period = |peak| {
            burst.peak = peak;
            burst.end_period(0)
        };
        for _ in 0..10 {
            assert_eq!([period(128), period(0), period(100)], [0, 0, 0]);
        }
        assert_eq!([period(0), period(3)], [0, 125 * CLIENT_BYTES]);
        assert_eq!(
            [period(0), period(3), period(1), period(1)],
            [0, 0, 0, 2 * CLIENT_BYTES]
        );
    }
}
