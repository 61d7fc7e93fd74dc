//! Odd messages, whose outcomes stand in `docs/src/reference/odd-messages.md`: the same over both
//! event loops, and the same over HTTP/1.1 and HTTP/2.
//!
//! With `WEIGH_FUZZ_S` set, every pair of rows is tried.

mod requests;
mod responses;
mod streams;

use net::http::{Progress, ResponseParser};

use crate::support::http::Peer;

/// Of pairs, every so manieth is tried.
fn step(quick: usize) -> usize {
    match std::env::var_os("WEIGH_FUZZ_S") {
        Some(_) => 1,
        None => quick,
    }
}

/// What a client has got.
#[derive(Debug, PartialEq)]
pub enum Got {
    Whole {
        status: u16,
        content: String,
    },
    /// The connection ended or broke before the answer was complete.
    Cut,
}

fn read_answer(peer: &mut Peer, is_head: bool) -> Got {
    let mut parser = ResponseParser::new(is_head);
    let mut content = Vec::new();
    loop {
        let Some(bytes) = peer.some() else {
            return Got::Cut;
        };
        let is_end = bytes.is_empty();
        let read = parser.feed(&bytes, |piece| content.extend_from_slice(piece));
        let is_whole = match read {
            Ok(Progress::Done { .. }) => true,
            Ok(Progress::More) => is_end && parser.end(),
            Err(error) => panic!("{error}: {}", bytes.escape_ascii()),
        };
        let status = parser.head().status;
        match (is_whole, is_end) {
            (true, _) => {
                let content = String::from_utf8_lossy(&content).into_owned();
                return Got::Whole { status, content };
            }
            (false, true) => return Got::Cut,
            (false, false) => {}
        }
    }
}

/// What must hold for any bytes holds for these, whatever becomes of them.
#[test]
fn odd_messages_mean_the_same_to_another_reader() {
    for (number, request) in testing::odd::requests::all(step(17)).iter().enumerate() {
        crate::proxy_checks::proxy_request(&request.bytes(number));
    }
    for response in testing::odd::responses::all(step(5), step(5)) {
        crate::proxy_checks::proxy_response(&response.bytes());
    }
}

/// What a load percent-encodes and what the balancer refuses is the same.
#[test]
fn every_path_that_a_load_asks_for_is_a_good_target() {
    for byte in 0..=255_u8 {
        for place in [&b"/"[..], b"/?"] {
            let path = [place, &[byte]].concat();
            let is_good = |path: &[u8]| {
                let head = [b"GET ", path, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
                balance::http::read_request(&head).is_ok()
            };
            let Ok(text) = std::str::from_utf8(&path) else {
                continue;
            };
            let encoded = testing::odd::encoded_path(text);
            // Fragments are never sent.
            assert!(byte == b'#' || is_good(encoded.as_bytes()), "{encoded}");
            assert!(
                byte == b'#' || is_good(&path) == (encoded == text),
                "{encoded}"
            );
        }
    }
    assert_eq!(testing::odd::encoded_path("/\u{e9}"), "/%C3%A9");
}

#[test]
fn no_difference_is_unexplained() {
    testing::odd::none_is_wrong(&testing::odd::unexplained());
}

#[test]
fn statuses_that_no_rfc_asks_for_are_listed() {
    testing::odd::none_is_wrong(&testing::odd::unlisted());
}

#[test]
fn the_page_says_what_these_tests_hold() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/src/reference/odd-messages.md"
    );
    let page = testing::odd::page();
    if std::env::var_os("WEIGH_WRITE_SHOWN").is_some() {
        return std::fs::write(path, page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "WEIGH_WRITE_SHOWN=1 cargo test -p weigh-balance --test all odd writes the page anew"
    );
}
