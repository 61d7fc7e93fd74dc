//! Loads over HTTP/3, on both event loops.

mod attacks;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testing::Text as _;

use bytes::Bytes;

use crate::support::{BOTH, LONG, asks, assert_found, job, one, target};
use load::{BodyRule, Expect, Http3, Job, Request, Segment, Stop, Target};
use net::h3::{ErrorCode, frame, qpack};
use net::{Datagrams, IoKind, os};
use origin::{Origin, OriginOptions};
use quic::{Connection, Dir, Event, Server, ServerLimits, StreamEvent, StreamId, VarInt};
use readings::{LoadReading, QuicCongestion};
use tls::{Authority, ClientSettings, ServerTls, Trust};

pub fn identities() -> (ServerTls, ClientSettings) {
    let (server, mut client) = testing::tls::localhost(&["h2", "http/1.1"]);
    client.alpn = vec!["h3".into()];
    (server, client)
}

pub fn origin_with(http3: bool, io: IoKind) -> (Origin, ClientSettings) {
    let (tls, client) = identities();
    let origin = Origin::start(&OriginOptions {
        io,
        tls: Some(tls),
        http3,
        ..OriginOptions::default()
    });
    (origin.unwrap(), client)
}

pub fn over_h3(address: SocketAddr, path: &str, client: &ClientSettings, streams: u32) -> Target {
    Target {
        tls: Some(client.clone()),
        http3: Some(Http3::new(streams)),
        ..target(address, path)
    }
}

fn no_errors(reading: &LoadReading) {
    assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
}

#[test]
fn long_bodies_have_the_text_that_http_1_1_has() {
    for io in BOTH {
        let (origin, client) = origin_with(true, io);
        for size in [998_400, 998_401, 2_500_000] {
            // 26 lines of 64 bytes, repeated.
            let byte = |at: usize| match at % 64 {
                63 => b'\n',
                _ => b'a' + ((at % 1664 / 64 + at % 1664) % 26) as u8,
            };
            let body: Arc<[u8]> = (0..size).map(byte).collect();
            let path = format!("/bytes/{size}");
            let mut target = over_h3(origin.address(), &path, &client, 2);
            target.requests[0].expect.body = BodyRule::Bytes(body);
            let reading = asks(io, target, 2, 8);
            no_errors(&reading);
            assert_eq!(reading.requests, 8);
        }
    }
}

#[test]
fn streams_share_connections_and_packets_are_counted() {
    for io in BOTH {
        let (origin, client) = origin_with(true, io);
        let target = over_h3(origin.address(), "/", &client, 8);
        let reading = asks(io, target, 2, 800);
        no_errors(&reading);
        assert_eq!((reading.requests, reading.connects), (800, 2));
        assert_eq!(reading.streams, Some(8));
        // Each was answered once. The origin publishes its counts at the end of a turn of its loop,
        // which may be after the client has the answers.
        let until = Instant::now() + Duration::from_secs(5);
        while origin.stats().received.requests < 800 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(origin.stats().received.requests, 800);
        let tls = reading.tls.unwrap();
        assert_eq!((tls.handshakes, tls.resumed), (2, 0));
        let agreed = &tls.negotiated[0];
        assert_eq!(agreed.alpn.as_deref(), Some("h3"));
        assert_eq!(agreed.key.as_deref(), Some("ecdsa-p256"));
        assert_eq!((agreed.version.as_str(), agreed.sessions), ("1.3", 2));
        assert_eq!(tls.handshake.count(), 2);
        let quic = reading.quic.unwrap();
        assert!(quic.packets_sent >= 800 / 16, "{quic:?}");
        assert!(
            quic.datagrams_sent >= quic.sends && quic.sends > 0,
            "{quic:?}"
        );
        assert!(quic.datagrams_received > 0, "{quic:?}");
    }
}

