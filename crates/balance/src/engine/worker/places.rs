//! Places for new clients.
//!
//! When all places are taken, the HTTP client that has been idle for longest is closed to make
//! room. Idle means between two requests, or before the first. Relayed connections are never closed
//! for this, as the balancer cannot know what their silence means.

use net::{ConnId, Io};

use super::Worker;
use super::connection::Role;

/// How long a client must have been idle, ns: one with a more recent request is likely to send
/// another.
const IDLE_NS: u64 = 1_000_000_000;
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

impl<I: Io> Worker<I> {
    /// Takes a place for a client of a service; returns false if there is none.
    pub(in crate::engine) fn take_place(&mut self, service: usize) -> bool {
        if self.is_full() && !self.evict(None) {
            return false;
        }
        let most = self.services[service].most;
        let mut taken = self.state(service).reserve(most);
        if !taken && self.evict(Some(service)) {
            taken = self.state(service).reserve(most);
        }
        taken
    }

    /// Closes the client that has been idle for longest, of one service or of all. Returns false if
    /// there is none.
    #[cold]
    fn evict(&mut self, service: Option<usize>) -> bool {
        let now_ns = self.now();
        loop {
            let fits = |conn: &ConnId| {
                let own = self.connections[conn.slot()].service as usize;
                service.is_none_or(|service| service == own)
            };
            if let Some(at) = self.idle_clients.found.iter().rposition(fits) {
                let conn = self.idle_clients.found.remove(at);
                if self.idle_ns(conn, now_ns).is_some() {
                    let service = self.connection(conn).service as usize;
                    self.state(service).evicted.add(1);
                    self.end_client(conn);
                    return true;
                }
                continue;
            }
            if now_ns.saturating_sub(self.idle_clients.walked_ns) < WALK_NS {
                return false;
            }
            self.find_idle_clients(now_ns);
        }
    }

    /// How long a client has been idle, ns; `None` if it may not be closed.
    fn idle_ns(&self, conn: ConnId, now_ns: u64) -> Option<u64> {
        let connection = &self.connections[conn.slot()];
        let may_go = match connection.role {
            Role::HttpDownstream => {
                connection.downstream_is(|downstream| downstream.is_idle())
                    && connection
                        .client
                        .as_ref()
                        .is_some_and(|client| client.carrier.is_none())
            }
            Role::Detecting => true,
            // A scan found no streams; see `since_ns`.
            Role::Carrier => connection.sends == 0,
            _ => false,
        };
        let idle = may_go && connection.conn == Some(conn) && self.io.queued(conn) == 0;
        let idle_ns = now_ns.saturating_sub(connection.since_ns);
        (idle && idle_ns >= IDLE_NS).then_some(idle_ns)
    }

    fn find_idle_clients(&mut self, now_ns: u64) {
        let mut found: Vec<(u64, ConnId)> = self.connections[..self.used]
            .iter()
            .filter_map(|connection| connection.conn)
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
