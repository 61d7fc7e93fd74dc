//! What a user of the load engine relies on, on both event loops.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use load::{
    Arrivals, BodyRule, Expect, Job, Lane, StatusRule, Stint, Stop, Target, Wait, learn, run,
};
use net::IoKind;
use net::fetch::request;
use origin::{Origin, OriginOptions};
use readings::{LoadReading, Pacing};

const BOTH: [IoKind; 2] = [IoKind::Uring, IoKind::Epoll];

fn origin() -> Origin {
    Origin::start(&OriginOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        threads: 1,
        io: IoKind::best(),
        backlog: 1024,
        connections: 2048,
        spin: false,
    })
    .unwrap()
}

fn target(address: SocketAddr, path: &str) -> Target {
    Target {
        address,
        request: request("GET", "origin", path, &[]),
        expect: Expect::default(),
    }
}

fn job(io: IoKind, target: Target, connections: u32, threads: usize, stop: Stop) -> Job {
    Job {
        lanes: vec![Lane {
            target,
            connections,
        }],
        stints: vec![Stint {
            lane: 0,
            pacing: Pacing::Closed,
            cut: Duration::ZERO,
            stop,
            reading: Some(0),
        }],
        threads,
        requests_per_connection: None,
        connect_timeout: Duration::from_secs(2),
        timeout: Duration::from_millis(500),
        arrivals: Arrivals::Even,
        cpus: Vec::new(),
        sources: Vec::new(),
        io,
        wait: Wait::Sleep,
        seed: 1,
    }
}

fn one(job: &Job) -> LoadReading {
    let stop = Arc::new(AtomicBool::new(false));
    run(job, &stop, |_| {}).unwrap().remove(0)
}

/// A server that treats each connection with `each` on a thread of its own.
fn server(each: impl Fn(std::net::TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let each = Arc::new(each);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let each = each.clone();
            std::thread::spawn(move || each(stream));
        }
    });
    address
}

#[test]
fn exactly_the_connections_and_requests_asked_for() {
    for io in BOTH {
        let origin = origin();
        let reading = one(&job(
            io,
            target(origin.address(), "/"),
            41,
            12,
            Stop::Requests(10_007),
        ));
        std::thread::sleep(Duration::from_millis(120));
        let stats = origin.stats();
        assert_eq!((stats.connections, stats.requests), (41, 10_007));
        assert_eq!((reading.requests, reading.connects), (10_007, 41));
        assert_eq!(reading.errors_all.total(), 0);
        assert_eq!(reading.response.count(), 10_007);
        assert_eq!(reading.connect.count(), 41);
    }
}

#[test]
fn connections_are_renewed_as_often_as_asked() {
    for io in BOTH {
        for (per_connection, connections) in [(1, 600..=600), (50, 12..=15)] {
            let origin = origin();
            let mut job = job(io, target(origin.address(), "/"), 4, 1, Stop::Requests(600));
            job.requests_per_connection = Some(per_connection);
            let reading = one(&job);
            std::thread::sleep(Duration::from_millis(120));
            let stats = origin.stats();
            assert_eq!(stats.requests, 600);
            assert!(connections.contains(&stats.connections), "{stats:?}");
            assert_eq!(reading.requests, 600);
            assert_eq!(reading.errors_all.total(), 0);
        }
    }
}

#[test]
fn a_window_is_as_long_as_asked_and_its_requests_fit_the_rate() {
    let ways = BOTH.map(|io| [(io, Wait::Sleep), (io, Wait::Spin)]);
    for (io, wait) in ways.into_iter().flatten() {
        let origin = origin();
        let window = Duration::from_millis(400);
        let mut job = job(io, target(origin.address(), "/"), 8, 2, Stop::After(window));
        job.stints[0].cut = Duration::from_millis(100);
        job.stints[0].pacing = Pacing::Open {
            rate_per_s: 2_000.0,
        };
        job.wait = wait;
        let reading = one(&job);
        assert!((reading.duration_s - 0.4).abs() < 1e-9);
        assert_eq!(reading.requests + reading.errors.total(), 800);
        assert_eq!(reading.requests_all + reading.errors_all.total(), 1_000);
        assert_eq!(reading.connections_open_min, 8);
    }
}

