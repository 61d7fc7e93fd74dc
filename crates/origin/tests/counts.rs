//! What an origin counts, and where other processes find it.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use net::IoKind;
use origin::{Always, Origin, OriginOptions};
use readings::{Received, RequestBody};

/// Sends these pieces on one connection, each after a full answer to the one before if it is `true`;
/// returns how many bytes came back.
fn exchange(origin: &Origin, pieces: &[(String, bool)]) -> u64 {
    let mut stream = TcpStream::connect(origin.address()).unwrap();
    let mut read = 0;
    for (piece, is_whole) in pieces {
        stream.write_all(piece.as_bytes()).unwrap();
        if *is_whole {
            let mut answer = Vec::new();
            while !answer.ends_with(b"Hello, world!") {
                let mut bytes = [0; 4096];
                let count = stream.read(&mut bytes).unwrap();
                assert!(count > 0, "it closed");
                answer.extend_from_slice(&bytes[..count]);
            }
            read += answer.len() as u64;
        }
    }
    read
}

fn post(body: &str) -> String {
    format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn in_file(path: &Path) -> Received {
    let bytes = std::fs::read(path).unwrap();
    let cells = bytes.chunks(8);
    let cells = cells.map(|cell| u64::from_ne_bytes(cell.try_into().unwrap()));
    Received::of_cells(&cells.collect::<Vec<_>>())
}

#[test]
fn a_request_is_counted_before_its_answer_with_its_body() {
    for io in [IoKind::Uring, IoKind::Epoll] {
        let name = format!("weigh-origin-{}-{io}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let start = || {
            Origin::start(&OriginOptions {
                io,
                threads: 2,
                counts: Some(path.clone()),
                ..OriginOptions::default()
            })
            .unwrap()
        };
        let origin = start();
        let (body, other) = ("abcdefgh".repeat(20), "x".repeat(100_000));
        // The same bytes again and again, as loads send them; one body in two pieces; a long one; none.
        let (head, tail) = (post(&body), "GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_owned());
        let (first, second) = head.split_at(head.len() - 7);
        let pieces = [
            (head.clone(), true),
            (head.clone(), true),
            (head.clone(), true),
            (first.to_owned(), false),
            (second.to_owned(), true),
            (post(&other), true),
            (tail, true),
        ];
        let read = exchange(&origin, &pieces);
        let crc = |text: &str| u64::from(RequestBody::of(text.as_bytes()).unwrap().crc32);
        let expected = Received {
            requests: 6,
            body_bytes: 4 * 160 + 100_000,
            body_checksum: 4 * crc(&body) + crc(&other),
            sent_bytes: read,
        };
        assert_eq!(in_file(&path), expected, "{io}");
        assert_eq!(origin.stats().received, expected);
        drop(origin);
        // One that is started again goes on.
        let again = start();
        exchange(&again, &[(head, true)]);
        assert_eq!(in_file(&path).requests, 7);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn an_origin_can_be_slow_or_failing_at_every_path() {
    let of = |always| {
        Origin::start(&OriginOptions {
            io: IoKind::Epoll,
            always: Some(always),
            ..OriginOptions::default()
        })
        .unwrap()
    };
    let ask = |origin: &Origin, path: &str| {
        let bytes = net::fetch::request("GET", "here", path, &[]);
        let address = origin.address().into();
        net::fetch::fetch(&address, &bytes, Duration::from_secs(5), 1 << 16).unwrap()
    };
    let failing = of(Always {
        status: Some(503),
        ..Always::default()
    });
    assert_eq!(ask(&failing, "/bytes/5").status, 503);
    assert_eq!(ask(&failing, "/.weigh/stats").status, 200);
    let both = of(Always {
        delay_ns: 20_000_000,
        status: Some(503),
    });
    let begun = Instant::now();
    assert_eq!(ask(&both, "/").status, 503);
    assert!(begun.elapsed() >= Duration::from_millis(20));
    let slow = of(Always {
        delay_ns: 20_000_000,
        status: None,
    });
    let begun = Instant::now();
    assert_eq!(ask(&slow, "/").status, 200);
    assert!(begun.elapsed() >= Duration::from_millis(20));
}
