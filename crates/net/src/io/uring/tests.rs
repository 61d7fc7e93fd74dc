use std::collections::VecDeque;

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{Receiving, Uring};
use crate::io::accepting::faults::FailAccepts;
use crate::io::{Event, Io, IoOptions, uring_unavailable};
use crate::os;

/// Errors to inject into accepts.
#[derive(Default)]
pub(super) struct AcceptErrors {
    to_inject: VecDeque<i32>,
    /// Errors of accepts of these listeners, whose completions are still to be reported.
    injected: VecDeque<(usize, i32)>,
}

impl AcceptErrors {
    /// Takes the next error; returns whether an accept fails instead of being submitted.
    pub(super) fn inject(&mut self, listener: usize) -> bool {
        let errno = self.to_inject.pop_front();
        self.injected.extend(errno.map(|errno| (listener, errno)));
        errno.is_some()
    }
}

impl Uring {
    /// The event of the next injected failure, if it has one.
    pub(super) fn injected_error(&mut self) -> Option<Event> {
        while let Some((listener, errno)) = self.accept_errors.injected.pop_front() {
            if let Some(event) = self.accepted(listener, -errno, 0) {
                return Some(event);
            }
        }
        None
    }
}

impl FailAccepts for Uring {
    fn fail_accepts(&mut self, errnos: &[i32]) {
        // The accept under way was submitted before the errors were injected.
        self.cancel_accepts();
        while self.relisten.is_empty() {
            self.poll(Some(1_000_000)).unwrap();
            while self.next_event().is_some() {}
        }
        self.accept_errors.to_inject.extend(errnos);
    }
}

/// On a kernel that cannot end a receive after a number of bytes.
#[test]
fn without_a_limit_of_the_kernel_one_buffer_is_received_at_a_time() {
    if uring_unavailable().is_some() {
        return;
    }
    let mut io = Uring::open(IoOptions {
        accepted: 4,
        files: true,
        ..IoOptions::default()
    })
    .unwrap();
    io.how_to_receive = Receiving::Single;
    let listener = os::listen("127.0.0.1:0".parse().unwrap(), 4, false).unwrap();
    let address = listener.local_addr().unwrap();
    io.listen(listener).unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
    client.write_all(&bytes).unwrap();
    let (mut got, mut conns) = (Vec::new(), Vec::new());
    let end = Instant::now() + Duration::from_secs(10);
    while got.len() < bytes.len() && Instant::now() < end {
        io.poll(Some(5_000_000)).unwrap();
        let mut events = 0;
        while let Some(event) = io.next_event() {
            if let Event::Data { conn, buf } = event {
                events += 1;
                got.extend_from_slice(io.bytes(&buf));
                io.recycle(buf);
                io.pause(conn);
                conns.push(conn);
            }
        }
        assert!(events <= 1, "{events} in a turn");
        conns.drain(..).for_each(|conn| io.resume(conn));
    }
    assert!(got == bytes);
}

/// The kernel of the tests knows the limit, or is older than 6.17.
#[test]
fn a_limit_is_used_where_the_kernel_has_it() {
    if uring_unavailable().is_some() {
        return;
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap(), numbers.next().unwrap());
    let expected = match version >= (6, 18) {
        true => Receiving::Limited,
        false => Receiving::Single,
    };
    if version != (6, 17) {
        assert_eq!(Receiving::of(true), expected, "{release}");
    }
    assert_eq!(Receiving::of(false), Receiving::Endless);
}
