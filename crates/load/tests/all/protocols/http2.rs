//! Loads over HTTP/2, in the clear and over TLS, on both event loops.

mod grpc;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{BOTH, LONG, answered, asks, assert_found, job, one, origin, target};
use load::{BodyRule, Expect, Http2, Job, Segment, Stop, Target};
use net::IoKind;
use net::h2::{ErrorCode, frame};
use origin::{Origin, OriginOptions};
use testing::http2::back_end::{BackEnd, Got, Link};
use tls::ClientSettings;

pub fn over_h2(target: Target, streams: u32) -> Target {
    Target {
        http2: Some(Http2 { streams }),
        ..target
    }
}

/// An origin with TLS, and how it is spoken to.
fn secure_origin(alpn: &[&str]) -> (Origin, ClientSettings) {
    let (server, mut client) = testing::tls::localhost(alpn);
    client.alpn = vec!["h2".into()];
    let origin = Origin::start(&OriginOptions {
        tls: Some(server),
        ..OriginOptions::default()
    });
    (origin.unwrap(), client)
}

#[test]
fn each_connection_carries_as_many_streams_as_asked_for() {
    for io in BOTH {
        let origin = origin();
        // Each answer takes 20 ms, so that the streams show in the throughput.
        let target = over_h2(target(origin.address(), "/delay/constant/20ms"), 8);
        // Answers that are late at its end are missing: beside other tests those of 50 ms and more.
        let after = Stop::After(Duration::from_millis(1_500));
        let reading = one(&job(io, target, 2, 1, after));
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        assert_eq!((reading.connects, reading.streams), (2, Some(8)));
        assert_eq!(origin.stats().connections, 2);
        let busy = reading.requests_per_s() * reading.service.quantiles().mean / 1e6;
        assert!(
            (busy / 16.0 - 1.0).abs() < 0.1,
            "{io:?}: {busy} streams busy"
        );
    }
}

#[test]
fn bodies_are_compared_and_counted_over_tls() {
    for io in BOTH {
        let (origin, client) = secure_origin(&["h2", "http/1.1"]);
        let mut target = over_h2(target(origin.address(), "/bytes/100000"), 4);
        target.tls = Some(client);
        target.requests[0].expect.body = BodyRule::Same;
        let reading = asks(io, target, 3, 200);
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        assert_eq!(reading.requests, 200);
        assert!(reading.bytes_read > 200 * 100_000);
        let tls = reading.tls.unwrap();
        assert_eq!(tls.handshakes, 3);
        assert_eq!(tls.negotiated[0].alpn.as_deref(), Some("h2"));
    }
}

#[test]
fn a_server_without_http2_is_told() {
    let (origin, client) = secure_origin(&[]);
    let mut target = over_h2(target(origin.address(), "/"), 1);
    target.tls = Some(client);
    target.requests[0].expect = answered(200);
    let after = Stop::After(Duration::from_millis(100));
    let reading = one(&job(IoKind::Epoll, target, 1, 1, after));
    assert_eq!(reading.requests_all, 0);
    assert_found(&reading, "does not offer HTTP/2");
}

#[test]
fn an_open_loop_gives_each_stream_its_due_time() {
    for io in BOTH {
        let origin = origin();
        // One answer of fifty takes 50 ms, the others 1 ms: with 16 streams the slow one delays no
        // other.
        let path = "/delay/bimodal/1ms/50ms/2";
        let target = over_h2(target(origin.address(), path), 16).with_connections(1);
        let segment = Segment::open(300.0, Stop::After(Duration::from_secs(2)));
        let job = Job {
            io: Some(io),
            timeout: LONG,
            ..Job::to(target).segment(segment)
        };
        let reading = one(&job);
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        assert!(
            (500..700).contains(&reading.requests),
            "{}",
            reading.requests
        );
        let quantile_ms = |q| reading.response.quantile_us(q) / 1e3;
        // Were the others delayed, most would take 50 ms; a busy machine takes its share.
        assert!(
            (0.9..40.0).contains(&quantile_ms(0.75)),
            "{}",
            quantile_ms(0.75)
        );
        assert!(quantile_ms(0.999) >= 49.0, "{}", quantile_ms(0.999));
    }
}

