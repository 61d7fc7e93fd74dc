//! Streams of events, over real sockets and both event loops.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use net::fetch::{fetch, request};
use net::h2::{ErrorCode, frame, settings};
use net::{IoKind, os};
use origin::{Origin, OriginOptions, Stats};
use testing::http2::client::{Client, with};

/// Nothing takes as long, unless something hangs.
const LONG: Duration = Duration::from_secs(20);

fn on_each_loop(test: impl Fn(&Origin)) {
    for io in [IoKind::Epoll, IoKind::Uring] {
        if io == IoKind::Uring && net::uring_unavailable().is_some() {
            continue;
        }
        let options = OriginOptions {
            io,
            connections: 1024,
            ..OriginOptions::default()
        };
        test(&Origin::start(&options).unwrap());
    }
}

fn connect(origin: &Origin) -> TcpStream {
    let stream = TcpStream::connect(origin.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

fn ask(stream: &mut TcpStream, path: &str) {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
}

/// Reads up to `end`, which is included; or up to the end of the connection.
fn read_to(stream: &mut TcpStream, end: &str) -> String {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(end.as_bytes()) {
        match stream.read(&mut byte) {
            Ok(1) => text.push(byte[0]),
            // The process was stopped meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    String::from_utf8(text).unwrap()
}

/// The next chunk; empty for the last one, `None` if the connection ends before.
fn chunk(stream: &mut TcpStream) -> Option<String> {
    let size = read_to(stream, "\r\n");
    let size = usize::from_str_radix(size.strip_suffix("\r\n")?, 16).unwrap();
    let mut bytes = vec![0; size + 2];
    stream.read_exact(&mut bytes).ok()?;
    assert_eq!(bytes.split_off(size), b"\r\n");
    Some(String::from_utf8(bytes).unwrap())
}

/// Number and due time of a message, which may be in an event.
fn stamp(event: &str) -> (u64, u64) {
    let text = &event[event.find("weigh ").expect(event)..];
    let words: Vec<&str> = text.split(' ').collect();
    (words[1].parse().unwrap(), words[2].parse().unwrap())
}

fn get(origin: &Origin, path: &str) -> (u16, String) {
    let bytes = request("GET", "here", path, &[]);
    let answer = fetch(&origin.address().into(), &bytes, LONG, 1 << 26).unwrap();
    (answer.status, String::from_utf8(answer.body).unwrap())
}

/// Waits until the counts are as they should be.
fn until(origin: &Origin, what: &str, is_so: impl Fn(Stats) -> bool) {
    let end = Instant::now() + LONG;
    while !is_so(origin.stats()) {
        assert!(Instant::now() < end, "{what}: {:?}", origin.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The count of messages once it grows no more.
fn settled(origin: &Origin) -> u64 {
    loop {
        let before = origin.stats().messages;
        std::thread::sleep(Duration::from_millis(300));
        if before > 0 && origin.stats().messages == before {
            return before;
        }
    }
}

#[test]
fn events_come_in_order_at_their_pace_and_end() {
    on_each_loop(|origin| {
        let mut stream = connect(origin);
        let before = os::now_ns();
        ask(&mut stream, "/events/20?every=3ms&bytes=50");
        // Pipelined: answered after the end.
        ask(&mut stream, "/events/1?format=lines");
        let head = read_to(&mut stream, "\r\n\r\n");
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let clock = format!("Weigh-Clock: {}\r\n", boot.trim());
        for field in ["Cache-Control: no-store\r\n", "text/event-stream", &clock] {
            assert!(head.contains(field), "{head}");
        }
        let mut first = None;
        for number in 0..20 {
            let event = chunk(&mut stream).unwrap();
            let arrived = os::now_ns();
            let (own, due) = stamp(&event);
            let first = *first.get_or_insert(due);
            assert_eq!(own, number);
            assert_eq!(due, first + number * 3_000_000);
            assert!(before <= due && due <= arrived, "sent before it was due");
            assert!(event.starts_with(&format!("id: {number}\ndata: weigh ")));
            assert!(event.ends_with("\n\n"));
            let data = event.trim_end().split("data: ").nth(1).unwrap();
            assert_eq!(data.len(), 50);
        }
        assert_eq!(chunk(&mut stream).unwrap(), "event: end\ndata: 20\n\n");
        assert_eq!(chunk(&mut stream).unwrap(), "");
        assert!(read_to(&mut stream, "\r\n\r\n").contains("x-ndjson"));
        assert_eq!(stamp(&chunk(&mut stream).unwrap()).0, 0);
        assert_eq!(chunk(&mut stream).unwrap(), "");
        until(origin, "ended", |stats| {
            stats.lasting == 0 && stats.messages == 21
        });
    });
}

#[test]
fn the_origin_says_how_late_it_was() {
    on_each_loop(|origin| {
        get(origin, "/events/30?every=1ms");
        // Held back as it was asked to: that is not late.
        get(origin, "/events/10?every=0s&stall=100ms@0");
        let (status, text) = get(origin, "/.weigh/lateness");
        let lateness = readings::Histogram::from_base64(&text).unwrap();
        assert_eq!((status, lateness.count()), (200, 30));
        until(origin, "all are counted", |stats| stats.messages == 40);
        assert_eq!(origin.stats().messages_held, 0);
    });
}

#[test]
fn a_stall_delays_what_is_due_in_it() {
    on_each_loop(|origin| {
        let mut stream = connect(origin);
        ask(
            &mut stream,
            "/events/8?every=10ms&stall=200ms@3&format=chunks",
        );
        read_to(&mut stream, "\r\n\r\n");
        for number in 0..8 {
            let (own, due) = stamp(&chunk(&mut stream).unwrap());
            let lag = os::now_ns() - due;
            assert_eq!(own, number);
            let least = match number {
                3.. => 200_000_000 - (number - 3) * 10_000_000,
                _ => 0,
            };
            assert!(lag >= least, "{number}: {lag}");
        }
    });
}

#[test]
fn heartbeats_are_comments() {
    on_each_loop(|origin| {
        let (_, text) = get(origin, "/events/2?every=100ms&heartbeat=20ms");
        let beats = text.matches(": heartbeat\n\n").count();
        assert!((1..=5).contains(&beats), "{text}");
        until(origin, "both are counted", |stats| stats.messages == 2);
    });
}

#[test]
fn a_cut_is_no_end() {
    on_each_loop(|origin| {
        let mut stream = connect(origin);
        ask(&mut stream, "/events/50?every=1ms&cut=5");
        read_to(&mut stream, "\r\n\r\n");
        for number in 0..=5 {
            assert_eq!(stamp(&chunk(&mut stream).unwrap()).0, number);
        }
        assert_eq!(chunk(&mut stream), None);

        let mut client = Client::connect(origin.address());
        let response = client.ask(1, &with(&[(":path", "/events/50?every=1ms&cut=5")]));
        assert_eq!(response.reset, Some(ErrorCode::InternalError));
        let text = String::from_utf8(response.body).unwrap();
        assert_eq!(text.matches("weigh ").count(), 6);
        // The connection serves others.
        assert_eq!(client.ask(3, &with(&[])).body, b"Hello, world!");
        until(origin, "freed", |stats| stats.lasting == 0);
    });
}

#[test]
fn http_1_0_and_head() {
    on_each_loop(|origin| {
        let mut stream = connect(origin);
        write!(stream, "GET /events/3?every=1ms&bytes=0 HTTP/1.0\r\n\r\n").unwrap();
        let head = read_to(&mut stream, "\r\n\r\n");
        assert!(!head.contains("chunked"), "{head}");
        let body = read_to(&mut stream, "never");
        assert!(body.starts_with("id: 0\ndata: weigh 0 "), "{body}");
        assert!(body.ends_with("event: end\ndata: 3\n\n"), "{body}");

        let mut stream = connect(origin);
        write!(stream, "HEAD /events/3 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        ask(&mut stream, "/");
        let head = read_to(&mut stream, "\r\n\r\n");
        assert!(head.contains("text/event-stream"), "{head}");
        assert!(read_to(&mut stream, "Hello, world!").starts_with("HTTP/1.1 200"));
    });
}

#[test]
fn mistakes_are_answered() {
    on_each_loop(|origin| {
        let (status, text) = get(origin, "/events/5?pace=1ms");
        assert_eq!(
            (status, text.contains("expected every, bytes")),
            (400, true)
        );
        assert_eq!(get(origin, "/events/many").0, 400);
    });
}

/// It is the kernel's buffers and a bounded number of bytes that the origin has written then.
#[test]
fn a_client_that_does_not_read_is_stalled() {
    const BYTES: u64 = 100_000;
    on_each_loop(|origin| {
        let mut stream = connect(origin);
        ask(
            &mut stream,
            &format!("/events/0?every=0s&format=chunks&bytes={BYTES}"),
        );
        let stalled_at = settled(origin);
        assert!(
            stalled_at * BYTES < 64 << 20,
            "{stalled_at} events of {BYTES}"
        );
        read_to(&mut stream, "\r\n\r\n");
        for number in 0..stalled_at + 100 {
            assert_eq!(stamp(&chunk(&mut stream).unwrap()).0, number);
        }
        assert!(origin.stats().messages_held > 0);
        drop(stream);
        until(origin, "freed", |stats| stats.lasting == 0);
    });
}

#[test]
fn clients_that_go_away_are_forgotten() {
    on_each_loop(|origin| {
        let mut clients: Vec<TcpStream> = (0..100).map(|_| connect(origin)).collect();
        for client in &mut clients {
            ask(client, "/events/0?every=3600s");
        }
        let mut client = Client::connect(origin.address());
        for stream in 0..100 {
            client.head(
                stream * 2 + 1,
                &with(&[(":path", "/events/0?every=30s")]),
                true,
            );
        }
        client.until(|client| client.responses.len() == 100);
        until(origin, "open", |stats| stats.lasting == 200);
        frame::reset(&mut client.out, 1, ErrorCode::Cancel);
        client.flush();
        clients.truncate(50);
        until(origin, "some", |stats| stats.lasting == 149);
        drop((clients, client));
        until(origin, "all", |stats| stats.lasting == 0);
    });
}

#[test]
fn streams_wait_for_their_windows() {
    const STREAMS: u32 = 200;
    on_each_loop(|origin| {
        let mut client =
            Client::connect_with(origin.address(), &[(settings::INITIAL_WINDOW_SIZE, 0)]);
        client.is_reading = false;
        let path = "/events/5?every=1ms&bytes=1000&format=chunks";
        for one in 0..STREAMS {
            client.head(one * 2 + 1, &with(&[(":path", path)]), true);
        }
        client.until(|client| client.responses.len() == STREAMS as usize);
        // One message of each waits for its window.
        assert_eq!(settled(origin), u64::from(STREAMS));
        assert!(client.responses.values().all(|one| one.body.is_empty()));
        // A little at a time.
        frame::window_update(&mut client.out, 1, 10);
        client.until(|client| client.received(1) == 10);
        frame::window_update(&mut client.out, 0, 1 << 24);
        for one in 0..STREAMS {
            frame::window_update(&mut client.out, one * 2 + 1, 10_000);
        }
        client.until(|client| client.responses.values().all(|one| one.is_complete));
        for response in client.responses.values() {
            assert_eq!(response.body.len(), 5000);
            for number in 0..5 {
                let message = &response.body[number * 1000..][..40];
                let text = String::from_utf8(message.to_vec()).unwrap();
                assert_eq!(stamp(&text).0, number as u64);
            }
        }
        until(origin, "ended", |stats| stats.lasting == 0);
        assert!(origin.stats().messages_held > 0);
    });
}

/// Many exchanges that end at once, or are reset before they have begun.
#[test]
fn tiny_streams() {
    on_each_loop(|origin| {
        let mut client = Client::connect(origin.address());
        let path = "/events/1?every=0s&bytes=0";
        for round in 0..20 {
            for one in 0..200 {
                let stream = (round * 200 + one) * 2 + 1;
                client.head(stream, &with(&[(":path", path)]), true);
                if one % 2 == 1 {
                    frame::reset(&mut client.out, stream, ErrorCode::Cancel);
                }
            }
            let complete = (round as usize + 1) * 100;
            client.until(|client| {
                let whole = client.responses.values().filter(|one| one.is_complete);
                whole.count() >= complete
            });
        }
        until(origin, "ended", |stats| stats.lasting == 0);
    });
}
