//! `permessage-deflate`.

use super::*;

const PLAIN: Deflate = Deflate {
    client_no_context_takeover: false,
    server_no_context_takeover: false,
};

#[test]
fn the_examples_of_the_rfc_are_read() {
    // RFC 7692 7.2.3: one block, the same again from the window, fragments, no compression, a final
    // block, two blocks, and a message that is not compressed.
    let input = [
        b"\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00".as_slice(),
        b"\xc1\x05\xf2\x00\x11\x00\x00",
        b"\x41\x03\xf2\x00\x11\x89\x00\x80\x02\x00\x00",
        b"\xc1\x0b\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00",
        b"\xc1\x08\xf3\x48\xcd\xc9\xc9\x07\x00\x00",
        b"\xc1\x0d\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00",
        b"\x81\x05Hello",
    ]
    .concat();
    let hello = || text("Hello");
    let ping = Seen::Ping(Vec::new());
    for size in [1, 2, 5, 1000] {
        let reader = Reader::new(Role::Client, 1000, Some(PLAIN));
        assert_eq!(
            read_in(reader, &input, size),
            [
                hello(),
                hello(),
                ping.clone(),
                hello(),
                hello(),
                hello(),
                hello(),
                hello()
            ]
        );
    }
}

#[test]
fn what_one_end_compresses_the_other_reads() {
    let forgetful = Deflate {
        client_no_context_takeover: true,
        server_no_context_takeover: true,
    };
    for (deflate, from, to) in [
        (PLAIN, Role::Client, Role::Server),
        (forgetful, Role::Server, Role::Client),
    ] {
        let mut writer = Writer::new(from, 7, Some(deflate));
        let (mut out, mut expected) = (Vec::new(), Vec::new());
        let mut random = fastrand::Rng::with_seed(5);
        for length in [0, 0, 1, 60, 60, 4096, 70_000] {
            for content in [
                vec![b'a'; length],
                (0..length).map(|_| random.u8(..)).collect(),
            ] {
                writer.message(&mut out, MessageKind::Binary, &content);
                expected.push(Seen::Message(MessageKind::Binary, content));
            }
        }
        for size in [1000, usize::MAX] {
            let reader = Reader::new(to, 70_000, Some(deflate));
            assert_eq!(read_in(reader, &out, size), expected);
        }
    }
}

#[test]
fn the_window_shortens_a_message_that_comes_again() {
    let mut writer = Writer::new(Role::Server, 0, Some(PLAIN));
    let content: Vec<u8> = (0..=255).collect();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    writer.message(&mut first, MessageKind::Binary, &content);
    writer.message(&mut second, MessageKind::Binary, &content);
    assert!(second.len() < first.len() / 4, "{} bytes", second.len());
}

#[test]
fn a_bomb_ends_at_the_limit() {
    let mut writer = Writer::new(Role::Server, 0, Some(PLAIN));
    let mut bomb = Vec::new();
    writer.message(&mut bomb, MessageKind::Binary, &vec![0; 50 << 20]);
    assert!(bomb.len() < 400_000);
    let mut reader = Reader::new(Role::Client, 100_000, Some(PLAIN));
    assert_eq!(reader.next(&mut &bomb[..]), Err(WsError::TooLong));
    assert!(reader.memory_bytes() < 300_000);
}

#[test]
fn wrong_data_have_names() {
    let read = |input: &[u8]| read_in(Reader::new(Role::Client, 1000, Some(PLAIN)), input, 1000);
    let error = |error| vec![Seen::Error(error)];
    assert_eq!(read(b"\xc2\x01\xff"), error(WsError::Compressed));
    // On a control frame, and on a continuation (RFC 7692 6.1).
    assert_eq!(read(b"\xc9\x00"), error(WsError::Reserved));
    assert_eq!(read(b"\x42\x00\xc0\x00"), error(WsError::Reserved));
    assert_eq!(read(b"\xe1\x00"), error(WsError::Reserved));
}

/// Such a message needs several calls of the compressor, and the last may leave something in it.
#[test]
fn long_messages_that_cannot_be_compressed_come_whole() {
    let mut random = fastrand::Rng::with_seed(3);
    let mut writer = Writer::new(Role::Server, 0, Some(PLAIN));
    let mut reader = Reader::new(Role::Client, 16 << 20, Some(PLAIN));
    for length in (500_000..1_500_000).step_by(90_001) {
        let content: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        let mut out = Vec::new();
        writer.message(&mut out, MessageKind::Binary, &content);
        let mut input = &out[..];
        let event = reader.next(&mut input).unwrap();
        assert!(
            event == Some(Event::Message(MessageKind::Binary, &content)),
            "{length}"
        );
        assert!(input.is_empty());
    }
}
