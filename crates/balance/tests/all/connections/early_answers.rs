//! Back ends that answer before they have read the request, and close: 401, 403, 404, 413. The
//! client gets the answer, although sending the rest fails.

use std::io::Write;

use balance::Balancer;
use net::IoKind;
use net::h2::{ErrorCode, frame};
use testing::http2::back_end::{BackEnd as BackEnd2, Link};
use testing::http2::client::{Client, with};

use crate::http2::back_ends::two;
use crate::http2::clients::both;
use crate::support::http::{BackEnd, Peer, balancer, balancer_with};
use crate::support::{LONG, on_both};

/// How many bytes a client sends, and how many clients do. Whether the failure or the answer is
/// noticed first depends on timing.
const CASES: [(usize, usize); 4] = [
    (300_000, 40),
    (1_000_000, 30),
    (3_000_000, 20),
    (20_000_000, 4),
];
const TEXT: &str = "that is too much";

fn answer() -> String {
    let length = TEXT.len();
    format!("HTTP/1.1 413 Content Too Large\r\nContent-Length: {length}\r\n\r\n{TEXT}")
}

fn post(bytes: usize) -> Vec<u8> {
    let head = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {bytes}\r\n\r\n"
    );
    [head.as_bytes(), &vec![b'x'; bytes]].concat()
}

/// One that answers behind the head of a request and closes, with the body unread.
fn hasty() -> BackEnd {
    BackEnd::new(|peer, _, _| {
        if peer.head().is_some() {
            peer.say(answer());
        }
    })
}

fn failures(balancer: &Balancer) -> u64 {
    let shared = balancer.shared();
    shared.services[0].backends[0].response_failures.get()
}

/// Each client sends all it has before it reads.
fn expect_answers(io: IoKind, balancer: &Balancer) {
    for (bytes, clients) in CASES {
        let request = post(bytes);
        for number in 0..clients {
            let mut client = Peer::connect(balancer.address());
            client.stream.set_write_timeout(Some(LONG)).unwrap();
            let sent = client.stream.write_all(&request);
            let answer = client.answer();
            let status = answer.as_ref().map(|one| one.status());
            assert_eq!(status, Some(413), "{io}, {bytes} bytes, client {number}");
            assert_eq!(answer.unwrap().text(), TEXT);
            assert!(sent.is_ok(), "{io}, {bytes} bytes: {sent:?}");
            let (rest, is_orderly) = client.rest();
            assert!(rest.is_empty() && is_orderly, "{io}, {bytes} bytes");
        }
    }
    assert_eq!(failures(balancer), 0, "{io}: the back end did not fail");
}

#[test]
fn an_answer_of_http_1_before_the_end_of_the_request_reaches_the_client() {
    let back = hasty();
    on_both(|io| expect_answers(io, &balancer(io, &[back.address])));
}

/// Many back ends refuse a request with its body unread, and close without saying so.
#[test]
fn a_connection_on_which_a_body_was_refused_is_not_used_again() {
    on_both(|io| {
        let refusing = BackEnd::saying(answer());
        let balancer = balancer(io, &[refusing.address]);
        let mut client = Peer::connect(balancer.address());
        let mut connections = |request: &str| {
            let before = refusing.connections();
            assert_eq!(client.ask(request).status(), 413);
            refusing.connections() - before
        };
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
        let empty = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
        let opened = [empty, empty, post, post, empty, empty].map(&mut connections);
        assert_eq!(opened, [1, 0, 0, 1, 1, 0], "{io}");
    });
}

/// What a back end of HTTP/2 does behind its answer.
fn hasty_2(then: impl Fn(&mut Link, u32) + Send + Sync + 'static) -> BackEnd2 {
    BackEnd2::new(&[], move |link, _| {
        while let Some((stream, _)) = link.request() {
            let length = TEXT.len().to_string();
            let fields = [(":status", "413"), ("content-length", &length)];
            link.head(stream, &fields, false);
            link.data(stream, TEXT.as_bytes(), true);
            then(link, stream);
            if !link.out.is_empty() {
                return link.flush();
            }
        }
    })
}

#[test]
fn an_answer_of_http_2_before_the_end_of_the_request_reaches_the_client() {
    let resets = hasty_2(|link, stream| {
        frame::reset(&mut link.out, stream, ErrorCode::NoError);
        link.flush();
    });
    // It closes with the content unread.
    let leaves = hasty_2(|link, stream| {
        frame::go_away(&mut link.out, stream, ErrorCode::NoError);
    });
    on_both(|io| {
        for back in [&resets, &leaves] {
            expect_answers(io, &balancer_with(io, &[back.address], two));
        }
    });
}

#[test]
fn a_client_of_http_2_gets_the_answer_and_is_told_to_send_no_more() {
    let back = hasty();
    let leaves = hasty_2(|link, stream| {
        frame::go_away(&mut link.out, stream, ErrorCode::NoError);
    });
    on_both(|io| {
        for (back, http_2) in [(back.address, false), (leaves.address, true)] {
            let balancer = balancer_with(io, &[back], |service| match http_2 {
                true => two(service),
                false => both(service),
            });
            let mut client = Client::connect(balancer.address());
            for number in 0..60 {
                let stream = 1 + 2 * number;
                client.head(stream, &with(&[(":method", "POST")]), false);
                for _ in 0..3 {
                    client.data(stream, &[b'x'; 16_000], false);
                }
                let got = client.response(stream);
                assert_eq!(got.value(":status"), "413", "{io}: {got:?}");
                assert_eq!(got.body, TEXT.as_bytes());
                assert!(got.is_complete, "{io}: {got:?}");
                client.until(|one| one.responses[&stream].reset.is_some());
                let reset = client.responses[&stream].reset;
                assert_eq!(reset, Some(ErrorCode::NoError), "{io}");
            }
            assert_eq!(failures(&balancer), 0, "{io}");
        }
    });
}

/// The head is passed on, and the client sees that the rest is missing.
#[test]
fn as_much_of_an_early_answer_as_came_is_passed_on() {
    let cut = BackEnd::new(|peer, _, _| {
        if peer.head().is_some() {
            peer.say("HTTP/1.1 413 Content Too Large\r\nContent-Length: 100\r\n\r\nthat");
        }
    });
    // In one send: the head, some content, and a reset instead of the rest.
    let cut_2 = BackEnd2::new(&[], |link, _| {
        while let Some((stream, _)) = link.request() {
            let fields = [(":status", "413"), ("content-length", "100")];
            link.head(stream, &fields, false);
            link.data(stream, b"that", false);
            frame::reset(&mut link.out, stream, ErrorCode::NoError);
        }
    });
    on_both(|io| {
        for (back, http_2) in [(cut.address, false), (cut_2.address, true)] {
            let balancer = balancer_with(io, &[back], |service| {
                if http_2 {
                    two(service);
                }
            });
            for number in 0..5 {
                let mut client = Peer::connect(balancer.address());
                // More than all buffers on the way hold, so that the rest is known to be unsent.
                let sent = client.stream.write_all(&post(20_000_000));
                let (got, is_orderly) = client.rest();
                let text = String::from_utf8_lossy(&got);
                assert!(text.starts_with("HTTP/1.1 413 "), "{io} {number}: {text}");
                assert!(text.ends_with("\r\n\r\nthat"), "{io} {number}: {text}");
                // A failed write takes the reset from the socket.
                assert!(sent.is_err() || !is_orderly, "{io}: it is cut");
            }
            assert_eq!(
                failures(&balancer),
                0,
                "{io}, HTTP/2 {http_2}: the back end has answered"
            );
        }
    });
}
