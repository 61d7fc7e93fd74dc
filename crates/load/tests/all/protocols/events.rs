//! Streams of events, against senders that know what they sent.

use std::net::SocketAddr;
use std::time::Duration;

use super::http2::{over_h2, secure_origin};
use super::http3::origin_with;
use crate::support::{BOTH, Peer, Server, job, one, origin, target};
use load::{EventFormat, Events, Http3, Job, Stop, Target, Traffic};
use net::{IoKind, os};
use readings::{LagBase, LastingReading, LoadReading};

fn streams(address: SocketAddr, path: &str) -> Target {
    Target {
        traffic: Traffic::Events(Events::default()),
        ..target(address, path)
    }
}

fn lasting(reading: &LoadReading) -> &LastingReading {
    reading.lasting.as_ref().unwrap()
}

fn ends(reading: &LoadReading) -> Vec<(&str, u64)> {
    let ends = lasting(reading).ends.iter();
    ends.map(|end| (end.how.as_str(), end.count)).collect()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Two streams of 20 events on each of three places.
fn assert_complete(name: &str, job: &Job) {
    let reading = one(job);
    assert_eq!(reading.errors_all.total(), 0, "{name}: {:?}", reading.wrong);
    let found = lasting(&reading);
    assert_eq!(
        (reading.requests, found.opened, found.messages),
        (6, 6, 120),
        "{name}"
    );
    assert_eq!(ends(&reading), [("end", 6)], "{name}");
    let counts = (
        found.first_message.count(),
        found.gap.count(),
        found.lag.count(),
    );
    assert_eq!(counts, (6, 114, 120), "{name}");
    assert_eq!(
        (found.lost, found.repeated, found.reordered),
        (0, 0, 0),
        "{name}"
    );
    assert_eq!(found.lag_base, Some(LagBase::Sender), "{name}");
    assert_eq!(found.message_bytes, 120 * 60, "{name}");
    // The last is due 38 ms after the request, and no answer ends before that.
    assert!(reading.response.quantile_us(0.0) >= 37_000.0, "{name}");
    assert!(found.cut() == 0 && found.open_min == 0, "{name}");
}

#[test]
fn every_event_of_every_format_is_counted_once_over_each_version_of_http() {
    let plain = origin();
    let (secure, client) = secure_origin(&["h2", "http/1.1"]);
    for io in BOTH {
        for format in ["sse", "lines", "chunks"] {
            let path = format!("/events/20?every=2ms&bytes=60&format={format}");
            let own = streams(plain.address(), &path);
            let each = Stop::EachConnection(2);
            assert_complete(
                &format!("{io:?} {format}"),
                &job(io, own.clone(), 3, 2, each),
            );
            let h2 = over_h2(own, 3);
            let count = Stop::Requests(6);
            assert_complete(&format!("{io:?} {format}, h2"), &job(io, h2, 1, 1, count));
            let h2_tls = Target {
                tls: Some(client.clone()),
                ..over_h2(streams(secure.address(), &path), 3)
            };
            assert_complete(
                &format!("{io:?} {format}, TLS"),
                &job(io, h2_tls, 1, 1, count),
            );
        }
    }
}

#[test]
fn content_over_http_3_is_taken_apart_too() {
    let (origin, client) = origin_with(true, IoKind::Epoll);
    let target = Target {
        tls: Some(client),
        http3: Some(Http3::new(2)),
        ..streams(origin.address(), "/")
    };
    let reading = one(&job(IoKind::Epoll, target, 1, 1, Stop::Requests(4)));
    assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
    let found = lasting(&reading);
    assert_eq!((found.messages, found.message_bytes), (4, 4 * 13));
    assert_eq!(ends(&reading), [("end", 4)]);
}

#[test]
fn a_stream_that_outlasts_the_window_is_cut_without_a_failure() {
    let origin = origin();
    for io in BOTH {
        let target = streams(origin.address(), "/events/0?every=10ms");
        for target in [target.clone(), over_h2(target, 5)] {
            let connections = if target.http2.is_some() { 1 } else { 5 };
            let after = Stop::After(ms(600));
            let mut job = job(io, target, connections, 1, after);
            // Shorter than the streams: a limit of their silence.
            job.timeout = ms(400);
            let reading = one(&job);
            assert_eq!(reading.errors_all.total(), 0, "{io:?}: {:?}", reading.wrong);
            assert_eq!(
                (reading.requests, reading.connects),
                (0, u64::from(connections))
            );
            let found = lasting(&reading);
            assert_eq!((found.opened, found.open_min), (5, 5), "{io:?}");
            assert_eq!(ends(&reading), [("window", 5)], "{io:?}");
            assert!(found.messages > 5, "{io:?}: {}", found.messages);
        }
    }
}

#[test]
fn silence_and_what_cuts_a_stream_are_failures() {
    let origin = origin();
    for io in BOTH {
        let silent = streams(origin.address(), "/events/0?every=60s");
        let mut job_of_silent = job(io, silent, 2, 1, Stop::Requests(2));
        job_of_silent.timeout = ms(200);
        let reading = one(&job_of_silent);
        assert_eq!(
            (reading.requests, reading.errors_all.timeout),
            (0, 2),
            "{io:?}"
        );
        assert_eq!(ends(&reading), [("silent", 2)], "{io:?}");
        let cut = streams(origin.address(), "/events/0?every=1ms&cut=10");
        for (target, how) in [(cut.clone(), "closed"), (over_h2(cut, 2), "reset")] {
            let reading = one(&job(io, target, 2, 1, Stop::Requests(4)));
            assert_eq!((reading.requests, reading.errors_all.read), (0, 4), "{how}");
            assert_eq!(ends(&reading), [(how, 4)], "{io:?}");
            let found = lasting(&reading);
            assert_eq!((found.messages, found.cut()), (44, 4), "{how}");
        }
    }
}

/// The head is a sign: a stream is silent from then on, and times out later than its request says.
#[test]
fn a_stream_that_ends_with_its_head_is_silent_however_late_that_is() {
    for io in BOTH {
        let server = Server::start(|peer| {
            if peer.request() {
                std::thread::sleep(ms(150));
                peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
                std::thread::sleep(ms(600));
            }
        });
        let target = streams(server.address, "/");
        let mut job = job(io, target, 2, 1, Stop::Requests(2));
        job.timeout = ms(200);
        let reading = one(&job);
        let timeouts = reading.errors_all.timeout;
        assert_eq!((reading.requests, timeouts), (0, 2), "{io:?}");
        assert_eq!(ends(&reading), [("silent", 2)], "{io:?}");
    }
}

#[test]
fn streams_without_an_end_do_not_keep_a_load_of_a_number() {
    let origin = origin();
    for io in BOTH {
        let target = streams(origin.address(), "/events/0?every=10ms");
        for target in [target.clone(), over_h2(target, 2)] {
            let connections = if target.http2.is_some() { 1 } else { 2 };
            let mut job = job(io, target, connections, 1, Stop::Requests(2));
            job.timeout = ms(200);
            let reading = one(&job);
            let timeouts = reading.errors_all.timeout;
            assert_eq!((reading.requests, timeouts), (0, 2), "{io:?}");
            assert_eq!(ends(&reading), [("window", 2)], "{io:?}");
        }
    }
}

#[test]
fn a_stall_shows_in_every_event_that_was_due_in_it() {
    let origin = origin();
    let target = streams(origin.address(), "/events/40?every=5ms&stall=400ms@20");
    let reading = one(&job(IoKind::Epoll, target, 1, 1, Stop::Requests(1)));
    let found = lasting(&reading);
    assert_eq!((found.messages, found.lost), (40, 0));
    assert!(
        found.stalls >= 1 && found.stall_longest_s >= 0.39,
        "{}",
        found.stall_longest_s
    );
    // Event 20 is late by 400 ms, and each of the next 19 by 5 ms less.
    assert!(found.lag.count_above_us(300_000.0) >= 20);
    assert!(found.lag.quantile_us(1.0) >= 399_000.0);
}

/// A stream of server-sent events with these numbers, each due when it is sent.
fn numbered(peer: &mut Peer, numbers: &[u64], end: &str) {
    if !peer.request() {
        return;
    }
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let id = id.trim();
    let mut text = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nWeigh-Clock: {id}\r\nConnection: close\r\n\r\n"
    );
    for number in numbers {
        text.push_str(&format!("data: weigh {number} {} x\n\n", os::now_ns()));
    }
    text.push_str(end);
    peer.send(text.as_bytes());
}

