//! gRPC calls, over real sockets and both event loops.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use net::grpc::echo::{self, Collected, PacedRequest};
use net::grpc::{MessageReader, Part, decode_message, prefix};
use net::h2::{ErrorCode, settings};
use net::{IoKind, os};
use origin::{Origin, OriginOptions, Stats};
use testing::http2::client::{Client, Response, with};

fn on_each_loop(test: impl Fn(&Origin)) {
    for io in [IoKind::Epoll, IoKind::Uring] {
        if io == IoKind::Uring && net::uring_unavailable().is_some() {
            continue;
        }
        let options = OriginOptions {
            io,
            ..OriginOptions::default()
        };
        test(&Origin::start(&options).unwrap());
    }
}

fn call(client: &mut Client<TcpStream>, stream: u32, path: &str, more: &[(&str, &str)]) {
    let mut fields = with(&[(":method", "POST"), (":path", path)]);
    fields.extend([("content-type", "application/grpc"), ("te", "trailers")]);
    fields.extend(more);
    client.head(stream, &fields, false);
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mut out = prefix(message.len() as u32).to_vec();
    out.extend_from_slice(message);
    out
}

/// A `weigh.v1.Message` with this payload.
fn message(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    echo::begin_message(payload.len() as u32, &mut out);
    out.extend_from_slice(payload);
    out
}

fn paced(messages: u64, every_us: u64, bytes: u32) -> Vec<u8> {
    let request = PacedRequest {
        messages,
        every_us,
        bytes,
    };
    let mut out = Vec::new();
    request.encode(&mut out);
    framed(&out)
}

fn messages(body: &[u8]) -> Vec<Vec<u8>> {
    let (mut all, mut one) = (Vec::new(), Vec::new());
    let mut reader = MessageReader::new(64 << 20);
    let fed = reader.feed(body, |part| match part {
        Part::Start(_) => {}
        Part::Content(bytes) => one.extend_from_slice(bytes),
        Part::End => all.push(std::mem::take(&mut one)),
    });
    fed.unwrap();
    reader.end().unwrap();
    all
}

/// The status, and the text beside it.
fn status(response: &Response) -> (&str, String) {
    assert_eq!(response.value(":status"), "200");
    assert_eq!(response.value("content-type"), "application/grpc");
    assert!(response.is_complete, "{response:?}");
    let text = decode_message(response.value("grpc-message").as_bytes());
    (response.value("grpc-status"), text)
}

