//! WebSockets whose messages are no answers: of servers that only send, and of topics.

use std::net::TcpStream;

use load::SocketFlow;
use net::ws::{Role, Writer};
use readings::LagBase;

use super::*;
use crate::support::origin;

/// A target of these WebSockets under a path.
fn of(address: std::net::SocketAddr, path: &str, flow: SocketFlow) -> Target {
    let websocket = WebSocket {
        flow,
        ..WebSocket::default()
    };
    let mut target = target(address, websocket);
    target.requests[0].bytes = net::fetch::request("GET", "test", path, &[]);
    target
}

fn for_ms(ms: u64) -> Stop {
    Stop::After(Duration::from_millis(ms))
}

fn fan_out(members: u32, every_ms: u64) -> SocketFlow {
    SocketFlow::FanOut {
        members,
        every: Duration::from_millis(every_ms),
    }
}

#[test]
fn what_a_server_sends_is_counted_and_timed() {
    let origin = origin();
    for io in BOTH {
        let path = "/ws/paced/20?every=5ms&bytes=50";
        let paced = of(origin.address(), path, SocketFlow::Receive);
        let reading = asks(io, paced, 3, 6);
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        assert_eq!((reading.requests, reading.connects), (6, 6));
        let found = lasting(&reading);
        assert_eq!((found.messages, found.message_bytes), (120, 6_000));
        assert_eq!((found.gap.count(), found.lag.count()), (114, 120));
        assert_eq!((found.lost, found.expected), (0, 0));
        assert_eq!(found.lag_base, Some(LagBase::Sender));
        assert_eq!((found.ends[0].how.as_str(), found.cut()), ("end", 0));
        // Each takes at least 19 paces.
        assert!(reading.response.quantile_us(0.0) >= 94_000.0);
    }
}

#[test]
fn a_server_that_sends_without_end_is_left_at_the_end_of_the_load() {
    let origin = origin();
    for io in BOTH {
        let path = "/ws/paced/0?every=5ms";
        let paced = of(origin.address(), path, SocketFlow::Receive);
        let reading = one(&job(io, paced, 4, 1, for_ms(400)));
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        let found = lasting(&reading);
        assert_eq!((reading.requests, reading.connects), (0, 4));
        assert_eq!((found.opened, found.open_min), (4, 4));
        assert_eq!((found.ends[0].how.as_str(), found.cut()), ("window", 0));
        assert!(found.messages >= 4 * 20, "{}", found.messages);
    }
}