#[test]
fn lost_repeated_and_reordered_events_are_counted_and_the_stream_is_not_good() {
    for io in BOTH {
        let server = Server::start(|peer| {
            numbered(peer, &[0, 1, 4, 2, 4, 5, 0, 7], "event: end\ndata: 9\n\n");
        });
        let reading = one(&job(
            io,
            streams(server.address, "/"),
            1,
            1,
            Stop::Requests(2),
        ));
        assert_eq!((reading.requests, reading.errors_all.verify), (0, 2));
        let wrong = &reading.wrong[0];
        assert_eq!(wrong.expected, "9 events");
        assert_eq!(wrong.found, "3 of them never came");
        let found = lasting(&reading);
        // 3, 6 and 8.
        assert_eq!((found.lost, found.repeated, found.reordered), (6, 4, 2));
        assert_eq!(found.messages, 16);
    }
}

#[test]
fn a_stamped_stream_without_its_last_event_is_unfinished() {
    let server = Server::start(|peer| numbered(peer, &[0, 1, 2], ""));
    let target = streams(server.address, "/");
    let reading = one(&job(IoKind::Epoll, target, 1, 1, Stop::Requests(1)));
    assert_eq!((reading.requests, reading.errors_all.verify), (0, 1));
    assert_eq!(reading.wrong[0].expected, "the event `end`");
    assert_eq!(ends(&reading), [("unfinished", 1)]);
    assert_eq!(lasting(&reading).cut(), 1);
}

