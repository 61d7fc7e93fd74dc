//! Servers that refuse requests, or end connections without an answer, again and again: each
//! request is over within its time limit and counted, and connections are not opened in a storm.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use load::{Job, Segment, Stop, Target};
use net::IoKind;
use net::h2::{ErrorCode, frame};
use net::h3;
use readings::LoadReading;
use testing::http2::back_end::Link;

use crate::http2::{after_good_answers, over_h2};
use crate::http3::{Scripted, fixed, go_away, good, identities, reset};
use crate::support::{BOTH, GOOD, Server, get, in_time, job, one, target};

/// Good answers before the server refuses, among them those for the reference.
const GOOD_FIRST: usize = 12;
/// A refused request is sent again so often.
const AGAIN_MAX: u64 = 5;
const LIMIT: Duration = Duration::from_millis(500);
const WINDOW: Duration = Duration::from_millis(300);

/// A closed loop for a time, whose requests have a short time limit.
fn refused(io: IoKind, target: Target, connections: u32) -> LoadReading {
    let mut job = job(io, target, connections, 1, Stop::After(WINDOW));
    (job.timeout, job.connect_timeout) = (LIMIT, LIMIT);
    let began = Instant::now();
    let reading = in_time("a server that refuses", move || one(&job));
    let took = began.elapsed();
    // Beside them are the requests for the reference, and other tests.
    assert!(took < WINDOW + 10 * LIMIT, "{took:?}");
    let told = reading
        .wrong
        .iter()
        .find(|one| one.found.contains("refused"));
    assert!(told.is_some(), "{:?}", reading.wrong);
    let failed = reading.errors_all.read;
    assert!(failed > 0, "{:?}", reading.errors_all);
    assert!(reading.resent >= AGAIN_MAX, "{}", reading.resent);
    reading
}

#[test]
fn a_server_that_refuses_each_stream_fails_the_requests() {
    for io in BOTH {
        let address = after_good_answers(GOOD_FIRST, |link: &mut Link, stream| {
            frame::reset(&mut link.out, stream, ErrorCode::RefusedStream);
        });
        let reading = refused(io, over_h2(target(address, "/"), 3), 2);
        let failed = reading.errors_all.read;
        let again = AGAIN_MAX * failed;
        assert!(
            reading.resent.abs_diff(again) <= 6 * AGAIN_MAX,
            "{reading:?}"
        );
        assert_eq!(reading.connects, 2);
    }
}

#[test]
fn a_server_that_takes_no_request_of_a_connection_is_asked_at_intervals() {
    for io in BOTH {
        let address = after_good_answers(GOOD_FIRST, |link: &mut Link, _| {
            frame::go_away(&mut link.out, 0, ErrorCode::NoError);
        });
        let reading = refused(io, over_h2(target(address, "/"), 3), 2);
        // At the checks every 20 ms, on each of two connections.
        let most = 2 * 2 + 2 * (WINDOW + LIMIT).as_millis() as u64 / 20;
        assert!(reading.connects <= most, "{}", reading.connects);
    }
}

#[test]
fn a_count_of_refused_requests_ends() {
    let address = after_good_answers(GOOD_FIRST, |link: &mut Link, stream| {
        frame::reset(&mut link.out, stream, ErrorCode::RefusedStream);
    });
    let asked = job(
        IoKind::best(),
        over_h2(target(address, "/"), 2),
        1,
        1,
        Stop::Requests(40),
    );
    let reading = in_time("a count", move || one(&asked));
    assert_eq!(reading.requests + reading.errors.read, 40);
    assert!(reading.errors.read >= 20);
}

/// A refusal after a part of an answer is none: the server has processed the request.
#[test]
fn a_request_that_is_refused_after_the_head_of_its_answer_is_not_sent_again() {
    for io in BOTH {
        let address = after_good_answers(GOOD_FIRST, |link: &mut Link, stream| {
            link.head(stream, &[(":status", "200")], false);
            frame::reset(&mut link.out, stream, ErrorCode::RefusedStream);
        });
        let asked = job(
            io,
            over_h2(target(address, "/"), 1),
            1,
            1,
            Stop::Requests(20),
        );
        let reading = in_time("a count", move || one(&asked));
        assert_eq!((reading.errors.read > 5, reading.resent), (true, 0));
    }
}

#[test]
fn a_server_that_rejects_each_request_over_http3_fails_them() {
    let (tls, client) = identities();
    let server = Scripted::start(&tls, |connection, id, count, _| match count as usize {
        ..GOOD_FIRST => good(connection, id),
        _ => reset(connection, id, h3::ErrorCode::RequestRejected),
    });
    refused(IoKind::best(), fixed(server.address, &client), 2);
    // Or each connection, which it says once.
    let mut told = u64::MAX;
    let server = Scripted::start(&tls, move |connection, id, count, number| {
        match count as usize {
            ..GOOD_FIRST => good(connection, id),
            _ if told != number => go_away(connection, 0),
            _ => {}
        }
        told = number;
    });
    let reading = refused(IoKind::best(), fixed(server.address, &client), 2);
    let most = 2 * 2 + 2 * (WINDOW + LIMIT).as_millis() as u64 / 20;
    assert!(reading.connects <= most, "{}", reading.connects);
}

#[test]
fn connections_that_end_without_an_answer_are_opened_at_intervals() {
    for io in BOTH {
        let accepted = AtomicU32::new(0);
        let server = Server::start(move |peer| {
            // The reference, and the first request.
            let is_good = accepted.fetch_add(1, Ordering::SeqCst) < 4;
            if peer.request() && is_good {
                peer.send(GOOD);
            }
        });
        let segment = Segment::closed(Stop::After(WINDOW));
        let job = Job {
            io: Some(io),
            ..Job::to(get(server.address).with_connections(2)).segment(segment)
        };
        let reading = in_time("connections that end", move || one(&job));
        assert!(reading.errors_all.read > 4, "{:?}", reading.errors_all);
        // A pause of 10 ms, and a check every 20 ms.
        let most = 2 * (4 + WINDOW.as_millis() as u64 / 10);
        assert!(reading.connects <= most, "{}", reading.connects);
    }
}
