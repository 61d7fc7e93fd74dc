//! The corpora of the fuzz targets hold without a fuzzer too, and so do inputs that are made of
//! their pieces.

use std::path::PathBuf;

use proptest::prelude::*;
use proptest::sample::select;

use crate::proxy_checks::{CHECKS, proxy_request, proxy_response};
use crate::replay;

/// The files of a check's corpus, and of the codec's corpus of the same kind.
fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folders = [name, name.trim_start_matches("proxy_")];
    let folders = folders.map(|folder| format!("fuzz/corpus/{folder}"));
    replay::files(&folders.each_ref().map(String::as_str))
}

#[test]
fn every_file_of_the_corpora_is_refused_or_passed_on_unambiguously() {
    for (name, check) in CHECKS {
        for (path, data) in corpus(name) {
            // Shown only when the check fails.
            println!("{}", path.display());
            check(&data);
        }
    }
}

/// Bytes that mean something in a head or in chunks, divided by `~`.
const WORDS: &str = "\r\n~\n~\r~\r\n\r\n~\0~ ~\t~:~;~,~_~0\r\n\r\n~1\r\na\r\n~HTTP/1.1~HTTP/1.0~\
    HTTP/1.1 200 OK\r\n~HTTP/1.1 101 X\r\n~HTTP/1.1 204 X\r\n~GET / HTTP/1.1\r\n~POST ~\
    OPTIONS * ~http://h~?q~Host: x\r\n~Host: y:1\r\n~Content-Length: 1\r\n~\
    Content-Length: 05\r\n~Transfer-Encoding: chunked\r\n~Transfer-Encoding: Chunked\r\n~\
    Connection: close\r\n~Connection: keep-alive\r\n~Connection: upgrade, TE\r\n~\
    Connection: x-added\r\n~Upgrade: websocket\r\n~TE: trailers\r\n~\
    Expect: 100-continue\r\n~Keep-Alive: 5\r\n~X-Forwarded-For: a\r\n~X-Added:\r\n~ folded\r\n";

/// What is done to the bytes at a place, in thousandths of their length.
#[derive(Clone, Debug)]
enum Change {
    Put(usize, &'static str),
    Byte(usize, u8),
    Cut(usize, usize),
    Again(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let place = || 0..1000usize;
    let words: Vec<&str> = WORDS.split('~').collect();
    prop_oneof![
        3 => (place(), select(words)).prop_map(|(at, word)| Change::Put(at, word)),
        1 => (place(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        1 => (place(), 1..20usize).prop_map(|(at, len)| Change::Cut(at, len)),
        1 => (place(), 1..40usize).prop_map(|(at, len)| Change::Again(at, len)),
    ]
}

fn changed(mut data: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    data.truncate(4096);
    // Between lines is where it matters most.
    let at_line = |data: &[u8], at: usize| {
        let at = data.len() * at / 1000;
        let line = data[..at].iter().rposition(|byte| *byte == b'\n');
        line.filter(|_| at.is_multiple_of(3))
            .map_or(at, |line| line + 1)
    };
    for change in changes {
        match *change {
            Change::Put(at, word) => {
                let at = at_line(&data, at);
                data.splice(at..at, word.bytes());
            }
            Change::Byte(at, byte) => {
                let at = data.len() * at / 1000;
                if let Some(place) = data.get_mut(at) {
                    *place = byte;
                }
            }
            Change::Cut(at, len) => {
                let at = data.len() * at / 1000;
                let end = (at + len).min(data.len());
                data.drain(at..end);
            }
            Change::Again(at, len) => {
                let at = at_line(&data, at);
                let copy = data[at..(at + len).min(data.len())].to_vec();
                data.splice(at..at, copy);
            }
        }
    }
    data
}

fn inputs(name: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let files: Vec<Vec<u8>> = corpus(name).into_iter().map(|(_, data)| data).collect();
    let from = select(files);
    (from, proptest::collection::vec(change(), 1..6))
        .prop_map(|(data, changes)| changed(data, &changes))
}

proptest! {
    #[test]
    fn changed_requests_are_refused_or_passed_on_unambiguously(data in inputs("proxy_request")) {
        proxy_request(&data);
    }

    #[test]
    fn changed_answers_are_refused_or_passed_on_unambiguously(data in inputs("proxy_response")) {
        proxy_response(&data);
    }

    #[test]
    fn any_bytes_are_borne(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        proxy_request(&data);
        proxy_response(&data);
    }
}
