//! The way of operations into the queue that the kernel reads.

use std::io;
use std::time::Duration;

use io_uring::squeue;

use super::Uring;

/// How often in a row the kernel may refuse a full queue before the loop fails; from the tenth time
/// on, a pause comes first.
const REFUSALS_MAX: u32 = 100;
const WITHOUT_PAUSE: u32 = 10;
const PAUSE: Duration = Duration::from_millis(5);

/// How often in a row the kernel has taken no operation.
#[derive(Default)]
struct Refusals(u32);

impl Refusals {
    /// Counts a submission. Returns the `errno` once another is in vain.
    fn after(&mut self, submitted: io::Result<usize>) -> Option<i32> {
        let errno = match submitted {
            Ok(1..) => {
                self.0 = 0;
                return None;
            }
            Ok(0) => libc::EBUSY,
            Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
        };
        self.0 += 1;
        let may_pass = matches!(
            errno,
            libc::EAGAIN | libc::EBUSY | libc::EINTR | libc::ENOMEM
        );
        if !may_pass || self.0 >= REFUSALS_MAX {
            return Some(errno);
        }
        if self.0 >= WITHOUT_PAUSE {
            std::thread::sleep(PAUSE);
        }
        None
    }
}

impl Uring {
    pub(super) fn push(&mut self, entry: squeue::Entry) {
        // SAFETY: every entry names memory that outlives its operation: addresses, payloads and
        // queued bytes are boxed and owned by `self` until their completion was seen, and the
        // ring is dropped before them.
        let mut refusals = Refusals::default();
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            if self.failure.is_some() {
                return;
            }
            // The queue is full. If the kernel is busy, make room by waiting for one completion, which
            // stays in the completion queue.
            let submitted = self.ring.submit();
            let submitted = submitted.or_else(|_| self.ring.submit_and_wait(1));
            self.failure = refusals.after(submitted);
        }
    }

    pub(super) fn room_for(&mut self, entries: usize) {
        let full = {
            let queue = self.ring.submission();
            queue.capacity() - queue.len() < entries
        };
        if full {
            let _ = self.ring.submit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(errno: i32) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn a_kernel_that_takes_nothing_ends_the_loop() {
        let mut refusals = Refusals::default();
        let ends = |refusals: &mut Refusals, submitted: &dyn Fn() -> io::Result<usize>| {
            (0..2 * REFUSALS_MAX).find_map(|_| refusals.after(submitted()))
        };
        let busy = ends(&mut refusals, &|| refused(libc::EBUSY));
        assert_eq!((busy, refusals.0), (Some(libc::EBUSY), REFUSALS_MAX));
        assert_eq!(refusals.after(Ok(7)), None);
        assert_eq!(refusals.0, 0);
        assert_eq!(ends(&mut refusals, &|| Ok(0)), Some(libc::EBUSY));
        // What does not pass ends it at once.
        refusals = Refusals::default();
        assert_eq!(refusals.after(refused(libc::EBADF)), Some(libc::EBADF));
    }

    #[test]
    fn operations_for_a_ring_that_takes_none_are_not_pushed_for_ever() {
        use crate::io::{Io, IoOptions};
        use std::os::fd::AsRawFd as _;
        let Ok(mut uring) = Uring::open(IoOptions::default()) else {
            return;
        };
        let null = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: both descriptors are open; the queues stay mapped, and only the kernel's side of
        // them is gone.
        let replaced = unsafe { libc::dup2(null.as_raw_fd(), uring.ring.as_raw_fd()) };
        assert!(replaced >= 0);
        for _ in 0..2 * super::super::SUBMISSIONS {
            uring.push(io_uring::opcode::Nop::new().build());
        }
        assert!(uring.failure.is_some());
        let error = uring.poll(Some(0)).unwrap_err();
        assert_eq!(error.raw_os_error(), uring.failure);
    }

    #[test]
    fn a_loop_that_has_failed_says_so_and_can_be_dropped() {
        use crate::io::{Io, IoOptions};
        let Ok(mut uring) = Uring::open(IoOptions::default()) else {
            return;
        };
        uring.failure = Some(libc::EBUSY);
        let error = uring.poll(Some(0)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBUSY));
    }
}
