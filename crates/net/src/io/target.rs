//! What connections are opened to.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};

use crate::address::{self, Address, RawAddress};
use crate::io::stamps;
use crate::os;

/// An address to connect to, and those to connect from, in turn.
pub(super) struct Target {
    pub(super) family: i32,
    /// In one place, as the kernel may read it later.
    pub(super) address: Box<RawAddress>,
    sources: Vec<RawAddress>,
    turn: usize,
    /// Whether its connections have `TCP_NODELAY`.
    pub(super) no_delay: bool,
}

impl Target {
    pub(super) fn new(address: &Address, sources: &[SocketAddr], no_delay: bool) -> Self {
        Self {
            family: address.family(),
            address: Box::new(address.raw()),
            sources: sources.iter().map(address::inet).collect(),
            turn: 0,
            no_delay,
        }
    }

    /// The next address to connect from; `None`: whichever the kernel takes.
    pub(super) fn next_source(&mut self) -> Option<&RawAddress> {
        let at = self.turn % self.sources.len().max(1);
        self.turn += 1;
        self.sources.get(at)
    }

    /// A socket for a connection, bound to the next source.
    pub(super) fn socket(&mut self, nonblocking: bool, stamped: bool) -> io::Result<OwnedFd> {
        let socket = os::stream_socket(self.family, nonblocking)?;
        let fd = socket.as_raw_fd();
        if self.no_delay && self.family != libc::AF_UNIX {
            os::set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        }
        if stamped {
            stamps::ask(fd)?;
        }
        if let Some((source, len)) = self.next_source() {
            os::set_option(fd, libc::SOL_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
            // SAFETY: `source` holds a socket address of length `len`.
            os::check(unsafe { libc::bind(fd, (&raw const *source).cast(), *len) })?;
        }
        Ok(socket)
    }
}

/// Why no connection is opened.
pub(super) fn all_in_use() -> io::Error {
    io::Error::other("all connection slots are in use")
}
