//! Lengths that lie, contradict each other or are none.

use crate::support::Counted::{Good, Read, Timeout};
use crate::support::{GOOD, hostile};

const BEHIND: &str = "bytes behind the answer that no request asked for";

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
