//! Sessions over the real event loops, client and server in one thread each.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use net::{Epoll, Event, Handshake, Io, IoOptions, TLS_FAILED, Uring, os};
use rustls::{ClientConnection, HandshakeKind, StreamOwned};
use tls::{
    Authority, ClientSettings, ClientTls, KeyType, Secure, ServerSettings, ServerTls, Trust,
    Version,
};

const LIMIT: Duration = Duration::from_secs(30);

fn options() -> IoOptions {
    IoOptions {
        outgoing: 16,
        accepted: 16,
        ..IoOptions::default()
    }
}

struct Pair {
    settings: ClientSettings,
    server: ServerSettings,
}

fn pair() -> Pair {
    let authority = Authority::new().unwrap();
    let names = ["localhost".to_string(), "127.0.0.1".into()];
    let issued = authority.issue(&names, KeyType::EcdsaP256).unwrap();
    let settings = ClientSettings {
        trust: Trust::Authorities(authority.certificate()),
        ..ClientSettings::new("localhost")
    };
    Pair {
        settings,
        server: ServerSettings::new(issued.identity),
    }
}

/// A server that does `each` with every event. Returns its address.
fn server<I: Io>(
    settings: &ServerSettings,
    mut each: impl FnMut(&mut Secure<I>, Event) + Send + 'static,
) -> SocketAddr {
    let tls = ServerTls::new(settings, "the test").unwrap();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let listener = os::listen("127.0.0.1:0".parse().unwrap(), 16, false).unwrap();
        sender.send(listener.local_addr().unwrap()).unwrap();
        let io = I::open(options()).unwrap();
        let mut io = Secure::over(io, &options()).with_servers(vec![Some(tls)]);
        io.listen(listener).unwrap();
        let end = Instant::now() + LIMIT;
        while Instant::now() < end {
            io.poll(Some(10_000_000)).unwrap();
            while let Some(event) = io.next_event() {
                each(&mut io, event);
            }
        }
    });
    receiver.recv().unwrap()
}

/// A server that sends back what it gets, and closes after `CLOSE`. Returns its address.
fn echo<I: Io>(settings: &ServerSettings) -> SocketAddr {
    server::<I>(settings, |io, event| match event {
        Event::Data { conn, buf } => match io.bytes(&buf).ends_with(b"CLOSE") {
            true => {
                io.recycle(buf);
                io.close(conn);
            }
            false => io.forward(conn, buf),
        },
        Event::Eof { conn } | Event::Failed { conn, .. } => io.close(conn),
        _ => {}
    })
}

#[derive(Debug, PartialEq)]
enum End {
    Closed,
    Failed(String),
}

/// Sends `bytes` on a new connection, awaits as many, then asks for the end.
fn talk<I: Io>(
    io: &mut Secure<I>,
    target: net::TargetId,
    bytes: &[u8],
) -> (Option<Handshake>, Vec<u8>, End) {
    let conn = io.connect(target, None).unwrap();
    let mut heard = Vec::new();
    let mut handshake = None;
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        io.poll(Some(10_000_000)).unwrap();
        while let Some(event) = io.next_event() {
            match event {
                Event::Connected { .. } => {
                    handshake = io.handshake(conn).copied();
                    io.send_copy(conn, bytes);
                }
                Event::Data { buf, .. } => {
                    heard.extend_from_slice(io.bytes(&buf));
                    io.recycle(buf);
                    if heard.len() == bytes.len() {
                        io.send_copy(conn, b"CLOSE");
                    }
                }
                Event::Eof { .. } => {
                    io.close(conn);
                    return (handshake, heard, End::Closed);
                }
                Event::Failed { errno, .. } | Event::ConnectFailed { errno, .. } => {
                    let why = match errno {
                        TLS_FAILED => io.failure(conn).unwrap().to_string(),
                        errno => std::io::Error::from_raw_os_error(errno).to_string(),
                    };
                    io.close(conn);
                    return (handshake, heard, End::Failed(why));
                }
                _ => {}
            }
        }
    }
    panic!("no end within {LIMIT:?}");
}

fn client<I: Io>(settings: &ClientSettings, to: SocketAddr) -> (Secure<I>, net::TargetId) {
    let tls = ClientTls::new(settings).unwrap();
    let mut io =
        Secure::over(I::open(options()).unwrap(), &options()).with_clients(vec![Some(tls)]);
    let target = io.add_tls_target(&to.into(), &[], Some(0));
    (io, target)
}

fn whatever_is_sent_comes_back<I: Io>() {
    let pair = pair();
    let to = echo::<I>(&pair.server);
    let (mut io, target) = client::<I>(&pair.settings, to);
    let long: Vec<u8> = (0..1_000_000u32).map(|n| (n * 7) as u8).collect();
    for bytes in [&b"a"[..], &long] {
        let (handshake, heard, end) = talk(&mut io, target, bytes);
        assert!(heard == bytes, "{} of {}", heard.len(), bytes.len());
        assert_eq!(end, End::Closed);
        let handshake = handshake.unwrap();
        assert!(handshake.opened_ns > 0 && handshake.established_ns > handshake.opened_ns);
        assert_eq!(
            (
                handshake.version,
                handshake.suite,
                handshake.group,
                handshake.key
            ),
            (
                "1.3",
                "TLS_AES_128_GCM_SHA256",
                Some("x25519"),
                Some("ecdsa-p256")
            )
        );
        assert!(!handshake.is_resumed);
    }
    let wire = io.wire_bytes();
    assert!(wire.sent > 1_000_000 && wire.read > 1_000_000, "{wire:?}");
}

