//! Kernel timestamps of received data: `SO_TIMESTAMPNS` of `socket(7)`.
//!
//! The kernel takes the timestamp when a packet arrives, so that delays of the reading thread are
//! not in it. For a stream it reports the timestamp of the last segment that was read.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use crate::os;

/// Room for one control message with one timestamp.
pub(crate) const CONTROL_BYTES: usize = HEAD + 2 * LONG;
/// The kernel's `long`.
const LONG: usize = size_of::<isize>();
/// A control message's length, level and type; what follows is aligned as the length is.
const HEAD: usize = LONG + 8;
/// The two clocks are read again until both readings lie within this, so many times at most.
const TOGETHER_NS: u64 = 500;
const TRIES: u32 = 8;
/// Attempts to get a timestamp, a millisecond apart.
const TRIES_MAX: u32 = 100;

/// Enables timestamps on a socket, and on those that it accepts.
pub(crate) fn ask(fd: i32) -> io::Result<()> {
    os::set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Keeps timestamps enabled in the kernel while it lives. The kernel starts to take them only some
/// milliseconds after the first socket has enabled them, and stops with the last.
pub(crate) struct Kept {
    _both: (TcpStream, TcpStream),
}

impl Kept {
    /// Enables timestamps and waits until they come, a tenth of a second at most. `None` if
    /// loopback does not work; then the first data has no timestamps.
    pub(crate) fn begin() -> Option<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        let mut one = TcpStream::connect(listener.local_addr().ok()?).ok()?;
        let (other, from) = listener.accept().ok()?;
        if from != one.local_addr().ok()? {
            return None;
        }
        ask(other.as_raw_fd()).ok()?;
        other.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
        for _ in 0..TRIES_MAX {
            one.write_all(b".").ok()?;
            // Waits for it, and then takes it with its time.
            other.peek(&mut [0]).ok()?;
            if receive(other.as_raw_fd(), &mut [0], 0).1 > 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(Self {
            _both: (one, other),
        })
    }
}

/// Receives as `recv`, and returns the number of bytes and the timestamp of the last of them in
/// CLOCK_MONOTONIC, ns; 0 without one. Errors are `errno`s.
pub(crate) fn receive(fd: i32, buffer: &mut [u8], ahead_ns: i64) -> (Result<usize, i32>, u64) {
    let mut control = [0_u64; CONTROL_BYTES / 8];
    let mut piece = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: a msghdr is plain numbers and pointers, all zero is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    let received = os::again(|| {
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES as _;
        // SAFETY: `message` describes the buffer and the room for control messages, which outlive
        // the call.
        unsafe { libc::recvmsg(fd, &raw mut message, libc::MSG_DONTWAIT) }
    });
    let messages = control.map(u64::to_ne_bytes);
    let messages = &messages.as_flattened()[..(message.msg_controllen as usize).min(CONTROL_BYTES)];
    (received, arrival_ns(messages, ahead_ns).unwrap_or(0))
}

/// CLOCK_REALTIME less CLOCK_MONOTONIC, ns, from the attempt whose readings lie closest together.
pub(crate) fn ahead_ns() -> i64 {
    let mut best = (u64::MAX, 0);
    for _ in 0..TRIES {
        let before = os::now_ns();
        let real = os::real_ns();
        let apart = os::now_ns() - before;
        if apart < best.0 {
            best = (apart, real as i64 - (before + apart / 2) as i64);
        }
        if apart <= TOGETHER_NS {
            break;
        }
    }
    best.1
}

/// The timestamp in a control message, in CLOCK_MONOTONIC, ns; `None` without one.
pub(crate) fn arrival_ns(control: &[u8], ahead_ns: i64) -> Option<u64> {
    let int = |at: usize| {
        Some(i32::from_ne_bytes(
            control.get(at..at + 4)?.try_into().ok()?,
        ))
    };
    let long = |at: usize| {
        let bytes = control.get(at..at + LONG)?;
        Some(isize::from_ne_bytes(bytes.try_into().ok()?) as i64)
    };
    if int(LONG)? != libc::SOL_SOCKET || int(LONG + 4)? != libc::SCM_TIMESTAMPNS {
        return None;
    }
    let (s, ns) = (long(HEAD)?, long(HEAD + LONG)?);
    let real = s.checked_mul(1_000_000_000)?.checked_add(ns)?;
    u64::try_from(real - ahead_ns).ok().filter(|&at| at > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_and_nothing_else_is() {
        let message = |level: i32, kind: i32| {
            let mut bytes = vec![0; LONG];
            bytes.extend(level.to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(5_isize.to_ne_bytes());
            bytes.extend(7_isize.to_ne_bytes());
            bytes
        };
        let bytes = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
        assert_eq!(bytes.len(), CONTROL_BYTES);
        assert_eq!(arrival_ns(&bytes, 1_000_000_000), Some(4_000_000_007));
        assert_eq!(
            arrival_ns(&bytes, 6_000_000_000),
            None,
            "before the clock began"
        );
        assert_eq!(arrival_ns(&bytes[..CONTROL_BYTES - 1], 0), None);
        assert_eq!(arrival_ns(&message(libc::SOL_SOCKET, 1), 0), None);
        assert_eq!(arrival_ns(&[], 0), None);
    }

    #[test]
    fn the_offset_of_the_clocks_is_the_same_each_time() {
        let (one, other) = (ahead_ns(), ahead_ns());
        // Some microseconds; a slewed clock and a delayed thread included.
        assert!((one - other).abs() < 1_000_000, "{one} {other}");
        let now = os::real_ns() as i64 - one;
        assert!((now - os::now_ns() as i64).abs() < 50_000_000);
    }
}
