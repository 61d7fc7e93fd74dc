//! UDP sockets: many datagrams per system call, with segmentation offload (GSO, `UDP_SEGMENT`) and
//! receive offload (GRO, `UDP_GRO`) if the kernel has them.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::address;
use crate::io::stamps;
use crate::os;

mod control;
mod received;
#[cfg(test)]
mod tests;

pub use received::{Arrival, Received};

/// Size of the socket's buffers in each direction; the system may allow less.
const SOCKET_BYTES: i32 = 4 << 20;
/// The most datagrams in one send, and the most bytes of them: limits of the kernel.
pub(crate) const SEGMENTS_MAX: usize = 64;
const BYTES_MAX: usize = 65_507;

/// Why datagrams were not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The socket's buffer is full; the caller sends again later.
    Full,
    /// The datagrams are lost, for this `errno`.
    Lost(i32),
}

/// A UDP socket. It never blocks.
#[derive(Debug)]
pub struct Datagrams {
    fd: OwnedFd,
    is_connected: bool,
    /// The largest number of datagrams in one send; 1 without GSO.
    segments_max: Cell<usize>,
    /// Whether the kernel has GSO but a send with it was refused (EIO or EINVAL).
    gso_failed: Cell<bool>,
    has_gro: bool,
    stamps: bool,
}

fn socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes numbers, touches no memory.
    let fd = os::check(unsafe { libc::socket(family, kind, 0) })?;
    // SAFETY: the descriptor is new and has no other owner.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // Datagrams are never fragmented: QUIC finds out what size fits (RFC 9000 14). IPv6 sockets
    // have their own option for this.
    let (level, name, value) = match address {
        SocketAddr::V4(_) => (libc::SOL_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
        SocketAddr::V6(_) => (
            libc::SOL_IPV6,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_PROBE,
        ),
    };
    os::set_option(fd.as_raw_fd(), level, name, value)?;
    let raw = fd.as_raw_fd();
    for (forced, plain) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    ] {
        if os::set_option(raw, libc::SOL_SOCKET, forced, SOCKET_BYTES).is_err() {
            os::set_option(raw, libc::SOL_SOCKET, plain, SOCKET_BYTES)?;
        }
    }
    Ok(fd)
}

fn bind(fd: &OwnedFd, address: SocketAddr) -> io::Result<()> {
    let (raw, len) = address::inet(&address);
    // SAFETY: `raw` holds a socket address of length `len`.
    os::check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const raw).cast(), len) }).map(drop)
}

