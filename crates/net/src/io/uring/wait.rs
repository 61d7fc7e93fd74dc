//! The one system call of a turn: it submits, and waits for completions.

use std::io;

use io_uring::types::{SubmitArgs, Timespec};

use super::Uring;
use crate::io::stamps;

/// Flags of the call, from `linux/io_uring.h`.
const GET_EVENTS: u32 = 1 << 0;
const EXT_ARG: u32 = 1 << 3;
const NO_IOWAIT: u32 = 1 << 7;

impl Uring {
    /// Submits, and waits for completions. By default the kernel accounts the wait as I/O wait, in
    /// idle times and I/O pressure; from 6.15 on a flag turns that off.
    fn wait(&mut self, args: SubmitArgs<'_, '_>) -> io::Result<usize> {
        if !self.ring.params().is_feature_no_iowait() {
            return self.ring.submitter().submit_with_args(1, &args);
        }
        let entries = self.ring.submission().len() as u32;
        let flags = GET_EVENTS | EXT_ARG | NO_IOWAIT;
        // SAFETY: `args` is the structure that the call reads with this flag, and lives until it
        // returns, as does the time limit in it; entries are as in `push`.
        unsafe { self.ring.submitter().enter(entries, 1, flags, Some(&args)) }
    }

    fn is_quiet(&mut self) -> bool {
        let queue = self.ring.submission();
        queue.is_empty() && !queue.taskrun() && !queue.cq_overflow()
    }

    pub(super) fn turn(&mut self, wait_ns: Option<u64>) -> io::Result<()> {
        if self.next < self.batch.len() {
            return Ok(());
        }
        if let Some(errno) = self.failure {
            return Err(io::Error::from_raw_os_error(errno));
        }
        let wait_ns = self.until_retry(wait_ns);
        self.rearm();
        self.buffers.publish();
        self.batch.clear();
        self.next = 0;
        let ready = !self.ring.completion().is_empty();
        let result = match wait_ns {
            // Polling: without submissions and completions no system call is made at all.
            Some(0) if !ready && self.is_quiet() => Ok(0),
            Some(0) => self.ring.submit_and_wait(0),
            _ if ready => self.ring.submit_and_wait(0),
            None => self.wait(SubmitArgs::new()),
            Some(ns) => {
                let time = Timespec::new()
                    .sec(ns / 1_000_000_000)
                    .nsec((ns % 1_000_000_000) as u32);
                self.wait(SubmitArgs::new().timespec(&time))
            }
        };
        match result {
            Ok(_) => {}
            Err(e)
                if matches!(
                    e.raw_os_error(),
                    Some(libc::ETIME | libc::EINTR | libc::EBUSY)
                ) => {}
            Err(e) => return Err(e),
        }
        self.batch.extend(self.ring.completion());
        if self.files {
            self.count_unread();
        }
        if let Some(stamps) = &mut self.stamps
            && !self.batch.is_empty()
        {
            stamps.ahead_ns = stamps::ahead_ns();
        }
        Ok(())
    }
}