#[test]
fn request_bodies_wait_for_the_servers_windows() {
    let origin = origin();
    let body = vec![b'x'; 300_000];
    let mut bytes = net::fetch::request(
        "POST",
        "origin",
        "/",
        &[("Content-Length".into(), body.len().to_string())],
    );
    bytes.extend_from_slice(&body);
    for io in BOTH {
        let target = Target::new(origin.address(), bytes.clone(), Expect::default());
        let reading = asks(io, over_h2(target, 3), 2, 20);
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        assert_eq!(reading.requests, 20);
    }
}

/// What a server of the test does with a stream, by its place on the connection.
enum Do {
    Answer,
    Refuse,
    Reset,
    /// Answers, and takes no further streams.
    AnswerAndGoAway,
    /// Takes no further streams, this one included.
    GoAway,
    /// Closes the connection without a word.
    Close,
}

/// A server that speaks HTTP/2 in the clear; `each` says what it does with the nth stream of a
/// connection.
fn server(each: impl Fn(u32) -> Do + Send + Sync + 'static) -> SocketAddr {
    BackEnd::new(&[], move |link, _| {
        while let Some(got) = link.receive() {
            let Got::Head { stream, .. } = got else {
                continue;
            };
            let answer = |link: &mut Link| link.head(stream, &[(":status", "200")], true);
            match each(stream / 2) {
                Do::Answer => answer(link),
                Do::Refuse => frame::reset(&mut link.out, stream, ErrorCode::RefusedStream),
                Do::Reset => frame::reset(&mut link.out, stream, ErrorCode::InternalError),
                Do::AnswerAndGoAway => {
                    answer(link);
                    frame::go_away(&mut link.out, stream, ErrorCode::NoError);
                    break;
                }
                Do::GoAway => {
                    frame::go_away(&mut link.out, stream - 2, ErrorCode::NoError);
                    break;
                }
                Do::Close => return,
            }
        }
        // The client ends it.
        while link.receive().is_some() {}
    })
    .address
}

#[test]
fn a_server_that_ends_connections_loses_no_request() {
    for io in BOTH {
        // As nginx does after so many requests, in both ways.
        for include_last in [false, true] {
            let address = server(move |nth| match nth {
                ..10 => Do::Answer,
                _ if include_last => Do::AnswerAndGoAway,
                _ => Do::GoAway,
            });
            let target = over_h2(target(address, "/"), 4);
            let reading = asks(io, target, 2, 300);
            assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
            assert_eq!(reading.requests, 300);
            assert!(reading.connects >= 300 / 11, "{}", reading.connects);
            assert!(reading.resent > 0);
        }
    }
}

#[test]
fn a_request_that_meets_the_end_of_an_idle_connection_is_sent_again() {
    // A connection has one answer, and is closed when the next request comes.
    let address = server(|nth| match nth {
        0 => Do::Answer,
        _ => Do::Close,
    });
    let run = |io, method: &str, every_ms| {
        let bytes = net::fetch::request(method, "h", "/", &[]);
        let target = over_h2(Target::new(address, bytes, Expect::default()), 2);
        let segment = Segment::open(1e3 / f64::from(every_ms), Stop::Requests(3));
        let job = Job {
            io: Some(io),
            timeout: LONG,
            ..Job::to(target.with_connections(1)).segment(segment)
        };
        let reading = one(&job);
        (
            reading.requests_all,
            reading.errors_all.read,
            reading.resent,
        )
    };
    for io in BOTH {
        assert_eq!(run(io, "GET", 1_200), (3, 0, 2), "{io:?}");
    }
    let io = IoKind::Epoll;
    assert_eq!(run(io, "POST", 1_200), (2, 1, 0), "it may be processed");
    assert_eq!(run(io, "GET", 300), (2, 1, 0), "it was not idle");
}

