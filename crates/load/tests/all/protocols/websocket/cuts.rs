//! Connections that are lost, and come back.

use std::net::TcpListener;
use std::time::Instant;

use super::*;

/// A server that ends each connection after so many messages.
fn ends_after(messages: usize, end: impl Fn(&mut Socket<'_>) + Send + Sync + 'static) -> Server {
    Server::start(move |peer| {
        let Some(mut socket) = Socket::accept(peer) else {
            return;
        };
        for _ in 0..messages {
            if !socket.echo() {
                return;
            }
        }
        if socket.message().is_some() {
            end(&mut socket);
        }
    })
}

#[test]
fn a_cut_connection_is_counted_with_its_code_and_opened_again() {
    type End = fn(&mut Socket<'_>);
    let ends: [(&str, End); 3] = [
        ("close 1001", |socket| {
            socket.close(1001);
            while socket.read().is_some() {}
        }),
        ("closed", |_| {}),
        ("reset", |socket| socket.peer.reset()),
    ];
    for io in BOTH {
        for (how, end) in ends {
            let server = ends_after(10, end);
            let reading = asks(io, target(server.address, in_flight(1)), 1, 110);
            // Of each connection ten come back, and one is lost.
            assert_eq!(reading.requests, 100, "{how}: {:?}", reading.wrong);
            assert_eq!(reading.errors.read, 10, "{how}: {:?}", reading.errors);
            assert_eq!(reading.errors_all.total(), 10);
            let lasting = lasting(&reading);
            let found: Vec<_> = lasting.ends.iter().map(|end| &*end.how).collect();
            assert_eq!(found, [how]);
            assert_eq!(lasting.cut(), 10, "{how}");
            assert!((9..=10).contains(&lasting.reconnect.count()), "{how}");
            assert_eq!(lasting.opened, reading.connects);
        }
    }
}

#[test]
fn what_is_due_while_a_server_is_away_waits_and_is_charged() {
    for io in BOTH {
        let first = ends_after(30, |_| {});
        let address = first.address;
        let away = Duration::from_millis(400);
        let came_back = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            // All its connections end, and none is accepted.
            drop(first);
            let gone = Instant::now();
            std::thread::sleep(away);
            let listener = TcpListener::bind(address).unwrap();
            (
                gone.elapsed(),
                Server::on(listener, |peer| {
                    if let Some(mut socket) = Socket::accept(peer) {
                        while socket.echo() {}
                    }
                }),
            )
        });
        let websocket = WebSocket {
            paced_by_connection: true,
            ..in_flight(2)
        };
        let target = target(address, websocket).with_connections(5);
        let segment = Segment::open(250.0, Stop::After(Duration::from_millis(1_500)));
        let job = Job {
            timeout: LONG,
            io: Some(io),
            rows: Some(Duration::from_millis(100)),
            ..Job::to(target).segment(segment)
        };
        let reading = one(&job);
        let (away, server) = came_back.join().unwrap();
        drop(server);
        // Only what was in flight is lost.
        assert!(reading.errors_all.total() <= 10, "{:?}", reading.wrong);
        assert_eq!(reading.requests + reading.errors.total(), 375);
        let lasting = lasting(&reading);
        assert_eq!(lasting.cut(), 5, "{:?}", lasting.ends);
        assert_eq!((lasting.opened, lasting.reconnect.count()), (10, 5));
        assert!(lasting.reconnect_failed > 5, "{}", lasting.reconnect_failed);
        let least_us = lasting.reconnect.quantile_us(0.0);
        assert!(least_us >= away.as_micros() as f64 * 0.9, "{least_us}");
        // 250/s for what is left of the time beyond 100 ms.
        let late = reading.response.count_above_us(100_000.0);
        assert!(late as f64 >= 250.0 * (away.as_secs_f64() - 0.11), "{late}");
        let cut: u64 = lasting.connections.iter().map(|row| row.cut).sum();
        let opened: u64 = lasting.connections.iter().map(|row| row.opened).sum();
        assert_eq!((cut, opened), (5, 10));
        assert!(lasting.connections.iter().any(|row| row.open == 0));
        assert_eq!(lasting.connections.last().unwrap().open, 5);
    }
}

#[test]
fn a_server_that_is_not_there_is_told_and_asked_at_intervals() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let stop = Stop::After(Duration::from_millis(300));
    let reading = one(&job(
        IoKind::Epoll,
        target(address, in_flight(2)),
        1,
        1,
        stop,
    ));
    assert_eq!(reading.requests_all, 0);
    assert_found(&reading, "refused");
    // Two messages wait, for an attempt every 20 ms or so.
    let attempts = reading.errors_all.connect;
    assert!((2..100).contains(&attempts), "{attempts}");
}
