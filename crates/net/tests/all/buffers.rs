//! Receive buffers that run out, on both event loops.
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use net::{Buf, ConnId, Epoll, Event, Io, IoOptions, Uring};

fn open<I: Io>(buffers_max: u16) -> (I, SocketAddr) {
    open_with(IoOptions {
        outgoing: 1,
        accepted: 16,
        buffers: 4,
        buffers_max,
        buffer_size: 4096,
        files: true,
        stamps: false,
    })
}

fn open_with<I: Io>(options: IoOptions) -> (I, SocketAddr) {
    let mut io = I::open(options).unwrap();
    let listener = net::os::listen("127.0.0.1:0".parse().unwrap(), 16, false).unwrap();
    let address = listener.local_addr().unwrap();
    io.listen(listener).unwrap();
    (io, address)
}

fn turn<I: Io>(io: &mut I, each: impl FnMut(&mut I, Event) -> bool) {
    crate::loops::turn(io, Instant::now() + Duration::from_secs(20), each);
}

fn accept<I: Io>(io: &mut I, address: SocketAddr) -> (TcpStream, ConnId) {
    let client = TcpStream::connect(address).unwrap();
    let mut accepted = None;
    turn(io, |_, event| {
        if let Event::Accepted { conn, .. } = event {
            accepted = Some(conn);
        }
        accepted.is_some()
    });
    (client, accepted.unwrap())
}

/// Whoever holds buffers back gets more of them while there are any.
fn more_come_when_they_are_needed<I: Io>() {
    let (mut io, address) = open::<I>(64);
    let (mut client, _) = accept(&mut io, address);
    let writing = std::thread::spawn(move || client.write_all(&[7; 48 * 4096]));
    let mut held: Vec<Buf> = Vec::new();
    assert!(!io.scarce());
    turn(&mut io, |_, event| {
        if let Event::Data { buf, .. } = event {
            held.push(buf);
        }
        held.iter().map(Buf::len).sum::<usize>() == 48 * 4096
    });
    assert!(io.scarce());
    for buf in held {
        assert!(io.bytes(&buf).iter().all(|byte| *byte == 7));
        io.recycle(buf);
    }
    assert!(!io.scarce());
    writing.join().unwrap().unwrap();
}

/// All buffers are held back: nothing comes, at no cost, until one is given back.
fn none_are_left<I: Io>() {
    let (mut io, address) = open::<I>(0);
    let (mut client, _) = accept(&mut io, address);
    client.write_all(&[7; 6 * 4096]).unwrap();
    let mut held: Vec<Buf> = Vec::new();
    turn(&mut io, |_, event| {
        if let Event::Data { buf, .. } = event {
            held.push(buf);
        }
        held.len() == 4
    });
    let spent = net::os::thread_cpu_ns();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(200) {
        io.poll(Some(20_000_000)).unwrap();
        while let Some(event) = io.next_event() {
            assert!(!matches!(event, Event::Data { .. }));
        }
    }
    let spent_ms = (net::os::thread_cpu_ns() - spent) / 1_000_000;
    assert!(spent_ms < 100, "{spent_ms} ms of CPU for nothing");
    let mut got: usize = held.iter().map(Buf::len).sum();
    for buf in held {
        io.recycle(buf);
    }
    turn(&mut io, |io, event| {
        if let Event::Data { buf, .. } = event {
            got += buf.len();
            io.recycle(buf);
        }
        got == 6 * 4096
    });
}

/// Whoever pauses a connection at its first data gets little more.
fn a_pause_is_heeded<I: Io>() {
    let (mut io, address) = open_with::<I>(IoOptions {
        accepted: 16,
        files: true,
        ..IoOptions::default()
    });
    let (mut client, _) = accept(&mut io, address);
    let writing = std::thread::spawn(move || {
        let _ = client.write_all(&[7; 4 << 20]);
        client
    });
    // What fits into the buffers of the kernel has come.
    std::thread::sleep(Duration::from_millis(200));
    let (mut got, end) = (0, Instant::now() + Duration::from_millis(300));
    while Instant::now() < end {
        io.poll(Some(5_000_000)).unwrap();
        while let Some(event) = io.next_event() {
            if let Event::Data { conn, buf } = event {
                got += buf.len();
                io.pause(conn);
                io.recycle(buf);
            }
        }
    }
    assert!(0 < got && got <= 128 * 1024, "{}: {got} bytes", I::NAME);
    drop(io);
    writing.join().unwrap();
}

/// What a burst has taken is given back, but for twice what was in use since, and comes again.
fn memory_of_a_burst_is_released<I: Io>() {
    let (mut io, address) = open::<I>(64);
    let (mut client, _) = accept(&mut io, address);
    let mut held: Vec<Buf> = Vec::new();
    for round in 0..3_u8 {
        client.write_all(&[round; 48 * 4096]).unwrap();
        turn(&mut io, |_, event| {
            if let Event::Data { buf, .. } = event {
                held.push(buf);
            }
            held.iter().map(Buf::len).sum::<usize>() == 48 * 4096
        });
        assert_eq!(io.release_memory(), 0, "all are in use");
        let (mut last, count) = (held.pop(), held.len());
        for buf in held.drain(..) {
            assert!(io.bytes(&buf).iter().all(|byte| *byte == round));
            io.recycle(buf);
        }
        assert_eq!(io.release_memory(), 0, "they were in use since");
        let freed = io.release_memory();
        assert!(freed >= (count - 16) * 4096, "{}: {freed} bytes", I::NAME);
        // One that is still lent keeps its bytes.
        let last = last.take().unwrap();
        assert!(io.bytes(&last).iter().all(|byte| *byte == round));
        io.recycle(last);
    }
}