#[test]
fn lanes_alternate_and_keep_their_own_readings() {
    for io in BOTH {
        let (one, two) = (origin(), origin());
        let mut job = job(io, target(one.address(), "/"), 4, 1, Stop::Requests(1));
        job.lanes.push(Lane {
            target: target(two.address(), "/bytes/5000"),
            connections: 3,
        });
        job.stints.clear();
        for (lane, count) in [(0, 100), (1, 70), (1, 30), (0, 50)] {
            job.stints.push(Stint {
                lane,
                pacing: Pacing::Closed,
                cut: Duration::ZERO,
                stop: Stop::Requests(count),
                reading: Some(lane),
            });
        }
        let stop = Arc::new(AtomicBool::new(false));
        let readings = run(&job, &stop, |_| {}).unwrap();
        assert_eq!((readings[0].requests, readings[1].requests), (150, 100));
        assert_eq!((readings[0].connects, readings[1].connects), (4, 3));
        assert_eq!(readings[1].slices.len(), 2);
        assert!(readings[1].bytes_read > 100 * 5_000);
    }
}

#[test]
fn wrong_answers_are_errors_and_not_requests() {
    for io in BOTH {
        let origin = origin();
        let bad = one(&job(
            io,
            target(origin.address(), "/status/502"),
            4,
            1,
            Stop::Requests(200),
        ));
        assert_eq!((bad.requests, bad.errors.status), (0, 200));
        assert!(bad.wrong[0].found.contains("502"));
        let mut other = target(origin.address(), "/bytes/14");
        other.expect.body = BodyRule::Same(Arc::from(&b"Hello, world!"[..]));
        let bad = one(&job(io, other, 4, 1, Stop::Requests(200)));
        assert_eq!((bad.requests, bad.errors.verify), (0, 200));
    }
}

#[test]
fn a_dead_server_is_an_error_and_no_busy_loop() {
    for io in BOTH {
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let window = Duration::from_millis(300);
        let reading = one(&job(io, target(address, "/"), 2, 1, Stop::After(window)));
        assert_eq!(reading.requests, 0);
        let attempts = reading.errors_all.connect;
        assert!(
            (10..200).contains(&attempts),
            "{attempts} attempts in 300 ms"
        );
        assert!(
            reading.wrong[0].found.contains("refused"),
            "{:?}",
            reading.wrong
        );
    }
}

#[test]
fn bodies_that_end_with_the_connection_are_complete() {
    for io in BOTH {
        let address = server(|mut s| {
            let _ = s.read(&mut [0; 512]);
            let _ = s.write_all(b"HTTP/1.0 200 OK\r\n\r\nall of it");
        });
        let mut target = target(address, "/");
        target.expect.body = BodyRule::Same(Arc::from(&b"all of it"[..]));
        let reading = one(&job(io, target, 2, 1, Stop::Requests(20)));
        assert_eq!(
            (reading.requests, reading.connects),
            (20, 20),
            "{:?}",
            reading.wrong
        );
    }
}

#[test]
fn a_stop_from_outside_keeps_what_was_measured() {
    for io in BOTH {
        let origin = origin();
        let job = job(
            io,
            target(origin.address(), "/"),
            4,
            2,
            Stop::After(Duration::from_secs(60)),
        );
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            flag.store(true, Ordering::Relaxed);
        });
        let start = Instant::now();
        let reading = run(&job, &stop, |_| {}).unwrap().remove(0);
        assert!(start.elapsed() < Duration::from_secs(5));
        assert!(reading.requests > 100);
        assert!(reading.duration_s > 0.2 && reading.duration_s < 5.0);
    }
}

#[test]
fn what_a_target_answers_is_learned() {
    let origin = origin();
    let learned = learn(&target(origin.address(), "/"), Duration::from_secs(1)).unwrap();
    assert_eq!(learned.expect.status, StatusRule::Exactly(200));
    assert_eq!(
        learned.expect.body,
        BodyRule::Same(Arc::from(&b"Hello, world!"[..]))
    );
    let varying = learn(
        &target(origin.address(), "/.weigh/stats"),
        Duration::from_secs(1),
    )
    .unwrap();
    assert!(varying.varies);
    assert_eq!(varying.expect.body, BodyRule::Any);
    let error = learn(
        &target(origin.address(), "/nothing"),
        Duration::from_secs(1),
    )
    .unwrap_err();
    assert!(error.to_string().contains("404"));
}
