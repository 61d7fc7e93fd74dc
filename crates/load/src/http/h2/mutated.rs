//! Answers of odd servers, mutated: a session reads them alike in whatever pieces they come, and takes
//! none for good that RFC 9113 calls malformed. For `WEIGH_SIMULATED_S` seconds.

use net::h2::{Event, FrameReader, frame, hpack};
use net::simulated::try_random;
use proptest::collection::vec;
use proptest::prelude::*;
use testing::odd::streams::all;

use super::{EncodedRequest, Session};
use crate::http::session::Answer;

const CASES: u32 = 3_000;

/// A change of a byte or of a stretch, at a place modulo the length.
#[derive(Clone, Copy, Debug)]
enum Change {
    Byte { at: u16, byte: u8 },
    Bit { at: u16, bit: u8 },
    Without { at: u16, bytes: u8 },
    Twice { at: u16, bytes: u8 },
    Insert { at: u16, what: &'static [u8] },
    End { at: u16 },
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<u16>;
    let byte = prop_oneof![
        any::<u8>(),
        prop::sample::select(b"\0\r\n\t :AZ\x7f\x80".to_vec())
    ];
    let what = prop::sample::select(vec![
        &b"\r\n"[..],
        b"\0\x03x-a\x01\n",
        b"\0\x02X-\x01a",
        b"\0\x07upgrade\x01a",
        b"\x88",
        b"\0\x02:a\x01b",
    ]);
    prop_oneof![
        4 => (at(), byte).prop_map(|(at, byte)| Change::Byte { at, byte }),
        2 => (at(), 0..8_u8).prop_map(|(at, bit)| Change::Bit { at, bit }),
        1 => (at(), 1..12_u8).prop_map(|(at, bytes)| Change::Without { at, bytes }),
        1 => (at(), 1..12_u8).prop_map(|(at, bytes)| Change::Twice { at, bytes }),
        2 => (at(), what).prop_map(|(at, what)| Change::Insert { at, what }),
        1 => at().prop_map(|at| Change::End { at }),
    ]
}

/// Changes a payload, most often within its first bytes, where the head is.
fn changed(mut bytes: Vec<u8>, change: Change) -> Vec<u8> {
    let place = |at: u16, len: usize| usize::from(at) % (len.min(120) + 1);
    let len = bytes.len();
    let stretch = |at: u16, count: u8| {
        let from = place(at, len);
        from..(from + usize::from(count)).min(len)
    };
    match change {
        Change::Byte { at, byte } => {
            if let Some(one) = bytes.get_mut(place(at, len)) {
                *one = byte;
            }
        }
        Change::Bit { at, bit } => {
            if let Some(one) = bytes.get_mut(place(at, len)) {
                *one ^= 1 << bit;
            }
        }
        Change::Without { at, bytes: count } => drop(bytes.drain(stretch(at, count))),
        Change::Twice { at, bytes: count } => {
            let range = stretch(at, count);
            let twice = bytes[range.clone()].to_vec();
            bytes.splice(range.start..range.start, twice);
        }
        Change::Insert { at, what } => {
            let at = place(at, len);
            bytes.splice(at..at, what.iter().copied());
        }
        Change::End { at } => bytes.truncate(place(at, len)),
    }
    bytes
}

/// What a session says of the answer to one request, in words; content joined.
fn read(pieces: &[&[u8]]) -> Vec<String> {
    let mut session = Session::new(1);
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let request = EncodedRequest::of(request, "http").unwrap();
    assert!(session.request(0, &request));
    let (mut seen, mut content) = (Vec::new(), Vec::new());
    let mut told = |answer: Answer<'_>| {
        let one = match answer {
            Answer::Body { bytes, .. } => return content.extend_from_slice(bytes),
            Answer::Head { status, bytes, .. } => format!("head {status}, {bytes} bytes"),
            Answer::Trailers { .. } => "trailers".to_owned(),
            Answer::End { .. } => "end".to_owned(),
            Answer::Malformed { what, .. } => format!("malformed: {what}"),
            Answer::Reset { code, .. } => format!("reset: {code}"),
            Answer::NotProcessed { .. } => "not processed".to_owned(),
        };
        seen.push(one);
    };
    let mut failed = None;
    for piece in pieces {
        failed = failed.or(session.feed(piece, &mut told).err());
    }
    let held = session.out.len();
    let all: usize = pieces.iter().map(|piece| piece.len()).sum();
    assert!(held <= 1_000 + 20 * all, "{held} bytes to send");
    // How much of a malformed answer's content was handed on depends on where the pieces end.
    if seen.iter().any(|one| one == "end") {
        seen.push(format!("{} bytes of content", content.len()));
    }
    seen.push(format!("{failed:?}"));
    seen
}

