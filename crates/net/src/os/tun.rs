//! TUN devices: a program reads the packets that a network namespace sends into one, and the
//! namespace receives those that the program writes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
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
pub struct Waiter(Vec<libc::pollfd>);

impl Waiter {
    /// Waits for these files, which stay open; they are known by their places in the list.
    pub fn new<F: AsRawFd>(files: &[F]) -> Self {
        let polled = files.iter().map(|file| libc::pollfd {
            fd: file.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        });
        Self(polled.collect())
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
        let limit = limit.map(|limit| libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(limit.subsec_nanos() as i32),
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let count = self.0.len() as libc::nfds_t;
        // SAFETY: pointer and number describe the list; the time limit is valid or null.
        let got = unsafe { libc::ppoll(self.0.as_mut_ptr(), count, limit, std::ptr::null()) };
        match check(got) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other?,
        };
        for (number, file) in self.0.iter().enumerate() {
            if file.revents != 0 {
                readable(number);
            }
        }
        Ok(())
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
        let mut waiter = Waiter::new(&[quiet.as_raw_fd(), loud.as_raw_fd()]);
        let mut seen = Vec::new();
        let limit = Duration::from_micros(300);
        let start = std::time::Instant::now();
        waiter.wait(Some(limit), |n| seen.push(n)).unwrap();
        assert!(start.elapsed() >= limit && seen.is_empty());
        end.write_all(b"x").unwrap();
        waiter.wait(None, |n| seen.push(n)).unwrap();
        assert_eq!(seen, [1]);
    }
}