#[test]
fn requests_that_wait_are_sent_when_others_are_given_up() {
    for io in BOTH {
        // It allows two streams, and is silent on those from the second to the ninth.
        let back_end = BackEnd::new(&[(3, 2)], |link, _| {
            while let Some(got) = link.receive() {
                if let Got::Head { stream, .. } = got
                    && !(1..=8).contains(&(stream / 2))
                {
                    link.head(stream, &[(":status", "200")], true);
                }
            }
        });
        let target = over_h2(target(back_end.address, "/"), 8);
        let mut job = job(io, target, 1, 1, Stop::Requests(60));
        job.timeout = Duration::from_millis(300);
        job.connect_timeout = Duration::from_secs(20);
        let reading = one(&job);
        let (good, failed) = (reading.requests, reading.errors_all.timeout);
        assert_eq!((good + failed, failed), (60, 8), "{:?}", reading.errors_all);
    }
}

#[test]
fn a_refused_stream_is_asked_again_and_a_reset_one_is_an_error() {
    for io in BOTH {
        let address = server(|nth| match nth % 5 {
            4 => Do::Refuse,
            _ => Do::Answer,
        });
        let reading = asks(io, over_h2(target(address, "/"), 3), 1, 100);
        assert_eq!((reading.requests, reading.errors_all.total()), (100, 0));
        assert!((20..=30).contains(&reading.resent), "{}", reading.resent);
        let address = server(|nth| match nth {
            // The requests before the load come on connections of their own.
            3 => Do::Reset,
            _ => Do::Answer,
        });
        let reading = asks(io, over_h2(target(address, "/"), 3), 1, 100);
        assert_eq!((reading.requests, reading.errors.read), (99, 1));
        assert_found(&reading, "INTERNAL_ERROR");
        assert_eq!(reading.connects, 1);
    }
}

#[test]
fn a_connection_carries_a_page_and_the_next_page_has_its_own() {
    let origin = origin();
    let page = |path: &str| Target {
        requests_per_connection: Some(40),
        ..over_h2(target(origin.address(), path), 40)
    };
    // All forty requests of a page are in flight at once, so three pages take three delays.
    let page = page("/delay/constant/50ms");
    let job = job(IoKind::best(), page, 1, 1, Stop::Requests(120));
    let reading = one(&job);
    assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
    assert_eq!((reading.requests, reading.connects), (120, 3));
    let pages_s = reading.duration_s;
    assert!((0.145..1.5).contains(&pages_s), "{pages_s}");
    // A target without its own number has that of the job.
    let mut kept = job.clone();
    kept.targets[0].requests_per_connection = None;
    kept.requests_per_connection = Some(60);
    assert_eq!(one(&kept).connects, 2);
}

/// A server that answers the first `good` requests well, among them those for the reference, and the
/// others with `bad`.
pub fn after_good_answers(
    good: usize,
    bad: impl Fn(&mut Link, u32) + Send + Sync + 'static,
) -> SocketAddr {
    let answered = AtomicUsize::new(0);
    let back_end = BackEnd::new(&[], move |link, _| {
        while let Some((stream, _)) = link.request() {
            match answered.fetch_add(1, Ordering::SeqCst) < good {
                true => link.answer(stream, "hello"),
                false => bad(link, stream),
            }
        }
    });
    back_end.address
}

#[test]
fn an_answer_has_to_have_the_length_that_it_announces() {
    let answers: [(&[(&str, &str)], &str); 4] = [
        (&[("content-length", "500")], "less content than announced"),
        (&[("content-length", "4")], "more content than announced"),
        (&[("content-length", "five")], "an invalid content-length"),
        (
            &[("content-length", "5"), ("content-length", "6")],
            "conflicting content-lengths",
        ),
    ];
    for (fields, told) in answers {
        let address = after_good_answers(10, move |link, stream| {
            link.head(stream, &[&[(":status", "200")], fields].concat(), false);
            link.data(stream, b"hello", true);
        });
        let reading = asks(IoKind::best(), over_h2(target(address, "/"), 1), 1, 20);
        assert!(reading.errors_all.read >= 10, "{fields:?}: {reading:?}");
        assert!(reading.requests <= 10);
        assert_found(&reading, told);
        assert_eq!(reading.connects, 1, "the connection is still good");
    }
}

