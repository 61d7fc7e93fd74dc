//! How a load is shared out over threads and what is measured of it, on both event loops.
#![allow(clippy::unwrap_used)]

#[path = "support/jobs.rs"]
mod jobs;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::mpsc;
use std::time::Duration;

use jobs::{BOTH, job, one, origin, target};
use load::{Expect, Request, Stop, Wait};
use net::fetch::request;
use readings::Pacing;

#[test]
fn threads_with_fewer_connections_have_fewer_requests() {
    for io in BOTH {
        let origin = origin();
        let target = target(origin.address(), "/delay/constant/10ms");
        let mut job = job(io, target, 3, 2, Stop::Requests(90));
        let closed = one(&job);
        let of = |reading: &readings::LoadReading| -> Vec<u64> {
            let threads = reading.client.threads.iter();
            threads.map(|thread| thread.requests).collect()
        };
        assert_eq!(of(&closed), [60, 30]);
        // Each thread gets what its connections can take, so nothing is late but by a busy machine.
        job.segments[0].pacing = Pacing::Open { rate_per_s: 150.0 };
        let open = one(&job);
        assert_eq!(of(&open), [60, 30]);
        let median_us = open.response.quantile_us(0.5);
        assert!((9_900.0..30_000.0).contains(&median_us), "{median_us}");
    }
}

#[test]
fn a_thread_without_requests_was_not_busy() {
    for io in BOTH {
        let origin = origin();
        let mut job = job(io, target(origin.address(), "/"), 4, 4, Stop::Requests(2));
        for pacing in [Pacing::Closed, Pacing::Open { rate_per_s: 100.0 }] {
            job.segments[0].pacing = pacing;
            let client = one(&job).client;
            let busy: Vec<f64> = client.threads.iter().map(|thread| thread.cpu).collect();
            assert_eq!(busy[2..], [0.0, 0.0]);
            assert!(busy.iter().all(|share| *share <= 1.0), "{busy:?}");
        }
        // More threads than connections: those without have nothing to do.
        job.targets[0].connections = 2;
        job.segments[0].stop = Stop::After(Duration::from_millis(200));
        let reading = one(&job);
        assert_eq!(reading.requests, 20);
        assert_eq!(reading.errors_all.total(), 0);
    }
}

#[test]
fn a_count_begins_after_what_is_cut_off() {
    for io in BOTH {
        let origin = origin();
        let quick = target(origin.address(), "/delay/constant/1ms");
        let mut job = job(io, quick, 4, 2, Stop::Requests(500));
        job.segments[0].ramp_up = Duration::from_millis(50);
        let mut all = Vec::new();
        all.push(one(&job));
        job.segments[0].stop = Stop::EachConnection(125);
        all.push(one(&job));
        job.segments[0].stop = Stop::Requests(500);
        job.segments[0].pacing = Pacing::Open { rate_per_s: 2000.0 };
        all.push(one(&job));
        for reading in all {
            assert_eq!(reading.requests, 500);
            assert_eq!(reading.response.count(), 500);
            assert!(reading.requests_all > 520, "{}", reading.requests_all);
            assert_eq!(reading.errors_all.total(), 0);
            assert!(reading.duration_s > 0.1, "{}", reading.duration_s);
        }
    }
}

#[test]
fn polling_in_vain_is_no_cpu_time_and_sending_is() {
    for io in BOTH {
        let origin = origin();
        let after = Stop::After(Duration::from_millis(500));
        let mut job = job(io, target(origin.address(), "/"), 10, 1, after);
        job.wait = Wait::Spin;
        let mut cpu_s = |rate_per_s| {
            job.segments[0].pacing = Pacing::Open { rate_per_s };
            one(&job).client.cpu_s
        };
        // Polling takes all of the half second, where this thread has its CPU.
        let (seldom, often) = (cpu_s(10.0), cpu_s(10_000.0));
        assert!(seldom < 0.1, "{io:?}: {seldom} s");
        // 5,000 requests of some us each.
        assert!(
            often > 0.01 && often > 2.0 * seldom,
            "{io:?}: {seldom} {often}"
        );
    }
}

#[test]
fn each_source_has_its_turn_whatever_the_threads() {
    for io in BOTH {
        for (connections, threads, sources, expected) in [
            (9, 4, 3, vec![3, 3, 3]),
            (2, 2, 2, vec![1, 1]),
            (8, 2, 4, vec![2, 2, 2, 2]),
        ] {
            let (address, peers) = asked();
            let each = Stop::EachConnection(1);
            let mut job = job(io, target(address, "/"), connections, threads, each);
            let source = |n: u8| SocketAddr::from(([127, 0, 0, 2 + n], 0));
            job.sources = (0..sources).map(source).collect();
            assert_eq!(one(&job).requests, u64::from(connections));
            let peers: Vec<IpAddr> = peers.try_iter().collect();
            let counts: Vec<usize> = job
                .sources
                .iter()
                .map(|source| peers.iter().filter(|peer| **peer == source.ip()).count())
                .collect();
            assert_eq!(counts, expected, "{io:?}");
        }
    }
}

/// A server that answers a request on each connection and tells who asked.
fn asked() -> (SocketAddr, mpsc::Receiver<IpAddr>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = tell.send(stream.peer_addr().unwrap().ip());
            std::thread::spawn(move || {
                let mut request = [0; 1024];
                while stream.read(&mut request).is_ok_and(|length| length > 0) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
                }
            });
        }
    });
    (address, told)
}

#[test]
fn what_was_never_sent_is_an_error_of_one_of_the_requests() {
    for io in BOTH {
        let origin = origin();
        let mut target = target(origin.address(), "/delay/constant/400ms");
        target.requests.push(Request::new(
            request("GET", "origin", "/delay/constant/401ms", &[]),
            Expect::default(),
        ));
        let after = Stop::After(Duration::from_millis(300));
        let mut job = job(io, target, 2, 1, after);
        job.segments[0].pacing = Pacing::Open { rate_per_s: 100.0 };
        let reading = one(&job);
        let by_request: u64 = reading.per_request.iter().map(|one| one.errors).sum();
        assert!(reading.errors.timeout > 10, "{:?}", reading.errors);
        assert_eq!(by_request, reading.errors.total());
    }
}

#[test]
fn the_last_row_lasts_until_its_last_answer() {
    for io in BOTH {
        let origin = origin();
        let target = target(origin.address(), "/delay/constant/150ms");
        let after = Stop::After(Duration::from_millis(200));
        let mut job = job(io, target, 50, 2, after);
        job.segments[0].pacing = Pacing::Open { rate_per_s: 100.0 };
        job.rows = Some(Duration::from_millis(100));
        let rows = one(&job).rows;
        let last = rows.last().unwrap();
        assert_eq!(rows.len(), 3);
        assert!(last.requests > 5, "{rows:?}");
        assert!((0.1..0.4).contains(&last.duration_s), "{rows:?}");
        let due: u64 = rows.iter().map(|row| row.due).sum();
        let requests: u64 = rows.iter().map(|row| row.requests).sum();
        assert_eq!((due, requests), (20, 20));
    }
}
