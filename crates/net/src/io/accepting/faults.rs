//! Tests of both loops with injected accept errors.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::RETRY_NS;
use crate::io::{ConnId, Event, Io, IoOptions};
use crate::{Epoll, Uring, os};

/// A loop whose accepts can be made to fail.
pub(crate) trait FailAccepts: Io {
    /// Makes the next accepts of its only listener fail with these errors.
    fn fail_accepts(&mut self, errnos: &[i32]);
}

fn open<I: Io>(files: bool, accepted: u32) -> (I, SocketAddr) {
    let mut io = I::open(IoOptions {
        outgoing: 1,
        accepted,
        buffers: 4,
        buffer_size: 4096,
        files,
        ..IoOptions::default()
    })
    .unwrap();
    let listener = os::listen("127.0.0.1:0".parse().unwrap(), 16, false).unwrap();
    let address = listener.local_addr().unwrap();
    io.listen(listener).unwrap();
    (io, address)
}

/// Polls until a connection is accepted. Returns it and the failures before it.
fn accept<I: Io>(io: &mut I) -> (ConnId, Vec<i32>) {
    let end = Instant::now() + Duration::from_secs(20);
    let mut failures = Vec::new();
    while Instant::now() < end {
        io.poll(Some(10_000_000)).unwrap();
        while let Some(event) = io.next_event() {
            match event {
                Event::Accepted { conn, .. } => return (conn, failures),
                Event::AcceptFailed { errno } => failures.push(errno),
                other => panic!("unexpected {other:?}"),
            }
        }
    }
    panic!("nothing was accepted after {failures:?}");
}

fn polls_until_failure<I: Io>(io: &mut I) {
    loop {
        io.poll(Some(1_000_000)).unwrap();
        while let Some(event) = io.next_event() {
            if matches!(event, Event::AcceptFailed { .. }) {
                return;
            }
        }
    }
}

fn waits_while_descriptors_or_memory_lack<I: FailAccepts>(files: bool) {
    for errno in [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM] {
        let (mut io, address) = open::<I>(files, 16);
        io.fail_accepts(&[errno; 3]);
        let begun = Instant::now();
        let mut client = TcpStream::connect(address).unwrap();
        let (conn, failures) = accept(&mut io);
        assert_eq!(failures, [errno], "reported once");
        let passed_ns = begun.elapsed().as_nanos() as u64;
        assert!(
            passed_ns >= 2 * RETRY_NS,
            "{errno}: tried again after {passed_ns} ns"
        );
        // The accepted connection works like any other.
        client.write_all(b"hello").unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        'received: loop {
            assert!(Instant::now() < end);
            io.poll(Some(10_000_000)).unwrap();
            while let Some(event) = io.next_event() {
                if let Event::Data { conn: from, buf } = event {
                    assert_eq!((from, io.bytes(&buf)), (conn, &b"hello"[..]));
                    io.recycle(buf);
                    break 'received;
                }
            }
        }
    }
}

fn a_connection_that_closes_ends_the_wait<I: FailAccepts>(files: bool) {
    let (mut io, address) = open::<I>(files, 16);
    let _first = TcpStream::connect(address).unwrap();
    let (first, _) = accept(&mut io);
    io.fail_accepts(&[libc::EMFILE]);
    let begun = Instant::now();
    let _second = TcpStream::connect(address).unwrap();
    polls_until_failure(&mut io);
    io.close(first);
    let (_, failures) = accept(&mut io);
    assert!(failures.is_empty());
    let passed_ns = begun.elapsed().as_nanos() as u64;
    assert!(passed_ns < RETRY_NS, "only after {passed_ns} ns");
}

fn clients_that_have_gone_hold_up_nobody<I: FailAccepts>(files: bool) {
    let (mut io, address) = open::<I>(files, 16);
    io.fail_accepts(&[
        libc::ECONNABORTED,
        libc::EPROTO,
        libc::ECONNABORTED,
        libc::EINTR,
    ]);
    let _client = TcpStream::connect(address).unwrap();
    let (_, failures) = accept(&mut io);
    assert!(failures.is_empty(), "{failures:?}");
}

fn a_loop_that_stops_listening_does_not_try_again<I: FailAccepts>(files: bool) {
    let (mut io, address) = open::<I>(files, 16);
    io.fail_accepts(&[libc::EMFILE]);
    let _client = TcpStream::connect(address).unwrap();
    polls_until_failure(&mut io);
    io.stop_listening();
    let end = Instant::now() + Duration::from_nanos(2 * RETRY_NS);
    while Instant::now() < end {
        io.poll(Some(10_000_000)).unwrap();
        assert!(io.next_event().is_none());
    }
    assert!(TcpStream::connect(address).is_err(), "the socket is closed");
}

/// A loop closes clients for which it has no slot, and accepts again once it has.
fn slots_that_run_out<I: Io>(files: bool) {
    let (mut io, address) = open::<I>(files, 1);
    let _first = TcpStream::connect(address).unwrap();
    let (first, _) = accept(&mut io);
    for _ in 0..2 {
        let mut refused = TcpStream::connect(address).unwrap();
        let full = crate::SLOTS_FULL;
        let mut errno = None;
        while errno.is_none() {
            io.poll(Some(10_000_000)).unwrap();
            while let Some(event) = io.next_event() {
                match event {
                    Event::AcceptFailed { errno: given } => errno = Some(given),
                    other => panic!("unexpected {other:?}"),
                }
            }
        }
        assert_eq!(errno, Some(full));
        let limit = Some(Duration::from_secs(10));
        refused.set_read_timeout(limit).unwrap();
        let ended = std::io::Read::read(&mut refused, &mut [0]);
        assert!(ended.is_ok_and(|count| count == 0), "it is closed");
    }
    io.close(first);
    io.poll(Some(1_000_000)).unwrap();
    while io.next_event().is_some() {}
    let _next = TcpStream::connect(address).unwrap();
    accept(&mut io);
}

macro_rules! on_all {
    ($($name:ident),*) => {
        mod uring {
            $(#[test] fn $name() {
                if crate::uring_unavailable().is_none() {
                    super::$name::<super::Uring>(false);
                }
            })*
        }
        mod uring_files {
            $(#[test] fn $name() {
                if crate::uring_unavailable().is_none() {
                    super::$name::<super::Uring>(true);
                }
            })*
        }
        mod epoll {
            $(#[test] fn $name() { super::$name::<super::Epoll>(true); })*
        }
    };
}

on_all!(
    waits_while_descriptors_or_memory_lack,
    a_connection_that_closes_ends_the_wait,
    clients_that_have_gone_hold_up_nobody,
    a_loop_that_stops_listening_does_not_try_again,
    slots_that_run_out
);
