//! Waiting for readiness, also on kernels without `epoll_pwait2` (Linux 5.11).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};

use super::{Epoll, TIMER};
use crate::os::check;

const MS_NS: u64 = 1_000_000;

/// The system call that waits.
#[derive(Default)]
pub(super) enum WaitCall {
    /// `epoll_pwait2`, with a limit in nanoseconds.
    #[default]
    Nanoseconds,
    /// `epoll_pwait`, with a limit in milliseconds. The timer ends a wait at a fraction of a
    /// millisecond; without a timer, the limit is rounded up.
    Milliseconds(Option<OwnedFd>),
}

impl Epoll {
    /// Waits, and fills `ready`. A wait may end early without an event.
    pub(super) fn wait(&mut self, wait_ns: Option<u64>) -> io::Result<()> {
        let mut result = match &self.wait_call {
            WaitCall::Nanoseconds => self.wait_ns(wait_ns),
            WaitCall::Milliseconds(timer) => {
                arm(timer.as_ref(), wait_ns);
                self.wait_ms(wait_ns)
            }
        };
        // EPERM: seccomp filters may return it for system calls that they do not know.
        if let (WaitCall::Nanoseconds, Err(libc::ENOSYS | libc::EPERM)) = (&self.wait_call, result)
        {
            let timer = self.open_timer().ok();
            arm(timer.as_ref(), wait_ns);
            self.wait_call = WaitCall::Milliseconds(timer);
            result = self.wait_ms(wait_ns);
        }
        match result {
            Ok(count) => {
                // SAFETY: the kernel wrote this number of events, which is at most the capacity.
                unsafe { self.ready.set_len(count) };
                if matches!(self.wait_call, WaitCall::Milliseconds(_)) {
                    self.ready.retain(|event| { event.u64 } != u64::from(TIMER));
                }
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

    fn wait_ms(&mut self, wait_ns: Option<u64>) -> Result<usize, i32> {
        let ms = wait_ns.map_or(-1, |ns| {
            i32::try_from(ns.div_ceil(MS_NS)).unwrap_or(i32::MAX)
        });
        // SAFETY: the vector has room for the number of events given; no signal mask.
        let count = unsafe {
            libc::epoll_pwait(
                self.epoll.as_raw_fd(),
                self.ready.as_mut_ptr(),
                self.ready.capacity() as i32,
                ms,
                std::ptr::null(),
            )
        };
        usize::try_from(count).map_err(|_| errno())
    }

    /// A timer whose expiry is an event, which [`Epoll::wait`] drops.
    fn open_timer(&self) -> io::Result<OwnedFd> {
        // SAFETY: takes numbers, touches no memory.
        let fd = check(unsafe {
            libc::timerfd_create(
                libc::CLOCK_MONOTONIC,
                libc::TFD_NONBLOCK | libc::TFD_CLOEXEC,
            )
        })?;
        // SAFETY: the descriptor is new and has no other owner.
        let timer = unsafe { OwnedFd::from_raw_fd(fd) };
        let data = EventData::new_u64(TIMER.into());
        epoll::add(&self.epoll, &timer, data, EventFlags::IN | EventFlags::ET)?;
        Ok(timer)
    }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Sets the timer, unless the limit is in whole milliseconds.
fn arm(timer: Option<&OwnedFd>, wait_ns: Option<u64>) {
    let (Some(timer), Some(ns)) = (timer, wait_ns.filter(|ns| ns % MS_NS > 0)) else {
        return;
    };
    let zero = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let time = libc::itimerspec {
        it_interval: zero,
        it_value: libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        },
    };
    // SAFETY: `time` is valid; the earlier value is not asked for. If the call fails, the wait is
    // rounded up.
    unsafe { libc::timerfd_settime(timer.as_raw_fd(), 0, &time, std::ptr::null_mut()) };
}
