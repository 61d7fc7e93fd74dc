//! Wakes the thread that probes.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A bell: any thread rings, one waits for it beside its connections.
#[derive(Debug)]
pub struct Waker {
    /// Without it, as where descriptors are lacking, whoever waits looks up from time to time.
    ends: Option<(UnixStream, UnixStream)>,
}

impl Waker {
    /// A bell that has not rung.
    pub fn new() -> Waker {
        let pair = || -> io::Result<_> {
            let (rung, response_begun) = UnixStream::pair()?;
            rung.set_nonblocking(true)?;
            response_begun.set_nonblocking(true)?;
            Ok((rung, response_begun))
        };
        Waker { ends: pair().ok() }
    }

    /// Rings. Where nobody has heard the last ringing yet, this is a system call without effect.
    pub fn wake(&self) {
        if let Some(mut rung) = self.ends.as_ref().map(|(rung, _)| rung) {
            let _ = rung.write(&[1]);
        }
    }

    /// What becomes readable when it rings.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.ends
            .as_ref()
            .map(|(_, response_begun)| response_begun.as_fd())
    }

    /// Takes note of all that has rung.
    pub(crate) fn drain(&self) {
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
