//! Streams of events and WebSockets: nothing is held back, and what ends them says so.

use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use balance::Balancer;
use balance::config::model::{HttpVersion, HttpVersions, Service};
use balance::health::{HealthEvent, State};
use net::IoKind;

use crate::support::http::{BackEnd, LONG, Peer, balancer_with, client_with, get};
use crate::support::{active_now, clients_now, on_both, until};
use testing::http2::back_end::{BackEnd as BackEnd2, Got};
use testing::http2::client::{Client, GET};

const EVENTS: usize = 20;

fn event(number: usize) -> String {
    format!("data: {number}\n\n")
}

/// A back end sends the next event when the client has got the one before: one that is held back
/// would never come.
fn paced(both_ways: bool) -> (Sender<()>, Box<dyn Fn() -> std::net::SocketAddr>) {
    let (seen, wait) = channel();
    let wait = Mutex::new(wait);
    let back: Box<dyn Fn() -> std::net::SocketAddr> = match both_ways {
        false => {
            let back = BackEnd::new(move |peer, _, _| {
                peer.request();
                let wait = wait.lock().unwrap();
                peer.say(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                     Transfer-Encoding: chunked\r\n\r\n",
                );
                for number in 0..EVENTS {
                    let event = event(number);
                    peer.say(format!("{:x}\r\n{event}\r\n", event.len()));
                    let _: Result<(), _> = wait.recv_timeout(LONG);
                }
                peer.say("0\r\n\r\n");
            });
            Box::new(move || back.address)
        }
        true => {
            let back = BackEnd2::new(&[], move |link, _| {
                let (stream, _) = link.request().unwrap();
                let wait: &Receiver<()> = &wait.lock().unwrap();
                link.head(stream, &[(":status", "200")], false);
                for number in 0..EVENTS {
                    link.data(stream, event(number).as_bytes(), false);
                    link.flush();
                    let _ = wait.recv_timeout(LONG);
                }
                link.data(stream, b"", true);
                while link.receive().is_some() {}
            });
            Box::new(move || back.address)
        }
    };
    (seen, back)
}

fn versions(service: &mut Service, to_2: bool) {
    service.offered_versions = Some(HttpVersions::BOTH);
    for backend in &mut service.backends {
        if to_2 {
            backend.http = HttpVersion::Two;
        }
    }
}

#[test]
fn no_event_waits_for_the_next() {
    for to_2 in [false, true] {
        on_both(|io| {
            for from_2 in [false, true] {
                let (seen, back) = paced(to_2);
                let balancer = balancer_with(io, &[back()], |service| versions(service, to_2));
                let whole: String = (0..EVENTS).map(event).collect();
                if from_2 {
                    let mut client = Client::connect(balancer.address());
                    client.head(1, &GET, true);
                    let mut wanted = 0;
                    for number in 0..EVENTS {
                        wanted += event(number).len();
                        client.until(|client| client.received(1) >= wanted);
                        seen.send(()).unwrap();
                    }
                    let response = client.response(1);
                    assert_eq!(response.body, whole.as_bytes());
                    assert!(response.is_complete);
                } else {
                    let mut client = Peer::connect(balancer.address());
                    client.say(get("/"));
                    let mut got = client.head().unwrap();
                    for number in 0..EVENTS {
                        while !got.contains(&event(number)) {
                            got += std::str::from_utf8(&client.bytes(1).unwrap()).unwrap();
                        }
                        seen.send(()).unwrap();
                    }
                }
            }
        });
    }
}

