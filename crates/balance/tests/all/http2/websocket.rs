//! WebSockets over HTTP/2 (RFC 8441), on either side of the balancer.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use net::h2::{ErrorCode, settings};
use net::ws::handshake::accept_of;

use crate::http2::back_ends;
use crate::http2::clients::clear_and_client;
use crate::support::http::{BackEnd, Message, Peer};
use crate::support::{active_now, clients_now, on_both, until};
use testing::http2::back_end::{BackEnd as BackEnd2, Got, Link, value};
use testing::http2::client::Client;

const CONNECT: [(&str, &str); 6] = [
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    (":scheme", "https"),
    (":path", "/chat"),
    (":authority", "a.example"),
    ("sec-websocket-version", "13"),
];

/// The answer to a request for a WebSocket.
fn agreement(request: &Message) -> String {
    let accept = accept_of(request.values("sec-websocket-key")[0]);
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: chat\r\n\r\n"
    )
}

/// Agrees to every WebSocket, and sends back what comes until the end; then a word, and its end.
fn echo() -> BackEnd {
    BackEnd::new(|peer, _, all| {
        while let Some(request) = peer.request() {
            all.note(request.clone());
            if request.values("upgrade") != ["websocket"] {
                peer.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno");
                continue;
            }
            peer.say(agreement(&request));
            let mut other = peer.stream.try_clone().unwrap();
            let _ = std::io::copy(&mut peer.stream, &mut other);
            peer.say("bye");
            return;
        }
    })
}

/// Agrees to every extended CONNECT, and sends back what comes.
fn echo_2() -> BackEnd2 {
    BackEnd2::new(&[(settings::ENABLE_CONNECT_PROTOCOL, 1)], |link, _| {
        while let Some(got) = link.receive() {
            serve_2(link, got);
        }
    })
}

fn serve_2(link: &mut Link, got: Got) {
    match got {
        Got::Head { stream, fields, .. } => {
            let names = [
                "sec-websocket-key",
                "upgrade",
                "connection",
                "content-length",
            ];
            let extra = names.iter().any(|name| !value(&fields, name).is_empty());
            let is_right = value(&fields, ":protocol") == "websocket"
                && value(&fields, ":path") == "/chat"
                && value(&fields, "sec-websocket-version") == "13";
            match is_right && !extra {
                true => link.head(stream, &[(":status", "200"), ("x-a", "b")], false),
                false => link.head(stream, &[(":status", "400")], true),
            }
        }
        Got::Data { stream, bytes, end } => link.data(stream, &bytes, end),
        _ => {}
    }
}

fn body_is(client: &mut Client<TcpStream>, stream: u32, wanted: &str) {
    let has = |client: &Client<TcpStream>| client.received(stream) >= wanted.len();
    client.until(has);
    let body = client.responses[&stream].body.clone();
    assert_eq!(String::from_utf8_lossy(&body), wanted);
}

#[test]
fn a_stream_becomes_an_upgrade_and_each_side_ends_on_its_own() {
    let back = echo();
    on_both(|io| {
        let (balancer, mut client) = clear_and_client(io, &[back.address]);
        let mut fields = CONNECT.to_vec();
        // A key of the client's own is of no use in HTTP/2.
        fields.extend([("sec-websocket-key", "x"), ("origin", "https://a.example")]);
        client.head(1, &fields, false);
        client.data(1, b"hello", false);
        body_is(&mut client, 1, "hello");
        let response = client.responses[&1].clone();
        assert_eq!(response.value(":status"), "200");
        assert_eq!(response.value("sec-websocket-protocol"), "chat");
        for name in ["sec-websocket-accept", "connection", "upgrade"] {
            assert_eq!(response.value(name), "", "{name}");
        }
        // Other streams of the connection are served meanwhile.
        let answer = client.ask(3, &testing::http2::client::GET);
        assert_eq!(answer.body, b"no");
        client.data(1, b" again", false);
        body_is(&mut client, 1, "hello again");
        assert_eq!(active_now(&balancer, 0), 1);
        // The end of the client's side is passed on, and what comes after it.
        client.data(1, b"", true);
        let response = client.response(1);
        assert_eq!(response.body, b"hello againbye");
        assert!(response.is_complete && response.reset.is_none());
        until("the back end is free", || active_now(&balancer, 0) == 0);
        drop(client);
        until("the client has gone", || clients_now(&balancer) == 0);
        let requests = back.requests();
        let request = requests
            .iter()
            .find(|one| one.head.starts_with("GET /chat HTTP/1.1\r\n"))
            .unwrap();
        assert_eq!(request.values("host"), ["a.example"]);
        assert_eq!(request.values("upgrade"), ["websocket"]);
        assert_eq!(request.values("connection"), ["Upgrade"]);
        assert_eq!(request.values("sec-websocket-version"), ["13"]);
        assert_eq!(request.values("origin"), ["https://a.example"]);
        assert_eq!(request.values("sec-websocket-key")[0].len(), 24);
        assert!(request.values("transfer-encoding").is_empty());
    });
}