#[test]
fn long_bodies_are_compared_byte_by_byte() {
    for io in BOTH {
        let (origin, client) = origin_with(true, io);
        let mut target = over_h3(origin.address(), "/bytes/300000", &client, 3);
        target.requests[0].expect.body = BodyRule::Same;
        let reading = asks(io, target, 2, 30);
        no_errors(&reading);
        assert_eq!(reading.requests, 30);
        assert!(reading.bytes_read > 30 * 300_000);
    }
}

#[test]
fn long_requests_are_sent_as_windows_allow() {
    let (origin, client) = origin_with(true, IoKind::best());
    let mut target = over_h3(origin.address(), "/", &client, 2);
    // Longer than the origin's windows for a stream and for a connection.
    let body = vec![b'x'; 1_500_000];
    let fields = [("Content-Length".to_string(), body.len().to_string())];
    let mut bytes = net::fetch::request("POST", "origin", "/", &fields);
    bytes.extend_from_slice(&body);
    target.requests = vec![Request::new(bytes, Expect::default())];
    let reading = asks(IoKind::best(), target, 1, 6);
    no_errors(&reading);
    assert_eq!(reading.requests, 6);
}

#[test]
fn one_slow_stream_delays_no_other() {
    let (origin, client) = origin_with(true, IoKind::best());
    let mut target = over_h3(origin.address(), "/", &client, 16);
    let slow = crate::support::target(origin.address(), "/delay/constant/300ms");
    target.requests.extend(slow.requests);
    // One of sixteen.
    target.requests[0].weight = 15;
    let mut job = Job {
        io: Some(IoKind::best()),
        timeout: LONG,
        ..Job::to(target)
    };
    job.segments = vec![Segment::open(20.0, Stop::Requests(100))];
    let reading = one(&job);
    no_errors(&reading);
    let [fast, slow] = &reading.per_request[..] else {
        panic!("two requests");
    };
    let (fast, slow) = (&fast.latency_us, &slow.latency_us);
    assert!(slow.p50 >= 299_000.0, "{slow:?}");
    // Behind a slow one on the same stream each would wait for a good part of it.
    assert!(fast.p50 < slow.p50 / 3.0, "{fast:?} {slow:?}");
}

#[test]
fn connections_are_opened_anew_and_resume_their_sessions() {
    for resumption in [false, true] {
        let (origin, mut client) = origin_with(true, IoKind::best());
        client.resumption = resumption;
        let target = over_h3(origin.address(), "/", &client, 4);
        let mut job = job(IoKind::best(), target, 1, 1, Stop::Requests(100));
        job.requests_per_connection = Some(20);
        let reading = one(&job);
        no_errors(&reading);
        assert_eq!((reading.requests, reading.connects), (100, 5));
        let resumed = reading.tls.unwrap().resumed;
        assert_eq!(resumed, if resumption { 4 } else { 0 });
    }
}

#[test]
fn a_server_without_http3_and_a_wrong_certificate_are_named() {
    let (origin, client) = origin_with(false, IoKind::best());
    let refused = |mut target: Target| {
        // The reference is fetched over HTTP/3 too.
        target.requests[0].expect.body = BodyRule::Auto;
        let mut job = Job::to(target).segment(Segment::closed(Stop::Requests(1)));
        job.timeout = Duration::from_secs(5);
        let stop = Arc::new(AtomicBool::new(false));
        load::run(&job, &stop, |_| {})
            .err()
            .map_or_else(String::new, |error| error.to_string())
    };
    let without = refused(over_h3(origin.address(), "/", &client, 1));
    assert!(without.contains("HTTP/3"), "{without}");
    let (origin, mut client) = origin_with(true, IoKind::best());
    client.trust = Trust::Authorities(Authority::new().unwrap().certificate());
    let untrusted = refused(over_h3(origin.address(), "/", &client, 1));
    assert!(untrusted.contains("authority"), "{untrusted}");
}

