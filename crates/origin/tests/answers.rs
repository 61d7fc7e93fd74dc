//! What a client gets from the origin, on both event loops.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use net::IoKind;
use net::fetch::{fetch, request};
use origin::{Origin, OriginOptions};

fn origin(io: IoKind, threads: usize) -> Origin {
    Origin::start(&OriginOptions {
        threads,
        io,
        ..OriginOptions::default()
    })
    .unwrap()
}

fn get(origin: &Origin, path: &str) -> (u16, String) {
    let fields = [("X-Tag".to_string(), "a<b".to_string())];
    let bytes = request("GET", "here", path, &fields);
    let answer = fetch(
        &origin.address().into(),
        &bytes,
        Duration::from_secs(5),
        1 << 26,
    )
    .unwrap();
    (answer.status, String::from_utf8(answer.body).unwrap())
}

#[test]
fn pages() {
    for io in [IoKind::Uring, IoKind::Epoll] {
        let origin = origin(io, 1);
        assert_eq!(get(&origin, "/"), (200, "Hello, world!".into()));
        let short = get(&origin, "/bytes/20000").1;
        for size in [998_399, 998_400, 998_401, 3_000_000] {
            let long = get(&origin, &format!("/bytes/{size}")).1;
            assert_eq!(long.len(), size);
            // The text repeats every 1664 bytes.
            let mut parts = long.as_bytes().chunks(1664);
            assert!(
                parts.all(|part| short.as_bytes().starts_with(part)),
                "{size}"
            );
        }
        assert_eq!(get(&origin, "/bytes/x").0, 400);
        assert_eq!(get(&origin, "/status/502").0, 502);
        assert_eq!(get(&origin, "/burn/1000"), (200, "Hello, world!".into()));
        assert_eq!(get(&origin, "/burn/x").0, 400);
        assert_eq!(get(&origin, "/nothing").0, 404);
        let (status, page) = get(&origin, "/cgi-bin/second.pl?a=1");
        assert_eq!(status, 200);
        assert!(page.contains("QUERY_STRING --> a=1<br>"), "{page}");
        assert!(page.contains("HTTP_X_TAG --> a&lt;b<br>"), "{page}");
    }
}

#[test]
fn text_and_noise_are_the_same_on_every_machine() {
    let origin = origin(IoKind::Epoll, 1);
    let answer = |path: &str| {
        let bytes = request("GET", "here", path, &[]);
        let timeout = Duration::from_secs(5);
        fetch(&origin.address().into(), &bytes, timeout, 1 << 26).unwrap()
    };
    let text = answer("/text/100000");
    assert_eq!(text.field("content-type"), Some(&b"text/plain"[..]));
    assert_eq!(text.body.len(), 100_000);
    assert!(
        text.body.starts_with(b"Nagam gaga yokpelemyay"),
        "{:?}",
        text.body.get(..40)
    );
    let noise = answer("/noise/1048576");
    assert_eq!(noise.field("content-type"), Some(&b"text/plain"[..]));
    assert_eq!(noise.body.len(), 1_048_576);
    let mut seen = [0_u32; 256];
    for byte in noise.body {
        seen[usize::from(byte)] += 1;
    }
    // 4096 of each value are to be expected, with a standard deviation of 64.
    assert!(
        seen.iter().all(|count| (3_700..4_500).contains(count)),
        "{seen:?}"
    );
    for path in ["/text/x", "/noise/1048577"] {
        assert_eq!(answer(path).status, 400, "{path}");
    }
}

