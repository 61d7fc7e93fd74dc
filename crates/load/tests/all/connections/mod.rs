//! Connections that speak first, break off, stand still or are not taken.

mod early_answers;
mod idle;
mod users;

use std::net::SocketAddr;
use std::time::Duration;

use load::Stop;
use readings::Pacing;

use crate::support::Counted::{Connect, Good, Read, Timeout, Write};
use crate::support::{
    BOTH, Counted, GOOD, Peer, Server, beside, carry_out, count, get, hostile, judge, origin,
};

/// A connection that broke: when it is told depends on what the load was doing.
const BROKEN: &[Counted] = &[Connect, Read, Write];

#[test]
fn half_answers_are_errors() {
    let none = "the connection closed before an answer";
    hostile("at accept", BROKEN, "").does(|_| {});
    hostile("after the request", &[Read], none).answers_and_closes("");
    for (name, text) in [
        ("in the status line", "HTTP/1.1 20"),
        ("in the head", "HTTP/1.1 200 OK\r\nContent-Le"),
        ("behind an interim answer", "HTTP/1.1 100 Continue\r\n\r\n"),
        (
            "behind the head",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
        ),
        (
            "in the body",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        ),
        (
            "in a chunk size",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1",
        ),
        (
            "in a chunk",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
        ),
        (
            "between chunks",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ),
        (
            "before the last line",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
        ),
    ] {
        let short = format!("the connection closed after {} bytes of an", text.len());
        hostile(name, &[Read], &short).answers_and_closes(text);
    }
}

#[test]
fn resets_are_errors_wherever_they_come() {
    hostile("at accept", BROKEN, "").does(|peer| peer.reset());
    for (name, text) in [
        ("after the request", ""),
        ("in the head", "HTTP/1.1 200 OK\r\nContent-Le"),
        (
            "in the body",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        ),
        ("in a body without length", "HTTP/1.1 200 OK\r\n\r\nabc"),
        (
            "in a chunk",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
        ),
    ] {
        hostile(name, &[Read], "onnection reset").does(move |peer| {
            let _ = peer.answer(text.as_bytes());
            peer.reset();
        });
    }
}

#[test]
fn a_connection_that_ends_while_idle_is_opened_anew() {
    type End = fn(&mut Peer);
    let ends: [(&str, End); 3] = [
        ("close", |_| {}),
        ("reset", |peer| peer.reset()),
        ("bytes that nobody asked for", |peer| {
            // Where it comes late it answers the next request, and the one after is ahead of it.
            while peer.pause(Duration::from_millis(1)) && peer.send(GOOD) && peer.answer(GOOD) {}
        }),
    ];
    for (name, end) in ends {
        let server = Server::start(move |peer| {
            if peer.answer(GOOD) {
                end(peer);
            }
        });
        let good = origin();
        for io in BOTH {
            let stop = Stop::After(Duration::from_millis(500));
            let mut job = beside(io, get(server.address), 2, stop, good.address());
            job.segments[1].pacing = Pacing::Open { rate_per_s: 40.0 };
            let reading = carry_out(name, &job);
            // An end that comes late meets the next request, and breaks it off.
            judge(name, &reading, 20, &[Good, Read, Write], "");
            assert!(reading.requests_all > 0, "{name}: {:?}", reading.wrong);
            assert!(reading.connects > 2, "{name}: {}", reading.connects);
        }
    }
}

#[test]
fn an_answer_before_its_request() {
    hostile("nonsense at accept", &[Read], "not an HTTP/1.1 head").does(|peer| {
        let _ = peer.send(b"220 ready\r\n");
        peer.drain();
    });
    // Once its request is on its way, an answer that came too early cannot be told from its own;
    // two at once can.
    hostile("one answer ahead", &[Good, Read], "no request asked for").does(|peer| {
        if peer.send(GOOD) {
            while peer.answer(GOOD) {}
        }
    });
    hostile("and no more", &[Good, Read, Write], "").does(|peer| {
        let _ = peer.send(GOOD);
    });
}