#[test]
fn without_stamps_the_pace_says_when_events_are_due() {
    let server = Server::start(|peer| {
        if peer.request() {
            peer.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
            for line in ["{\"a\":1}\n", "{\"a\":2}\n{\"a\":3}\n", "{\"a\":4}"] {
                peer.send(line.as_bytes());
                std::thread::sleep(ms(60));
            }
        }
    });
    let mut target = streams(server.address, "/");
    target.traffic = Traffic::Events(Events {
        format: EventFormat::Lines,
        pace: Some(ms(30)),
        stall: Some(ms(50)),
    });
    let reading = one(&job(IoKind::Epoll, target, 1, 1, Stop::Requests(1)));
    assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
    let found = lasting(&reading);
    assert_eq!((found.messages, found.lag.count()), (4, 4));
    assert_eq!(found.lag_base, Some(LagBase::Pace));
    // The third came with the second; gaps are of 60 ms.
    assert_eq!((found.merged, found.stalls), (1, 2));
}

#[test]
fn endless_lines_and_events_take_neither_memory_nor_time_beyond_the_window() {
    let line = vec![b'x'; 1 << 16];
    for (name, start, more) in [
        ("a line", "data: ", line.clone()),
        ("a name", "", line.clone()),
        ("an event", "", b"data: x\n".repeat(8_000)),
        ("comments", "", b":\n".repeat(30_000)),
        ("lines", "", b"\n".repeat(60_000)),
    ] {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        let start = format!("{head}{start}");
        let server = Server::start(move |peer| {
            if peer.answer(start.as_bytes()) {
                peer.flood(&more);
            }
        });
        let job = job(
            IoKind::Epoll,
            streams(server.address, "/"),
            1,
            1,
            Stop::After(ms(300)),
        );
        let reading = one(&job);
        let found = lasting(&reading);
        assert_eq!(
            (found.messages, reading.errors_all.total()),
            (0, 0),
            "{name}"
        );
        assert_eq!(ends(&reading), [("window", 1)], "{name}");
    }
}
