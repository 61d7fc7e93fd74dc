//! Servers that answer before they have read the request, and close: the answer counts, although
//! sending the rest fails.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{BodyRule, Http2, Job, Segment, Stop, Target, prepare};
use net::fetch::request;
use net::h2::{ErrorCode, frame};
use testing::http2::back_end::{BackEnd, Got};

use crate::support::{BOTH, LONG, Server, answered, asks, get, one};

/// Whether the failure or the answer is noticed first depends on timing.
const REQUESTS: u64 = 100;
const ANSWER: &[u8] =
    b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig";

/// Answers behind the head of a request, and closes with the body unread.
fn hasty() -> Server {
    Server::start(|peer| {
        let _ = peer.answer(ANSWER);
    })
}

fn post(address: std::net::SocketAddr, status: u16) -> Target {
    let mut target = get(address);
    let bytes = 3_000_000;
    let length = ("Content-Length".to_owned(), bytes.to_string());
    let head = request("POST", "test", "/", &[length]);
    target.requests[0].bytes = [head, vec![b'x'; bytes]].concat();
    target.requests[0].expect = answered(status);
    target
}

fn over_h2(target: Target) -> Target {
    Target {
        http2: Some(Http2 { streams: 1 }),
        ..target
    }
}

/// As [`hasty`]. With `is_going` it closes the connection with the content unread; otherwise it
/// says that the rest is not needed.
fn hasty_2(is_going: bool) -> BackEnd {
    BackEnd::new(&[], move |link, _| {
        while let Some((stream, _)) = link.request() {
            link.head(stream, &[(":status", "413")], false);
            link.data(stream, b"big", true);
            match is_going {
                true => frame::go_away(&mut link.out, stream, ErrorCode::NoError),
                false => frame::reset(&mut link.out, stream, ErrorCode::NoError),
            }
            link.flush();
            if is_going {
                return;
            }
        }
    })
}

#[test]
fn an_answer_before_the_end_of_the_request_counts() {
    let server = hasty();
    let back = [hasty_2(true), hasty_2(false)];
    for io in BOTH {
        let targets = back.each_ref().map(|one| over_h2(post(one.address, 413)));
        for target in [vec![post(server.address, 413)], targets.to_vec()].concat() {
            let reading = asks(io, target.clone(), 4, REQUESTS);
            let shown = format!("{io}: {:?} {:?}", reading.errors_all, reading.wrong);
            assert_eq!(reading.requests_all, REQUESTS, "{shown}");
            assert_eq!(reading.errors_all.total(), 0, "{shown}");
            let segment = Segment::open(100.0, Stop::After(Duration::from_millis(500)));
            let job = Job {
                io: Some(io),
                timeout: LONG,
                ..Job::to(target).segment(segment)
            };
            let reading = one(&job);
            let shown = format!("{io}: {:?} {:?}", reading.errors_all, reading.wrong);
            assert_eq!(reading.errors_all.total(), 0, "{shown}");
            assert!(reading.requests_all > 0, "{shown}");
        }
    }
}

/// A server that says nothing more of the stream would wait for the rest of the request.
#[test]
fn a_stream_that_was_answered_early_is_closed() {
    let back = BackEnd::new(&[], |link, _| {
        while let Some((stream, _)) = link.request() {
            link.opens_windows = false;
            link.head(stream, &[(":status", "413")], true);
            let is_reset = |got: &Got| match got {
                Got::Reset { stream: of, code } => (*of, *code) == (stream, ErrorCode::Cancel),
                _ => false,
            };
            while link.receive().is_some_and(|got| !is_reset(&got)) {}
        }
    });
    for io in BOTH {
        let reading = asks(io, over_h2(post(back.address, 413)), 1, 5);
        let shown = format!("{io}: {:?} {:?}", reading.errors_all, reading.wrong);
        assert_eq!(reading.requests_all, 5, "{shown}");
        assert_eq!(reading.connects, 1, "{shown}");
    }
}

#[test]
fn an_early_answer_is_judged_by_its_status() {
    let server = hasty();
    for io in BOTH {
        let reading = asks(io, post(server.address, 200), 4, REQUESTS);
        assert_eq!(reading.errors_all.status, REQUESTS, "{:?}", reading.wrong);
        assert_eq!(reading.errors_all.total(), REQUESTS);
    }
}

#[test]
fn what_is_asked_before_a_load_gets_early_answers_too() {
    let server = hasty();
    let back = hasty_2(true);
    for target in [post(server.address, 413), over_h2(post(back.address, 413))] {
        let mut job = Job::to(target);
        job.timeout = LONG;
        for _ in 0..20 {
            job.targets[0].requests[0].expect.body = BodyRule::Auto;
            prepare(&mut job, &AtomicBool::new(false)).unwrap();
            let body = &job.targets[0].requests[0].expect.body;
            assert!(matches!(body, BodyRule::Bytes(bytes) if bytes[..] == b"big"[..]));
        }
    }
}
