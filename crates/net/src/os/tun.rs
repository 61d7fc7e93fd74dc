//! TUN devices: a program reads the packets that a network namespace sends into one, and the
//! namespace receives those that the program writes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use crate::os::check;

/// Makes a TUN device in the calling thread's network namespace. It is gone when the file is
/// closed. One read gives one IP packet, one write takes one; neither waits.
///
/// # Errors
/// When `/dev/net/tun` is missing or may not be used, or the name is taken.
pub fn open_tun(name: &str) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    // SAFETY: an ifreq is plain numbers and bytes, all zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
    // SAFETY: `request` is a valid ifreq that outlives the call, as TUNSETIFF takes one.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) })?;
    Ok(file)
}

/// Waits for files to become readable, with a limit in nanoseconds.
#[derive(Debug)]
pub struct Waiter {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    /// Whether the kernel has `epoll_pwait2` (5.11), which counts in nanoseconds.
    exact: bool,
}

impl Waiter {
    /// Waits for these files; they are known by their places in the list.
    ///
    /// # Errors
    /// When the kernel gives no more descriptors.
    pub fn new<F: AsRawFd>(files: &[F]) -> io::Result<Self> {
        // SAFETY: takes a number, touches no memory.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        for (number, file) in files.iter().enumerate() {
            let mut event = libc::epoll_event {
                events: libc::EPOLLIN as u32,
                u64: number as u64,
            };
            // SAFETY: `event` is valid for the call; the kernel copies it.
            check(unsafe {
                libc::epoll_ctl(
                    epoll.as_raw_fd(),
                    libc::EPOLL_CTL_ADD,
                    file.as_raw_fd(),
                    &mut event,
                )
            })?;
        }
        let room = files.len().max(1);
        Ok(Self {
            epoll,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; room],
            exact: true,
        })
    }

    /// Waits until a file can be read or the limit is over (`None`: for as long as it takes), and
    /// calls `readable` with the number of each.
    ///
    /// # Errors
    /// When the kernel cannot wait; a signal is no error.
    pub fn wait(
        &mut self,
        limit: Option<Duration>,
        mut readable: impl FnMut(usize),
    ) -> io::Result<()> {
        let mut result = if self.exact {
            self.wait_exact(limit)
        } else {
            Ok(0)
        };
        if matches!(&result, Err(e) if e.raw_os_error() == Some(libc::ENOSYS)) {
            self.exact = false;
        }
        if !self.exact {
            result = self.wait_ms(limit);
        }
        let count = match result {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => 0,
            other => other?,
        };
        for event in &self.events[..count as usize] {
            readable(event.u64 as usize);
        }
        Ok(())
    }

    fn wait_exact(&mut self, limit: Option<Duration>) -> io::Result<i32> {
        let timeout = limit.map(|limit| libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(limit.subsec_nanos() as i32),
        });
        let pointer = timeout
            .as_ref()
            .map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the events are a valid place of the length given; the time limit and the set of
        // signals are null or valid.
        let got = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as i32,
                pointer,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        check(got as i32)
    }

    fn wait_ms(&mut self, limit: Option<Duration>) -> io::Result<i32> {
        let limit_ms = limit.map_or(-1, |limit| limit.as_micros().div_ceil(1_000) as i32);
        // SAFETY: the events are a valid place of the length given.
        check(unsafe {
            libc::epoll_wait(
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as i32,
                limit_ms,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_waiter_tells_what_can_be_read_and_keeps_its_limit() {
        let (quiet, _quiet_end) = io::pipe().unwrap();
        let (loud, mut end) = io::pipe().unwrap();
        let mut waiter = Waiter::new(&[quiet.as_raw_fd(), loud.as_raw_fd()]).unwrap();
        let mut seen = Vec::new();
        let limit = Duration::from_micros(300);
        let start = std::time::Instant::now();
        waiter.wait(Some(limit), |n| seen.push(n)).unwrap();
        assert!(start.elapsed() >= limit && seen.is_empty());
        end.write_all(b"x").unwrap();
        waiter.wait(None, |n| seen.push(n)).unwrap();
        assert_eq!(seen, [1]);
        waiter.exact = false;
        waiter.wait(None, |n| seen.push(n)).unwrap();
        assert_eq!(seen, [1, 1]);
    }
}
