//! How often accept queues were full while a load went on.
//!
//! The kernel counts connections that found an accept queue full for the network namespace
//! (`ListenOverflows`), and what each listening socket dropped. Both are read before and after the
//! load, not at the edges of windows: a SYN that was dropped is sent again a second later, when the
//! load may be on another subject.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use readings::AcceptQueue;

use crate::kernel::namespace::Namespace;
use crate::kernel::netlink::socket_diag::SocketDiag;
use crate::sampling::network::listening::{holds, is_of_this_machine, listener_at, sockets_at};

/// Counts how often accept queues are full, from its start on.
pub(crate) struct AcceptQueueCounter {
    networks: Vec<Network>,
}

struct Network {
    namespace: Namespace,
    overflows: u64,
    diag: Option<SocketDiag>,
    /// What each socket had dropped, by inode.
    drops: BTreeMap<u64, u32>,
}

/// Sockets whose accept queues were full, and overflows that the kernel counted beyond theirs.
type FullQueues = (Vec<FullSocket>, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FullSocket {
    inode: u64,
    backlog: u32,
    full: u64,
}

impl AcceptQueueCounter {
    pub(crate) fn start(namespaces: &[Namespace]) -> Self {
        Self {
            networks: namespaces.iter().cloned().map(Network::start).collect(),
        }
    }

    /// The accept queues of these servers, each with its processes, that were full. Other programs'
    /// are left out.
    pub(crate) fn of_servers(&mut self, servers: &[(&str, Vec<i32>)]) -> Vec<AcceptQueue> {
        self.by_owner(|inode| {
            let inodes = BTreeSet::from([inode]);
            let holder = servers
                .iter()
                .find(|(_, pids)| pids.iter().any(|pid| holds(*pid, &inodes)));
            holder.map(|(name, _)| (*name).to_owned())
        })
    }

    fn by_owner(&mut self, owner: impl Fn(u64) -> Option<String>) -> Vec<AcceptQueue> {
        let mut named: BTreeMap<String, AcceptQueue> = BTreeMap::new();
        let mut unattributed = 0;
        for network in &mut self.networks {
            let (sockets, others) = network.full();
            unattributed += others;
            for socket in sockets {
                let Some(server) = owner(socket.inode) else {
                    continue;
                };
                let queue = named.entry(server.clone()).or_insert_with(|| AcceptQueue {
                    server: Some(server),
                    ..AcceptQueue::default()
                });
                // A server with several sockets gives all the same backlog, as a rule.
                queue.backlog = queue.backlog.max(Some(socket.backlog));
                queue.full += socket.full;
            }
        }
        let without_server = (unattributed > 0).then(|| AcceptQueue {
            full: unattributed,
            ..AcceptQueue::default()
        });
        named.into_values().chain(without_server).collect()
    }
}

impl Network {
    fn start(namespace: Namespace) -> Self {
        let mut diag = namespace.open(SocketDiag::open);
        let sockets = diag.as_mut().and_then(|one| one.listening().ok());
        let drops = sockets.map(|all| all.iter().map(|one| (one.inode, one.drops)).collect());
        Self {
            overflows: namespace.listen_overflows().unwrap_or(0),
            // Without the drops of the start those of the end say nothing.
            diag: diag.filter(|_| drops.is_some()),
            drops: drops.unwrap_or_default(),
            namespace,
        }
    }

    fn full(&mut self) -> FullQueues {
        let now = self.namespace.listen_overflows().unwrap_or(0);
        let overflows = now.saturating_sub(self.overflows);
        if overflows == 0 {
            return FullQueues::default();
        }
        let sockets = self.diag.as_mut().and_then(|one| one.listening().ok());
        let dropped = sockets.into_iter().flatten().map(|socket| {
            let before = self.drops.get(&socket.inode).copied().unwrap_or(0);
            FullSocket {
                inode: socket.inode,
                backlog: socket.backlog,
                full: u64::from(socket.drops.wrapping_sub(before)),
            }
        });
        attributed(overflows, dropped.filter(|one| one.full > 0).collect())
    }
}

/// Attributes overflows to sockets by their drops. A socket also drops packets for other reasons, so
/// it gets no more than the overflows of its namespace.
fn attributed(overflows: u64, mut sockets: Vec<FullSocket>) -> FullQueues {
    for socket in &mut sockets {
        socket.full = socket.full.min(overflows);
    }
    let of_sockets: u64 = sockets.iter().map(|one| one.full).sum();
    (sockets, overflows.saturating_sub(of_sockets))
}

/// Counts how often the accept queue at an address of this machine is full.
pub struct AcceptQueueAt {
    counter: AcceptQueueCounter,
    inodes: BTreeSet<u64>,
    /// Program and port, such as `nginx:8080`.
    server: String,
}

impl AcceptQueueAt {
    /// Begins to count. `None` where the address is not this machine's, or nothing in this network
    /// namespace listens there.
    pub fn start(address: SocketAddr) -> Option<Self> {
        is_of_this_machine(address.ip()).then_some(())?;
        let inodes = sockets_at(address);
        let process = listener_at(address)?.process;
        Some(Self {
            counter: AcceptQueueCounter::start(&Namespace::all(Vec::new(), &[])),
            inodes,
            server: match process {
                Some((_, name)) => format!("{name}:{}", address.port()),
                None => address.to_string(),
            },
        })
    }

    /// What was counted; empty where it was never full.
    pub fn found(mut self) -> Vec<AcceptQueue> {
        let (inodes, server) = (self.inodes, self.server);
        self.counter
            .by_owner(|inode| inodes.contains(&inode).then(|| server.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use std::time::Duration;

    fn socket(inode: u64, full: u64) -> FullSocket {
        FullSocket {
            inode,
            backlog: 5,
            full,
        }
    }

    #[test]
    fn what_no_socket_accounts_for_is_left_to_the_namespace() {
        let attribute = |overflows, sockets: &[FullSocket]| {
            let (full, others) = attributed(overflows, sockets.to_vec());
            let each: Vec<u64> = full.iter().map(|one| one.full).collect();
            (each, others)
        };
        assert_eq!(attribute(7, &[socket(1, 7)]), (vec![7], 0));
        assert_eq!(attribute(7, &[socket(1, 4), socket(2, 2)]), (vec![4, 2], 1));
        assert_eq!(
            attribute(7, &[]),
            (vec![], 7),
            "the kernel lists no sockets"
        );
        assert_eq!(attribute(7, &[socket(1, 9)]), (vec![7], 0), "other drops");
    }

    /// A listener with a backlog of 1 that accepts nothing, and connections that wait: the kernel
    /// keeps one more than the backlog.
    #[test]
    fn the_full_queue_is_that_of_the_socket_that_nobody_accepts_from() {
        let listen = || {
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
            let socket = socket.unwrap();
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            socket.bind(&any.into()).unwrap();
            socket.listen(1).unwrap();
            let address = socket.local_addr().unwrap().as_socket().unwrap();
            (socket, address)
        };
        let ((_full, full), (_idle, idle)) = (listen(), listen());
        let count = || [full, idle].map(|address| AcceptQueueAt::start(address).unwrap());
        let me = [("me", vec![std::process::id() as i32])];
        let mut of_servers = AcceptQueueCounter::start(&Namespace::all(Vec::new(), &[]));
        let [at_full, at_idle] = count();
        let open: Vec<_> = (0..4)
            .map(|_| TcpStream::connect_timeout(&full, Duration::from_millis(200)))
            .collect();
        assert!(open.iter().any(Result::is_err), "{open:?}");
        let named = |found: Vec<AcceptQueue>| {
            let mut named = found.into_iter().filter(|one| one.server.is_some());
            named.next()
        };
        let found = named(at_full.found()).unwrap();
        let name = found.server.unwrap();
        assert!(name.ends_with(&format!(":{}", full.port())), "{name}");
        assert_eq!(found.backlog, Some(1));
        assert!(found.full >= 1);
        assert_eq!(named(at_idle.found()), None);
        let found = named(of_servers.of_servers(&me)).unwrap();
        assert_eq!(found.server.as_deref(), Some("me"));
        assert_eq!(named(of_servers.of_servers(&[])), None, "of other programs");
        let away = SocketAddr::from(([192, 0, 2, 1], full.port()));
        assert!(AcceptQueueAt::start(away).is_none());
    }
}