/// Whether a name and a value may stand in an answer: RFC 9113, 8.2 and 8.3, read anew.
fn may_stand(name: &[u8], value: &[u8], is_head: bool) -> bool {
    let is_name = |byte: &u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(byte)
    };
    let of_connections = [
        &b"connection"[..],
        b"proxy-connection",
        b"keep-alive",
        b"transfer-encoding",
        b"upgrade",
    ];
    let is_plain = !name.is_empty() && name.iter().all(is_name) && !of_connections.contains(&name);
    let is_status = is_head && name == b":status";
    (is_plain || is_status) && !value.iter().any(|byte| b"\0\r\n".contains(byte))
}

/// What is malformed in the field sections of stream 1, up to its end.
fn malformed(bytes: &[u8]) -> Vec<String> {
    let mut decoder = hpack::Decoder::new(0, 65_536);
    let (mut found, mut has_head, mut is_over) = (Vec::new(), false, false);
    // An error ends the connection, behind whatever came before it.
    let _ = FrameReader::new(16_384, 65_536).feed(bytes, |event| {
        let (section, ends) = match event {
            Event::Headers {
                stream: 1,
                end_stream,
                block,
            } if !is_over => {
                let (mut statuses, mut section) = (Vec::new(), Vec::new());
                decoder.decode(block, |name, value| {
                    if name == b":status" {
                        statuses.push(value.to_vec());
                    }
                    if !may_stand(name, value, !has_head) {
                        section.push(format!("{}", name.escape_ascii()));
                    }
                    Ok(())
                })?;
                if !has_head && statuses.len() != 1 {
                    section.push(format!("{} statuses", statuses.len()));
                }
                has_head |= statuses.first().is_some_and(|one| !one.starts_with(b"1"));
                (section, end_stream)
            }
            Event::Data {
                stream: 1,
                end_stream,
                ..
            } if !has_head && !is_over => (vec!["content first".to_owned()], end_stream),
            Event::Data {
                stream: 1,
                end_stream,
                ..
            } => (Vec::new(), end_stream),
            _ => (Vec::new(), false),
        };
        found.extend(section);
        is_over |= ends;
        Ok(())
    });
    found
}

fn go_through(bytes: &[u8], cuts: &[u16]) -> Vec<String> {
    let whole = read(&[bytes]);
    let mut rest = bytes;
    let mut pieces = Vec::new();
    for cut in cuts {
        let (piece, after) = rest.split_at(usize::from(*cut).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    let mut found = Vec::new();
    let split = read(&pieces);
    if split != whole {
        found.push(format!("{whole:?}, and in pieces {split:?}"));
    }
    let what = malformed(bytes);
    if whole.iter().any(|one| one == "end") && !what.is_empty() {
        found.push(format!("taken for good: {what:?}"));
    }
    found
}

#[test]
fn mutated_answers_are_read_alike_in_pieces_and_good_only_without_a_fault() {
    let odd = all(7, 1);
    let changes = vec(change(), 0..4);
    let inputs = (0..odd.len(), changes, vec(0..40_u16, 0..6));
    try_random(CASES, file!(), &inputs, |(at, changes, cuts)| {
        let answer = changes.into_iter().fold(odd[at].bytes(1), changed);
        let mut bytes = Vec::new();
        frame::settings(&mut bytes, &[]);
        bytes.extend(answer);
        go_through(&bytes, &cuts)
    });
}