#[test]
fn a_second_answer_that_comes_later_harms_only_its_connection() {
    hostile("two answers", &[Good, Read], "").does(|peer| {
        while peer.answer(GOOD) {
            if !peer.pause(Duration::from_millis(1)) || !peer.send(GOOD) {
                return;
            }
        }
    });
}

#[test]
fn a_sending_side_that_ends() {
    hostile("before the answer", &[Read], "closed before an answer").does(|peer| {
        if peer.request() {
            peer.half_close();
            peer.drain();
        }
    });
    hostile("at accept", &[Read], "closed before an answer").does(|peer| {
        peer.half_close();
        peer.drain();
    });
    let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let readings = hostile("as announced", &[Good], "").does(|peer| {
        if peer.answer(closing) {
            peer.half_close();
            peer.drain();
        }
    });
    assert!(readings.iter().all(|reading| reading.connects == 4));
    hostile("unannounced", &[Good, Read, Write], "").does(|peer| {
        if peer.answer(GOOD) {
            peer.half_close();
            peer.drain();
        }
    });
}

/// A request with a body of 64 MB.
fn large() -> Vec<u8> {
    let length = 64_000_000;
    let mut request =
        format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    request.resize(request.len() + length, b'x');
    request
}

#[test]
fn a_server_that_does_not_read_the_request() {
    let late = "a complete answer within 100ms";
    let never = hostile("never", &[Timeout], late).asked(large());
    never.does(|peer| peer.hold());
    let slowly = hostile("slowly", &[Timeout], late).asked(large());
    slowly.does(|peer| peer.sip(65_536, Duration::from_millis(20)));
}

#[test]
fn an_answer_to_half_a_request_is_read_and_ends_the_connection() {
    let case = hostile("early answer", &[Good], "").asked(large());
    let readings = case.does(|peer| {
        if peer.answer(GOOD) {
            peer.hold();
        }
    });
    for reading in readings {
        assert_eq!(reading.connects, 4);
    }
    let case = hostile("early answer and reset", &[Good, Read, Write], "").asked(large());
    case.does(|peer| {
        let _ = peer.answer(GOOD);
    });
}

#[test]
fn a_large_request_keeps_its_connection() {
    let good = origin();
    let length = 1_000_000;
    let mut request =
        format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    request.resize(request.len() + length, b'x');
    for io in BOTH {
        let mut target = get(good.address());
        target.requests[0].bytes = request.clone();
        let job = beside(io, target, 4, Stop::Requests(200), good.address());
        let reading = carry_out("large requests", &job);
        judge(
            &format!("large requests on {io}"),
            &reading,
            200,
            &[Good],
            "",
        );
        assert_eq!(reading.connects, 4, "on {io}");
    }
}

#[test]
fn a_server_that_accepts_no_connection() {
    // A backlog of one takes two connections; nobody answers them, and the others are not opened.
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let listener = net::os::listen(any, 1, false).unwrap();
    let address = listener.local_addr().unwrap();
    let good = origin();
    for io in BOTH {
        let name = format!("a full backlog on {io}");
        let mut job = beside(io, get(address), 8, Stop::Requests(8), good.address());
        job.connect_timeout = Duration::from_millis(100);
        job.timeout = Duration::from_millis(100);
        let reading = carry_out(&name, &job);
        judge(&name, &reading, 8, &[Timeout], "within 100ms");
        assert!(reading.connects < 8, "{} connects", reading.connects);
    }
}

#[test]
fn a_server_that_stops_listening_in_the_midst() {
    let good = origin();
    for io in BOTH {
        let server = Server::with_connections(4, |peer| {
            for _ in 0..10 {
                if !peer.answer(GOOD) {
                    return;
                }
            }
        });
        let stop = Stop::After(Duration::from_millis(400));
        let job = beside(io, get(server.address), 4, stop, good.address());
        let name = format!("no more listening on {io}");
        let reading = carry_out(&name, &job);
        let all = reading.requests_all + reading.errors_all.total();
        assert_eq!(reading.requests_all, 40, "{name}: {:?}", reading.wrong);
        assert!(reading.errors_all.connect > 0, "{name}");
        let ways = [Good, Connect, Read, Write];
        assert_eq!(count(&reading, &ways), all, "{:?}", reading.errors_all);
    }
}
