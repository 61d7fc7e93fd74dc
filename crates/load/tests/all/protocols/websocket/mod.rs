//! WebSocket loads: messages that come back, on both event loops.

mod cuts;
mod hostile;
mod one_way;
mod server;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use load::{BodyRule, Expect, Job, Segment, StatusRule, Stop, Target, Traffic, WebSocket};
use net::IoKind;
use net::ws::MessageKind;
use readings::LoadReading;

use crate::support::{BOTH, LONG, Server, asks, assert_found, job, one};
use server::{Got, Socket};

/// A target of WebSockets.
fn target(address: std::net::SocketAddr, websocket: WebSocket) -> Target {
    let request = net::fetch::request("GET", "test", "/ws/echo", &[]);
    let expect = Expect {
        status: StatusRule::Exactly(101),
        body: BodyRule::Any,
    };
    Target {
        traffic: Traffic::WebSocket(websocket),
        ..Target::new(address, request, expect)
    }
}

fn in_flight(in_flight: u32) -> WebSocket {
    WebSocket {
        in_flight,
        ..WebSocket::default()
    }
}

fn echo_server() -> Server {
    Server::start(|peer| {
        if let Some(mut socket) = Socket::accept(peer) {
            while socket.echo() {}
        }
    })
}

fn lasting(reading: &LoadReading) -> &readings::LastingReading {
    reading.lasting.as_ref().unwrap()
}

#[test]
fn messages_come_back_whatever_they_are() {
    let server = echo_server();
    for io in BOTH {
        for websocket in [
            in_flight(1),
            in_flight(16),
            WebSocket {
                message_bytes: 100_000,
                is_binary: true,
                ..in_flight(3)
            },
            WebSocket {
                deflate: true,
                message_bytes: 500,
                ..in_flight(5)
            },
            // More messages than digits count.
            WebSocket {
                message_bytes: 1,
                ..in_flight(4)
            },
            WebSocket {
                message_bytes: 0,
                ..in_flight(2)
            },
        ] {
            let reading = asks(io, target(server.address, websocket), 3, 300);
            assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
            assert_eq!((reading.requests, reading.connects), (300, 3));
            let bytes = u64::from(websocket.message_bytes);
            assert_eq!(reading.bytes_read, 300 * bytes);
            assert_eq!(lasting(&reading).opened, 3);
            assert_eq!(lasting(&reading).open_min, 3);
            assert_eq!(reading.connect.count(), 3);
        }
    }
}

#[test]
fn so_many_messages_are_in_flight_and_not_more() {
    // The server answers when it has as many as may be in flight, and sees whether another comes.
    for io in BOTH {
        let server = Server::start(|peer| {
            let Some(mut socket) = Socket::accept(peer) else {
                return;
            };
            loop {
                let mut held = Vec::new();
                while held.len() < 7 {
                    match socket.message() {
                        Some(message) => held.push(message),
                        None => return,
                    }
                }
                assert!(socket.peer.pause(Duration::from_millis(5)));
                for (kind, content) in held {
                    socket.send(kind, &content);
                }
            }
        });
        let reading = asks(io, target(server.address, in_flight(7)), 2, 140);
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        assert_eq!(reading.requests, 140);
    }
}

#[test]
fn echoes_that_are_wrong_are_told_apart() {
    // Each connection gets 20 messages in flight at once, and an answer of its own.
    let answers = |what: fn(&mut Vec<(MessageKind, Vec<u8>)>)| {
        let server = Server::start(move |peer| {
            let Some(mut socket) = Socket::accept(peer) else {
                return;
            };
            let mut held = Vec::new();
            while held.len() < 20 {
                match socket.message() {
                    Some(message) => held.push(message),
                    None => return,
                }
            }
            what(&mut held);
            for (kind, content) in held {
                socket.send(kind, &content);
            }
            while socket.message().is_some() {}
        });
        let mut job = job(
            IoKind::Epoll,
            target(server.address, in_flight(20)),
            1,
            1,
            Stop::Requests(20),
        );
        job.timeout = Duration::from_millis(300);
        one(&job)
    };
    let counts = |reading: &LoadReading| {
        let errors = reading.errors_all;
        let lasting = lasting(reading);
        (
            reading.requests_all,
            errors.verify,
            errors.timeout,
            lasting.repeated,
            lasting.reordered,
        )
    };
    let good = answers(|_| {});
    assert_eq!(counts(&good), (20, 0, 0, 0, 0), "{:?}", good.wrong);

    let repeated = answers(|held| held.insert(4, held[3].clone()));
    assert_eq!(counts(&repeated), (20, 1, 0, 1, 0));
    assert_found(&repeated, "message 3, which had come back before");

    let lost = answers(|held| drop(held.remove(19)));
    assert_eq!(counts(&lost), (19, 0, 1, 0, 0));

    let swapped = answers(|held| held.swap(7, 8));
    assert_eq!(counts(&swapped), (19, 1, 0, 0, 1));
    assert_found(&swapped, "message 8");

    let altered = answers(|held| *held[5].1.last_mut().unwrap() ^= 1);
    assert_eq!(counts(&altered), (19, 1, 0, 0, 0));
    assert_found(&altered, "which was not sent");

    let other_kind = answers(|held| held[2].0 = MessageKind::Binary);
    assert_eq!(counts(&other_kind), (19, 1, 0, 0, 0));

    let shorter = answers(|held| held[11].1.truncate(31));
    assert_eq!(counts(&shorter), (19, 1, 0, 0, 0));
    assert_eq!(shorter.wrong[0].kind, readings::WrongKind::Length);
}

