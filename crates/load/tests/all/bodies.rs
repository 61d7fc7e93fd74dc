//! Chunks and trailers.

use std::time::Duration;

use crate::support::Counted::{Good, Read, Timeout};
use crate::support::{Hostile, hostile};

const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const MALFORMED: &str = "a malformed chunk";

fn chunks(text: &str) -> Vec<u8> {
    format!("{HEAD}{text}").into_bytes()
}

fn floods(case: Hostile, start: &str, again: &'static [u8]) {
    let start = chunks(start);
    case.does(move |peer| {
        if peer.answer(&start) {
            peer.flood(again);
        }
    });
}

#[test]
fn sizes_that_overflow_or_are_none_are_refused() {
    for size in [
        "ffffffffffffffffff",
        "fffffffffffffffff",
        "00000000000000005",
        "10000000000000000",
        "-5",
        "+5",
        "0x5",
        "",
        "g",
        "5 5",
        "5,5",
    ] {
        let text = chunks(&format!("{size}\r\nhello\r\n0\r\n\r\n"));
        hostile(size, &[Read], MALFORMED).answers(text);
    }
    let most = chunks("ffffffffffffffff\r\nhello");
    hostile("2^64 - 1", &[Read], "closed after").answers_and_closes(most);
}

#[test]
fn extensions_are_bounded() {
    let long = chunks(&format!(
        "5;{}\r\nhello\r\n0\r\n\r\n",
        "x".repeat(1_000_000)
    ));
    hostile("1 MB", &[Read], MALFORMED).answers(long);
    floods(hostile("endless", &[Read], MALFORMED), "5;", b"xxxxxxxx");
    floods(hostile("blanks", &[Read], MALFORMED), "5", b"        ");
    floods(hostile("zeros", &[Read], MALFORMED), "", b"00000000");
    let short = chunks("5;name=\"value\"\r\nhello\r\n0;last\r\n\r\n");
    hostile("short", &[Good], "").answers(short);
}

#[test]
fn trailers_are_bounded() {
    let large = "trailers of more than 16 KiB";
    floods(hostile("lines", &[Read], large), "0\r\n", b"X: y\r\n");
    floods(hostile("one line", &[Read], large), "0\r\n", b"xxxxxxxx");
    let few = chunks("5\r\nhello\r\n0\r\nDigest: x\r\nX: y\r\n\r\n");
    hostile("two", &[Good], "").answers(few);
}

#[test]
fn malformed_chunks_are_refused() {
    for text in [
        "5\nhello\n0\n\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhello there\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello\rx0\r\n\r\n",
        "5;a\nhello\r\n0\r\n\r\n",
        "5;\0\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\n\n",
        "5\r\nhello\r\n0\r\nX: y\n\r\n",
        "5\r\nhello\r\n0\r\nX: y\rZ: a\r\n\r\n",
        "\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        hostile(text, &[Read], MALFORMED).answers(chunks(text));
    }
}

#[test]
fn endless_chunks_time_out() {
    let late = "a complete answer within 100ms";
    floods(hostile("of a byte", &[Timeout], late), "", b"1\r\nx\r\n");
    floods(
        hostile("with extensions", &[Timeout], late),
        "",
        b"1;xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\nx\r\n",
    );
    hostile("slowly", &[Timeout], late).does(|peer| {
        if peer.answer(HEAD.as_bytes()) {
            peer.trickle(b"1\r\nx\r\n", Duration::from_millis(1));
        }
    });
    hostile("an end that does not come", &[Timeout], late).does(|peer| {
        let _ = peer.answer(&chunks("5\r\nhello\r\n0\r\n"));
        peer.drain();
    });
}
