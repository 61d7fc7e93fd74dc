//! Waiting for a few descriptors without an event loop.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::address::Address;
use crate::os::{check, stream_socket};

/// A descriptor to wait for.
#[derive(Debug)]
pub struct Watch<'f> {
    pub fd: BorrowedFd<'f>,
    /// Whether to wait until it is writable instead of readable.
    pub write: bool,
    /// Whether [`wait`] found it ready or failed.
    pub ready: bool,
}

impl<'f> Watch<'f> {
    /// Waits until it is readable.
    pub fn read(fd: BorrowedFd<'f>) -> Watch<'f> {
        Watch {
            fd,
            write: false,
            ready: false,
        }
    }

    /// Waits until it is writable.
    pub fn write(fd: BorrowedFd<'f>) -> Watch<'f> {
        Watch {
            fd,
            write: true,
            ready: false,
        }
    }
}

/// Waits until one of them is ready or the limit is over; without a limit for ever. A signal ends
/// the wait early.
///
/// # Errors
/// When there are more than the process may have open, or no memory.
pub fn wait(watches: &mut [Watch<'_>], limit: Option<Duration>) -> io::Result<()> {
    let mut polled: Vec<PollFd<'_>> = watches
        .iter()
        .map(|watch| match watch.write {
            true => PollFd::from_borrowed_fd(watch.fd, PollFlags::OUT),
            false => PollFd::from_borrowed_fd(watch.fd, PollFlags::IN),
        })
        .collect();
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    match rustix::event::poll(&mut polled, limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    for (watch, polled) in watches.iter_mut().zip(&polled) {
        watch.ready = !polled.revents().is_empty();
    }
    Ok(())
}

/// Opens a connection without blocking. It is writable once it is open or has failed, which
/// [`TcpStream::take_error`] tells apart.
///
/// # Errors
/// When it fails at once, or there is no socket.
pub fn begin_connect(address: SocketAddr) -> io::Result<TcpStream> {
    let address = Address::Inet(address);
    let fd = stream_socket(address.family(), true)?;
    let (storage, len) = address.raw();
    // SAFETY: `storage` holds a socket address of length `len`.
    match check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const storage).cast(), len) }) {
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(TcpStream::from(fd))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsFd as _;
    use std::time::Instant;

    fn connect(address: SocketAddr) -> Option<io::Error> {
        let stream = match begin_connect(address) {
            Ok(stream) => stream,
            Err(error) => return Some(error),
        };
        let mut watches = [Watch::write(stream.as_fd())];
        while !watches[0].ready {
            wait(&mut watches, None).unwrap();
        }
        stream.take_error().unwrap()
    }

    #[test]
    fn a_connection_opens_or_says_why_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert!(connect(address).is_none());
        drop(listener);
        let refused = io::ErrorKind::ConnectionRefused;
        assert_eq!(connect(address).unwrap().kind(), refused);
    }

    #[test]
    fn waiting_ends_by_the_limit_and_by_what_is_readable() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let start = Instant::now();
        let mut watches = [Watch::read(listener.as_fd())];
        wait(&mut watches, Some(Duration::from_millis(30))).unwrap();
        assert!(!watches[0].ready && start.elapsed() >= Duration::from_millis(30));
        let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        wait(&mut watches, None).unwrap();
        assert!(watches[0].ready);
    }
}