#[test]
fn pings_are_answered() {
    for io in BOTH {
        let pongs = Arc::new(AtomicUsize::new(0));
        let counted = pongs.clone();
        let server = Server::start(move |peer| {
            let Some(mut socket) = Socket::accept(peer) else {
                return;
            };
            while let Some((kind, content)) = socket.message() {
                let mut ping = Vec::new();
                socket.writer.ping(&mut ping, b"are you there?");
                socket.peer.send(&ping);
                // The echo waits for the pong.
                match socket.read() {
                    Some(Got::Pong(payload)) if payload == b"are you there?" => {}
                    other => panic!("{other:?}"),
                }
                counted.fetch_add(1, Ordering::Relaxed);
                socket.send(kind, &content);
            }
        });
        let reading = asks(io, target(server.address, in_flight(1)), 2, 50);
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        assert_eq!(reading.requests, 50);
        assert_eq!(pongs.load(Ordering::Relaxed), 50);
    }
}

#[test]
fn a_connection_is_retired_with_a_close_frame() {
    for io in BOTH {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = seen.clone();
        let server = Server::start(move |peer| {
            let Some(mut socket) = Socket::accept(peer) else {
                return;
            };
            let mut messages = 0;
            while let Some(got) = socket.read() {
                match got {
                    Got::Message(kind, content) => {
                        messages += 1;
                        socket.send(kind, &content);
                    }
                    Got::Close(code) => {
                        all.lock().unwrap().push((messages, code));
                        return socket.close(1000);
                    }
                    other => panic!("{other:?}"),
                }
            }
        });
        let mut target = target(server.address, in_flight(4));
        target.requests_per_connection = Some(10);
        let reading = asks(io, target, 2, 200);
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        assert_eq!(reading.requests, 200);
        let seen = seen.lock().unwrap();
        // At its end the load closes what is open.
        let retired = seen.iter().filter(|one| **one == (10, Some(1000)));
        assert!((18..=20).contains(&retired.count()), "{seen:?}");
        assert!(seen.iter().all(|one| one.0 <= 10 && one.1 == Some(1000)));
        let lasting = lasting(&reading);
        assert_eq!(lasting.ends[0].how, "retired");
        assert_eq!(lasting.cut(), 0);
        assert_eq!(lasting.opened, reading.connects);
    }
}

#[test]
fn messages_go_over_tls() {
    let (server, client) = testing::tls::localhost(&["http/1.1"]);
    let origin = origin::Origin::start(&origin::OriginOptions {
        tls: Some(server),
        ..Default::default()
    });
    let origin = origin.unwrap();
    let mut target = target(origin.address(), in_flight(1));
    target.tls = Some(client);
    // This path is no WebSocket: the handshake is refused, after that of TLS.
    target.requests[0].bytes = net::fetch::request("GET", "test", "/", &[]);
    let stop = Stop::After(Duration::from_millis(100));
    let reading = one(&job(IoKind::Epoll, target, 1, 1, stop));
    assert_eq!(reading.requests_all, 0);
    assert_found(&reading, "instead of 101");
    assert!(reading.tls.unwrap().handshakes > 0);
}

#[test]
fn due_messages_of_a_connection_wait_for_it() {
    // One connection of four stalls once for 400 ms.
    let stalled = |paced_by_connection| {
        let connections = AtomicUsize::new(0);
        let server = Server::start(move |peer| {
            let stalls = connections.fetch_add(1, Ordering::Relaxed) == 0;
            let Some(mut socket) = Socket::accept(peer) else {
                return;
            };
            let mut messages = 0;
            while let Some((kind, content)) = socket.message() {
                messages += 1;
                if stalls && messages == 20 {
                    std::thread::sleep(Duration::from_millis(400));
                }
                socket.send(kind, &content);
            }
        });
        let websocket = WebSocket {
            paced_by_connection,
            ..in_flight(1)
        };
        let target = target(server.address, websocket).with_connections(4);
        let segment = Segment::open(400.0, Stop::After(Duration::from_millis(1_500)));
        let job = Job {
            timeout: LONG,
            ..Job::to(target).segment(segment)
        };
        let reading = one(&job);
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        assert_eq!(reading.requests, 600);
        reading.response.count_above_us(100_000.0)
    };
    // 100/s for the 300 ms in which it is at least 100 ms to the end of the stall; others on a busy
    // machine.
    let own = stalled(true);
    assert!((29..60).contains(&own), "{own}");
    // Otherwise the others take them over.
    let shared = stalled(false);
    assert!(shared < 15, "{shared}");
}
