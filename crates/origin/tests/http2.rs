//! The origin's HTTP/2: what it refuses, and what floods of a client come to.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use net::h2::{ErrorCode, frame, hpack, settings};
use origin::{Origin, OriginOptions};
use testing::http2::client::{Client, GET, with};

fn origin() -> Origin {
    start(false)
}

fn start(http2_only: bool) -> Origin {
    Origin::start(&OriginOptions {
        http2_only,
        ..OriginOptions::default()
    })
    .unwrap()
}

fn connect(origin: &Origin, settings: &[(u16, u32)]) -> Client<TcpStream> {
    Client::connect_with(origin.address(), settings)
}

fn reset_of(client: &Client<TcpStream>, stream: u32) -> Option<ErrorCode> {
    client.responses.get(&stream).and_then(|one| one.reset)
}

#[test]
fn requests_that_would_be_others_in_http_1_1_are_refused() {
    let origin = origin();
    let mut client = connect(&origin, &[]);
    let refused = [
        with(&[(":path", "/a b")]),
        with(&[(":path", "/a\r\nX: y")]),
        with(&[(":path", "a")]),
        with(&[("x", "a\nb")]),
        with(&[("X", "upper")]),
        with(&[("connection", "close")]),
        with(&[("transfer-encoding", "chunked")]),
        with(&[("te", "gzip")]),
        with(&[("host", "another")]),
        with(&[("content-length", "x")]),
        with(&[(":status", "200")]),
        with(&[(":scheme", "ftp")]),
        GET.into_iter().filter(|one| one.0 != ":path").collect(),
    ];
    for (at, fields) in refused.iter().enumerate() {
        client.head(at as u32 * 2 + 1, fields, true);
    }
    let last = refused.len() as u32 * 2 + 1;
    assert_eq!(client.ask(last, &GET).body.len(), 13);
    for (at, fields) in refused.iter().enumerate() {
        let reset = reset_of(&client, at as u32 * 2 + 1);
        assert_eq!(reset, Some(ErrorCode::ProtocolError), "{fields:?}");
    }
    // A body of another length than announced.
    client.head(last + 2, &with(&[("content-length", "5")]), false);
    client.data(last + 2, b"abc", true);
    let reset = client.response(last + 2).reset;
    assert_eq!(reset, Some(ErrorCode::ProtocolError));
}

#[test]
fn long_bodies_are_complete() {
    let origin = origin();
    let mut client = connect(&origin, &[(settings::INITIAL_WINDOW_SIZE, 1 << 20)]);
    let short = client.ask(1, &with(&[(":path", "/bytes/20000")])).body;
    for (at, size) in [998_400, 998_401, 2_500_000, 998_400].iter().enumerate() {
        let path = format!("/bytes/{size}");
        let answer = client.ask(at as u32 * 2 + 3, &with(&[(":path", &path)]));
        assert_eq!(answer.value("content-length"), size.to_string());
        assert_eq!(answer.body.len(), *size);
        // The text repeats every 1664 bytes.
        let mut parts = answer.body.chunks(1664);
        assert!(parts.all(|part| short.starts_with(part)), "{size}");
    }
}

#[test]
fn a_body_waits_for_the_clients_windows() {
    let origin = origin();
    let mut client = connect(&origin, &[(settings::INITIAL_WINDOW_SIZE, 10)]);
    client.is_reading = false;
    client.head(1, &GET, true);
    let length = |client: &Client<TcpStream>| {
        let response = client.responses.get(&1);
        response.map_or(0, |one| one.body.len())
    };
    for (window, expected) in [(0, 10), (2, 12), (100, 13)] {
        if window > 0 {
            frame::window_update(&mut client.out, 1, window);
        }
        client.until(|client| length(client) >= expected);
        assert_eq!(length(&client), expected);
        assert_eq!(client.responses[&1].is_complete, expected == 13);
    }
}

#[test]
fn streams_beyond_the_limit_are_refused() {
    let origin = origin();
    // Nothing can be sent, so that all streams stay open.
    let mut client = connect(&origin, &[(settings::INITIAL_WINDOW_SIZE, 0)]);
    for stream in 0..300 {
        client.head(stream * 2 + 1, &GET, true);
    }
    client.until(|client| reset_of(client, 599).is_some());
    let resets = client.responses.values().filter_map(|one| one.reset);
    let refused = resets.filter(|code| *code == ErrorCode::RefusedStream);
    assert_eq!(refused.count(), 300 - 256);
}