/// What is copied to be sent counts as held until it is sent or dropped.
fn copies_count_as_held<I: Io>() {
    let (mut io, address) = open::<I>(64);
    let mut deaf: Vec<_> = (0..2).map(|_| accept(&mut io, address)).collect();
    let piece = vec![7; 20 << 20];
    for (_, conn) in &deaf {
        for _ in 0..4 {
            io.send_copy(*conn, &piece);
        }
    }
    assert!(io.scarce() && io.is_full(), "{}", I::NAME);
    let (mut reads, reads_conn) = deaf.pop().unwrap();
    io.send_copy(reads_conn, &[8]);
    let reading = std::thread::spawn(move || {
        let (mut input, mut last) = (vec![0; 1 << 20], 0);
        while last != 8 {
            let count = reads.read(&mut input).unwrap();
            last = input[count - 1];
        }
    });
    turn(
        &mut io,
        |_, event| matches!(event, Event::Drained { conn } if conn == reads_conn),
    );
    reading.join().unwrap();
    assert!(io.scarce() && !io.is_full(), "{}", I::NAME);
    io.close(deaf[0].1);
    let end = Instant::now() + Duration::from_secs(10);
    while io.scarce() && Instant::now() < end {
        io.poll(Some(5_000_000)).unwrap();
        while io.next_event().is_some() {}
    }
    assert!(!io.scarce(), "{}", I::NAME);
}

#[test]
fn epoll() {
    copies_count_as_held::<Epoll>();
    more_come_when_they_are_needed::<Epoll>();
    a_pause_is_heeded::<Epoll>();
    memory_of_a_burst_is_released::<Epoll>();
    none_are_left::<Epoll>();
}

#[test]
fn io_uring() {
    if net::uring_unavailable().is_some() {
        return;
    }
    copies_count_as_held::<Uring>();
    more_come_when_they_are_needed::<Uring>();
    a_pause_is_heeded::<Uring>();
    memory_of_a_burst_is_released::<Uring>();
    none_are_left::<Uring>();
}

/// One that does not read what is forwarded to it holds one buffer, and nobody else up.
#[test]
fn io_uring_sends_from_elsewhere_when_none_are_left() {
    if net::uring_unavailable().is_some() {
        return;
    }
    let (mut io, address) = open::<Uring>(0);
    let (mut deaf, deaf_conn) = accept(&mut io, address);
    let (mut talker, talker_conn) = accept(&mut io, address);
    let bytes: Vec<u8> = (0..16 << 20).map(|at: u32| (at % 251) as u8).collect();
    let expected = bytes.clone();
    let writing = std::thread::spawn(move || {
        talker.write_all(&bytes).unwrap();
        talker
    });
    let mut passed = 0;
    turn(&mut io, |io, event| {
        if let Event::Data { conn, buf } = event {
            assert_eq!(conn, talker_conn);
            passed += buf.len();
            io.forward(deaf_conn, buf);
        }
        passed == expected.len()
    });
    assert!(io.queued(deaf_conn) > 4, "more wait than there are buffers");
    let (mut other, other_conn) = accept(&mut io, address);
    other.write_all(b"hello").unwrap();
    turn(&mut io, |io, event| {
        let Event::Data { conn, buf } = event else {
            return false;
        };
        assert_eq!((conn, io.bytes(&buf)), (other_conn, &b"hello"[..]));
        io.recycle(buf);
        true
    });
    let _talker = writing.join().unwrap();
    let size = expected.len();
    let reading = std::thread::spawn(move || {
        let mut got = vec![0; size];
        deaf.read_exact(&mut got).unwrap();
        got
    });
    turn(&mut io, |io, _| io.queued(deaf_conn) == 0);
    assert!(reading.join().unwrap() == expected, "every byte in order");
}

/// A buffer names memory of the loop that lent it: another loop does not take it.
fn another_loop_refuses<I: Io, J: Io>() {
    let (mut io, address) = open::<I>(0);
    let (mut client, _) = accept(&mut io, address);
    let (mut other, other_address) = open::<J>(0);
    let (_other_client, other_conn) = accept(&mut other, other_address);
    client.write_all(&[7; 3 * 4096]).unwrap();
    let mut held: Vec<Buf> = Vec::new();
    turn(&mut io, |_, event| {
        if let Event::Data { buf, .. } = event {
            held.push(buf);
        }
        held.len() == 3
    });
    let mut misuse = |take: &mut dyn FnMut(&mut J, Buf)| {
        let buf = held.pop().unwrap();
        let taken = catch_unwind(AssertUnwindSafe(|| take(&mut other, buf)));
        assert!(taken.is_err(), "{} took one of {}", J::NAME, I::NAME);
    };
    misuse(&mut |other, buf| {
        let _ = other.bytes(&buf);
    });
    misuse(&mut |other, buf| other.recycle(buf));
    misuse(&mut |other, buf| other.forward(other_conn, buf));
    // A buffer that no loop lent.
    let made = || Buf::new(3, 4000, 4000);
    assert!(catch_unwind(AssertUnwindSafe(|| other.bytes(&made()).len())).is_err());
}

#[test]
fn a_buffer_of_another_loop_is_refused() {
    another_loop_refuses::<Epoll, Epoll>();
    if net::uring_unavailable().is_some() {
        return;
    }
    another_loop_refuses::<Uring, Uring>();
    another_loop_refuses::<Epoll, Uring>();
    another_loop_refuses::<Uring, Epoll>();
}
