//! What an origin counts, and where other processes find it.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use net::IoKind;
use origin::{Always, Origin, OriginOptions};
use readings::{ARRIVAL_SLOT_NS, Arrivals, Received, RequestBody};

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
    Received::of_cells(&cells(&std::fs::read(path).unwrap()))
}

fn cells(bytes: &[u8]) -> Vec<u64> {
    let cells = bytes.chunks(8);
    let cells = cells.map(|cell| u64::from_ne_bytes(cell.try_into().unwrap()));
    cells.collect()
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
            weight: None,
        };
        assert_eq!(in_file(&path), expected, "{io}");
        assert_eq!(origin.stats().received, expected);
        drop(origin);
        // One that is started again goes on.
        let again = start();
        exchange(&again, &[(head, true)]);
        assert_eq!(in_file(&path).requests, 7);
        // The same requests, with their times.
        let beside = Arrivals::file_beside(&path);
        let cells = cells(&std::fs::read(&beside).unwrap());
        let whole = Arrivals::CELLS as u64 / 2 * ARRIVAL_SLOT_NS;
        let now_ns = net::os::now_ns();
        let from_ns = now_ns.saturating_sub(whole);
        let to_ns = now_ns + 2 * ARRIVAL_SLOT_NS;
        let found = Arrivals::of_cells(&cells, from_ns, to_ns).unwrap();
        assert_eq!(found.total(), 7);
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&beside).unwrap();
    }
}

#[test]
fn requests_beyond_a_limit_are_refused_and_not_counted() {
    let origin = Origin::start(&OriginOptions {
        io: IoKind::Epoll,
        limit_per_s: Some(0.001),
        ..OriginOptions::default()
    })
    .unwrap();
    let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(12);
    let mut stream = TcpStream::connect(origin.address()).unwrap();
    stream.write_all(get.as_bytes()).unwrap();
    let mut text = String::new();
    while text.matches("over the limit").count() < 2 {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "it closed: {text}");
        text += &String::from_utf8_lossy(&bytes[..count]);
    }
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 10, "{text}");
    assert_eq!(text.matches("HTTP/1.1 429 Too Many Requests").count(), 2);
    assert_eq!(origin.stats().received.requests, 10);
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