/// What a client sends again and again, by number.
type Flood = fn(&mut Vec<u8>, u32);

#[test]
fn floods_end_the_connection_and_no_other() {
    let origin = origin();
    let mut other = connect(&origin, &[]);
    let floods: [(&str, Flood); 5] = [
        ("rapid reset, CVE-2023-44487", |out, at| {
            let block = hpack::block(&with(&[(":path", "/delay/constant/1s")]));
            frame::headers(out, at * 2 + 1, &block, true, 16_384);
            frame::reset(out, at * 2 + 1, ErrorCode::Cancel);
        }),
        (
            "resets that the client provokes, CVE-2025-8671",
            |out, at| {
                frame::headers(out, at * 2 + 1, &hpack::block(&GET), false, 16_384);
                // WINDOW_UPDATE of 0, which the codec does not write.
                out.extend_from_slice(&[0, 0, 4, 8, 0]);
                out.extend_from_slice(&(at * 2 + 1).to_be_bytes());
                out.extend_from_slice(&[0; 4]);
            },
        ),
        ("pings", |out, _| frame::ping(out, [7; 8])),
        ("settings", |out, _| frame::settings(out, &[])),
        ("empty data", |out, at| {
            if at == 0 {
                frame::headers(out, 1, &hpack::block(&GET), false, 16_384);
            }
            frame::data(out, 1, b"", false);
        }),
    ];
    for (what, flood) in floods {
        let mut client = connect(&origin, &[]);
        let mut is_over = false;
        for at in 0..30_000 {
            flood(&mut client.out, at);
            if at % 1000 == 999 {
                is_over = client.stream.write_all(&client.out).is_err();
                client.out.clear();
            }
            if is_over {
                break;
            }
        }
        client.until(|client| client.gone.is_some());
        let is_told = client.gone.map(|gone| gone.1) == Some(ErrorCode::EnhanceYourCalm);
        // The reason may be lost with the reset that unread frames of the flood lead to.
        is_over |= client.has_ended;
        assert!(is_told || is_over, "{what}: {:?}", client.gone);
    }
    assert_eq!(other.ask(1, &GET).body.len(), 13);
}

#[test]
fn a_port_for_http_2_only_ends_what_begins_otherwise() {
    use std::io::Read as _;
    let begun = |http2_only, bytes: &[u8]| {
        let origin = start(http2_only);
        let mut stream = TcpStream::connect(origin.address()).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        stream
            .set_read_timeout(Some(std::time::Duration::from_secs(10)))
            .unwrap();
        // It may be reset, but it does not stay open.
        if let Err(error) = stream.read_to_end(&mut answer) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
        answer
    };
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
        b"INVALID CONNECTION PREFACE\r\n\r\n",
    ] {
        let answer = begun(true, bytes);
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    }
    let both = begun(
        false,
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    );
    assert!(both.starts_with(b"HTTP/1.1 200"), "{both:?}");
    let origin = start(true);
    assert_eq!(connect(&origin, &[]).ask(1, &GET).body.len(), 13);
}

/// Heads have no flow control: nothing is read from a client that does not read.
#[test]
fn answers_do_not_pile_up_for_a_client_that_does_not_read() {
    const MOST: usize = 24 << 20;
    let origin = origin();
    let mut client = connect(&origin, &[]);
    let fields = with(&[(":method", "HEAD"), (":path", "/")]);
    client
        .stream
        .set_write_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    let (mut sent, mut stream) = (0, 1);
    while sent < MOST {
        for _ in 0..1000 {
            client.head(stream, &fields, true);
            stream += 2;
        }
        match client.stream.write_all(&client.out) {
            Ok(()) => sent += client.out.len(),
            Err(_) => break,
        }
        client.out.clear();
    }
    assert!(sent < MOST, "the origin takes whatever comes");
    // Another client is served.
    assert_eq!(connect(&origin, &[]).ask(1, &GET).value(":status"), "200");
}