/// A WebSocket of HTTP/1.1 whose back end sends these bytes and then waits for its end.
fn websocket(
    io: IoKind,
    bytes: &'static [u8],
    change: impl FnOnce(&mut Service),
) -> (Balancer, Peer) {
    let back = BackEnd::new(move |peer, _, _| {
        peer.request();
        peer.say(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        );
        peer.say(bytes);
        let _ = peer.rest();
    });
    let (balancer, mut client) = client_with(io, &[back.address], change);
    client.say(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    assert!(client.head().unwrap().starts_with("HTTP/1.1 101 "));
    assert_eq!(client.bytes(bytes.len()).unwrap(), bytes);
    (balancer, client)
}

const GOING_AWAY: [u8; 4] = [0x88, 2, 0x03, 0xe9];

#[test]
fn a_silent_websocket_is_closed_with_1001_and_counted() {
    on_both(|io| {
        let limit = |service: &mut Service| {
            service.timeouts.client_idle = Duration::from_millis(300);
        };
        let (balancer, mut client) = websocket(io, b"\x81\x02hi", limit);
        assert_eq!(client.rest(), (GOING_AWAY.to_vec(), true));
        let shared = balancer.shared();
        let service = &shared.services[0];
        assert_eq!((service.cut_silent.get(), service.timeouts.get()), (1, 1));
        until("the back end is free", || active_now(&balancer, 0) == 0);
        drop(client);
        until("the client has gone", || clients_now(&balancer) == 0);
        // Within a frame nothing can be said.
        let (_balancer, mut client) = websocket(io, b"\x81\x05hi", limit);
        assert_eq!(client.rest().0, b"");
    });
}

#[test]
fn a_websocket_of_a_back_end_that_is_taken_down_is_closed_after_the_drain_time() {
    on_both(|io| {
        let (balancer, mut client) = websocket(io, b"\x81\x02hi", |service| {
            service.drain = Duration::from_millis(300);
        });
        let down = HealthEvent::SetByOperator(State::Down);
        balancer.shared().note(0, 0, down);
        assert_eq!(client.rest(), (GOING_AWAY.to_vec(), true));
        // Nobody was silent for too long.
        assert_eq!(balancer.shared().services[0].cut_silent.get(), 0);
        until("the back end is free", || active_now(&balancer, 0) == 0);
    });
}

#[test]
fn a_client_that_is_not_read_from_gets_its_close_frame_too() {
    on_both(|io| {
        let (go_on, waits) = channel::<()>();
        let waits = Mutex::new(waits);
        let back = BackEnd::new(move |peer, _, _| {
            peer.request();
            peer.say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
            // It reads nothing more.
            let _ = waits.lock().unwrap().recv();
        });
        let (balancer, mut client) = client_with(io, &[back.address], |service| {
            service.drain = Duration::from_millis(300);
        });
        client.say(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        );
        assert!(client.head().unwrap().starts_with("HTTP/1.1 101 "));
        // Until nothing more is taken.
        let quiet = Some(Duration::from_millis(500));
        client.stream.set_write_timeout(quiet).unwrap();
        let piece = vec![0; 65_536];
        while client.stream.write(&piece).is_ok() {}
        client.stream.set_write_timeout(None).unwrap();
        let down = HealthEvent::SetByOperator(State::Down);
        balancer.shared().note(0, 0, down);
        // It reads only once its message has been taken.
        client.stream.write_all(&vec![0; 1 << 20]).unwrap();
        assert_eq!(client.rest().0, GOING_AWAY);
        drop(go_on);
    });
}

#[test]
fn a_stopping_balancer_tells_websockets_of_both_versions() {
    on_both(|io| {
        let (balancer, mut client) = websocket(io, b"\x81\x02hi", |_| {});
        drop(balancer);
        assert_eq!(client.rest().0, GOING_AWAY);
        // Over HTTP/2, from a back end that agrees to it.
        let back = BackEnd::new(|peer, _, _| {
            let request = peer.request().unwrap();
            let key = request.values("sec-websocket-key")[0];
            let accept = net::ws::handshake::accept_of(key);
            peer.say(format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                 Connection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            ));
            let _ = peer.rest();
        });
        let balancer = balancer_with(io, &[back.address], |service| versions(service, false));
        let mut client = Client::connect(balancer.address());
        let connect = [
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "a"),
        ];
        client.head(1, &connect, false);
        client.until(|client| client.responses.contains_key(&1));
        drop(balancer);
        let response = client.response(1);
        assert_eq!(response.body, GOING_AWAY);
        assert!(response.is_complete, "{response:?}");
    });
}

