//! Sockets: listening, options and addresses.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, getpeername, getsockname, socket_with, sockopt,
};

use super::calls::{again, check};
use crate::address::Address;

/// Opens a listening socket: address reuse, and several threads' sockets on one port when
/// `share_port`; `TCP_NODELAY` passes on to what it accepts.
///
/// # Errors
/// When the address is in use, not of this machine, or not allowed.
pub fn listen(address: SocketAddr, backlog: i32, share_port: bool) -> io::Result<TcpListener> {
    let mut attempts = if address.port() == 0 { 8 } else { 1 };
    loop {
        attempts -= 1;
        match listen_once(address, backlog, share_port) {
            // The kernel may give a free port to two sockets that do not listen yet; the later one
            // tries again.
            Err(e) if e.kind() == io::ErrorKind::AddrInUse && attempts > 0 => {}
            result => return result,
        }
    }
}

fn listen_once(address: SocketAddr, backlog: i32, share_port: bool) -> io::Result<TcpListener> {
    let fd = stream_socket(Address::Inet(address).family(), false)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    sockopt::set_socket_reuseport(&fd, share_port)?;
    sockopt::set_tcp_nodelay(&fd, true)?;
    rustix::net::bind(&fd, &address)?;
    rustix::net::listen(&fd, backlog)?;
    Ok(TcpListener::from(fd))
}

/// The congestion control that the kernel gives new TCP connections in the network namespace of this
/// thread (`net.ipv4.tcp_congestion_control`), such as `cubic`; `None` if there are no sockets.
pub fn tcp_congestion() -> Option<String> {
    let socket = stream_socket(libc::AF_INET, false).ok()?;
    sockopt::tcp_congestion(&socket).ok()
}

pub(crate) fn stream_socket(family: i32, nonblocking: bool) -> io::Result<OwnedFd> {
    let mut flags = SocketFlags::CLOEXEC;
    flags.set(SocketFlags::NONBLOCK, nonblocking);
    let family = AddressFamily::from_raw(family as u16);
    Ok(socket_with(family, SocketType::STREAM, flags, None)?)
}

fn borrowed<'f>(fd: RawFd) -> BorrowedFd<'f> {
    // SAFETY: the callers have a slot or a socket that holds the descriptor open.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// The address of a socket's peer, if it has an IP address.
pub(crate) fn peer(fd: RawFd) -> Option<SocketAddr> {
    getpeername(borrowed(fd)).ok()??.try_into().ok()
}

/// The address of a socket's own end, if it has an IP address.
pub(crate) fn local(fd: RawFd) -> Option<SocketAddr> {
    getsockname(borrowed(fd)).ok()?.try_into().ok()
}

/// Makes closing the socket send a reset.
pub(crate) fn reset_when_closed(fd: RawFd) {
    // Where it fails, closing is as usual.
    let _ = sockopt::set_socket_linger(borrowed(fd), Some(Duration::ZERO));
}

/// Sets a socket's receive buffer, above the system's limit if need be.
///
/// # Errors
/// Without `CAP_NET_ADMIN` in the initial user namespace.
pub fn force_receive_buffer(fd: RawFd, bytes: usize) -> io::Result<()> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
}

pub(crate) fn set_option(fd: RawFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the pointer and length describe `value`.
    check(unsafe {
        libc::setsockopt(
            fd,
            level,
            name,
            (&raw const value).cast(),
            std::mem::size_of::<i32>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Receives without blocking; the number of bytes, or the `errno`.
#[inline]
pub(crate) fn receive(fd: RawFd, buffer: &mut [u8]) -> Result<usize, i32> {
    again(|| {
        // SAFETY: pointer and length describe the buffer.
        unsafe {
            libc::recv(
                fd,
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_DONTWAIT,
            )
        }
    })
}

/// Bytes that a TCP socket was given to send and its peer has not acknowledged; 0 if that is unknown
/// (`SIOCOUTQ`, tcp(7)).
pub(crate) fn unacknowledged(fd: RawFd) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the pointer is that of a writable integer.
    match unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &raw mut bytes) } {
        0 => usize::try_from(bytes).unwrap_or(0),
        _ => 0,
    }
}

/// Whether a receive would return at once, with data, the end or an error.
pub(crate) fn is_receivable(fd: RawFd) -> bool {
    let mut byte = 0_u8;
    let peeked = again(|| {
        // SAFETY: the pointer is that of one writable byte.
        unsafe {
            libc::recv(
                fd,
                (&raw mut byte).cast(),
                1,
                libc::MSG_DONTWAIT | libc::MSG_PEEK,
            )
        }
    });
    peeked != Err(libc::EAGAIN)
}
