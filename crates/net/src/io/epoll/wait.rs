//! Waiting for readiness, also on kernels without `epoll_pwait2` (Linux 5.11).

use std::io;
use std::os::fd::AsRawFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Epoll;

impl Epoll {
    /// Waits, and fills `ready`. A wait may end early without an event.
    pub(super) fn wait(&mut self, wait_ns: Option<u64>) -> io::Result<()> {
        let mut result = match self.waits_in_two_calls {
            true => self.wait_in_two(wait_ns),
            false => self.wait_ns(wait_ns),
        };
        // EPERM: seccomp filters may return it for system calls that they do not know.
        if !self.waits_in_two_calls && matches!(result, Err(libc::ENOSYS | libc::EPERM)) {
            self.waits_in_two_calls = true;
            result = self.wait_in_two(wait_ns);
        }
        match result {
            Ok(count) => {
                // SAFETY: the kernel wrote this number of events, which is at most the capacity.
                unsafe { self.ready.set_len(count) };
                Ok(())
            }
            Err(libc::EINTR) => Ok(()),
            Err(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// The number of events, or the `errno`.
    fn wait_ns(&mut self, wait_ns: Option<u64>) -> Result<usize, i32> {
        let time = wait_ns.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        });
        // SAFETY: the vector has room for the number of events given; the time is valid or null.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.ready.as_mut_ptr(),
                self.ready.capacity() as i32,
                time.as_ref().map_or(std::ptr::null(), |t| t as *const _),
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        usize::try_from(count).map_err(|_| errno())
    }

    /// The same by `ppoll`, which counts in nanoseconds too, and `epoll_pwait`, which does not wait.
    fn wait_in_two(&mut self, wait_ns: Option<u64>) -> Result<usize, i32> {
        if wait_ns != Some(0) {
            let limit = wait_ns.map(|ns| Timespec {
                tv_sec: (ns / 1_000_000_000) as i64,
                tv_nsec: (ns % 1_000_000_000) as _,
            });
            let mut polled = [PollFd::new(&self.epoll, PollFlags::IN)];
            poll(&mut polled, limit.as_ref()).map_err(|errno| errno.raw_os_error())?;
        }
        // SAFETY: the vector has room for the number of events given; no signal mask.
        let count = unsafe {
            libc::epoll_pwait(
                self.epoll.as_raw_fd(),
                self.ready.as_mut_ptr(),
                self.ready.capacity() as i32,
                0,
                std::ptr::null(),
            )
        };
        usize::try_from(count).map_err(|_| errno())
    }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
