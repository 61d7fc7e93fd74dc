//! The origin's HTTP/2: what it refuses, and what floods of a client come to.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use net::IoKind;
use net::h2::{ErrorCode, Event, FrameReader, PREFACE, frame, hpack, settings};
use origin::{Origin, OriginOptions};

fn origin() -> Origin {
    Origin::start(&OriginOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        threads: 1,
        io: IoKind::best(),
        backlog: 16,
        connections: 16,
        spin: false,
        tls: None,
        http3: false,
        quic_congestion: None,
    })
    .unwrap()
}

/// What came back, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Status(u32, String),
    Data(u32, usize, bool),
    Reset(u32, ErrorCode),
    GoAway(ErrorCode),
}

struct Client {
    stream: TcpStream,
    reader: FrameReader,
    decoder: hpack::Decoder,
    out: Vec<u8>,
    seen: Vec<Seen>,
    /// Whether the origin has ended the connection.
    is_ended: bool,
}

impl Client {
    fn new(origin: &Origin, values: &[(u16, u32)]) -> Self {
        let stream = TcpStream::connect(origin.address()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut out = PREFACE.to_vec();
        frame::settings(&mut out, values);
        Self {
            stream,
            reader: FrameReader::new(16_384, 65_536),
            decoder: hpack::Decoder::new(4096, 65_536),
            out,
            seen: Vec::new(),
            is_ended: false,
        }
    }

    fn get(&mut self, stream: u32, fields: &[(&str, &str)], end: bool) {
        frame::headers(&mut self.out, stream, &hpack::block(fields), end, 16_384);
    }

    /// Sends, and reads until `is_enough`, or the end.
    fn until(&mut self, is_enough: impl Fn(&[Seen]) -> bool) -> &[Seen] {
        // The origin may have closed already.
        let _ = self.stream.write_all(&self.out);
        self.out.clear();
        let mut input = [0; 65_536];
        while !is_enough(&self.seen) {
            let n = match self.stream.read(&mut input) {
                Ok(n @ 1..) => n,
                Ok(_) => {
                    self.is_ended = true;
                    break;
                }
                Err(error) => {
                    self.is_ended = error.kind() != std::io::ErrorKind::WouldBlock;
                    break;
                }
            };
            let (seen, decoder) = (&mut self.seen, &mut self.decoder);
            let fed = self.reader.feed(&input[..n], |event| {
                match event {
                    Event::Headers { stream, block, .. } => {
                        decoder.decode(block, |name, value| {
                            if name == b":status" {
                                let value = String::from_utf8_lossy(value).into_owned();
                                seen.push(Seen::Status(stream, value));
                            }
                            Ok(())
                        })?
                    }
                    Event::Data {
                        stream,
                        bytes,
                        end_stream,
                        ..
                    } => seen.push(Seen::Data(stream, bytes.len(), end_stream)),
                    Event::Reset { stream, code } => {
                        seen.push(Seen::Reset(stream, ErrorCode::of(code).unwrap()));
                    }
                    Event::GoAway { code, .. } => {
                        seen.push(Seen::GoAway(ErrorCode::of(code).unwrap()));
                    }
                    _ => {}
                }
                Ok(())
            });
            fed.unwrap();
        }
        &self.seen
    }
}

const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":authority", "origin"),
    (":path", "/"),
];

fn with(changed: (&'static str, &'static str)) -> Vec<(&'static str, &'static str)> {
    let mut fields: Vec<_> = GET.to_vec();
    match fields.iter_mut().find(|(name, _)| *name == changed.0) {
        Some(field) => *field = changed,
        None => fields.push(changed),
    }
    fields
}

#[test]
fn requests_that_would_be_others_in_http_1_1_are_refused() {
    let origin = origin();
    let mut client = Client::new(&origin, &[]);
    let refused = [
        with((":path", "/a b")),
        with((":path", "/a\r\nX: y")),
        with((":path", "a")),
        with(("x", "a\nb")),
        with(("X", "upper")),
        with(("connection", "close")),
        with(("transfer-encoding", "chunked")),
        with(("te", "gzip")),
        with(("host", "another")),
        with(("content-length", "x")),
        with((":status", "200")),
        with((":scheme", "ftp")),
        GET[..3].to_vec(),
    ];
    for (at, fields) in refused.iter().enumerate() {
        client.get(at as u32 * 2 + 1, fields, true);
    }
    let last = refused.len() as u32 * 2 + 1;
    client.get(last, &GET, true);
    let seen = client
        .until(|seen| seen.contains(&Seen::Data(last, 13, true)))
        .to_vec();
    for (at, fields) in refused.iter().enumerate() {
        let reset = Seen::Reset(at as u32 * 2 + 1, ErrorCode::ProtocolError);
        assert!(seen.contains(&reset), "{fields:?}: {seen:?}");
    }
    // A body of another length than announced.
    client.get(last + 2, &with(("content-length", "5")), false);
    frame::data(&mut client.out, last + 2, b"abc", true);
    let reset = Seen::Reset(last + 2, ErrorCode::ProtocolError);
    assert!(client.until(|seen| seen.contains(&reset)).contains(&reset));
}

#[test]
fn a_body_waits_for_the_clients_windows() {
    let origin = origin();
    let mut client = Client::new(&origin, &[(settings::INITIAL_WINDOW_SIZE, 10)]);
    client.get(1, &GET, true);
    let part = Seen::Data(1, 10, false);
    assert_eq!(
        client.until(|seen| seen.contains(&part)).last(),
        Some(&part)
    );
    frame::window_update(&mut client.out, 1, 2);
    let part = Seen::Data(1, 2, false);
    assert_eq!(
        client.until(|seen| seen.contains(&part)).last(),
        Some(&part)
    );
    frame::window_update(&mut client.out, 1, 100);
    let part = Seen::Data(1, 1, true);
    assert_eq!(
        client.until(|seen| seen.contains(&part)).last(),
        Some(&part)
    );
}

#[test]
fn streams_beyond_the_limit_are_refused() {
    let origin = origin();
    // Nothing can be sent, so that all streams stay open.
    let mut client = Client::new(&origin, &[(settings::INITIAL_WINDOW_SIZE, 0)]);
    for stream in 0..300 {
        client.get(stream * 2 + 1, &GET, true);
    }
    let last = Seen::Reset(599, ErrorCode::RefusedStream);
    let seen = client.until(|seen| seen.contains(&last));
    let refused = |one: &&Seen| matches!(one, Seen::Reset(_, ErrorCode::RefusedStream));
    assert_eq!(seen.iter().filter(refused).count(), 300 - 256);
}

/// What a client sends again and again, by number.
type Flood = fn(&mut Vec<u8>, u32);

#[test]
fn floods_end_the_connection_and_no_other() {
    let origin = origin();
    let mut other = Client::new(&origin, &[]);
    let floods: [(&str, Flood); 5] = [
        ("rapid reset, CVE-2023-44487", |out, at| {
            let block = hpack::block(&with((":path", "/delay/constant/1s")));
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
        let mut client = Client::new(&origin, &[]);
        let calm = Seen::GoAway(ErrorCode::EnhanceYourCalm);
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
        let seen = client.until(|seen| seen.contains(&calm));
        let is_told = seen.contains(&calm);
        let last = format!("{:?}", seen.last());
        // The reason may be lost with the reset that unread frames of the flood lead to.
        is_over |= client.is_ended;
        assert!(is_told || is_over, "{what}: {last}");
    }
    other.get(1, &GET, true);
    let whole = Seen::Data(1, 13, true);
    assert!(other.until(|seen| seen.contains(&whole)).contains(&whole));
}
