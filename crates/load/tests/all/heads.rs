//! Heads: endless, too large, or none at all.

use std::time::Duration;

use crate::support::Counted::{Good, Read, Status, Timeout};
use crate::support::{GOOD, hostile};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n";
const TOO_LARGE: &str = "a head of more than 64 KiB or 100 fields";
const NO_HEAD: &str = "not an HTTP/1.1 head";

#[test]
fn header_bombs_are_refused() {
    hostile("200,000 fields", &[Read], TOO_LARGE).does(|peer| {
        let fields = "X: y\r\n".repeat(200_000);
        let _ = peer.answer(&[HEAD, fields.as_bytes(), b"\r\n"].concat());
        peer.drain();
    });
    hostile("a field of 100 MB", &[Read], TOO_LARGE).does(|peer| {
        let megabyte = vec![b'y'; 1_000_000];
        if peer.answer(HEAD) && peer.send(b"X: ") {
            let _ = (0..100).all(|_| peer.send(&megabyte));
        }
        peer.drain();
    });
    hostile("a reason of 100 MB", &[Read], TOO_LARGE).does(|peer| {
        if peer.answer(b"HTTP/1.1 200 ") {
            peer.flood(&[b'y'; 65_536]);
        }
    });
}

#[test]
fn endless_heads_are_refused_or_time_out() {
    hostile("fields as fast as it goes", &[Read], TOO_LARGE).does(|peer| {
        if peer.answer(HEAD) {
            peer.flood(b"X: yyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n");
        }
    });
    hostile("single bytes as fast as it goes", &[Read], TOO_LARGE).does(|peer| {
        if peer.answer(HEAD) && peer.send(b"X: ") {
            peer.flood(b"y");
        }
    });
    hostile("folded lines", &[Read], TOO_LARGE).does(|peer| {
        if peer.answer(HEAD) && peer.send(b"X: y") {
            peer.flood(b"\r\n z");
        }
    });
    let late = "a complete answer within 100ms";
    hostile("a byte a millisecond", &[Timeout], late).does(|peer| {
        if peer.answer(HEAD) && peer.send(b"X: ") {
            peer.trickle(b"y", Duration::from_millis(1));
        }
    });
    hostile("a byte a second", &[Timeout], late).does(|peer| {
        if peer.request() {
            peer.trickle(GOOD, Duration::from_secs(1));
        }
    });
    hostile("silence", &[Timeout], late).does(|peer| peer.drain());
}

#[test]
fn interim_answers_are_read_and_their_storm_is_refused() {
    let few = [
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n",
        GOOD,
    ];
    hostile("two", &[Good], "").answers(few.concat());
    let storms: [&[u8]; 2] = [
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n",
    ];
    for storm in storms {
        hostile("storm", &[Read], "too many interim (1xx) answers").does(move |peer| {
            if peer.request() {
                peer.flood(storm);
            }
        });
    }
    let switching = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
    hostile("101", &[Status], "found status 101").answers(switching);
}

#[test]
fn what_is_no_head_is_told_at_once() {
    let nonsense: [(&str, &[u8]); 22] = [
        ("words", b"HELLO THERE\r\n\r\n"),
        ("letters as status", b"HTTP/1.1 abc OK\r\n\r\n"),
        ("two digits", b"HTTP/1.1 20 OK\r\n\r\n"),
        ("four digits", b"HTTP/1.1 2000 OK\r\n\r\n"),
        ("negative status", b"HTTP/1.1 -200 OK\r\n\r\n"),
        (
            "status 000",
            b"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n",
        ),
        ("version 9.9", b"HTTP/9.9 200 OK\r\n\r\n"),
        ("no status", b"HTTP/1.1\r\n\r\n"),
        ("shoutcast", b"ICY 200 OK\r\n\r\n"),
        ("ssh", b"SSH-2.0-OpenSSH_9.9\r\n"),
        ("a request", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("an empty line", b"\r\nHTTP/1.1 200 OK\r\n\r\n"),
        ("HTTP/0.9", b"<html><body>It works</body></html>"),
        ("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("HTTP/2 settings", b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x80"),
        ("TLS alert", b"\x15\x03\x01\x00\x02\x02\x50"),
        ("NUL", b"\0\0\0\0"),
        ("NUL in a field", b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n"),
        ("bare CR", b"HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n"),
        (
            "space before the colon",
            b"HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
        ),
        ("no colon", b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"),
        ("a fold first", b"HTTP/1.1 200 OK\r\n X: y\r\n\r\n"),
    ];
    for (name, bytes) in nonsense {
        // The connection stays open: it is the bytes that show it, and not an end.
        hostile(name, &[Read], NO_HEAD).answers(bytes);
    }
}

#[test]
fn odd_heads_that_the_standard_allows_are_read() {
    let odd: [(&str, &[u8]); 5] = [
        ("bare LF", b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
        (
            "folded lines",
            b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length:\r\n\t2\r\n\r\nok",
        ),
        ("no reason", b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"),
        (
            "bytes that are no text",
            b"HTTP/1.1 200 \xff\r\nX: \xfe\r\nContent-Length: 0\r\n\r\n",
        ),
        (
            "names in any case",
            b"HTTP/1.1 200 OK\r\ncOnTeNt-LeNgTh: 2\r\n\r\nok",
        ),
    ];
    for (name, bytes) in odd {
        let readings = hostile(name, &[Good], "").answers(bytes);
        assert!(readings.iter().all(|r| r.connects == 2), "{name}");
    }
}
