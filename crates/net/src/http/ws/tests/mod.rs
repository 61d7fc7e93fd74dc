//! What RFC 6455 and RFC 7692 demand, and what hostile peers send.

mod deflate;
mod handshake;
mod hostile;

use super::*;

/// What was read, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Message(MessageKind, Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>, String),
    Error(WsError),
}

fn text(content: &str) -> Seen {
    Seen::Message(MessageKind::Text, content.into())
}

/// Reads `input` in pieces of at most `size` bytes.
fn read_in(mut reader: Reader, input: &[u8], size: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    for mut piece in input.chunks(size) {
        loop {
            seen.push(match reader.next(&mut piece) {
                Ok(None) => break,
                Ok(Some(Event::Message(kind, content))) => Seen::Message(kind, content.into()),
                Ok(Some(Event::Ping(payload))) => Seen::Ping(payload.into()),
                Ok(Some(Event::Pong(payload))) => Seen::Pong(payload.into()),
                Ok(Some(Event::Close(code, reason))) => {
                    Seen::Close(code.map(|code| code.0), reason.into())
                }
                Err(error) => {
                    seen.push(Seen::Error(error));
                    return seen;
                }
            });
        }
        assert!(piece.is_empty());
    }
    seen
}

/// Reads `input` as a whole and in pieces of several sizes, which must make no difference.
fn read(role: Role, input: &[u8]) -> Vec<Seen> {
    let reader = || Reader::new(role, 1000, None);
    let whole = read_in(reader(), input, input.len().max(1));
    for size in [1, 2, 3, 7] {
        assert_eq!(read_in(reader(), input, size), whole, "pieces of {size}");
    }
    whole
}

#[test]
fn the_examples_of_the_rfc_are_read() {
    // RFC 6455 5.7.
    assert_eq!(
        read(
            Role::Client,
            b"\x81\x05Hello\x01\x03Hel\x80\x02lo\x89\x05Hello"
        ),
        [text("Hello"), text("Hello"), Seen::Ping(b"Hello".into())]
    );
    assert_eq!(
        read(
            Role::Server,
            b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"
        ),
        [text("Hello"), Seen::Pong(b"Hello".into())]
    );
}

#[test]
fn what_one_end_writes_the_other_reads() {
    for (from, to) in [(Role::Client, Role::Server), (Role::Server, Role::Client)] {
        let mut writer = Writer::new(from, 7, None);
        let (mut out, mut expected) = (Vec::new(), Vec::new());
        for length in [0, 1, 125, 126, 127, 999, 1000] {
            let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            writer.message(&mut out, MessageKind::Binary, &content);
            expected.push(Seen::Message(MessageKind::Binary, content));
            writer.ping(&mut out, b"between");
            expected.push(Seen::Ping(b"between".into()));
        }
        writer.message(&mut out, MessageKind::Text, "Grüße".as_bytes());
        writer.pong(&mut out, b"");
        writer.close(&mut out, Some(CloseCode::GOING_AWAY), "restart");
        // Ignored: it stands behind the close frame.
        out.extend_from_slice(b"\xff\xff");
        expected.extend([text("Grüße"), Seen::Pong(Vec::new())]);
        expected.push(Seen::Close(Some(1001), "restart".into()));
        assert_eq!(read(to, &out), expected);
    }
}

#[test]
fn a_message_of_several_lengths_has_the_shortest_head() {
    for (length, head) in [(125, 2), (126, 4), (65535, 4), (65536, 10)] {
        let mut out = Vec::new();
        let mut writer = Writer::new(Role::Server, 0, None);
        writer.message(&mut out, MessageKind::Binary, &vec![0; length]);
        assert_eq!(out.len(), head + length);
    }
}

#[test]
fn masks_differ_from_frame_to_frame() {
    let mut writer = Writer::new(Role::Client, 3, None);
    let mut masks = std::collections::HashSet::new();
    for _ in 0..100 {
        let mut out = Vec::new();
        writer.message(&mut out, MessageKind::Text, b"the same");
        masks.insert(out[2..6].to_vec());
    }
    assert!(masks.len() > 95);
}

#[test]
fn control_frames_between_fragments_come_first() {
    assert_eq!(
        read(
            Role::Client,
            b"\x01\x02\xc3\xa4\x89\x00\x00\x01\xc3\x8a\x01!\x80\x01\xbc"
        ),
        [Seen::Ping(Vec::new()), Seen::Pong(b"!".into()), text("äü")]
    );
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    let mut out = Vec::new();
    let mut writer = Writer::new(Role::Server, 0, None);
    writer.close(&mut out, Some(CloseCode::NORMAL), &"ä".repeat(100));
    assert_eq!(
        read(Role::Client, &out),
        [Seen::Close(Some(1000), "ä".repeat(61))]
    );
}
