//! What a user of the load engine relies on, on both event loops.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testing::Text as _;

use crate::support::{BOTH, asks, assert_found, job, one, origin, target};
use load::{
    BodyRule, Expect, Job, PrepareError, ReferenceError, Segment, StatusRule, Stop, Target,
    Varying, Wait, prepare, run,
};
use net::fetch::request;
use readings::Pacing;
use testing::serve;

/// Answers that take much of the window come in bursts, as all connections began at once. Those at
/// the window's edges count with the part of their time that lies inside, so that Little's law
/// holds: by their plain number it would be off by 8% here, and by 15% at worst.
#[test]
fn answers_at_the_edges_count_with_their_part() {
    const CONNECTIONS: u32 = 4;
    let origin = origin();
    for io in BOTH {
        let target = target(origin.address(), "/delay/constant/80ms");
        let after = Stop::After(Duration::from_millis(520));
        let mut job = job(io, target, CONNECTIONS, 1, after);
        job.segments[0].ramp_up = Duration::from_millis(100);
        let reading = one(&job);
        let mean_s = reading.service.quantiles().mean / 1e6;
        let busy = reading.requests_per_s() * mean_s;
        assert!(
            (busy / f64::from(CONNECTIONS) - 1.0).abs() < 0.03,
            "{io:?}: {busy} connections by Little's law; {} answers and {:?}",
            reading.requests,
            reading.slices
        );
        let plain = reading.requests as f64 / reading.duration_s;
        assert_ne!(plain, reading.requests_per_s(), "{io:?}");
    }
}

