//! Places for new clients.
//!
//! When all places are taken, the HTTP client that has been idle for longest is closed to make
//! room. Idle means between two requests, before the first, or, after a longer time, not reading
//! the response. Relayed connections are never closed for this, as the balancer cannot
//! know what their silence means.

use net::{ConnId, Io};

use super::Worker;
use super::connection::Role;

/// How long a client must have been idle, ns: one with a more recent request is likely to send
/// another.
const IDLE_NS: u64 = 1_000_000_000;
/// How long a client must have read nothing of what is queued for it, ns. If no place is needed, the
/// limit is `write_stall`.
pub(super) const STALLED_NS: u64 = 5_000_000_000;
/// How often the connection table may be walked for idle clients, ns.
const WALK_NS: u64 = 10_000_000;
/// How many idle clients a walk keeps.
const FOUND_MAX: usize = 256;

/// Clients that could be closed to make room.
#[derive(Default)]
pub(in crate::engine) struct IdleClients {
    /// Found by the last walk; the one that has been idle for longest comes last.
    found: Vec<ConnId>,
    walked_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Need {
    /// A client of any service, as the thread has no place.
    Client,
    ClientOf(usize),
    /// A stream, which may take the place of a stream or of a client.
    Stream,
    /// Anything, as the thread holds as much as it may.
    Memory,
}

impl<I: Io> Worker<I> {
    /// Takes a place for a client of a service; returns false if there is none.
    pub(in crate::engine) fn take_place(&mut self, service: usize) -> bool {
        if !self.has_memory() {
            return false;
        }
        if self.clients >= self.clients_max && !self.evict(Need::Client) {
            return false;
        }
        let most = self.services[service].most;
        let mut taken = self.state(service).reserve(most);
        if !taken && self.evict(Need::ClientOf(service)) {
            taken = self.state(service).reserve(most);
        }
        taken
    }

    /// Whether the thread holds less than it may. If it does not, one who takes nothing is closed:
    /// those between two requests hold next to nothing. The memory may be free only a turn later.
    pub(super) fn has_memory(&mut self) -> bool {
        !self.io.is_full() || (self.evict(Need::Memory) && !self.io.is_full())
    }

    /// Closes the client, or the stream, that has been idle for longest. Returns false if there is
    /// none.
    #[cold]
    pub(in crate::engine) fn evict(&mut self, need: Need) -> bool {
        let now_ns = self.now();
        loop {
            let fits = |conn: &ConnId| self.would_help(*conn, need);
            if let Some(at) = self.idle_clients.found.iter().rposition(fits) {
                let conn = self.idle_clients.found.remove(at);
                if self.idle_ns(conn, now_ns).is_some() {
                    let service = self.connection(conn).service as usize;
                    self.state(service).evicted.add(1);
                    match self.io.queued(conn) > 0 {
                        true => self.end_stalled(conn),
                        false => self.end_client(conn),
                    }
                    return true;
                }
                continue;
            }
            if now_ns.saturating_sub(self.idle_clients.walked_ns) < WALK_NS {
                return false;
            }
            self.find_idle_clients(now_ns, need);
        }
    }

    /// Whether a place would be free if this client were closed.
    fn would_help(&self, conn: ConnId, need: Need) -> bool {
        let connection = &self.connections[conn.slot()];
        let client = connection.client.as_deref();
        let is_stream = client.is_some_and(|client| client.carrier.is_some());
        match need {
            Need::Client => !is_stream,
            Need::ClientOf(service) => !is_stream && connection.service as usize == service,
            Need::Stream => true,
            Need::Memory => self.io.queued(conn) > 0,
        }
    }

    /// How long a client has been idle, ns; `None` if it may not be closed.
    fn idle_ns(&self, conn: ConnId, now_ns: u64) -> Option<u64> {
        let connection = &self.connections[conn.slot()];
        if connection.conn != Some(conn) {
            return None;
        }
        let client = connection.client.as_deref()?;
        let is_queued = self.io.queued(conn) > 0;
        let (since_ns, least_ns) = match connection.role {
            Role::HttpDownstream | Role::HttpClosing if is_queued => {
                // No scan has looked at it yet.
                let since_ns = Some(connection.taken_ns).filter(|ns| *ns > 0);
                (since_ns?, STALLED_NS)
            }
            Role::HttpDownstream => {
                let is_idle = connection.downstream_is(|downstream| downstream.is_idle());
                if !is_idle || client.carrier.is_some() {
                    return None;
                }
                (connection.since_ns, IDLE_NS)
            }
            Role::Detecting if !is_queued => (connection.since_ns, IDLE_NS),
            // A scan found no streams; see `since_ns`.
            Role::Carrier if connection.sends == 0 => match is_queued {
                true => (connection.since_ns, STALLED_NS),
                false => (connection.since_ns, IDLE_NS),
            },
            // All of its streams stall.
            Role::Carrier => (client.moving_ns, STALLED_NS),
            _ => return None,
        };
        let idle_ns = now_ns.saturating_sub(since_ns);
        (idle_ns >= least_ns).then_some(idle_ns)
    }

    fn find_idle_clients(&mut self, now_ns: u64, need: Need) {
        let mut found: Vec<(u64, ConnId)> = self.connections[..self.used]
            .iter()
            .filter_map(|connection| connection.conn)
            .filter(|conn| self.would_help(*conn, need))
            .filter_map(|conn| Some((self.idle_ns(conn, now_ns)?, conn)))
            .collect();
        found.sort_unstable_by_key(|(idle_ns, _)| *idle_ns);
        let first = found.len().saturating_sub(FOUND_MAX);
        self.idle_clients = IdleClients {
            found: found[first..].iter().map(|(_, conn)| *conn).collect(),
            walked_ns: now_ns,
        };
    }
}
