//! How a load is shared out over threads and what is measured of it, on both event loops.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use crate::support::{BOTH, job, one, origin, target};
use load::{Expect, Request, Segment, Stop, Wait, run_between};
use net::fetch::request;
use readings::Pacing;

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
        // 5,000 requests instead of 5.
        assert!(often > 2.0 * seldom, "{io:?}: {seldom} {often}");
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
        job.timeout = Duration::from_millis(500);
        let reading = one(&job);
        let by_request: u64 = reading.per_request.iter().map(|one| one.errors).sum();
        assert!(reading.errors.timeout > 10, "{:?}", reading.errors);
        assert_eq!(by_request, reading.errors.total());
    }
}

#[test]
fn between_segments_all_that_was_sent_is_answered_and_nothing_more() {
    let origin = Arc::new(origin());
    let short = Stop::After(Duration::from_millis(40));
    for io in BOTH {
        let mut job = job(io, target(origin.address(), "/"), 8, 2, short);
        // Each segment has a reading of its own.
        let segments = (0..5).map(|number| Segment {
            reading: Some(number),
            ..Segment::closed(short)
        });
        job.segments = segments.collect();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let count = {
            let (seen, origin) = (seen.clone(), origin.clone());
            move || {
                let received = origin.stats().received.requests;
                seen.lock().unwrap().push(received);
            }
        };
        let between = Arc::new(count);
        let readings = run_between(&job, &Arc::default(), between.clone(), |_| {}).unwrap();
        between();
        let seen = seen.lock().unwrap();
        let counted: Vec<u64> = seen.windows(2).map(|two| two[1] - two[0]).collect();
        let all = readings
            .iter()
            .map(|one| one.requests_all + one.errors_all.total());
        assert_eq!(counted, all.collect::<Vec<_>>(), "{io:?}");
    }
}