#[test]
fn an_answer_without_content_may_have_a_length() {
    for (method, status) in [("HEAD", "200"), ("GET", "204"), ("GET", "304")] {
        let back_end = BackEnd::new(&[], move |link, _| {
            while let Some((stream, _)) = link.request() {
                link.head(
                    stream,
                    &[(":status", status), ("content-length", "500")],
                    true,
                );
            }
        });
        let bytes = net::fetch::request(method, "h", "/", &[]);
        let expect = answered(status.parse().unwrap());
        let target = over_h2(Target::new(back_end.address, bytes, expect), 1);
        let reading = asks(IoKind::best(), target, 1, 5);
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
    }
}

#[test]
fn an_answer_without_a_head_is_none() {
    // DATA alone, and an interim answer that ends the stream.
    let answers: [fn(&mut Link, u32); 2] = [
        |link, stream| link.data(stream, b"hello", true),
        |link, stream| link.head(stream, &[(":status", "103")], true),
    ];
    for bad in answers {
        let address = after_good_answers(10, bad);
        let target = over_h2(target(address, "/"), 1);
        let reading = asks(IoKind::best(), target, 1, 20);
        assert!(
            reading.errors_all.read >= 10 && reading.requests <= 10,
            "{reading:?}"
        );
        assert_found(&reading, "head");
    }
}

#[test]
fn an_answer_to_head_has_no_content() {
    let back_end = BackEnd::new(&[], |link, _| {
        while let Some((stream, _)) = link.request() {
            link.answer(stream, "hello");
        }
    });
    let bytes = net::fetch::request("HEAD", "h", "/", &[]);
    let expect = answered(200);
    let target = over_h2(Target::new(back_end.address, bytes, expect), 1);
    let reading = asks(IoKind::best(), target, 1, 5);
    assert_eq!((reading.requests, reading.errors_all.read), (0, 5));
}

#[test]
fn a_frame_flood_closes_the_connection() {
    for io in BOTH {
        let address = after_good_answers(10, |link, stream| {
            for _ in 0..110_000 {
                frame::ping(&mut link.out, *b"flooding");
            }
            link.answer(stream, "hello");
        });
        let target = over_h2(target(address, "/"), 1);
        let reading = asks(io, target, 1, 12);
        assert_eq!(reading.errors_all.read, 2, "{:?}", reading.wrong);
        assert_found(&reading, "too many frames");
    }
}

#[test]
fn an_answer_to_no_request_ends_the_connection() {
    let address = after_good_answers(10, |link, stream| {
        link.answer(stream, "hello");
        link.answer(stream + 2, "hello");
        link.answer(stream + 4, "hello");
    });
    let target = over_h2(target(address, "/"), 1);
    let reading = asks(IoKind::best(), target, 1, 12);
    assert!(reading.errors_all.read >= 1);
    assert_found(&reading, "idle stream");
}

/// Answers a stream, with a field in some part of the answer.
type Part = fn(&mut Link, u32, &[(&str, &str)]);

#[test]
fn an_answer_with_a_line_end_in_a_field_is_no_good_one() {
    for (name, value) in [("x", "a\r\nset-cookie: b"), ("x", "a\0b"), ("x\n", "a")] {
        // In the head, before the final head, and in trailers.
        let parts: [Part; 3] = [
            |link, stream, field| {
                link.head(stream, &[&[(":status", "200")], field].concat(), true);
            },
            |link, stream, field| {
                link.head(stream, &[&[(":status", "103")], field].concat(), false);
                link.head(stream, &[(":status", "200")], true);
            },
            |link, stream, field| {
                link.head(stream, &[(":status", "200")], false);
                link.head(stream, field, true);
            },
        ];
        for part in parts {
            let address = after_good_answers(10, move |link, stream| {
                part(link, stream, &[(name, value)]);
            });
            let reading = asks(IoKind::best(), over_h2(target(address, "/"), 1), 1, 20);
            assert!(reading.errors_all.read >= 10, "{value:?}: {reading:?}");
            assert_found(&reading, "CR, LF or NUL");
            assert_eq!(reading.connects, 1, "only the streams are reset");
        }
    }
}
