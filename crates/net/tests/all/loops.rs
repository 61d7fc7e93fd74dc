//! What the rooms rely on of an event loop, on both of them.
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use net::{ConnId, Epoll, Event, Io, IoOptions, Uring, os};

fn open<I: Io, const FILES: bool>() -> I {
    I::open(IoOptions {
        outgoing: 16,
        accepted: 16,
        buffers: 8,
        buffer_size: 4096,
        files: FILES,
        ..IoOptions::default()
    })
    .unwrap()
}

/// Polls until `each` returns true for an event.
pub(crate) fn turn<I: Io>(io: &mut I, until: Instant, mut each: impl FnMut(&mut I, Event) -> bool) {
    while Instant::now() < until {
        io.poll(Some(5_000_000)).unwrap();
        let mut done = false;
        while let Some(event) = io.next_event() {
            done |= each(io, event);
        }
        if done {
            return;
        }
    }
    panic!("nothing more happened");
}

/// Runs the loop until nothing more is under way.
fn settle<I: Io>(io: &mut I) {
    for _ in 0..3 {
        io.poll(Some(1_000_000)).unwrap();
        while io.next_event().is_some() {}
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

fn echoes<I: Io, const FILES: bool>() {
    let mut io = open::<I, FILES>();
    let listener = os::listen("127.0.0.1:0".parse().unwrap(), 64, false).unwrap();
    let address = listener.local_addr().unwrap();
    io.listen(listener).unwrap();
    let size = 1 << 20;
    let client = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        let sent: Vec<u8> = (0..size).map(|i| (i * 7 % 251) as u8).collect();
        let mut writer = stream.try_clone().unwrap();
        let copy = sent.clone();
        let writing = std::thread::spawn(move || {
            writer.write_all(&copy).unwrap();
            writer.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        writing.join().unwrap();
        assert!(got == sent, "what was sent comes back in order");
    });
    let mut ended = false;
    turn(&mut io, soon(), |io, event| {
        match event {
            Event::Accepted { .. } => {}
            Event::Data { conn, buf } => {
                io.forward(conn, buf);
                if io.queued(conn) > 3 {
                    io.pause(conn);
                }
            }
            Event::Drained { conn } => {
                io.resume(conn);
                return ended && io.queued(conn) == 0;
            }
            Event::Eof { conn } => {
                ended = true;
                io.finish(conn);
                return io.queued(conn) == 0;
            }
            other => panic!("unexpected {other:?}"),
        }
        false
    });
    settle(&mut io);
    client.join().unwrap();
}

fn tells_of_what_was_not_taken<I: Io, const FILES: bool>() {
    let mut io = open::<I, FILES>();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = io.add_target(&listener.local_addr().unwrap().into(), &[]);
    let mut conns = Vec::new();
    let mut peers = Vec::new();
    for _ in 0..2 {
        conns.push(io.connect(target, None).unwrap());
        turn(&mut io, soon(), |_, event| {
            matches!(event, Event::Connected { .. })
        });
        peers.push(listener.accept().unwrap().0);
    }
    settle(&mut io);
    assert!(!conns.iter().any(|conn| io.has_unread(*conn)));
    for peer in &mut peers {
        peer.write_all(b"x").unwrap();
    }
    std::thread::sleep(Duration::from_millis(30));
    io.poll(Some(100_000_000)).unwrap();
    // With io_uring, only connections that are files can tell; relays use those, and only they ask.
    let tells = FILES || I::NAME == "epoll";
    for left in [1, 0] {
        let Some(Event::Data { conn, buf }) = io.next_event() else {
            panic!("expected data");
        };
        io.recycle(buf);
        conns.retain(|one| *one != conn);
        assert_eq!(conns.len(), left);
        assert!(conns.iter().all(|one| io.has_unread(*one) == tells));
        assert!(!io.has_unread(conn));
    }
    drop(peers);
    std::thread::sleep(Duration::from_millis(30));
    io.poll(Some(100_000_000)).unwrap();
    let Some(Event::Eof { .. }) = io.next_event() else {
        panic!("expected the end");
    };
}

fn connects_sends_and_is_refused<I: Io, const FILES: bool>() {
    let mut io = open::<I, FILES>();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let target = io.add_target(&address.into(), &[]);
    let payload = io.add_payload(Arc::from(&b"hello"[..]));
    // More connections than slots, one after the other: slots come back.
    for round in 0..40 {
        let conn = io.connect(target, Some(payload)).unwrap();
        turn(
            &mut io,
            soon(),
            |_, event| matches!(event, Event::Connected { conn: c } if c == conn),
        );
        settle(&mut io);
        let (mut peer, _) = listener.accept().unwrap();
        let mut got = [0; 5];
        peer.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"hello", "round {round}");
        if round % 2 == 0 {
            drop(peer);
            turn(
                &mut io,
                soon(),
                |_, e| matches!(e, Event::Eof { conn: c } if c == conn),
            );
        }
        io.close(conn);
        io.poll(Some(0)).unwrap();
        while io.next_event().is_some() {}
    }
    drop(listener);
    let conn = io.connect(target, Some(payload)).unwrap();
    let mut errors = Vec::new();
    turn(&mut io, soon(), |_, event| match event {
        Event::ConnectFailed { conn: c, errno } if c == conn => {
            errors.push(errno);
            true
        }
        other => panic!("unexpected {other:?}"),
    });
    assert_eq!(errors, [libc::ECONNREFUSED]);
    io.close(conn);
    // Nothing more is told of a closed connection.
    io.poll(Some(1_000_000)).unwrap();
    assert!(io.next_event().is_none());
}

fn source_addresses_turn<I: Io, const FILES: bool>() {
    let mut io = open::<I, FILES>();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sources = [
        "127.0.0.2:0".parse().unwrap(),
        "127.0.0.3:0".parse().unwrap(),
    ];
    let target = io.add_target(&listener.local_addr().unwrap().into(), &sources);
    let mut seen = Vec::new();
    for _ in 0..4 {
        io.connect(target, None).unwrap();
        settle(&mut io);
        seen.push(listener.accept().unwrap().1.ip().to_string());
    }
    assert_eq!(seen, ["127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.3"]);
}

fn an_unusable_source_is_told<I: Io, const FILES: bool>() {
    let mut io = open::<I, FILES>();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sources = ["192.0.2.1:0".parse().unwrap()];
    let target = io.add_target(&listener.local_addr().unwrap().into(), &sources);
    match io.connect(target, None) {
        Err(e) => assert_eq!(e.raw_os_error(), Some(libc::EADDRNOTAVAIL)),
        Ok(conn) => turn(
            &mut io,
            soon(),
            |_, event| matches!(event, Event::ConnectFailed { conn: c, errno: libc::EADDRNOTAVAIL } if c == conn),
        ),
    }
}

fn waits_as_long_as_told<I: Io, const FILES: bool>() {
    let mut io = open::<I, FILES>();
    let start = Instant::now();
    io.poll(Some(3_000_000)).unwrap();
    assert!(start.elapsed() >= Duration::from_micros(2_900));
    io.poll(Some(0)).unwrap();
}

fn a_reset_is_told_once<I: Io, const FILES: bool>() {
    let mut io = open::<I, FILES>();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = io.add_target(&listener.local_addr().unwrap().into(), &[]);
    let payload = io.add_payload(Arc::from(&b"unread"[..]));
    let conn: ConnId = io.connect(target, Some(payload)).unwrap();
    settle(&mut io);
    let (peer, _) = listener.accept().unwrap();
    drop(peer); // unread bytes: the kernel answers with a reset
    let mut told = 0;
    let end = Instant::now() + Duration::from_millis(200);
    while Instant::now() < end {
        io.poll(Some(5_000_000)).unwrap();
        while let Some(event) = io.next_event() {
            match event {
                Event::Failed { conn: c, errno } => {
                    assert_eq!((c, errno), (conn, libc::ECONNRESET));
                    told += 1;
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    }
    assert_eq!(told, 1);
    io.close(conn);
}

/// The answer to a long request may come before the request has gone, and is told at once.
fn a_peer_that_answers_before_it_has_read<I: Io, const FILES: bool>() {
    let mut io = open::<I, FILES>();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = io.add_target(&listener.local_addr().unwrap().into(), &[]);
    let payload = io.add_payload(Arc::from(vec![b'x'; 64 << 20]));
    for is_first in [true, false] {
        let conn = io.connect(target, is_first.then_some(payload)).unwrap();
        turn(
            &mut io,
            soon(),
            |_, event| matches!(event, Event::Connected { conn: c } if c == conn),
        );
        if !is_first {
            io.send(conn, payload);
        }
        settle(&mut io);
        let (mut peer, _) = listener.accept().unwrap();
        peer.write_all(b"enough").unwrap();
        turn(&mut io, soon(), |io, event| match event {
            Event::Data { conn: c, buf } => {
                assert_eq!((c, io.bytes(&buf)), (conn, &b"enough"[..]));
                io.recycle(buf);
                true
            }
            other => panic!("unexpected {other:?}"),
        });
        assert!(io.queued(conn) > 0, "the request is still under way");
        io.close(conn);
        // Nothing more is told of it, and its bytes are let go of.
        settle(&mut io);
        drop(peer);
    }
}

macro_rules! on_all {
    ($($name:ident),*) => {
        mod uring {
            $(#[test] fn $name() { super::$name::<super::Uring, false>(); })*
        }
        mod uring_files {
            $(#[test] fn $name() { super::$name::<super::Uring, true>(); })*
        }
        mod epoll {
            $(#[test] fn $name() { super::$name::<super::Epoll, true>(); })*
        }
    };
}

on_all!(
    echoes,
    connects_sends_and_is_refused,
    tells_of_what_was_not_taken,
    source_addresses_turn,
    an_unusable_source_is_told,
    waits_as_long_as_told,
    a_reset_is_told_once,
    a_peer_that_answers_before_it_has_read
);

fn over_a_unix_socket<I: Io, const FILES: bool>() {
    let folder = std::env::temp_dir().join(format!("weigh-net-{}-{}", I::NAME, std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let mut question = [0; 4];
        peer.read_exact(&mut question).unwrap();
        peer.write_all(b"pong").unwrap();
        question
    });
    let mut io = I::open(IoOptions {
        files: FILES,
        stamps: false,
        ..IoOptions::default()
    })
    .unwrap();
    let address = net::Address::from(net::UnixPath::new(path).unwrap());
    let target = io.add_target(&address, &[]);
    let payload = io.add_payload(Arc::from(b"ping".as_slice()));
    let asked = io.connect(target, Some(payload)).unwrap();
    let mut answer = Vec::new();
    let limit = Instant::now() + Duration::from_secs(10);
    while answer.len() < 4 {
        assert!(Instant::now() < limit, "no answer");
        io.poll(Some(100_000_000)).unwrap();
        while let Some(event) = io.next_event() {
            if let Event::Data { conn, buf } = event {
                assert_eq!(conn, asked);
                answer.extend_from_slice(io.bytes(&buf));
                io.recycle(buf);
            }
        }
    }
    assert_eq!(&answer, b"pong");
    assert_eq!(&server.join().unwrap(), b"ping");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn unix_sockets_are_connected_to() {
    over_a_unix_socket::<Epoll, false>();
    if net::uring_unavailable().is_none() {
        over_a_unix_socket::<Uring, false>();
        over_a_unix_socket::<Uring, true>();
    }
}

fn peers_are_known<I: Io, const FILES: bool>() {
    let mut io = open::<I, FILES>();
    let listeners =
        [0, 1].map(|_| net::os::listen("127.0.0.1:0".parse().unwrap(), 16, false).unwrap());
    let addresses = [0, 1].map(|n: usize| listeners[n].local_addr().unwrap());
    for listener in listeners {
        io.listen(listener).unwrap();
    }
    for (number, address) in addresses.iter().enumerate() {
        let client = TcpStream::connect(address).unwrap();
        let mut seen = None;
        turn(&mut io, soon(), |io, event| {
            if let Event::Accepted { conn, listener } = event {
                seen = Some((listener as usize, io.peer(conn)));
                io.close(conn);
            }
            seen.is_some()
        });
        assert_eq!(seen, Some((number, Some(client.local_addr().unwrap()))));
    }
}

#[test]
fn accepted_connections_say_where_they_come_from() {
    peers_are_known::<Epoll, false>();
    if net::uring_unavailable().is_none() {
        peers_are_known::<Uring, true>();
    }
}

/// Whether the socket with this local address has `TCP_NODELAY`; `None` if no descriptor of the
/// process is that socket.
// An option of a socket that only the loop knows can be read by its number only.
#[allow(unsafe_code)]
fn has_no_delay(local: SocketAddr) -> Option<bool> {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let names = descriptors.flatten().map(|entry| entry.file_name());
    let numbers = names.filter_map(|name| name.to_str()?.parse::<i32>().ok());
    numbers.into_iter().find_map(|number| {
        // SAFETY: only asked for its name and an option, which fails if it is closed or no socket.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        let name = rustix::net::getsockname(fd).ok()?;
        let is_it = SocketAddr::try_from(name).is_ok_and(|name| name == local);
        is_it.then(|| rustix::net::sockopt::tcp_nodelay(fd).unwrap())
    })
}

fn a_target_may_have_no_delay<I: Io>() {
    let mut io = open::<I, false>();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let usual = io.add_target(&address.into(), &[]);
    let quick = io.add_target(&address.into(), &[]);
    io.set_no_delay(quick);
    // Twice: a slot is used again.
    for (target, expected) in [(quick, true), (usual, false), (quick, true)] {
        let conn = io.connect(target, None).unwrap();
        turn(
            &mut io,
            soon(),
            |_, event| matches!(event, Event::Connected { conn: c } if c == conn),
        );
        let (mut peer, local) = listener.accept().unwrap();
        assert_eq!(has_no_delay(local).unwrap_or(false), expected);
        io.send_copy(conn, b"a");
        io.send_copy(conn, b"b");
        settle(&mut io);
        let mut heard = [0; 2];
        peer.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"ab");
        peer.write_all(b"c").unwrap();
        turn(&mut io, soon(), |io, event| match event {
            Event::Data { conn: c, buf } => {
                assert_eq!((c, io.bytes(&buf)), (conn, &b"c"[..]));
                io.recycle(buf);
                true
            }
            _ => false,
        });
        io.close(conn);
        settle(&mut io);
        assert_eq!(peer.read(&mut heard).unwrap(), 0, "it was closed");
    }
}

#[test]
fn targets_with_several_sends_under_way_have_no_delay() {
    a_target_may_have_no_delay::<Epoll>();
    if net::uring_unavailable().is_none() {
        a_target_may_have_no_delay::<Uring>();
    }
}

/// What is sent quietly arrives, whatever was sent before it from the same memory; no event tells of it
/// if it is short.
fn quiet_sends_arrive<I: Io>() {
    let mut io = open::<I, false>();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = io.add_target(&listener.local_addr().unwrap().into(), &[]);
    let conn = io.connect(target, None).unwrap();
    let is_open = |event: &Event| matches!(event, Event::Connected { conn: c } if *c == conn);
    turn(&mut io, soon(), |_, event| is_open(&event));
    let (mut peer, _) = listener.accept().unwrap();
    for (round, length) in [3, 40, 7, 5_000, 16, 100_000, 300].into_iter().enumerate() {
        let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + round) as u8).collect();
        io.send_quietly(conn, &bytes);
        let mut copy = peer.try_clone().unwrap();
        let reading = std::thread::spawn(move || {
            let mut heard = vec![0; length];
            copy.read_exact(&mut heard).unwrap();
            copy.write_all(b"c").unwrap();
            heard
        });
        let mut drained = 0;
        turn(&mut io, soon(), |io, event| match event {
            Event::Data { buf, .. } => {
                io.recycle(buf);
                true
            }
            Event::Drained { .. } => {
                drained += 1;
                false
            }
            other => panic!("{other:?}"),
        });
        assert!(reading.join().unwrap() == bytes, "{} {length}", I::NAME);
        assert!(length > 16_384 || drained == 0, "{} {length}", I::NAME);
    }
    // Two at once, of which the first is not overwritten.
    io.send_quietly(conn, b"one");
    io.send_quietly(conn, b"two");
    settle(&mut io);
    let mut heard = [0; 6];
    peer.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"onetwo");
    drop(peer);
    turn(&mut io, soon(), |_, event| {
        matches!(event, Event::Eof { .. })
    });
    io.close(conn);
}

#[test]
fn what_is_sent_quietly_arrives() {
    quiet_sends_arrive::<Epoll>();
    if net::uring_unavailable().is_none() {
        quiet_sends_arrive::<Uring>();
    }
}
