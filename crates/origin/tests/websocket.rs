//! WebSockets, over real sockets and both event loops.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use net::h2::{ErrorCode, frame, settings};
use net::ws::{
    CloseCode, Event, Frame, MessageKind, Opcode, Reader, Role, Writer, handshake, write_frame,
};
use net::{IoKind, os};
use origin::{Origin, OriginOptions, Stats};
use testing::http2::client::{Client, with};

/// Nothing takes as long, unless something hangs.
const LONG: Duration = Duration::from_secs(20);

fn on_each_loop(threads: usize, test: impl Fn(&Origin)) {
    for io in [IoKind::Epoll, IoKind::Uring] {
        if io == IoKind::Uring && net::uring_unavailable().is_some() {
            continue;
        }
        let options = OriginOptions {
            io,
            threads,
            connections: 1024,
            ..OriginOptions::default()
        };
        test(&Origin::start(&options).unwrap());
    }
}

/// What a server sends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Heard {
    Text(String),
    Binary(Vec<u8>),
    Ping,
    Pong(Vec<u8>),
    Close(Option<u16>),
}

struct Socket {
    stream: TcpStream,
    reader: Reader,
    writer: Writer,
    /// Received and not read.
    rest: Vec<u8>,
    head: String,
}

impl Socket {
    fn open(address: SocketAddr, path: &str, deflate: bool) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let key = handshake::key(7);
        let fields = handshake::request_fields(&key, deflate);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n").unwrap();
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let fields = head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "));
        let fields: Vec<_> = fields
            .map(|(name, value)| (name, value.as_bytes()))
            .collect();
        let agreed = handshake::check_answer(101, fields.iter().copied(), &key, deflate).unwrap();
        assert_eq!(agreed.is_some(), deflate);
        Self {
            stream,
            reader: Reader::new(Role::Client, 64 << 20, agreed),
            writer: Writer::new(Role::Client, 1, agreed),
            rest: Vec::new(),
            head,
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    fn text(&mut self, text: &str) {
        let mut out = Vec::new();
        self.writer
            .message(&mut out, MessageKind::Text, text.as_bytes());
        self.send(&out);
    }

    fn frame(&mut self, opcode: Opcode, is_final: bool, content: &[u8]) {
        let mut out = Vec::new();
        write_frame(&mut out, client_frame(opcode, is_final), content);
        self.send(&out);
    }

    /// The next message or control frame; `None` at the end of the connection.
    fn hear(&mut self) -> Option<Heard> {
        loop {
            let mut rest = &self.rest[..];
            let heard = self
                .reader
                .next(&mut rest)
                .unwrap()
                .map(|event| match event {
                    Event::Message(MessageKind::Text, text) => {
                        Heard::Text(String::from_utf8(text.to_vec()).unwrap())
                    }
                    Event::Message(MessageKind::Binary, bytes) => Heard::Binary(bytes.to_vec()),
                    Event::Ping(_) => Heard::Ping,
                    Event::Pong(bytes) => Heard::Pong(bytes.to_vec()),
                    Event::Close(code, _) => Heard::Close(code.map(|code| code.0)),
                });
            let left = rest.len();
            self.rest.drain(..self.rest.len() - left);
            if heard.is_some() {
                return heard;
            }
            let mut more = vec![0; 65_536];
            match self.stream.read(&mut more) {
                Ok(n @ 1..) => self.rest.extend_from_slice(&more[..n]),
                Ok(_) => return None,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                // The process was stopped meanwhile.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn hear_text(&mut self) -> String {
        match self.hear() {
            Some(Heard::Text(text)) => text,
            other => panic!("{other:?}"),
        }
    }
}

fn client_frame(opcode: Opcode, is_final: bool) -> Frame {
    Frame {
        opcode,
        is_final,
        is_compressed: false,
        mask: Some([1, 2, 3, 4]),
        length: 0,
    }
}

/// Waits until the counts are as they should be.
fn until(origin: &Origin, what: &str, is_so: impl Fn(Stats) -> bool) {
    let end = Instant::now() + LONG;
    while !is_so(origin.stats()) {
        assert!(Instant::now() < end, "{what}: {:?}", origin.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn echoes() {
    on_each_loop(1, |origin| {
        let mut socket = Socket::open(origin.address(), "/ws/echo", false);
        assert!(socket.head.contains("Weigh-Clock: "), "{}", socket.head);
        socket.text("h\u{e4}");
        assert_eq!(socket.hear(), Some(Heard::Text("h\u{e4}".into())));
        socket.frame(Opcode::Binary, true, &[0, 255]);
        assert_eq!(socket.hear(), Some(Heard::Binary(vec![0, 255])));
        // A message in fragments, with a ping in between.
        socket.frame(Opcode::Text, false, b"one ");
        socket.frame(Opcode::Ping, true, b"ping");
        socket.frame(Opcode::Continuation, true, b"two");
        assert_eq!(socket.hear(), Some(Heard::Pong(b"ping".to_vec())));
        assert_eq!(socket.hear_text(), "one two");
        let long = "x".repeat(3 << 20);
        let mut sender = socket.stream.try_clone().unwrap();
        let mut out = Vec::new();
        write_frame(&mut out, client_frame(Opcode::Text, true), long.as_bytes());
        let sending = std::thread::spawn(move || sender.write_all(&out).unwrap());
        assert!(socket.hear_text() == long);
        sending.join().unwrap();
        let mut out = Vec::new();
        socket.writer.close(&mut out, Some(CloseCode(3001)), "bye");
        socket.send(&out);
        assert_eq!(socket.hear(), Some(Heard::Close(Some(3001))));
        assert_eq!(socket.hear(), None);
        until(origin, "closed", |stats| {
            stats.lasting == 0 && stats.messages == 4
        });
    });
}

#[test]
fn messages_behind_the_handshake_are_not_lost() {
    on_each_loop(1, |origin| {
        let mut stream = TcpStream::connect(origin.address()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let fields = handshake::request_fields(&handshake::key(1), false);
        let mut out = format!("GET /ws/echo HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes();
        for _ in 0..3 {
            write_frame(&mut out, client_frame(Opcode::Text, true), b"abc");
        }
        write_frame(&mut out, client_frame(Opcode::Close, true), b"");
        stream.write_all(&out).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert!(all.ends_with(b"\x81\x03abc\x81\x03abc\x81\x03abc\x88\x00"));
    });
}

#[test]
fn compressed_messages_come_back_compressed() {
    on_each_loop(1, |origin| {
        let mut socket = Socket::open(origin.address(), "/ws/echo", true);
        for text in ["abcabcabcabcabcabc", "", "abcabcabcabcabcabc"] {
            socket.text(text);
            assert_eq!(socket.hear_text(), text);
        }
    });
}

#[test]
fn mistakes_are_closed_with_their_code() {
    on_each_loop(1, |origin| {
        let not_masked = b"\x81\x01a".to_vec();
        let mut not_utf8 = Vec::new();
        write_frame(&mut not_utf8, client_frame(Opcode::Text, true), b"\xff");
        // A head that announces 2^40 bytes.
        let too_long = b"\x82\xff\x00\x00\x01\x00\x00\x00\x00\x00abcd".to_vec();
        for (bytes, code) in [(not_masked, 1002), (not_utf8, 1007), (too_long, 1009)] {
            let mut socket = Socket::open(origin.address(), "/ws/echo", false);
            socket.send(&bytes);
            assert_eq!(socket.hear(), Some(Heard::Close(Some(code))));
            assert_eq!(socket.hear(), None);
        }
        until(origin, "closed", |stats| stats.lasting == 0);
    });
}

#[test]
fn requests_that_are_no_handshake_are_refused() {
    on_each_loop(1, |origin| {
        let key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
        let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
        for (path, fields, expected) in [
            ("/ws/echo", String::new(), "400"),
            (
                "/ws/echo",
                format!("{upgrade}{key}Sec-WebSocket-Version: 8\r\n"),
                "426",
            ),
            ("/ws/other", String::new(), "404"),
            ("/ws/topic/", String::new(), "404"),
            ("/ws/paced/5?format=sse", String::new(), "400"),
        ] {
            let mut stream = TcpStream::connect(origin.address()).unwrap();
            let close = "Host: a\r\n";
            write!(stream, "GET {path} HTTP/1.1\r\n{close}{fields}\r\n").unwrap();
            // The connection is kept.
            write!(
                stream,
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            )
            .unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert!(text.starts_with(&format!("HTTP/1.1 {expected} ")), "{text}");
            assert!(text.ends_with("Hello, world!"), "{text}");
            let version = text.contains("Sec-WebSocket-Version: 13\r\n");
            assert_eq!(version, expected == "426", "{text}");
        }
    });
}

#[test]
fn paced_messages_end_with_a_close() {
    on_each_loop(1, |origin| {
        let path = "/ws/paced/10?every=2ms&bytes=200&heartbeat=7ms";
        let mut socket = Socket::open(origin.address(), path, false);
        let (mut number, mut pings) = (0, 0);
        loop {
            match socket.hear().unwrap() {
                Heard::Text(text) => {
                    let words: Vec<&str> = text.split(' ').collect();
                    assert_eq!((words[0], text.len()), ("weigh", 200));
                    assert_eq!(words[1].parse(), Ok(number));
                    assert!(words[2].parse::<u64>().unwrap() <= os::now_ns());
                    number += 1;
                }
                Heard::Ping => pings += 1,
                heard => {
                    assert_eq!(heard, Heard::Close(Some(1000)));
                    break;
                }
            }
        }
        assert_eq!(number, 10);
        assert!((1..=3).contains(&pings), "{pings}");
        socket.frame(Opcode::Close, true, b"\x03\xe8");
        assert_eq!(socket.hear(), None);
        until(origin, "closed", |stats| {
            stats.lasting == 0 && stats.messages == 10
        });
    });
}

#[test]
fn all_members_of_a_topic_get_what_one_sends() {
    const MEMBERS: usize = 24;
    on_each_loop(3, |origin| {
        let open = |path: &str| Socket::open(origin.address(), path, false);
        let mut members: Vec<Socket> = (0..MEMBERS).map(|_| open("/ws/topic/a")).collect();
        let mut other = open("/ws/topic/b");
        until(origin, "joined", |stats| {
            stats.members == MEMBERS as u64 + 1
        });
        for (at, member) in members.iter_mut().enumerate() {
            member.text(&format!("from {at}"));
        }
        let mut expected: Vec<String> = (0..MEMBERS).map(|at| format!("from {at}")).collect();
        expected.sort();
        for member in &mut members {
            let mut heard: Vec<String> = (0..MEMBERS).map(|_| member.hear_text()).collect();
            heard.sort();
            assert_eq!(heard, expected);
        }
        // The order of one sender is that of all receivers.
        for number in 0..200 {
            members[0].text(&number.to_string());
        }
        for member in &mut members {
            for number in 0..200 {
                assert_eq!(member.hear_text(), number.to_string());
            }
        }
        other.text("own");
        assert_eq!(other.hear_text(), "own");
        members.truncate(3);
        until(origin, "left", |stats| stats.members == 4);
        members[1].text("few");
        for member in &mut members {
            assert_eq!(member.hear_text(), "few");
        }
        assert_eq!(origin.stats().messages_lost, 0);
    });
}

#[test]
fn a_member_that_does_not_read_is_closed() {
    on_each_loop(1, |origin| {
        let open = || Socket::open(origin.address(), "/ws/topic/a", false);
        let (mut slow, mut sender) = (open(), open());
        until(origin, "joined", |stats| stats.members == 2);
        let text = "x".repeat(60_000);
        let mut sent = 0;
        while origin.stats().messages_lost == 0 {
            assert!(sent < 10_000, "all is kept");
            sender.text(&text);
            assert_eq!(sender.hear_text().len(), text.len());
            sent += 1;
        }
        until(origin, "left", |stats| stats.members == 1);
        let mut heard = 0;
        loop {
            match slow.hear() {
                Some(Heard::Text(_)) => heard += 1,
                end => {
                    assert_eq!(end, Some(Heard::Close(Some(1013))));
                    break;
                }
            }
        }
        assert!((1..sent).contains(&heard), "{heard} of {sent}");
        until(origin, "counted", |stats| stats.messages == sent + heard);
    });
}

/// Nothing is kept without limit of what comes back to a client that does not read.
#[test]
fn an_echo_reads_no_more_than_its_client() {
    const MOST: usize = 256 << 20;
    on_each_loop(1, |origin| {
        let mut socket = Socket::open(origin.address(), "/ws/echo", false);
        let mut out = Vec::new();
        for _ in 0..16 {
            write_frame(&mut out, client_frame(Opcode::Binary, true), &[7; 60_000]);
        }
        let timeout = Some(Duration::from_secs(1));
        socket.stream.set_write_timeout(timeout).unwrap();
        let mut sent = 0;
        while sent < MOST && socket.stream.write_all(&out).is_ok() {
            sent += out.len();
        }
        assert!(sent < MOST, "the origin takes whatever comes");
        for _ in 0..sent / 61_000 {
            assert_eq!(socket.hear(), Some(Heard::Binary(vec![7; 60_000])));
        }
    });
}

fn connect_fields(path: &str) -> Vec<(&str, &str)> {
    let mut fields = vec![(":protocol", "websocket")];
    fields.extend(with(&[(":method", "CONNECT"), (":path", path)]));
    fields.push(("sec-websocket-version", "13"));
    fields
}

#[test]
fn over_http2() {
    on_each_loop(1, |origin| {
        let mut client = Client::connect(origin.address());
        client.head(1, &connect_fields("/ws/echo"), false);
        client.head(3, &connect_fields("/ws/paced/3?every=1ms"), false);
        client.head(5, &connect_fields("/ws/topic/a"), false);
        client.head(7, &connect_fields("/ws/topic/a"), false);
        client.head(9, &connect_fields("/ws/other"), false);
        for (stream, path) in [(11, "/"), (13, "/bytes/100"), (15, "/events/3?every=1ms")] {
            client.head(stream, &connect_fields(path), false);
        }
        let mut other = connect_fields("/");
        other[0].1 = "connect-udp";
        client.head(17, &other, false);
        let mut out = Vec::new();
        write_frame(&mut out, client_frame(Opcode::Text, true), b"abc");
        client.data(1, &out[..4], false);
        client.data(1, &out[4..], false);
        client.data(5, &out, false);
        client.until(|client| {
            [(1, 5), (3, 300), (5, 5), (7, 5)]
                .iter()
                .all(|(stream, bytes)| client.received(*stream) >= *bytes)
        });
        for stream in [1, 3, 5, 7] {
            let response = &client.responses[&stream];
            assert_eq!(response.value(":status"), "200");
            assert!(!response.value("weigh-clock").is_empty());
            assert_eq!(response.value("sec-websocket-accept"), "");
        }
        for stream in [1, 5, 7] {
            assert_eq!(client.responses[&stream].body, b"\x81\x03abc");
        }
        assert_eq!(client.response(9).value(":status"), "404");
        for stream in [11, 13, 15] {
            assert_eq!(client.response(stream).value(":status"), "400", "{stream}");
        }
        assert_eq!(client.response(17).value(":status"), "501");
        out.clear();
        write_frame(&mut out, client_frame(Opcode::Close, true), b"\x03\xe8");
        client.data(1, &out, true);
        let echo = client.response(1);
        assert!(echo.body.ends_with(b"\x88\x02\x03\xe8"), "{:?}", echo.body);
        assert!(echo.is_complete);
        // One that ends without a close frame.
        client.data(5, b"", true);
        assert!(client.response(5).is_complete);
        until(origin, "ended", |stats| stats.members == 1);
        drop(client);
        until(origin, "gone", |stats| stats.lasting == 0);
    });
}

#[test]
fn a_stream_that_sends_and_does_not_read_is_refused() {
    on_each_loop(1, |origin| {
        let mut client = Client::connect(origin.address());
        client.is_reading = false;
        client.head(1, &connect_fields("/ws/echo"), false);
        client.until(|client| client.responses.len() == 1);
        let mut out = Vec::new();
        write_frame(&mut out, client_frame(Opcode::Binary, true), &[7; 16_000]);
        for _ in 0..100 {
            client.data(1, &out, false);
        }
        client.until(|client| client.responses[&1].reset.is_some());
        let reset = client.responses[&1].reset;
        assert_eq!(reset, Some(ErrorCode::EnhanceYourCalm));
        until(origin, "freed", |stats| stats.lasting == 0);
        assert!(origin.stats().messages_lost > 0);
    });
}

#[test]
fn members_of_one_connection_are_judged_each_by_its_own_backlog() {
    on_each_loop(1, |origin| {
        let settings = [(settings::INITIAL_WINDOW_SIZE, 1 << 24)];
        let mut client = Client::connect_with(origin.address(), &settings);
        frame::window_update(&mut client.out, 0, 1 << 29);
        let members: Vec<u32> = (0..200).map(|number| 2 * number + 1).collect();
        for stream in &members {
            client.head(*stream, &connect_fields("/ws/topic/a"), false);
        }
        client.until(|client| client.responses.len() == members.len());
        let mut out = Vec::new();
        write_frame(&mut out, client_frame(Opcode::Binary, true), &[7; 60_000]);
        // 12 MB for the connection each time, of which most has not been read when the next comes.
        for count in 1..=3 {
            for piece in out.chunks(16_000) {
                client.data(1, piece, false);
            }
            client.until(|client| client.received(1) >= count * 60_000);
        }
        let is_all = |client: &Client<TcpStream>| {
            let received = |stream: &u32| client.received(*stream) >= 3 * 60_000;
            members.iter().all(received)
        };
        client.until(|client| is_all(client) || client.responses[&1].is_complete);
        assert!(is_all(&client), "members were closed");
        assert_eq!(origin.stats().messages_lost, 0);
    });
}
