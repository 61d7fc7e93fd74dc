//! TCP sockets of a network namespace, by sock_diag(7), laid out as in `linux/inet_diag.h`.
//!
//! The kernel filters them by state and local port. `/proc/net/tcp` has a line for each, also for the tens of thousands in
//! TIME_WAIT that a load without keep-alive leaves, and takes long to print.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::kernel::netlink::{AF_INET, AF_INET6, Message, Netlink, attribute, u32_at};

const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const IPPROTO_TCP: u8 = 6;
// A bit for each state, as in the kernel's `net/tcp_states.h`.
const ESTABLISHED: u32 = 1 << 1;
const TIME_WAIT: u32 = 1 << 6;
const CLOSE_WAIT: u32 = 1 << 8;
const LISTEN: u32 = 1 << 10;
const INET_DIAG_SKMEMINFO: u16 = 7;
/// The length of `struct inet_diag_sockid`, which begins with the local port. In a request for a list,
/// port 0 matches any.
const SOCKET_ID: usize = 48;

/// Offsets in `struct inet_diag_msg`, and its length.
mod at {
    pub(crate) const FAMILY: usize = 0;
    pub(crate) const PORT: usize = 4;
    pub(crate) const ADDRESS: usize = 8;
    pub(crate) const BACKLOG: usize = 60;
    pub(crate) const INODE: usize = 68;
    pub(crate) const END: usize = 72;
}

/// `SK_MEMINFO_DROPS` is the ninth number of that attribute.
const DROPS: usize = 8 * 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListeningSocket {
    pub(crate) address: SocketAddr,
    pub(crate) inode: u64,
    /// How many connections may wait for `accept`.
    pub(crate) backlog: u32,
    /// Packets that it has dropped so far, those that found its accept queue full among them. The
    /// kernel counts in 32 bits and begins again at 0.
    pub(crate) drops: u32,
}

/// Lists the sockets of the network namespace in which it was opened.
pub(crate) struct SocketDiag(Netlink);

impl SocketDiag {
    /// `None` where the socket cannot be opened. Whether the kernel lists TCP sockets shows only with
    /// the first list.
    pub(crate) fn open() -> Option<Self> {
        Netlink::open(NETLINK_SOCK_DIAG).ok().map(Self)
    }

    pub(crate) fn listening(&mut self) -> io::Result<Vec<ListeningSocket>> {
        let mut found = Vec::new();
        let extensions = 1 << (INET_DIAG_SKMEMINFO - 1);
        self.list(LISTEN, extensions, 0, |body| {
            found.extend(parse_listener(body))
        })?;
        Ok(found)
    }

    /// How many connections are open at a local port: ESTABLISHED or CLOSE_WAIT.
    pub(crate) fn open_at(&mut self, port: u16) -> io::Result<u64> {
        let mut count = 0;
        self.list(ESTABLISHED | CLOSE_WAIT, 0, port, |_| count += 1)?;
        Ok(count)
    }

    /// The local ports that connections in TIME_WAIT hold.
    pub(crate) fn ports_in_time_wait(&mut self) -> io::Result<BTreeSet<u16>> {
        let mut ports = BTreeSet::new();
        self.list(TIME_WAIT, 0, 0, |body| ports.extend(local_port(body)))?;
        Ok(ports)
    }

    /// Lists the sockets in these states, at a local port if it is not 0, with `extensions`.
    fn list(
        &mut self,
        states: u32,
        extensions: u8,
        port: u16,
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        for family in [AF_INET, AF_INET6] {
            let mut id = [0; SOCKET_ID];
            id[..2].copy_from_slice(&port.to_be_bytes());
            let header = [family, IPPROTO_TCP, extensions, 0];
            let mut request = Message::dump(SOCK_DIAG_BY_FAMILY, &header);
            request.raw(&states.to_ne_bytes()).raw(&id);
            self.0.list(&mut request, &mut take)?;
        }
        Ok(())
    }
}

fn parse_listener(body: &[u8]) -> Option<ListeningSocket> {
    let memory = attribute(body.get(at::END..)?, INET_DIAG_SKMEMINFO);
    let drops = memory.and_then(|numbers| numbers.get(DROPS..DROPS + 4));
    Some(ListeningSocket {
        address: SocketAddr::new(local_address(body)?, local_port(body)?),
        inode: u64::from(u32_at(body, at::INODE)),
        backlog: u32_at(body, at::BACKLOG),
        drops: drops.map_or(0, |number| u32_at(number, 0)),
    })
}

fn local_port(body: &[u8]) -> Option<u16> {
    let bytes = body.get(at::PORT..at::PORT + 2)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

fn local_address(body: &[u8]) -> Option<IpAddr> {
    let bytes: [u8; 16] = body.get(at::ADDRESS..at::ADDRESS + 16)?.try_into().ok()?;
    let [a, b, c, d, ..] = bytes;
    match body[at::FAMILY] {
        AF_INET => Some(Ipv4Addr::new(a, b, c, d).into()),
        _ => Some(Ipv6Addr::from(bytes).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn sockets_are_listed_by_state_family_and_port() {
        let mut diag = SocketDiag::open().unwrap();
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let listener = match TcpListener::bind(any) {
                Err(e) if any.starts_with('[') => {
                    testing::skip(&format!("sockets of IPv6 are listed: {e}"));
                    continue;
                }
                listener => listener.unwrap(),
            };
            let address = listener.local_addr().unwrap();
            let all = diag.listening().unwrap();
            let own: Vec<_> = all.iter().filter(|one| one.address == address).collect();
            assert_eq!(own.len(), 1, "{address}: {all:?}");
            assert!(own[0].backlog > 0 && own[0].inode > 0, "{own:?}");

            let mut client = TcpStream::connect(address).unwrap();
            let (server, _) = listener.accept().unwrap();
            assert_eq!(diag.open_at(address.port()).unwrap(), 1);
            assert!(!diag.ports_in_time_wait().unwrap().contains(&address.port()));
            // The side that closes first waits.
            drop(server);
            assert_eq!(client.read(&mut [0]).unwrap(), 0);
            drop(client);
            while !diag.ports_in_time_wait().unwrap().contains(&address.port()) {
                std::thread::yield_now();
            }
            assert_eq!(diag.open_at(address.port()).unwrap(), 0);
        }
    }
}