#[test]
fn a_socket_that_ends_otherwise_is_cut() {
    type End = fn(&mut Socket<'_>);
    let ends: [(&str, End); 3] = [
        ("close 1011", |socket| socket.close(1011)),
        ("closed", |_| {}),
        ("reset", |socket| socket.peer.reset()),
    ];
    for io in BOTH {
        for (how, end) in ends {
            let server = Server::start(move |peer| {
                if let Some(mut socket) = Socket::accept(peer) {
                    socket.send(MessageKind::Text, b"one");
                    socket.send(MessageKind::Binary, b"two");
                    std::thread::sleep(Duration::from_millis(20));
                    end(&mut socket);
                }
            });
            let reading = asks(io, of(server.address, "/", SocketFlow::Receive), 1, 5);
            let found = lasting(&reading);
            assert_eq!((reading.requests, reading.errors.read), (0, 5), "{how}");
            assert_eq!((found.messages, found.cut()), (10, 5), "{how}");
            assert_eq!(found.ends[0].how, how);
        }
    }
}

#[test]
fn what_comes_with_the_answer_to_the_handshake_is_part_of_the_socket() {
    // A message and a close frame, the close frame alone, and a frame with a reserved bit.
    let rows: [(&[u8], u64, &str, u64); 3] = [
        (b"\x81\x02hi\x88\x02\x03\xe8", 5, "end", 5),
        (b"\x88\x02\x03\xe8", 5, "end", 0),
        (b"\xc1\x00", 0, "malformed", 0),
    ];
    for io in BOTH {
        for (bytes, complete, how, messages) in rows {
            let server = Server::start(move |peer| {
                if let Some(mut socket) = Socket::accept_with(peer, bytes) {
                    while socket.read().is_some() {}
                }
            });
            let reading = asks(io, of(server.address, "/", SocketFlow::Receive), 1, 5);
            let found = lasting(&reading);
            let errors = &reading.errors_all;
            assert_eq!(
                (reading.requests_all, errors.read),
                (complete, 5 - complete),
                "{how}"
            );
            assert_eq!(errors.total(), errors.read, "{how}: {:?}", reading.wrong);
            assert_eq!((found.opened, found.messages), (5, messages), "{how}");
            assert_eq!(found.ends[0].how, how);
        }
    }
}

#[test]
fn a_message_of_a_topic_reaches_all_its_members() {
    let origin = origin();
    for io in BOTH {
        let target = of(origin.address(), "/ws/topic/a", fan_out(3, 10));
        let mut job = job(io, target, 12, 2, for_ms(600));
        job.segments[0].ramp_up = Duration::from_millis(200);
        let reading = one(&job);
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        let found = lasting(&reading);
        // Four topics, 60 messages of each.
        assert_eq!((found.expected, found.messages), (720, 720));
        assert_eq!(
            (found.reach(), found.lost, found.repeated),
            (Some(1.0), 0, 0)
        );
        assert_eq!((found.opened, found.open_min), (12, 12));
        assert_eq!(
            (found.lag.count(), found.lag_base),
            (720, Some(LagBase::Sender))
        );
        assert_eq!(reading.schedule_lag.count(), 240);
    }
}

#[test]
fn what_does_not_reach_a_member_is_counted_exactly() {
    // The member that opened second does not get messages 20 to 24, the third gets 30 to 32 twice,
    // and message 40 is held back for all.
    let held = Duration::from_millis(150);
    for io in BOTH {
        let members: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let server = Server::start(move |peer| {
            let Some(mut socket) = Socket::accept(peer) else {
                return;
            };
            let own = socket.peer.stream.try_clone().unwrap();
            members.lock().unwrap().push(own);
            while let Some((kind, content)) = socket.message() {
                let text = String::from_utf8(content.clone()).unwrap();
                let number: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
                if number == 40 {
                    std::thread::sleep(held);
                }
                let mut frame = Vec::new();
                Writer::new(Role::Server, 0, None).message(&mut frame, kind, &content);
                for (member, mut stream) in members.lock().unwrap().iter().enumerate() {
                    let times = match (member, number) {
                        (1, 20..25) => 0,
                        (2, 30..33) => 2,
                        _ => 1,
                    };
                    (0..times).for_each(|_| drop(std::io::Write::write_all(&mut stream, &frame)));
                }
            }
        });
        let mut job = job(
            io,
            of(server.address, "/", fan_out(4, 10)),
            4,
            1,
            for_ms(700),
        );
        job.timeout = Duration::from_millis(400);
        let reading = one(&job);
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        let found = lasting(&reading);
        assert_eq!((found.lost, found.repeated), (5, 3), "{found:?}");
        assert_eq!(found.messages, found.expected - 5 + 3);
        assert!(found.reach().unwrap() < 1.0);
        // Due while it was held back, too.
        let late = found.lag.count_above_us(held.as_micros() as f64 / 2.0);
        assert!(late >= 4 * 6, "{late}");
    }
}

#[test]
fn a_topic_goes_on_when_its_sender_was_cut() {
    for io in BOTH {
        let members: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let server = Server::start(move |peer| {
            let Some(mut socket) = Socket::accept(peer) else {
                return;
            };
            let own = socket.peer.stream.try_clone().unwrap();
            members.lock().unwrap().push(own);
            while let Some((kind, content)) = socket.message() {
                let mut frame = Vec::new();
                Writer::new(Role::Server, 0, None).message(&mut frame, kind, &content);
                for mut stream in members.lock().unwrap().iter() {
                    let _ = std::io::Write::write_all(&mut stream, &frame);
                }
                if content.starts_with(b"weigh 10 ") {
                    return socket.close(1012);
                }
            }
        });
        let mut job = job(
            io,
            of(server.address, "/", fan_out(2, 20)),
            2,
            1,
            for_ms(600),
        );
        job.timeout = Duration::from_millis(400);
        let reading = one(&job);
        let found = lasting(&reading);
        assert_eq!(reading.errors_all.read, 1, "{:?}", reading.wrong);
        let cut: Vec<_> = found.ends.iter().filter(|end| end.is_cut).collect();
        assert_eq!((cut.len(), cut[0].how.as_str()), (1, "close 1012"));
        // All 30 were sent, the last ones by the next connection.
        assert_eq!(reading.schedule_lag.count(), 30);
        // What was on its way when it was cut.
        assert!(found.lost <= 4, "{found:?}");
    }
}

#[test]
fn topics_that_are_not_whole_are_refused() {
    let target = of("127.0.0.1:9".parse().unwrap(), "/", fan_out(4, 10));
    let judged = |connections, threads, stop| {
        job(IoKind::Epoll, target.clone(), connections, threads, stop).validate()
    };
    assert!(judged(8, 2, for_ms(100)).is_ok());
    for (connections, threads, stop) in [
        (6, 1, for_ms(100)),
        (12, 2, for_ms(100)),
        (8, 1, Stop::Requests(5)),
    ] {
        let refused = judged(connections, threads, stop).unwrap_err().to_string();
        assert!(refused.contains("topics of 4 connections"), "{refused}");
    }
    assert_eq!(target.clone().with_connections(12).threads(8), 3);
}
