//! Listening TCP sockets of a network namespace with what they dropped, by sock_diag(7), laid out
//! as in `linux/inet_diag.h`.

use std::io;

use crate::netlink::{Message, Netlink, attributes, u32_at};

const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
/// A bit for each state that is asked for.
const LISTEN: u32 = 1 << 10;
const INET_DIAG_SKMEMINFO: u16 = 7;
/// `struct inet_diag_sockid`, which a list leaves empty.
const SOCKET_ID: usize = 48;

/// Offsets in `struct inet_diag_msg`, and its length.
mod at {
    pub(super) const BACKLOG: usize = 60;
    pub(super) const INODE: usize = 68;
    pub(super) const END: usize = 72;
}

/// `SK_MEMINFO_DROPS` is the ninth number of that attribute.
const DROPS: usize = 8 * 4;

/// A listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListeningSocket {
    pub(crate) inode: u64,
    /// How many connections may wait for `accept`.
    pub(crate) backlog: u32,
    /// Packets that it has dropped so far, those that found its accept queue full among them. The
    /// kernel counts in 32 bits and begins again at 0.
    pub(crate) drops: u32,
}

/// Where the kernel lists the sockets of the network namespace in which this was opened.
pub(crate) struct SocketLister(Netlink);

impl SocketLister {
    /// `None` where this kernel has no sock_diag or refuses this process.
    pub(crate) fn open() -> Option<Self> {
        Netlink::open(NETLINK_SOCK_DIAG).ok().map(Self)
    }

    pub(crate) fn listening(&mut self) -> io::Result<Vec<ListeningSocket>> {
        let mut found = Vec::new();
        for family in [AF_INET, AF_INET6] {
            let extension = 1 << (INET_DIAG_SKMEMINFO - 1);
            let mut request =
                Message::dump(SOCK_DIAG_BY_FAMILY, &[family, IPPROTO_TCP, extension, 0]);
            request.raw(&LISTEN.to_ne_bytes()).raw(&[0; SOCKET_ID]);
            self.0
                .list(&mut request, |body| found.extend(socket(body)))?;
        }
        Ok(found)
    }
}

fn socket(body: &[u8]) -> Option<ListeningSocket> {
    let mut all = attributes(body.get(at::END..)?);
    let (_, memory) = all.find(|(kind, _)| *kind == INET_DIAG_SKMEMINFO)?;
    memory.get(DROPS..DROPS + 4)?;
    Some(ListeningSocket {
        inode: u64::from(u32_at(body, at::INODE)),
        backlog: u32_at(body, at::BACKLOG),
        drops: u32_at(memory, DROPS),
    })
}