#[test]
fn the_absolute_form_of_a_target_is_as_good() {
    for io in [IoKind::Uring, IoKind::Epoll] {
        let origin = origin(io, 1);
        for (target, status, content) in [
            ("http://here/", 200, "Hello, world!"),
            ("HTTP://here", 200, "Hello, world!"),
            ("https://here:443?a=b", 200, "Hello, world!"),
            ("http://here/bytes/3?x", 200, &get(&origin, "/bytes/3").1),
            ("http://here/status/418", 418, "as you asked\n"),
            ("http://here/delay/constant/1us", 200, "Hello, world!"),
        ] {
            assert_eq!(
                get(&origin, target),
                (status, content.to_owned()),
                "{target}"
            );
        }
        let paced = get(&origin, "http://here/events/2?every=1ms&bytes=50").1;
        assert!(paced.contains("event: end"), "{paced}");
        assert!(get(&origin, "http://here/env").1.contains("HTTP_X_TAG"));
        assert_eq!(get(&origin, "http://here/nothing").0, 404);
        assert_eq!(get(&origin, "ftp://here/").0, 404);
        let mut stream = TcpStream::connect(origin.address()).unwrap();
        let key = net::ws::handshake::key(7);
        let fields = net::ws::handshake::request_fields(&key, false);
        let asked = format!("GET http://here/ws/echo HTTP/1.1\r\nHost: here\r\n{fields}\r\n");
        stream.write_all(asked.as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 101");
    }
}

#[test]
fn every_request_burns_also_on_the_same_connection() {
    let origin = origin(IoKind::Epoll, 1);
    // Of the whole process, in which only this test's origin burns so much.
    let cost = |requests: usize| {
        let mut text = "GET /burn/3000000 HTTP/1.1\r\nHost: x\r\n\r\n".repeat(requests - 1);
        text.push_str("GET /burn/3000000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let before = net::os::process_cpu_ns();
        let mut stream = TcpStream::connect(origin.address()).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answers = String::new();
        stream.read_to_string(&mut answers).unwrap();
        assert_eq!(answers.matches("Hello, world!").count(), requests);
        net::os::process_cpu_ns() - before
    };
    let (one, ten) = (cost(1), cost(10));
    assert!(ten > 4 * one, "{one} {ten}");
}

#[test]
fn counts_connections_and_requests_over_all_threads() {
    for io in [IoKind::Uring, IoKind::Epoll] {
        let origin = origin(io, 2);
        for _ in 0..9 {
            get(&origin, "/");
        }
        let (_, text) = get(&origin, "/.weigh/stats");
        std::thread::sleep(Duration::from_millis(150));
        let stats = origin.stats();
        assert_eq!(
            (stats.connections, stats.received.requests),
            (10, 10),
            "{text}"
        );
    }
}

#[test]
fn pipelined_requests_are_answered_in_order_and_close_is_kept() {
    for io in [IoKind::Uring, IoKind::Epoll] {
        let origin = origin(io, 1);
        let mut stream = TcpStream::connect(origin.address()).unwrap();
        let text = "GET /bytes/300000 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\nGET /status/404 HTTP/1.1\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        stream.write_all(text.as_bytes()).unwrap();
        let mut got = String::new();
        stream.read_to_string(&mut got).unwrap();
        let order: Vec<usize> = ["Content-Length: 300000", "Hello, world!", "404 Not Found"]
            .iter()
            .map(|part| got.find(part).unwrap())
            .collect();
        assert!(order.is_sorted(), "{order:?}");
        assert_eq!(got.matches("HTTP/1.1 ").count(), 3, "nothing after close");
    }
}

#[test]
fn nonsense_is_a_bad_request() {
    for io in [IoKind::Uring, IoKind::Epoll] {
        let origin = origin(io, 1);
        let mut stream = TcpStream::connect(origin.address()).unwrap();
        stream.write_all(b"\x16\x03\x01 tls?\r\n\r\n").unwrap();
        let mut got = String::new();
        stream.read_to_string(&mut got).unwrap();
        assert!(got.starts_with("HTTP/1.1 400 "), "{got}");
    }
}

#[test]
fn delays_are_kept_and_recorded() {
    for io in [IoKind::Uring, IoKind::Epoll] {
        let origin = origin(io, 1);
        let start = std::time::Instant::now();
        for _ in 0..20 {
            assert_eq!(
                get(&origin, "/delay/constant/2ms"),
                (200, "Hello, world!".into())
            );
        }
        assert!(start.elapsed() >= Duration::from_millis(40));
        for _ in 0..20 {
            get(&origin, "/delay/bimodal/0ms/3ms/50");
        }
        assert_eq!(get(&origin, "/delay/sometimes/2ms").0, 400);
        let text = get(&origin, "/.weigh/delays").1;
        let recorded = readings::Histogram::from_base64(&text).unwrap();
        assert_eq!(recorded.count(), 40);
        assert!(recorded.quantile_us(0.9) >= 2_000.0);
        let start = std::time::Instant::now();
        get(&origin, "/.weigh/stall/120");
        assert!(start.elapsed() >= Duration::from_millis(120));
    }
}

#[test]
fn a_piece_of_a_body_is_not_taken_for_a_request() {
    for io in [IoKind::Uring, IoKind::Epoll] {
        let origin = origin(io, 1);
        let mut stream = TcpStream::connect(origin.address()).unwrap();
        let length = 1_000_000;
        let head = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        // All pieces of the body are alike, also the last.
        let request = [head.as_bytes(), &vec![b'x'; length]].concat();
        for _ in 0..50 {
            stream.write_all(&request).unwrap();
            let mut parser = net::http::ResponseParser::default();
            let mut buffer = [0; 4096];
            let n = read_again(&mut stream, &mut buffer).unwrap();
            let done = parser.feed(&buffer[..n], |_| {});
            assert_eq!(done, Ok(net::http::Progress::Done { taken: n }));
            assert_eq!(parser.head().status, 200);
        }
    }
}

#[test]
fn a_client_of_http_1_0_that_asks_to_keep_its_connection_is_told_that_it_may() {
    let ask = |origin: &Origin, fields: &str| {
        let mut stream = TcpStream::connect(origin.address()).unwrap();
        let timeout = Some(Duration::from_secs(5));
        stream.set_read_timeout(timeout).unwrap();
        let text = format!("GET / HTTP/1.0\r\n{fields}\r\n");
        let mut got = [0; 400];
        let mut answers = String::new();
        // Twice on the same connection, as far as it is kept.
        for _ in 0..2 {
            let sent = stream.write_all(text.as_bytes());
            let read = sent.and_then(|()| read_again(&mut stream, &mut got));
            match read {
                Ok(count) => answers.push_str(std::str::from_utf8(&got[..count]).unwrap()),
                Err(_) => break,
            }
        }
        answers
    };
    for io in [IoKind::Uring, IoKind::Epoll] {
        let origin = origin(io, 1);
        let kept = ask(&origin, "Connection: Keep-Alive\r\n");
        assert_eq!(kept.matches("\r\nConnection: keep-alive\r\n").count(), 2);
        assert_eq!(kept.matches("Hello, world!").count(), 2, "{kept}");
        let closed = ask(&origin, "");
        assert_eq!(closed.matches("\r\nConnection: close\r\n").count(), 1);
        assert_eq!(closed.matches("Hello, world!").count(), 1, "{closed}");
    }
}

/// Reads; again if the process was stopped meanwhile: with a time limit that interrupts a read.
fn read_again(stream: &mut impl Read, into: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match stream.read(into) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// What the origin answers at once, and then closes, although more is coming.
const LAST_REQUESTS: [(&[u8], &[u8]); 3] = [
    (b"no request\r\n\r\n", b"HTTP/1.1 400 "),
    (
        b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"Hello, world!",
    ),
    // HTTP/2, of which the first frame is not SETTINGS: GOAWAY.
    (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x08\x06\0\0\0\0\0",
        b"\0\0\x08\x07\0\0\0\0\0",
    ),
];

#[test]
fn a_client_that_is_still_sending_gets_the_last_answer_and_no_reset() {
    for io in [IoKind::Uring, IoKind::Epoll] {
        let origin = origin(io, 1);
        for (request, answer) in LAST_REQUESTS {
            for _ in 0..20 {
                let mut stream = TcpStream::connect(origin.address()).unwrap();
                stream
                    .set_read_timeout(Some(Duration::from_secs(20)))
                    .unwrap();
                let sent = [request, &vec![b'x'; 600_000]].concat();
                stream.write_all(&sent).unwrap();
                let mut got = Vec::new();
                let ended = stream.read_to_end(&mut got);
                assert!(ended.is_ok(), "{io}: {ended:?}");
                let has_answer = got.windows(answer.len()).any(|part| part == answer);
                assert!(has_answer, "{io}: {:?}", String::from_utf8_lossy(&got));
            }
        }
    }
}

#[test]
fn clients_that_do_not_close_take_no_place_and_are_bounded() {
    for io in [IoKind::Uring, IoKind::Epoll] {
        // Has 64 places.
        let origin = origin(io, 1);
        let held: Vec<_> = (0..150)
            .map(|_| {
                let mut stream = TcpStream::connect(origin.address()).unwrap();
                stream.write_all(b"no request\r\n\r\n").unwrap();
                let mut got = Vec::new();
                stream.read_to_end(&mut got).unwrap();
                assert!(got.starts_with(b"HTTP/1.1 400 "), "{io}");
                stream
            })
            .collect();
        let more: Vec<_> = (0..60)
            .map(|_| {
                let mut stream = TcpStream::connect(origin.address()).unwrap();
                stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
                assert_ne!(stream.read(&mut [0; 512]).unwrap(), 0, "{io}");
                stream
            })
            .collect();
        drop((held, more));
    }
}