#[test]
fn whatever_is_sent_comes_back_on_io_uring() {
    if net::uring_unavailable().is_none() {
        whatever_is_sent_comes_back::<Uring>();
    }
}

#[test]
fn whatever_is_sent_comes_back_on_epoll() {
    whatever_is_sent_comes_back::<Epoll>();
}

#[test]
fn sessions_are_resumed_only_where_that_was_asked_for() {
    for version in [Version::Tls12, Version::Tls13] {
        for resumption in [false, true] {
            let mut pair = pair();
            pair.settings.resumption = resumption;
            pair.settings.version = Some(version);
            let to = echo::<Epoll>(&pair.server);
            let (mut io, target) = client::<Epoll>(&pair.settings, to);
            let resumed = [(); 3].map(|()| {
                let (handshake, _, _) = talk(&mut io, target, b"x");
                let handshake = handshake.unwrap();
                assert_eq!(handshake.version, version.name());
                handshake.is_resumed
            });
            assert_eq!(resumed, [false, resumption, resumption], "{version:?}");
        }
    }
}

/// As when a load turns to another subject and back: all connections are opened again at once.
#[test]
fn connections_that_open_at_the_same_time_are_all_resumed() {
    const CONNECTIONS: usize = 12;
    let mut pair = pair();
    pair.settings.resumption = true;
    let to = echo::<Epoll>(&pair.server);
    let client = ClientTls::new(&pair.settings).unwrap();
    let ask = |stream: &mut StreamOwned<ClientConnection, TcpStream>| {
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0]).unwrap();
        stream.conn.handshake_kind() == Some(HandshakeKind::Resumed)
    };
    for number in 0..CONNECTIONS {
        let mut stream = client.connect(to).unwrap();
        assert_eq!(ask(&mut stream), number > 0);
    }
    let mut streams: Vec<_> = (0..CONNECTIONS)
        .map(|_| client.connect(to).unwrap())
        .collect();
    let resumed = streams.iter_mut().filter_map(|one| ask(one).then_some(()));
    assert_eq!(resumed.count(), CONNECTIONS);
}

#[test]
fn a_certificate_of_another_name_or_authority_is_refused_unless_anything_is_accepted() {
    let mut pair = pair();
    let to = echo::<Epoll>(&pair.server);
    let failure = |settings: &ClientSettings| {
        let (mut io, target) = client::<Epoll>(settings, to);
        match talk(&mut io, target, b"x").2 {
            End::Failed(why) => why,
            End::Closed => "none".into(),
        }
    };
    assert_eq!(failure(&pair.settings), "none");
    pair.settings.server_name = "elsewhere".into();
    let why = failure(&pair.settings);
    assert!(why.contains("not valid for name"), "{why}");
    pair.settings.server_name = "127.0.0.1".into();
    assert_eq!(failure(&pair.settings), "none");
    let stranger = Authority::new().unwrap();
    pair.settings.trust = Trust::Authorities(stranger.certificate());
    let why = failure(&pair.settings);
    assert!(why.contains("certificate"), "{why}");
    pair.settings.trust = Trust::Anything;
    pair.settings.server_name = "elsewhere".into();
    assert_eq!(failure(&pair.settings), "none");
}

#[test]
fn what_both_sides_cannot_agree_on_is_told() {
    let mut pair = pair();
    pair.server.version = Some(Version::Tls13);
    pair.settings.version = Some(Version::Tls12);
    let to = echo::<Epoll>(&pair.server);
    let (mut io, target) = client::<Epoll>(&pair.settings, to);
    let End::Failed(why) = talk(&mut io, target, b"x").2 else {
        panic!("agreed");
    };
    assert!(why.contains("ProtocolVersion"), "{why}");
}

/// A server that sends 5 times 1000 bytes and the end to each client as soon as it is accepted, and
/// pauses it until all is sent. It reports [`Io::queued`] at both times. Returns its address.
fn greeter<I: Io>(settings: &ServerSettings, queued: mpsc::Sender<usize>) -> SocketAddr {
    server::<I>(settings, move |io, event| match event {
        Event::Accepted { conn, .. } => {
            for _ in 0..5 {
                io.send_copy(conn, &[b'x'; 1000]);
            }
            io.finish(conn);
            io.pause(conn);
            let _ = queued.send(io.queued(conn));
        }
        Event::Drained { conn } => {
            let _ = queued.send(io.queued(conn));
            io.resume(conn);
        }
        Event::Data { buf, .. } => io.recycle(buf),
        Event::Eof { conn } | Event::Failed { conn, .. } => io.close(conn),
        _ => {}
    })
}