/// A server whose answers a test decides.
pub struct Scripted {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Scripted {
    /// `answer` gets each request's connection, its stream, the number of the request and that of
    /// the connection.
    pub fn start(
        tls: &ServerTls,
        mut answer: impl FnMut(&mut Connection, StreamId, u32, u64) + Send + 'static,
    ) -> Self {
        let socket = Datagrams::listen("127.0.0.1:0".parse().unwrap(), false, false).unwrap();
        let address = socket.local().unwrap();
        let limits = ServerLimits {
            connections: 64,
            // Requests are not read, so that their streams stay open.
            streams: 4096,
            handshakes: (64, 64),
            handshake: LONG,
            congestion: QuicCongestion::Cubic,
        };
        let mut server: Server<()> =
            Server::new(socket, tls, net::h3::ALPN, limits, os::now_ns()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut count = 0;
            while !stopped.load(Ordering::Relaxed) {
                server.socket().wait(Duration::from_millis(2)).unwrap();
                let now = os::now_ns();
                while server.receive(now, || ()) {}
                server.expire(now);
                while let Some(number) = server.take_touched() {
                    let Some(entry) = server.entry(number) else {
                        continue;
                    };
                    while let Some(event) = entry.connection.poll() {
                        let opened = StreamEvent::Opened { dir: Dir::Bi };
                        if !matches!(event, Event::Stream(event) if event == opened) {
                            continue;
                        }
                        while let Some(id) = entry.connection.streams().accept(Dir::Bi) {
                            count += 1;
                            answer(&mut entry.connection, id, count, entry.id);
                        }
                    }
                }
                server.flush(now);
            }
        });
        Self {
            address,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let joined = self.thread.take().map(std::thread::JoinHandle::join);
        assert!(joined.is_some_and(|joined| joined.is_ok()));
    }
}

pub fn good(connection: &mut Connection, id: StreamId) {
    answer(connection, id, &[]);
}

/// Answers `ok`, with these fields.
fn answer(connection: &mut Connection, id: StreamId, fields: &[(&str, &str)]) {
    let mut section = Vec::new();
    qpack::begin(&mut section);
    for (name, value) in [&[(":status", "200")], fields].concat() {
        qpack::encode(&mut section, name.as_bytes(), value.as_bytes());
    }
    let mut out = Vec::new();
    frame::headers(&mut out, &section);
    frame::data_head(&mut out, 2);
    out.extend_from_slice(b"ok");
    let mut stream = connection.send_stream(id);
    stream.write_chunks(&mut [Bytes::from(out)]).unwrap();
    stream.finish().unwrap();
}

pub fn reset(connection: &mut Connection, id: StreamId, code: ErrorCode) {
    let code = VarInt::from_u32(code as u32);
    let _ = connection.recv_stream(id).stop(code);
    connection.send_stream(id).reset(code).unwrap();
}

/// Takes no request from this one on; once on a connection.
pub fn go_away(connection: &mut Connection, first: u64) {
    let mut out = Vec::new();
    frame::control(&mut out, &[]);
    frame::go_away(&mut out, first);
    let Some(control) = connection.streams().open(Dir::Uni) else {
        return;
    };
    connection.send_stream(control).write(&out).unwrap();
}

pub fn fixed(address: SocketAddr, client: &ClientSettings) -> Target {
    let mut target = over_h3(address, "/", client, 4);
    target.requests[0].expect = Expect {
        status: load::StatusRule::Exactly(200),
        body: BodyRule::Bytes(Arc::from(&b"ok"[..])),
    };
    target
}

#[test]
fn rejected_requests_are_sent_again_and_resets_are_errors() {
    let (tls, client) = identities();
    let server = Scripted::start(&tls, |connection, id, count, _| match count % 10 {
        3 => reset(connection, id, ErrorCode::RequestRejected),
        7 => reset(connection, id, ErrorCode::InternalError),
        _ => good(connection, id),
    });
    let target = fixed(server.address, &client);
    let reading = asks(IoKind::best(), target, 1, 90);
    assert_eq!(reading.requests + reading.errors.total(), 90);
    assert_eq!(reading.resent, 10, "one of ten that were sent");
    assert_eq!(reading.errors.read, 10, "{:?}", reading.wrong);
    let told = reading
        .wrong
        .iter()
        .any(|one| one.found.contains("H3_INTERNAL_ERROR"));
    assert!(told, "{:?}", reading.wrong);
}

#[test]
fn a_goaway_loses_no_request() {
    let (tls, client) = identities();
    let mut on = (0, 0);
    let server = Scripted::start(&tls, move |connection, id, _, number| {
        if on.0 != number {
            on = (number, 0);
        }
        on.1 += 1;
        match on.1 {
            // Later streams of the same connection are not answered.
            12.. => return,
            11 => {
                go_away(connection, u64::from(id));
                return;
            }
            _ => {}
        }
        good(connection, id);
    });
    let target = fixed(server.address, &client);
    let reading = asks(IoKind::best(), target, 1, 100);
    no_errors(&reading);
    assert_eq!(reading.requests, 100);
    assert!(reading.connects >= 9, "{}", reading.connects);
    assert!(reading.resent >= 9, "{}", reading.resent);
}

#[test]
fn answers_that_are_no_http3_are_errors() {
    let (tls, client) = identities();
    // SETTINGS on a request's stream; DATA before HEADERS; an end within a frame.
    for bytes in [&[4, 0][..], &[0, 1, 9], &[1, 9, 0]] {
        let server = Scripted::start(&tls, move |connection, id, _, _| {
            let mut stream = connection.send_stream(id);
            stream.write(bytes).unwrap();
            stream.finish().unwrap();
        });
        let target = fixed(server.address, &client);
        let reading = asks(IoKind::best(), target, 1, 2);
        assert_eq!((reading.requests, reading.errors.read), (0, 2), "{bytes:?}");
        reading.wrong[0].expected.has("HTTP/3");
    }
}

#[test]
fn an_answer_has_to_have_the_length_that_it_announces() {
    let (tls, client) = identities();
    let fields: [(&[(&str, &str)], &str); 5] = [
        (&[("content-length", "500")], "less content than announced"),
        (
            &[("a", "b"), ("content-length", "1")],
            "more content than announced",
        ),
        (&[("content-length", "two")], "an invalid content-length"),
        (
            &[("content-length", "2"), ("content-length", "3")],
            "conflicting content-lengths",
        ),
        (&[("a", "b"), ("content-length", "2")], ""),
    ];
    for (fields, told) in fields {
        let server = Scripted::start(&tls, move |connection, id, _, _| {
            answer(connection, id, fields);
        });
        let target = fixed(server.address, &client);
        let reading = asks(IoKind::best(), target, 1, 8);
        if told.is_empty() {
            no_errors(&reading);
            continue;
        }
        assert_eq!(
            (reading.requests, reading.errors.read),
            (0, 8),
            "{reading:?}"
        );
        assert_found(&reading, told);
        assert_eq!(reading.connects, 1, "the connection is still good");
    }
}

#[test]
fn an_answer_with_a_line_end_in_a_field_is_no_good_one() {
    let (tls, client) = identities();
    for field in [("x", "a\r\nb"), ("x", "a\0b")] {
        let server = Scripted::start(&tls, move |connection, id, count, _| match count {
            ..=10 => good(connection, id),
            _ => answer(connection, id, &[field]),
        });
        let reading = asks(IoKind::best(), fixed(server.address, &client), 1, 20);
        assert!(reading.errors.read >= 9, "{reading:?}");
        let found = &reading.wrong[0].found;
        assert!(found.contains("CR, LF or NUL"), "{found}");
        assert_eq!(reading.connects, 1, "only the streams are reset");
    }
}
