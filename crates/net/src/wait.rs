//! Waiting for a few descriptors, for threads that do little: no event loop is opened for them.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::time::Duration;

use crate::address::Address;
use crate::os::{check, stream_socket};

/// A descriptor that is waited for.
#[derive(Debug)]
pub struct Watch<'f> {
    /// The descriptor.
    pub fd: BorrowedFd<'f>,
    /// Whether it is waited for until it can be written to, and not until it can be read.
    pub write: bool,
    /// Whether it can be, or failed, as [`wait`] found it.
    pub ready: bool,
}

impl<'f> Watch<'f> {
    /// Waits until it can be read.
    pub fn read(fd: BorrowedFd<'f>) -> Watch<'f> {
        Watch {
            fd,
            write: false,
            ready: false,
        }
    }

    /// Waits until it can be written to.
    pub fn write(fd: BorrowedFd<'f>) -> Watch<'f> {
        Watch {
            fd,
            write: true,
            ready: false,
        }
    }
}

/// Waits until one of them is ready, or so long; for ever without a limit. A signal ends the
/// waiting early.
///
/// # Errors
/// When there are more than the process may have open, or no memory.
pub fn wait(watches: &mut [Watch<'_>], limit: Option<Duration>) -> io::Result<()> {
    let mut polled: Vec<libc::pollfd> = watches
        .iter()
        .map(|watch| libc::pollfd {
            fd: watch.fd.as_raw_fd(),
            events: if watch.write {
                libc::POLLOUT
            } else {
                libc::POLLIN
            },
            revents: 0,
        })
        .collect();
    // Up to the next millisecond, so that no time is spent on turns just before the limit.
    let limit_ms = limit.map_or(-1, |limit| {
        i32::try_from(limit.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
    });
    let count = polled.len() as libc::nfds_t;
    // SAFETY: the pointer and count describe `polled`.
    match check(unsafe { libc::poll(polled.as_mut_ptr(), count, limit_ms) }) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
        Err(error) => return Err(error),
    }
    for (watch, polled) in watches.iter_mut().zip(&polled) {
        watch.ready = polled.revents != 0;
    }
    Ok(())
}

/// Begins to open a connection, which can be written to once it is open or has failed;
/// [`TcpStream::take_error`] tells which then. It does not block.
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