/// Waits until the counts are as they should be.
fn until(origin: &Origin, what: &str, is_so: impl Fn(Stats) -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so(origin.stats()) {
        assert!(Instant::now() < end, "{what}: {:?}", origin.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn unary() {
    on_each_loop(|origin| {
        let mut client = Client::connect(origin.address());
        let sent = message(b"hello");
        // In one piece, in pieces, and one that is long.
        call(&mut client, 1, "/weigh.v1.Echo/Unary", &[]);
        client.data(1, &framed(&sent), true);
        call(&mut client, 3, "/weigh.v1.Echo/Unary", &[]);
        for byte in framed(&sent) {
            client.data(3, &[byte], false);
        }
        client.data(3, &[], true);
        for stream in [1, 3] {
            let response = client.response(stream);
            assert_eq!(status(&response).0, "0");
            assert_eq!(messages(&response.body), std::slice::from_ref(&sent));
        }
        let long = message(&vec![7; 1 << 20]);
        call(&mut client, 5, "/weigh.v1.Echo/Unary", &[]);
        for piece in framed(&long).chunks(16_384) {
            client.data(5, piece, false);
        }
        client.data(5, &[], true);
        let response = client.response(5);
        assert_eq!(status(&response).0, "0");
        assert!(messages(&response.body) == [long]);
        until(origin, "ended", |stats| {
            stats.lasting == 0 && stats.messages == 3
        });
    });
}

#[test]
fn paced_messages_have_their_number_and_due_time() {
    on_each_loop(|origin| {
        let mut client = Client::connect(origin.address());
        call(&mut client, 1, "/weigh.v1.Echo/Paced", &[]);
        client.data(1, &paced(10, 2_000, 120), true);
        let response = client.response(1);
        assert_eq!(status(&response).0, "0");
        assert!(!response.value("weigh-clock").is_empty());
        let all = messages(&response.body);
        assert_eq!(all.len(), 10);
        let mut first = None;
        for (number, message) in all.iter().enumerate() {
            let text = String::from_utf8(echo::payload(message).unwrap().to_vec()).unwrap();
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!((words[0], text.len()), ("weigh", 120));
            assert_eq!(words[1].parse(), Ok(number));
            let due: u64 = words[2].parse().unwrap();
            let first = *first.get_or_insert(due);
            assert_eq!(due, first + number as u64 * 2_000_000);
            assert!(due <= os::now_ns());
        }
    });
}

#[test]
fn deadlines_are_kept() {
    on_each_loop(|origin| {
        let mut client = Client::connect(origin.address());
        let timeout = [("grpc-timeout", "50m")];
        call(&mut client, 1, "/weigh.v1.Echo/Paced", &timeout);
        client.data(1, &paced(0, 10_000, 0), true);
        // One whose client sends nothing.
        call(&mut client, 3, "/weigh.v1.Echo/Both", &timeout);
        let before = Instant::now();
        for stream in [1, 3] {
            let response = client.response(stream);
            assert_eq!(status(&response), ("4", "the deadline has passed".into()));
        }
        assert!(before.elapsed() >= Duration::from_millis(45));
        let count = messages(&client.responses[&1].body).len();
        assert!((1..=5).contains(&count), "{count}");
        until(origin, "ended", |stats| stats.lasting == 0);
    });
}

#[test]
fn streams_of_the_client() {
    on_each_loop(|origin| {
        let mut client = Client::connect(origin.address());
        call(&mut client, 1, "/weigh.v1.Echo/Collect", &[]);
        call(&mut client, 3, "/weigh.v1.Echo/Both", &[]);
        for number in 0..5_usize {
            let payload = vec![7; number * 1000];
            client.data(1, &framed(&message(&payload)), false);
            client.data(3, &framed(&message(&payload)), false);
            // Each is answered before the next is sent.
            client.until(|client| {
                let body = client.responses.get(&3).map(|one| one.body.len());
                body.is_some_and(|bytes| bytes >= (0..=number).map(|n| n * 1000 + 5).sum())
            });
        }
        client.data(1, &[], true);
        client.data(3, &[], true);
        let both = client.response(3);
        assert_eq!((status(&both).0, messages(&both.body).len()), ("0", 5));
        let response = client.response(1);
        assert_eq!(status(&response).0, "0");
        let collected = Collected {
            messages: 5,
            bytes: 10_000,
        };
        let answer = messages(&response.body);
        assert_eq!(answer.len(), 1);
        assert_eq!(Collected::decode(&answer[0]), Some(collected));
    });
}

#[test]
fn mistakes_have_their_status() {
    on_each_loop(|origin| {
        let mut client = Client::connect(origin.address());
        let unary = "/weigh.v1.Echo/Unary";
        let two = [framed(b""), framed(b"")].concat();
        let big = paced(1, 0, 2 << 20);
        let cases: [(&str, &[u8], &str); 11] = [
            ("/weigh.v1.Echo/Other", &framed(b""), "12"),
            ("/other.Service/Method", &framed(b""), "12"),
            ("/", &framed(b""), "12"),
            (unary, b"", "13"),
            (unary, &two, "13"),
            (unary, b"\0\0\0\0\x05abc", "13"),
            (unary, b"\x02\0\0\0\0", "13"),
            (unary, b"\x01\0\0\0\0", "12"),
            (unary, b"\0\xff\xff\xff\xff", "8"),
            ("/weigh.v1.Echo/Paced", &framed(b"\x0b"), "3"),
            ("/weigh.v1.Echo/Paced", &big, "3"),
        ];
        for (at, (path, bytes, expected)) in cases.iter().enumerate() {
            let stream = at as u32 * 2 + 1;
            call(&mut client, stream, path, &[]);
            client.data(stream, bytes, true);
            let response = client.response(stream);
            let (status, text) = status(&response);
            assert_eq!(status, *expected, "{path} {bytes:?}: {text}");
            assert!(!text.is_empty());
        }
        // The connection serves others.
        assert_eq!(client.ask(101, &with(&[])).body, b"Hello, world!");
        call(&mut client, 103, unary, &[("grpc-timeout", "soon")]);
        client.data(103, &framed(b""), true);
        assert_eq!(status(&client.response(103)).0, "3");
        until(origin, "ended", |stats| stats.lasting == 0);

        let mut stream = TcpStream::connect(origin.address()).unwrap();
        let fields = "Host: a\r\nContent-Type: application/grpc\r\nContent-Length: 0";
        write!(
            stream,
            "POST {unary} HTTP/1.1\r\n{fields}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 505 "), "{text}");
    });
}

#[test]
fn trailers_wait_for_the_messages_before_them() {
    on_each_loop(|origin| {
        let windows = [(settings::INITIAL_WINDOW_SIZE, 3)];
        let mut client = Client::connect_with(origin.address(), &windows);
        client.is_reading = false;
        call(&mut client, 1, "/weigh.v1.Echo/Unary", &[]);
        client.data(1, &framed(&message(b"hello")), true);
        client.until(|client| client.received(1) == 3);
        assert!(client.responses[&1].value("grpc-status").is_empty());
        net::h2::frame::window_update(&mut client.out, 1, 100);
        let response = client.response(1);
        assert_eq!(status(&response).0, "0");
        assert_eq!(messages(&response.body), [message(b"hello")]);
    });
}

#[test]
fn a_client_that_sends_and_does_not_read_is_refused() {
    on_each_loop(|origin| {
        let mut client = Client::connect(origin.address());
        client.is_reading = false;
        call(&mut client, 1, "/weigh.v1.Echo/Both", &[]);
        let one = framed(&message(&[7; 16_000]));
        for _ in 0..100 {
            client.data(1, &one, false);
        }
        client.until(|client| {
            client
                .responses
                .get(&1)
                .is_some_and(|one| one.reset.is_some())
        });
        let reset = client.responses[&1].reset;
        assert_eq!(reset, Some(ErrorCode::EnhanceYourCalm));
        until(origin, "freed", |stats| stats.lasting == 0);
    });
}

#[test]
fn the_schema_is_given_to_those_who_ask() {
    on_each_loop(|origin| {
        let mut client = Client::connect(origin.address());
        // `file_containing_symbol`, `file_by_filename` and `list_services`.
        let field = |number: u8, text: &str| {
            let mut bytes = vec![number << 3 | 2, text.len() as u8];
            bytes.extend_from_slice(text.as_bytes());
            bytes
        };
        let file = field(3, echo::FILE_NAME);
        let symbol = field(4, "weigh.v1.Echo");
        let unknown = field(4, "weigh.v1.Nothing");
        let list = field(7, "");
        for (at, version) in ["v1", "v1alpha"].iter().enumerate() {
            let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
            let stream = at as u32 * 2 + 1;
            call(&mut client, stream, &path, &[]);
            for question in [&file, &symbol, &unknown, &list] {
                client.data(stream, &framed(question), false);
            }
            client.data(stream, &[], true);
            let response = client.response(stream);
            assert_eq!(status(&response).0, "0");
            let answers = messages(&response.body);
            let has = |at: usize, text: &[u8]| answers[at].windows(text.len()).any(|w| w == text);
            assert_eq!(answers.len(), 4);
            assert!(has(0, echo::FILE_DESCRIPTOR) && has(1, echo::FILE_DESCRIPTOR));
            assert!(has(2, b"no such file or symbol"));
            assert!(
                has(3, echo::SERVICE.as_bytes())
                    && has(3, path[1..].split('/').next().unwrap().as_bytes())
            );
        }
    });
}