impl Datagrams {
    /// A client's socket, which sends to and receives from this address only. `stamps`: with kernel
    /// timestamps.
    ///
    /// # Errors
    /// When there is no free descriptor or port, or no route.
    pub fn connect(
        to: SocketAddr,
        source: Option<SocketAddr>,
        stamps: bool,
    ) -> io::Result<Datagrams> {
        let fd = socket(to)?;
        if let Some(source) = source {
            bind(&fd, source)?;
        }
        let (raw, len) = address::inet(&to);
        // SAFETY: `raw` holds a socket address of length `len`.
        os::check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const raw).cast(), len) })?;
        Self::over(fd, true, stamps)
    }

    /// A server's socket. With `share_port`, several sockets share the port, and the kernel chooses
    /// one by the client's address.
    ///
    /// # Errors
    /// When the address is in use, does not belong to this machine, or is not allowed.
    pub fn listen(address: SocketAddr, share_port: bool, stamps: bool) -> io::Result<Datagrams> {
        let fd = socket(address)?;
        if share_port {
            os::set_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        }
        if address.ip().is_unspecified() {
            // Answers have to come from the address that the request was sent to.
            let (level, name) = match address {
                SocketAddr::V4(_) => (libc::SOL_IP, libc::IP_PKTINFO),
                SocketAddr::V6(_) => (libc::SOL_IPV6, libc::IPV6_RECVPKTINFO),
            };
            os::set_option(fd.as_raw_fd(), level, name, 1)?;
        }
        bind(&fd, address)?;
        Self::over(fd, false, stamps)
    }

    fn over(fd: OwnedFd, is_connected: bool, with_stamps: bool) -> io::Result<Datagrams> {
        let raw = fd.as_raw_fd();
        if with_stamps {
            stamps::ask(raw)?;
        }
        // Kernels without these options refuse them.
        let has_gso = os::set_option(raw, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok();
        let has_gro = os::set_option(raw, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok();
        Ok(Datagrams {
            fd,
            is_connected,
            segments_max: Cell::new(if has_gso { SEGMENTS_MAX } else { 1 }),
            gso_failed: Cell::new(false),
            has_gro,
            stamps: with_stamps,
        })
    }

    pub fn local(&self) -> Option<SocketAddr> {
        os::local(self.fd.as_raw_fd())
    }

    /// How many datagrams of one size can be sent at once; 1 without GSO.
    #[inline]
    pub fn segments_max(&self) -> usize {
        self.segments_max.get()
    }

    /// Whether a segmented send was refused, so that datagrams are now sent one by one.
    pub fn gso_failed(&self) -> bool {
        self.gso_failed.get()
    }

    /// Whether the kernel joins datagrams that arrive together.
    pub fn has_gro(&self) -> bool {
        self.has_gro
    }

    /// Receives what has arrived, as much as `into` can hold. Returns whether there may be more; if
    /// not, the socket becomes readable again when more arrives.
    ///
    /// # Errors
    /// The `errno`. On a client's socket it may come from an ICMP message, such as ECONNREFUSED.
    pub fn receive(&self, into: &mut Received) -> Result<bool, i32> {
        into.receive(self.fd.as_raw_fd(), self.stamps)
    }

    /// Sends bytes as datagrams of `segment` bytes each, of which the last may be shorter; as one
    /// datagram if `segment` is `None`. `to` is the receiver and, if it matters, the address to
    /// send from; it is `None` on a client's socket.
    ///
    /// # Errors
    /// When they cannot be sent now, or are lost.
    pub fn send(
        &self,
        to: Option<(SocketAddr, Option<IpAddr>)>,
        bytes: &[u8],
        segment: Option<usize>,
    ) -> Result<(), SendError> {
        debug_assert!(to.is_some() != self.is_connected);
        let segment = segment.filter(|segment| *segment < bytes.len());
        let Some(segment) = segment else {
            return self.send_one(to, bytes, None);
        };
        if self.segments_max.get() > 1 && bytes.len() <= BYTES_MAX {
            match self.send_one(to, bytes, Some(segment)) {
                Err(SendError::Lost(libc::EIO | libc::EINVAL)) => {
                    // Some network devices do not support it.
                    self.segments_max.set(1);
                    self.gso_failed.set(true);
                }
                other => return other,
            }
        }
        for one in bytes.chunks(segment) {
            match self.send_one(to, one, None) {
                // `Full` counts as lost, which QUIC repairs: a retry would repeat what was sent.
                Ok(()) | Err(SendError::Full) => {}
                lost => return lost,
            }
        }
        Ok(())
    }

    fn send_one(
        &self,
        to: Option<(SocketAddr, Option<IpAddr>)>,
        bytes: &[u8],
        segment: Option<usize>,
    ) -> Result<(), SendError> {
        let mut piece = libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let mut name = to.map(|(to, _)| address::inet(&to));
        let mut messages = control::Messages::default();
        if let Some(segment) = segment {
            messages.segment(segment as u16);
        }
        if let Some((_, Some(source))) = to {
            messages.source(source);
        }
        // SAFETY: a msghdr is plain numbers and pointers, all zero is valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        if let Some((raw, len)) = &mut name {
            message.msg_name = (&raw mut *raw).cast();
            message.msg_namelen = *len;
        }
        messages.attach(&mut message);
        let sent = os::again(|| {
            // SAFETY: `message` describes bytes, an address and control messages that outlive the
            // call, which writes to none of them.
            unsafe { libc::sendmsg(self.fd.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT) }
        });
        match sent {
            Ok(_) => Ok(()),
            Err(libc::EAGAIN | libc::ENOBUFS) => Err(SendError::Full),
            Err(errno) => Err(SendError::Lost(errno)),
        }
    }

    /// Waits until there is something to receive, but no longer than this. For callers without an
    /// event loop.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn wait(&self, limit: std::time::Duration) -> io::Result<()> {
        let mut poll = libc::pollfd {
            fd: self.fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // Rounded up, so that a wait for a timer does not end before it.
        let ms = limit.as_nanos().div_ceil(1_000_000).min(60_000) as i32;
        // SAFETY: the pointer is to one valid structure.
        let ready = unsafe { libc::poll(&raw mut poll, 1, ms) };
        match os::check(ready) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => Err(e),
            _ => Ok(()),
        }
    }
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Datagrams {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
