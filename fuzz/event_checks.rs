//! What must hold of the parser of server-sent events for any bytes at all.

use net::http::{DATA_KEPT, SseParser};

use super::{Cuts, same_in_any_pieces};

/// Type, start of the data, and bytes of the data.
type Event = (Vec<u8>, Vec<u8>, u64);

/// Bytes of a type that the parser keeps.
const KIND_KEPT: usize = 32;

/// The bytes are a stream: it has the same events however it is cut, and those that the HTML standard
/// finds in it as a whole.
pub fn events(data: &[u8], cuts: Cuts) {
    let seen = same_in_any_pieces(data, cuts, read);
    assert_eq!(seen, as_a_whole(data));
}

fn read(pieces: &[&[u8]]) -> Vec<Event> {
    let mut parser = SseParser::new();
    let mut events = Vec::new();
    for piece in pieces {
        parser.feed(piece, |event| {
            events.push((event.kind.to_vec(), event.data.to_vec(), event.bytes));
        });
    }
    events
}

/// The events of a stream by the words of the standard (9.2.6), without any regard to memory.
fn as_a_whole(data: &[u8]) -> Vec<Event> {
    let mut rest = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    let (mut events, mut kind, mut text) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        let line = &rest[..end];
        rest = match rest[end..].starts_with(b"\r\n") {
            true => &rest[end + 2..],
            false => &rest[end + 1..],
        };
        if line.is_empty() {
            if text.pop().is_some() {
                let bytes = text.len() as u64;
                text.truncate(DATA_KEPT);
                kind.truncate(KIND_KEPT);
                events.push((kind.clone(), text.clone(), bytes));
            }
            (kind, text) = (Vec::new(), Vec::new());
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = match colon {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => text.extend(value.iter().chain(b"\n")),
            b"event" => kind = value.to_vec(),
            _ => {}
        }
    }
    events
}