fn what_is_sent_before_the_handshake_arrives_after_it<I: Io>() {
    let pair = pair();
    let (sender, queued) = mpsc::channel();
    let to = greeter::<I>(&pair.server, sender);
    let (mut io, target) = client::<I>(&pair.settings, to);
    let conn = io.connect(target, None).unwrap();
    let mut heard = 0;
    let mut is_over = false;
    let start = Instant::now();
    while !is_over {
        assert!(start.elapsed() < LIMIT, "{heard} bytes and no end");
        io.poll(Some(10_000_000)).unwrap();
        while let Some(event) = io.next_event() {
            match event {
                Event::Data { buf, .. } => {
                    heard += buf.len();
                    io.recycle(buf);
                }
                Event::Eof { .. } => is_over = true,
                Event::Failed { .. } | Event::ConnectFailed { .. } => {
                    panic!("{:?}", io.failure(conn));
                }
                _ => {}
            }
        }
    }
    assert_eq!(heard, 5000);
    // All of it counted as queued until the handshake was done.
    let queued = [(); 2].map(|()| queued.recv_timeout(LIMIT).unwrap());
    assert_eq!(queued, [5, 0]);
}

#[test]
fn what_is_sent_before_the_handshake_arrives_after_it_on_io_uring() {
    if net::uring_unavailable().is_none() {
        what_is_sent_before_the_handshake_arrives_after_it::<Uring>();
    }
}

#[test]
fn what_is_sent_before_the_handshake_arrives_after_it_on_epoll() {
    what_is_sent_before_the_handshake_arrives_after_it::<Epoll>();
}

#[test]
fn a_client_that_does_not_shake_hands_is_given_up() {
    use std::io::Read;
    let pair = pair();
    let tls = ServerTls::new(&pair.server, "the test").unwrap();
    let listener = os::listen("127.0.0.1:0".parse().unwrap(), 16, false).unwrap();
    let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let io = Epoll::open(options()).unwrap();
    let mut io = Secure::over(io, &options())
        .with_servers(vec![Some(tls)])
        .with_handshake_limit(Duration::from_millis(50));
    io.listen(listener).unwrap();
    let start = Instant::now();
    let mut failure = None;
    while failure.is_none() && start.elapsed() < LIMIT {
        io.poll(Some(10_000_000)).unwrap();
        while let Some(event) = io.next_event() {
            if let Event::Failed { conn, errno } = event {
                assert_eq!(errno, TLS_FAILED);
                failure = io.failure(conn).map(str::to_owned);
                io.close(conn);
            }
        }
    }
    assert_eq!(failure.as_deref(), Some("the TLS handshake took too long"));
    assert!(start.elapsed() >= Duration::from_millis(50));
    client.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(client.read(&mut [0; 64]).unwrap_or(0), 0);
}

#[test]
fn a_peer_that_does_not_speak_tls_or_closes_is_told() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut first, _) = listener.accept().unwrap();
        first
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        let (mut second, _) = listener.accept().unwrap();
        second.read_exact(&mut [0; 16]).unwrap();
        drop(second);
        let _ = first.read(&mut [0; 16]);
    });
    let (mut io, target) = client::<Epoll>(&pair().settings, to);
    let (_, _, end) = talk(&mut io, target, b"x");
    assert!(
        matches!(&end, End::Failed(why) if why.contains("corrupt")),
        "{end:?}"
    );
    let (_, _, end) = talk(&mut io, target, b"x");
    assert!(
        matches!(&end, End::Failed(why) if why.contains("during the TLS handshake") || why.contains("reset")),
        "{end:?}"
    );
}

#[test]
fn a_server_that_asks_for_a_certificate_refuses_clients_without_one_of_its_authority() {
    let names = ["localhost".to_string()];
    let (authority, other) = (Authority::new().unwrap(), Authority::new().unwrap());
    let issued = authority.issue(&names, KeyType::EcdsaP256).unwrap();
    let server = ServerSettings {
        client_authorities: Some(authority.certificate()),
        ..ServerSettings::new(issued.identity)
    };
    let address = echo::<Epoll>(&server);
    let client = |identity| ClientSettings {
        trust: Trust::Authorities(authority.certificate()),
        identity,
        ..ClientSettings::new("localhost")
    };
    let ask = |settings: &ClientSettings| {
        let mut stream = ClientTls::new(settings).unwrap().connect(address)?;
        stream.write_all(b"hello")?;
        let mut heard = [0; 5];
        stream.read_exact(&mut heard)?;
        assert_eq!(&heard, b"hello");
        std::io::Result::Ok(())
    };
    for key_type in [KeyType::EcdsaP256, KeyType::Rsa2048] {
        let own = authority.issue_client("a load", key_type).unwrap();
        ask(&client(Some(own.identity))).unwrap();
    }
    assert!(ask(&client(None)).is_err());
    let foreign = other.issue_client("a load", KeyType::EcdsaP256).unwrap();
    assert!(ask(&client(Some(foreign.identity))).is_err());
    // A certificate for servers is not valid for clients.
    let wrong = authority.issue(&names, KeyType::EcdsaP256).unwrap();
    assert!(ask(&client(Some(wrong.identity))).is_err());
}
