//! Wakes a thread that sleeps in `poll`.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A self-pipe.
#[derive(Debug)]
pub struct Waker {
    /// `None` if descriptors ran out; the sleeper then polls.
    ends: Option<(UnixStream, UnixStream)>,
}

impl Waker {
    /// A waker without a pending wake-up.
    pub fn new() -> Waker {
        let pair = || -> io::Result<_> {
            let (rung, response_begun) = UnixStream::pair()?;
            rung.set_nonblocking(true)?;
            response_begun.set_nonblocking(true)?;
            Ok((rung, response_begun))
        };
        Waker { ends: pair().ok() }
    }

    /// Wakes the sleeper. If a wake-up is pending, this only costs a system call.
    pub fn wake(&self) {
        if let Some(mut rung) = self.ends.as_ref().map(|(rung, _)| rung) {
            let _ = rung.write(&[1]);
        }
    }

    /// Readable while a wake-up is pending.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.ends
            .as_ref()
            .map(|(_, response_begun)| response_begun.as_fd())
    }

    /// Clears pending wake-ups.
    pub fn drain(&self) {
        if let Some(mut response_begun) =
            self.ends.as_ref().map(|(_, response_begun)| response_begun)
        {
            let mut bytes = [0; 64];
            while response_begun.read(&mut bytes).is_ok_and(|n| n > 0) {}
        }
    }
}

impl Default for Waker {
    fn default() -> Waker {
        Waker::new()
    }
}