#[test]
fn a_silent_stream_is_truncated_and_counted() {
    on_both(|io| {
        let back = BackEnd::saying_once(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        );
        let (balancer, mut client) = client_with(io, &[back.address], |service| {
            service.timeouts.upstream_answer = Duration::from_millis(300);
        });
        client.say(get("/"));
        client.head().unwrap();
        let (rest, is_orderly) = client.rest();
        assert_eq!((&rest[..], is_orderly), (&b"3\r\nabc\r\n"[..], false));
        assert_eq!(balancer.shared().services[0].cut_silent.get(), 1);
    });
}

#[test]
fn silence_while_the_client_still_sends_is_not_the_back_ends_failure() {
    on_both(|io| {
        // The second time the request is complete, and the silence is the back end's.
        for (length, failures) in [(10, 0), (4, 1)] {
            let back = BackEnd::new(|peer, _, _| {
                peer.head().unwrap();
                peer.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
                let _ = peer.rest();
            });
            let (balancer, mut client) = client_with(io, &[back.address], |service| {
                service.timeouts.upstream_answer = Duration::from_millis(300);
            });
            client.say(format!(
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\nhalf"
            ));
            client.head().unwrap();
            let (rest, is_orderly) = client.rest();
            assert_eq!((&rest[..], is_orderly), (&b"3\r\nabc\r\n"[..], false));
            let service = &balancer.shared().services[0];
            assert_eq!(service.cut_silent.get(), 1);
            assert_eq!(service.backends[0].response_failures.get(), failures);
        }
    });
}

#[test]
fn calls_with_streams_of_both_sides_pass_with_their_trailers() {
    on_both(|io| {
        // Each message is answered, and the end with trailers; a call for /refused by trailers only.
        let back = BackEnd2::new(&[], |link, _| {
            while let Some(got) = link.receive() {
                match got {
                    Got::Head { stream, fields, .. } => {
                        let value = |name| testing::http2::back_end::value(&fields, name);
                        assert_eq!(value("te"), "trailers");
                        assert_eq!(value("content-type"), "application/grpc");
                        assert_eq!(value("grpc-timeout"), "5S");
                        let mut head =
                            vec![(":status", "200"), ("content-type", "application/grpc")];
                        let is_refused = value(":path") == "/refused";
                        if is_refused {
                            head.extend([("grpc-status", "7"), ("grpc-message", "no")]);
                        }
                        link.head(stream, &head, is_refused);
                    }
                    Got::Data { stream, bytes, end } => {
                        link.data(stream, &bytes, false);
                        if end {
                            let trailers = [("grpc-status", "0"), ("x-a", "b")];
                            link.head(stream, &trailers, true);
                        }
                    }
                    _ => {}
                }
            }
        });
        let balancer = balancer_with(io, &[back.address], |service| {
            versions(service, true);
            // Neither limit is one of a call that goes on.
            service.timeouts.client_body = Duration::from_millis(300);
            service.body_rate_min = 1_000_000;
        });
        let mut client = Client::connect(balancer.address());
        let call = |path| {
            testing::http2::client::with(&[
                (":method", "POST"),
                (":path", path),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
                ("grpc-timeout", "5S"),
            ])
        };
        client.head(1, &call("/both"), false);
        for number in 1..=6 {
            client.data(1, b"\0\0\0\0\x02hi", false);
            client.until(|client| client.received(1) == 7 * number);
            std::thread::sleep(Duration::from_millis(100));
        }
        client.data(1, b"", true);
        let response = client.response(1);
        assert!(
            response.is_complete && response.reset.is_none(),
            "{response:?}"
        );
        assert_eq!(response.value("grpc-status"), "0");
        assert_eq!(response.value("x-a"), "b");
        client.head(3, &call("/refused"), false);
        client.data(3, b"\0\0\0\0\x02hi", true);
        let response = client.response(3);
        assert_eq!(response.value("grpc-status"), "7");
        assert_eq!(response.value("grpc-message"), "no");
        assert!(response.body.is_empty());
    });
}