#[test]
fn exactly_the_connections_and_requests_asked_for() {
    for io in BOTH {
        let origin = origin();
        let target = target(origin.address(), "/");
        let reading = one(&job(io, target, 41, 12, Stop::Requests(10_007)));
        std::thread::sleep(Duration::from_millis(120));
        let stats = origin.stats();
        assert_eq!((stats.connections, stats.received.requests), (41, 10_007));
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
            assert_eq!(stats.received.requests, 600);
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
        job.segments[0].ramp_up = Duration::from_millis(100);
        job.segments[0].pacing = Pacing::Open {
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
fn targets_alternate_and_keep_their_own_readings() {
    for io in BOTH {
        let (one, two) = (origin(), origin());
        let mut job = job(io, target(one.address(), "/"), 4, 1, Stop::Requests(1));
        job.targets
            .push(target(two.address(), "/bytes/5000").with_connections(3));
        job.segments = [(0, 100), (1, 70), (1, 30), (0, 50)]
            .map(|(on, count)| Segment::closed(Stop::Requests(count)).on(on, Some(on)))
            .to_vec();
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
        let bad = asks(io, target(origin.address(), "/status/502"), 4, 200);
        assert_eq!((bad.requests, bad.errors.status), (0, 200));
        assert!(bad.wrong[0].found.contains("502"));
        let mut other = target(origin.address(), "/bytes/14");
        other.requests[0].expect.body = BodyRule::Bytes(Arc::from(&b"Hello, world!"[..]));
        let bad = asks(io, other, 4, 200);
        assert_eq!((bad.requests, bad.errors.verify), (0, 200));
    }
}

#[test]
fn a_dead_server_is_an_error_and_no_busy_loop() {
    for io in BOTH {
        // No other test listens at this address, also when its port is free again.
        let address = TcpListener::bind("127.0.0.77:0")
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
        assert_found(&reading, "refused");
    }
}

#[test]
fn bodies_that_end_with_the_connection_are_complete() {
    for io in BOTH {
        let address = serve(|mut s| {
            let _ = s.read(&mut [0; 512]);
            let _ = s.write_all(b"HTTP/1.0 200 OK\r\n\r\nall of it");
        });
        let mut target = target(address, "/");
        target.requests[0].expect.body = BodyRule::Bytes(Arc::from(&b"all of it"[..]));
        let reading = asks(io, target, 2, 20);
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
        let target = target(origin.address(), "/");
        let job = job(io, target, 4, 2, Stop::After(Duration::from_secs(60)));
        let stop = Arc::new(AtomicBool::new(false));
        let start = Instant::now();
        let stop_after_some = |progress| {
            if let load::Progress::Tick { requests: 1.., .. } = progress {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let reading = run(&job, &stop, stop_after_some).unwrap().remove(0);
        assert!(start.elapsed() < Duration::from_secs(30));
        assert!(reading.requests > 0);
        assert!(reading.duration_s > 0.2 && reading.duration_s < 30.0);
    }
}

/// What a job's rules are once its target was asked, and which requests vary.
fn prepared(mut target: Target, body: BodyRule) -> Result<(Expect, Vec<Varying>), PrepareError> {
    target.requests[0].expect.body = body;
    let mut job = Job::to(target);
    let varying = prepare(&mut job, &AtomicBool::new(false))?;
    Ok((job.targets[0].requests[0].expect.clone(), varying))
}

#[test]
fn what_a_target_answers_is_the_reference() {
    let origin = origin();
    let at = |path| target(origin.address(), path);
    let hello = BodyRule::Bytes(Arc::from(&b"Hello, world!"[..]));
    for rule in [BodyRule::Same, BodyRule::Auto] {
        let (expect, varying) = prepared(at("/"), rule).unwrap();
        assert_eq!(expect.status, StatusRule::Exactly(200));
        assert_eq!((expect.body, varying), (hello.clone(), vec![]));
    }
    let (expect, varying) = prepared(at("/.weigh/stats"), BodyRule::Auto).unwrap();
    assert_eq!(expect.body, BodyRule::Any);
    assert_eq!(varying.len(), 1);
    let error = prepared(at("/.weigh/stats"), BodyRule::Same).unwrap_err();
    assert!(matches!(error.cause, ReferenceError::Varies), "{error}");
    error.to_string().has("set expect.body = \"varies\"");
    let error = prepared(at("/nothing"), BodyRule::Auto).unwrap_err();
    error.to_string().has("give --expect-status 404");
    // Without a rule that depends on it nothing is asked.
    assert!(prepared(at("/nothing"), BodyRule::Any).is_ok());
}

fn two_requests(address: SocketAddr) -> Target {
    let mut target = target(address, "/");
    let mut other = load::Request::new(
        request("GET", "origin", "/bytes/2000", &[]),
        Expect::default(),
    );
    other.weight = 3;
    target.requests.push(other);
    target
}

#[test]
fn several_requests_are_sent_by_their_weights() {
    for io in BOTH {
        let origin = origin();
        let target = two_requests(origin.address());
        let reading = one(&job(io, target, 4, 2, Stop::Requests(4_000)));
        let each = &reading.per_request;
        assert_eq!(each[0].name, "GET /");
        assert_eq!(each[1].name, "GET /bytes/2000");
        assert_eq!(each[0].requests + each[1].requests, 4_000);
        // 3,000 of 4,000 expected, standard deviation 27.
        assert!(
            each[1].requests.abs_diff(3_000) < 140,
            "{}",
            each[1].requests
        );
        assert_eq!(each[1].latency_us.count, each[1].requests);
        assert_eq!(reading.errors_all.total(), 0);
    }
}

#[test]
fn requests_in_order_take_turns() {
    for io in BOTH {
        let origin = origin();
        let mut target = two_requests(origin.address());
        target.choice = load::Choice::InOrder;
        target.requests.push(load::Request::new(
            request("HEAD", "origin", "/bytes/100", &[]),
            Expect::default(),
        ));
        let reading = one(&job(io, target, 6, 3, Stop::Requests(3_000)));
        let counts: Vec<u64> = reading.per_request.iter().map(|r| r.requests).collect();
        assert_eq!(counts, [1_000, 1_000, 1_000]);
    }
}

#[test]
fn rows_add_up_to_the_reading() {
    for io in BOTH {
        let origin = origin();
        let stop = Stop::After(Duration::from_millis(550));
        let mut job = job(io, target(origin.address(), "/"), 8, 2, stop);
        job.rows = Some(Duration::from_millis(100));
        let stop = Arc::new(AtomicBool::new(false));
        let mut told = Vec::new();
        let reading = run(&job, &stop, |progress| {
            if let load::Progress::Row(row) = progress {
                assert_eq!(row.response.count(), row.row.requests);
                told.push(row.row);
            }
        })
        .unwrap()
        .remove(0);
        assert_eq!(told, reading.rows);
        assert_eq!(reading.rows.len(), 6);
        let starts: Vec<f64> = told
            .iter()
            .map(|row| (row.start_s * 10.0).round())
            .collect();
        assert_eq!(starts, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let requests: u64 = told.iter().map(|row| row.requests).sum();
        assert_eq!(requests, reading.requests);
        assert_eq!(reading.response.count(), reading.requests);
        assert_eq!(reading.service.count(), reading.requests);
        assert_eq!(reading.transfer.count(), reading.requests);
        let bytes: u64 = told.iter().map(|row| row.bytes_read).sum();
        assert_eq!(bytes, reading.bytes_read);
    }
}

/// Reads a PROXY protocol header, then answers as a server would; sends what it read.
fn behind_proxy(seen: std::sync::mpsc::Sender<SocketAddr>) -> SocketAddr {
    let seen = std::sync::Mutex::new(seen);
    serve(move |mut stream| {
        let mut bytes = Vec::new();
        let mut piece = [0; 1024];
        loop {
            let n = stream.read(&mut piece).unwrap_or(0);
            if n == 0 {
                return;
            }
            bytes.extend_from_slice(&piece[..n]);
            if let Ok(net::proxy_protocol::Parsed::Done { taken, header }) =
                net::proxy_protocol::parse(&bytes)
            {
                let net::proxy_protocol::Header::Proxied { src, .. } = header else {
                    return;
                };
                seen.lock().unwrap().send(src).unwrap();
                bytes.drain(..taken);
                break;
            }
        }
        loop {
            while let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                bytes.drain(..end + 4);
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                if stream.write_all(answer).is_err() {
                    return;
                }
            }
            let n = stream.read(&mut piece).unwrap_or(0);
            if n == 0 {
                return;
            }
            bytes.extend_from_slice(&piece[..n]);
        }
    })
}

#[test]
fn every_connection_begins_with_a_proxy_header_when_asked() {
    for io in BOTH {
        for version in [load::ProxyVersion::V1, load::ProxyVersion::V2] {
            let (sender, seen) = std::sync::mpsc::channel();
            let mut target = target(behind_proxy(sender), "/");
            target.proxy_header = Some(load::ProxyHeader {
                version,
                clients: vec![],
            });
            target.requests[0].expect = prepared(target.clone(), BodyRule::Same).unwrap().0;
            while seen.try_recv().is_ok() {}
            let mut job = job(io, target, 4, 1, Stop::Requests(100));
            job.requests_per_connection = Some(10);
            let reading = one(&job);
            assert_eq!(reading.requests, 100, "{:?}", reading.wrong);
            let clients: std::collections::BTreeSet<SocketAddr> = seen.try_iter().collect();
            assert!(clients.len() >= 10, "{clients:?}");
            assert!(
                clients
                    .iter()
                    .all(|client| client.ip().to_string().starts_with("198.18."))
            );
        }
    }
}

#[test]
fn a_unix_socket_is_a_target() {
    for io in BOTH {
        let folder = std::env::temp_dir().join(format!("weigh-load-{io}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut piece = [0; 1024];
                    while stream.read(&mut piece).is_ok_and(|n| n > 0) {
                        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                        if stream.write_all(answer).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        let unix = net::UnixPath::new(path).unwrap();
        let mut target = Target::new(unix, request("GET", "x", "/", &[]), Expect::default());
        target.requests[0].expect.body = BodyRule::Same;
        let reading = one(&job(io, target, 5, 2, Stop::Requests(500)));
        assert_eq!(reading.requests, 500, "{:?}", reading.wrong);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
