//! Chunks and trailers; lengths that lie, contradict each other or are none.

use std::time::Duration;

use crate::support::Counted::{Good, Read, Timeout};
use crate::support::{GOOD, Hostile, hostile};

const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const MALFORMED: &str = "a malformed chunk";
const BEHIND: &str = "bytes behind the answer that no request asked for";

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

fn answer(fields: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}").into_bytes()
}

#[test]
fn a_length_that_is_too_large_is_a_short_answer() {
    let text = answer("Content-Length: 100\r\n", "short");
    let bytes = text.len();
    let short = format!("the connection closed after {bytes} bytes of an answer");
    hostile("and the end", &[Read], &short).answers_and_closes(text.clone());
    let late = "a complete answer within 100ms";
    hostile("and silence", &[Timeout], late).does(move |peer| {
        let _ = peer.answer(&text);
        peer.drain();
    });
    for length in ["9223372036854775807", "4294967296"] {
        let text = answer(&format!("Content-Length: {length}\r\n"), "x");
        hostile(length, &[Read], "closed after").answers_and_closes(text);
    }
}

#[test]
fn bytes_behind_an_answer_are_an_error() {
    let short = answer("Content-Length: 2\r\n", "longer than two");
    hostile("a length that is too small", &[Read], BEHIND).answers(short);
    for status in ["204 No Content", "304 Not Modified"] {
        let text = format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\nhello");
        hostile(status, &[Read], BEHIND).answers(text);
        let empty = format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\n");
        hostile(status, &[Good], "").answers(empty);
    }
    let head = || b"HEAD / HTTP/1.1\r\nHost: test\r\n\r\n".to_vec();
    hostile("a body for HEAD", &[Read], BEHIND)
        .asked(head())
        .answers(GOOD);
    hostile("no body for HEAD", &[Good], "")
        .asked(head())
        .answers(answer("Content-Length: 5\r\n", ""));
    hostile("two answers", &[Read], BEHIND).answers([GOOD, GOOD].concat());
}

#[test]
fn lengths_that_are_no_number_or_two_are_refused() {
    let refused = "contradicting or malformed Content-Length";
    for value in [
        "-1",
        "+5",
        "",
        "abc",
        "5 5",
        "5, 5",
        "0x5",
        "5.0",
        "9223372036854775808",
        "18446744073709551616",
        "18446744073709551621",
        "100000000000000000000000000000000000000000000000005",
        "1\r\n 2",
    ] {
        let text = answer(&format!("Content-Length: {value}\r\n"), "hello");
        hostile(value, &[Read], refused).answers(text);
    }
    let two = "Content-Length: 5\r\nContent-Length: 6\r\n";
    hostile("two lengths", &[Read], refused).answers(answer(two, "hello!"));
    let same = "Content-Length: 5\r\nContent-Length: 5\r\n";
    hostile("one length twice", &[Good], "").answers(answer(same, "hello"));
}

#[test]
fn forms_of_smuggling_are_refused_or_end_the_connection() {
    let chunks = "5\r\nhello\r\n0\r\n\r\n";
    for fields in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 15\r\n",
    ] {
        let refused = "contradicting or malformed Content-Length";
        hostile(fields, &[Read], refused).answers(answer(fields, chunks));
    }
    for coding in ["gzip, chunked", "chunked, chunked", "identity", "xchunked"] {
        let fields = format!("Transfer-Encoding: {coding}\r\n");
        let refused = "a Transfer-Encoding other than chunked";
        hostile(coding, &[Read], refused).answers(answer(&fields, chunks));
    }
    let twice = "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n";
    hostile("twice", &[Read], "Transfer-Encoding").answers(answer(twice, chunks));
    let spaced = answer("Transfer-Encoding : chunked\r\n", chunks);
    hostile("a spaced name", &[Read], "not an HTTP/1.1 head").answers(spaced);
    let old = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n";
    let readings = hostile("chunks of HTTP/1.0", &[Good], "").answers(format!("{old}{chunks}"));
    assert!(readings.iter().all(|reading| reading.connects == 4));
}
