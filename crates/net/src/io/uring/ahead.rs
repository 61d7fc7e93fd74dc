//! How much may be received on a connection before its user can pause it.
//!
//! A multishot receive goes on while there are data: up to 32 buffers in one turn, 1 MiB with those of
//! the balancer. Newer kernels (from about 6.17 on) can be given a number of bytes to end after.

use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;

use io_uring::{IoUring, cqueue};

use super::buffers::BufferRing;
use super::entries::File;

/// Bytes after which a receive ends.
pub(super) const AHEAD_MAX: u32 = 128 * 1024;

/// How connections receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiving {
    /// Without end: for connections that are never paused for long.
    Endless,
    /// [`AHEAD_MAX`] bytes at a time.
    Limited,
    /// One buffer at a time, where the kernel knows no limit. It costs an operation per receive.
    Single,
}

impl Receiving {
    /// For connections that a user pauses, or for others.
    pub(super) fn of(pauses: bool) -> Self {
        match (pauses, pauses && kernel_limits()) {
            (false, _) => Self::Endless,
            (true, true) => Self::Limited,
            (true, false) => Self::Single,
        }
    }
}

/// Whether the kernel ends a receive after a number of bytes.
fn kernel_limits() -> bool {
    static LIMITS: OnceLock<bool> = OnceLock::new();
    if let Some(limits) = LIMITS.get() {
        return *limits;
    }
    // A failure says nothing of the kernel, so that the next loop asks again.
    try_limit().is_ok_and(|limits| *LIMITS.get_or_init(|| limits))
}

/// Receives with a limit of one byte. A kernel that takes no notice of it would go on.
fn try_limit() -> io::Result<bool> {
    let mut ring = IoUring::new(2)?;
    let buffers = BufferRing::register(&ring, 1, 1, 64)?;
    let (own, mut other) = UnixStream::pair()?;
    other.write_all(b"ab")?;
    let entry = File::Descriptor(own.as_raw_fd()).receive_limited(buffers.group(), 1);
    // SAFETY: the buffers and the socket live until the ring is dropped.
    unsafe { ring.submission().push(&entry) }.map_err(io::Error::other)?;
    while let Err(e) = ring.submit_and_wait(1) {
        if e.kind() != io::ErrorKind::Interrupted {
            return Err(e);
        }
    }
    let ended = ring.completion().next();
    // The kernel must release the buffers before they are freed.
    drop(ring);
    Ok(ended.is_some_and(|one| one.result() > 0 && !cqueue::more(one.flags())))
}