#[test]
fn much_passes_both_ways_and_a_slow_reader_holds_only_its_own_stream() {
    let back = echo();
    on_both(|io| {
        let (_balancer, mut client) = clear_and_client(io, &[back.address]);
        client.head(1, &CONNECT, false);
        client.until(|client| client.responses.contains_key(&1));
        let sent = client.fill(1, 1 << 20);
        assert!(sent >= 1 << 20);
        client.until(|client| client.received(1) == sent);
        client.is_reading = false;
        let held = client.fill(1, 64 << 20);
        assert!(held < 32 << 20, "{held}");
    });
}

#[test]
fn what_comes_before_the_agreement_never_becomes_a_request() {
    const FORGED: &[u8] = b"GET /secret HTTP/1.1\r\nHost: a\r\n\r\n";
    let back = BackEnd::new(|peer, _, all| {
        while let Some(request) = peer.request() {
            all.note(request);
            std::thread::sleep(Duration::from_millis(50));
            peer.say("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
        }
    });
    on_both(|io| {
        let (balancer, mut client) = clear_and_client(io, &[back.address]);
        client.head(1, &CONNECT, false);
        client.data(1, FORGED, false);
        client.flush();
        let response = client.response(1);
        assert_eq!(
            (response.value(":status"), &response.body[..]),
            ("403", &b"no"[..])
        );
        client.data(1, FORGED, true);
        // Nor does it if it is more than a window, or with the end.
        client.head(3, &CONNECT, false);
        client.data(3, FORGED, true);
        assert_eq!(client.response(3).value(":status"), "403");
        let answer = client.ask(5, &testing::http2::client::GET);
        assert_eq!(answer.value(":status"), "403");
        until("all is over", || active_now(&balancer, 0) == 0);
    });
    let requests = back.requests();
    assert_eq!(requests.len(), 6);
    assert!(requests.iter().all(|one| !one.head.contains("secret")));
}

#[test]
fn success_without_agreement_and_a_wrong_proof_are_no_websocket() {
    let plain = BackEnd::named("one");
    let wrong = BackEnd::new(|peer, _, _| {
        peer.request();
        peer.say(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\nhello",
        );
        let _ = peer.rest();
    });
    on_both(|io| {
        let (balancer, mut client) = clear_and_client(io, &[plain.address]);
        client.head(1, &CONNECT, false);
        assert_eq!(client.response(1).value(":status"), "502");
        // A client's wish says nothing about the back end.
        let shared = balancer.shared();
        let failures = &shared.services[0].backends[0].response_failures;
        assert_eq!(failures.get(), 0);
        let (balancer, mut client) = clear_and_client(io, &[wrong.address]);
        client.head(1, &CONNECT, false);
        let response = client.response(1);
        assert_eq!(response.reset, Some(ErrorCode::InternalError));
        assert!(response.body.is_empty());
        until("all is over", || active_now(&balancer, 0) == 0);
    });
}

#[test]
fn other_tunnels_are_not_offered() {
    let back = BackEnd::named("one");
    on_both(|io| {
        let (balancer, mut client) = clear_and_client(io, &[back.address]);
        let mut fields = CONNECT.to_vec();
        fields[1].1 = "connect-udp";
        client.head(1, &fields, false);
        assert_eq!(client.response(1).value(":status"), "501");
        // CONNECT of HTTP/1.1, with the fields of a tunnel or without them.
        fields.remove(1);
        client.head(3, &fields, false);
        assert_eq!(client.response(3).value(":status"), "501");
        client.head(5, &[(":method", "CONNECT"), (":authority", "a:80")], false);
        assert_eq!(client.response(5).reset, Some(ErrorCode::ProtocolError));
        // Trailers in place of an end.
        client.head(7, &CONNECT, false);
        client.head(7, &[("x-a", "b")], true);
        client.until(|client| client.responses.get(&7).is_some_and(|one| one.is_over()));
        let shared = balancer.shared();
        until("they are counted", || {
            shared.services[0].bad_requests.get() == 3
        });
    });
}

#[test]
fn whoever_goes_away_is_missed_at_once() {
    on_both(|io| {
        let (told, news) = std::sync::mpsc::channel();
        let back = {
            let told = std::sync::Mutex::new(told);
            BackEnd::new(move |peer, _, _| {
                let request = peer.request().unwrap();
                peer.say(agreement(&request));
                if peer.bytes(1).as_deref() == Some(b"x") {
                    // The back end goes away.
                    return;
                }
                let _ = peer.rest();
                let _ = told.lock().unwrap().send(Instant::now());
            })
        };
        let (_balancer, mut client) = clear_and_client(io, &[back.address]);
        client.head(1, &CONNECT, false);
        client.data(1, b"y", false);
        client.until(|client| client.responses.contains_key(&1));
        std::thread::sleep(Duration::from_millis(20));
        let gone = Instant::now();
        net::h2::frame::reset(&mut client.out, 1, ErrorCode::Cancel);
        client.flush();
        let took = news.recv_timeout(crate::support::LONG).unwrap() - gone;
        // No limit of time is involved.
        assert!(took < Duration::from_secs(5), "{took:?}");
        println!("{io}: a reset reaches the back end after {took:?}");
        // So does the loss of the whole connection.
        client.head(3, &CONNECT, false);
        client.data(3, b"y", false);
        client.until(|client| client.responses.contains_key(&3));
        drop(client);
        news.recv_timeout(crate::support::LONG).unwrap();
        let (_balancer, mut client) = clear_and_client(io, &[back.address]);
        client.head(1, &CONNECT, false);
        client.data(1, b"x", false);
        let response = client.response(1);
        assert_eq!(response.value(":status"), "200");
        assert!(response.is_complete, "{response:?}");
    });
}

#[test]
fn a_back_end_gets_an_extended_connect_where_it_takes_it() {
    let back = echo_2();
    on_both(|io| {
        let balancer = back_ends::clear(io, &[back.address]);
        // From HTTP/1.1.
        let mut peer = Peer::connect(balancer.address());
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        peer.say(format!(
            "GET /chat HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n\
             Sec-WebSocket-Version: 13\r\nContent-Length: 0\r\n\r\nhello"
        ));
        let head = peer.head().unwrap();
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        let answer = Message {
            head,
            body: Vec::new(),
        };
        assert_eq!(answer.values("sec-websocket-accept"), [accept_of(key)]);
        assert_eq!(answer.values("x-a"), ["b"]);
        assert_eq!(peer.bytes(5).unwrap(), b"hello");
        peer.say(" again");
        peer.end();
        assert_eq!(peer.rest(), (b" again".to_vec(), true));
        until("it is over", || active_now(&balancer, 0) == 0);
        // From HTTP/2.
        let mut client = Client::connect(balancer.address());
        client.head(1, &CONNECT, false);
        client.data(1, b"hello", false);
        body_is(&mut client, 1, "hello");
        client.data(1, b"", true);
        let response = client.response(1);
        assert!(
            response.is_complete && response.reset.is_none(),
            "{response:?}"
        );
        until("it is over", || active_now(&balancer, 0) == 0);
    });
}

#[test]
fn a_back_end_that_takes_no_connect_gets_a_plain_request() {
    let back = BackEnd2::named("one");
    on_both(|io| {
        let balancer = back_ends::clear(io, &[back.address]);
        let mut peer = Peer::connect(balancer.address());
        let answer = peer.ask(
            "GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        );
        assert_eq!(answer.text(), "one/chat");
        // A client of HTTP/2 would take that for agreement.
        let mut client = Client::connect(balancer.address());
        client.head(1, &CONNECT, false);
        assert_eq!(client.response(1).value(":status"), "502");
    });
}
