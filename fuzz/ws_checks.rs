//! What must hold of the WebSocket codec for any bytes at all.

use net::ws::{Deflate, Event, MessageKind, Reader, Role, Writer};

use super::{Cuts, same_in_any_pieces};

/// Longest message that is allowed, bytes.
const MESSAGE_MAX: usize = 5000;

/// Whole messages and control frames.
#[derive(Debug, PartialEq)]
enum Seen {
    Message(MessageKind, Vec<u8>),
    Control(u8, Vec<u8>),
}

/// The bytes are what an end receives, either end, with compression and without: they give the same
/// messages however they are split, memory is bounded, and what was read is written and read again.
pub fn websocket(data: &[u8], cuts: Cuts) {
    for role in [Role::Client, Role::Server] {
        for deflate in [None, Some(Deflate::default())] {
            // Which rule is named depends on the pieces where text is compressed; whether one is
            // broken does not.
            let (seen, is_wrong) =
                same_in_any_pieces(data, cuts, |pieces| read(role, deflate, pieces));
            let mut written = Vec::new();
            let peer = match role {
                Role::Client => Role::Server,
                Role::Server => Role::Client,
            };
            let mut writer = Writer::new(peer, 1, deflate);
            for one in &seen {
                match one {
                    Seen::Message(kind, content) => {
                        writer.message(&mut written, *kind, content);
                    }
                    Seen::Control(9, payload) => writer.ping(&mut written, payload),
                    Seen::Control(10, payload) => writer.pong(&mut written, payload),
                    Seen::Control(..) => assert!(!is_wrong),
                }
            }
            let (mut again, is_wrong) = read(role, deflate, &[&written]);
            assert!(!is_wrong);
            let is_close = |one: &Seen| matches!(one, Seen::Control(8, _));
            again.extend(
                seen.iter()
                    .filter(|one| is_close(one))
                    .map(|_| Seen::Control(8, vec![])),
            );
            let seen = seen.into_iter().map(|one| match is_close(&one) {
                true => Seen::Control(8, vec![]),
                false => one,
            });
            assert_eq!(seen.collect::<Vec<_>>(), again);
        }
    }
}

fn read(role: Role, deflate: Option<Deflate>, pieces: &[&[u8]]) -> (Vec<Seen>, bool) {
    let mut reader = Reader::new(role, MESSAGE_MAX, deflate);
    let mut seen = Vec::new();
    for mut piece in pieces.iter().copied() {
        loop {
            seen.push(match reader.next(&mut piece) {
                Ok(None) => break,
                Ok(Some(Event::Message(kind, content))) => {
                    assert!(content.len() <= MESSAGE_MAX);
                    let is_text = std::str::from_utf8(content).is_ok();
                    assert!(kind == MessageKind::Binary || is_text);
                    Seen::Message(kind, content.to_vec())
                }
                Ok(Some(Event::Ping(payload))) => Seen::Control(9, payload.to_vec()),
                Ok(Some(Event::Pong(payload))) => Seen::Control(10, payload.to_vec()),
                Ok(Some(Event::Close(_, reason))) => Seen::Control(8, reason.into()),
                Err(error) => {
                    assert!(error.close_code().may_be_sent());
                    return (seen, true);
                }
            });
        }
        assert!(piece.is_empty());
        // A piece of decompressed data, and the growth of a vector.
        assert!(reader.memory_bytes() <= 4 * (MESSAGE_MAX + 4096));
    }
    (seen, false)
}
