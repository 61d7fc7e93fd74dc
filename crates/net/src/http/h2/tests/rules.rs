//! The rules of RFC 9113 that a reader checks.

use super::*;

/// The code of the error for these frames behind SETTINGS, or `None`.
fn code(reader: FrameReader, frames: &[Vec<u8>]) -> Option<ErrorCode> {
    let input = [raw(4, 0, 0, &[]), frames.concat()].concat();
    let (_, result, _) = read(reader, &[&input]);
    result.err().map(|error| error.code)
}

fn of_client(frames: &[Vec<u8>]) -> Option<ErrorCode> {
    code(client(), frames)
}

fn of_server(frames: &[Vec<u8>]) -> Option<ErrorCode> {
    let mut reader = FrameReader::of_server(16_384, 32_768);
    reader.feed(PREFACE, |_| Ok(())).unwrap();
    code(reader, frames)
}

const PROTOCOL: Option<ErrorCode> = Some(ErrorCode::ProtocolError);
const SIZE: Option<ErrorCode> = Some(ErrorCode::FrameSizeError);
const CALM: Option<ErrorCode> = Some(ErrorCode::EnhanceYourCalm);

#[test]
fn sizes() {
    for (kind, stream, length, wanted) in [
        (4, 0, 5, SIZE),
        (4, 0, 6, None),
        (4, 0, 7, SIZE),
        (6, 0, 7, SIZE),
        (6, 0, 8, None),
        (6, 0, 9, SIZE),
        (3, 1, 3, SIZE),
        (3, 1, 4, None),
        (3, 1, 5, SIZE),
        (8, 1, 3, SIZE),
        (8, 1, 5, SIZE),
        (7, 0, 7, SIZE),
        (7, 0, 8, None),
        (7, 0, 30, None),
        (2, 1, 5, None),
        (0, 1, 0, None),
        (0, 1, 16_384, None),
        (0, 1, 16_385, SIZE),
        (0xbe, 0, 16_385, SIZE),
    ] {
        let frame = raw(kind, 0, stream, &vec![0; length]);
        let both = [frame, raw(6, 0, 0, &[0; 8])];
        assert_eq!(of_client(&both), wanted, "kind {kind}, {length} bytes");
        assert_eq!(of_server(&both), wanted, "kind {kind}, {length} bytes");
    }
    assert_eq!(of_client(&[raw(4, 1, 0, &[0; 6])]), SIZE);
    assert_eq!(of_client(&[raw(4, 0, 0, &[9; 64 * 6])]), None);
    assert_eq!(of_client(&[raw(4, 0, 0, &[9; 65 * 6])]), CALM);
    // Without a place for the padding's length, and for priority.
    assert_eq!(of_client(&[raw(0, 0x8, 1, &[])]), SIZE);
    assert_eq!(of_client(&[raw(1, 0x4 | 0x8, 1, &[])]), SIZE);
    assert_eq!(of_client(&[raw(1, 0x4 | 0x20, 1, &[0; 4])]), SIZE);
    assert_eq!(of_client(&[raw(1, 0x4 | 0x20, 1, &[0; 5])]), None);
}

#[test]
fn streams() {
    for (kind, length) in [(0, 1), (1, 1), (2, 5), (3, 4), (9, 1)] {
        let frame = raw(kind, 0x4, 0, &vec![0; length]);
        assert_eq!(of_client(&[frame]), PROTOCOL, "kind {kind}");
    }
    for (kind, length) in [(4, 0), (6, 8), (7, 8)] {
        let frame = raw(kind, 0, 1, &vec![0; length]);
        assert_eq!(of_client(&[frame]), PROTOCOL, "kind {kind}");
    }
    // The reserved bit is ignored.
    assert_eq!(of_client(&[raw(6, 0, 0x8000_0000, &[0; 8])]), None);
    assert_eq!(of_client(&[raw(0, 0, 0x8000_0000, &[0; 8])]), PROTOCOL);
}

#[test]
fn first_frame() {
    let ping = raw(6, 0, 0, &[0; 8]);
    let ack = raw(4, 1, 0, &[]);
    let http1 = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    for first in [&ping, &ack, &http1] {
        let (seen, result, _) = read(client(), &[first]);
        assert_eq!(result.err().map(|error| error.code), PROTOCOL);
        assert_eq!(seen, []);
        let server = FrameReader::of_server(16_384, 1000);
        let (_, result, _) = read(server, &[PREFACE, first]);
        assert_eq!(result.err().map(|error| error.code), PROTOCOL);
    }
}

#[test]
fn preface() {
    for cut in 0..PREFACE.len() {
        let mut wrong = PREFACE.to_vec();
        wrong[cut] ^= 1;
        for pieces in [&[&wrong[..]][..], &[&wrong[..cut], &wrong[cut..=cut]]] {
            let server = FrameReader::of_server(16_384, 1000);
            let (_, result, _) = read(server, pieces);
            assert_eq!(
                result,
                Err(H2Error::protocol("no HTTP/2 connection preface"))
            );
        }
        let server = FrameReader::of_server(16_384, 1000);
        let settings = raw(4, 0, 0, &[]);
        let (seen, result, _) = read(server, &[&PREFACE[..cut], &PREFACE[cut..], &settings]);
        assert_eq!((seen.len(), result), (1, Ok(())));
    }
}

#[test]
fn values_of_settings() {
    let value = |id: u16, value: u32| {
        let mut out = Vec::new();
        frame::settings(&mut out, &[(0x99, 1), (id, value)]);
        [out]
    };
    let flow = Some(ErrorCode::FlowControlError);
    for (id, number, client, server) in [
        (settings::ENABLE_PUSH, 0, None, None),
        (settings::ENABLE_PUSH, 1, PROTOCOL, None),
        (settings::ENABLE_PUSH, 2, PROTOCOL, PROTOCOL),
        (settings::INITIAL_WINDOW_SIZE, 0x7fff_ffff, None, None),
        (settings::INITIAL_WINDOW_SIZE, 0x8000_0000, flow, flow),
        (settings::MAX_FRAME_SIZE, 16_383, PROTOCOL, PROTOCOL),
        (settings::MAX_FRAME_SIZE, 16_384, None, None),
        (settings::MAX_FRAME_SIZE, 16_777_215, None, None),
        (settings::MAX_FRAME_SIZE, 16_777_216, PROTOCOL, PROTOCOL),
        (settings::HEADER_TABLE_SIZE, u32::MAX, None, None),
        (settings::MAX_CONCURRENT_STREAMS, 0, None, None),
        (settings::MAX_HEADER_LIST_SIZE, u32::MAX, None, None),
    ] {
        assert_eq!(of_client(&value(id, number)), client, "{id} {number}");
        assert_eq!(of_server(&value(id, number)), server, "{id} {number}");
    }
}

#[test]
fn header_blocks() {
    let begin = raw(1, 0, 1, b"a");
    let go_on = raw(9, 0, 1, b"b");
    let end = raw(9, 4, 1, b"c");
    assert_eq!(
        of_client(&[begin.clone(), go_on.clone(), end.clone()]),
        None
    );
    assert_eq!(of_client(std::slice::from_ref(&end)), PROTOCOL);
    assert_eq!(of_client(&[raw(1, 4, 1, b"a"), end.clone()]), PROTOCOL);
    for between in [
        raw(9, 4, 3, b"of another stream"),
        raw(1, 4, 1, b"HEADERS"),
        raw(0, 0, 1, b"DATA"),
        raw(6, 0, 0, b"PINGPING"),
        raw(0xbe, 0, 0, b"unknown"),
    ] {
        assert_eq!(of_client(&[begin.clone(), between]), PROTOCOL);
    }

    let mut frames = vec![begin];
    frames.extend(vec![raw(9, 0, 1, b""); 15]);
    frames.push(end.clone());
    assert_eq!(of_client(&frames), None);
    frames.insert(1, go_on);
    assert_eq!(of_client(&frames), CALM);

    let reader = || FrameReader::new(16_384, 10);
    let whole = |block: &[u8]| code(reader(), &[raw(1, 4, 1, block)]);
    assert_eq!(whole(&[0; 10]), None);
    assert_eq!(whole(&[0; 11]), CALM);
    assert_eq!(whole(&[0; 1000]), CALM);
    let padded = [&[200][..], &[0; 210]].concat();
    assert_eq!(code(reader(), &[raw(1, 0x4 | 0x8, 1, &padded)]), None);
    let two = |length: usize| [raw(1, 0, 1, &[0; 7]), raw(9, 4, 1, &vec![0; length])];
    assert_eq!(code(reader(), &two(3)), None);
    assert_eq!(code(reader(), &two(4)), CALM);
    // The next block begins at 0.
    let both = [two(3), two(3)].concat();
    assert_eq!(code(reader(), &both), None);
}

#[test]
fn joined_blocks() {
    let input = [
        raw(4, 0, 0, &[]),
        raw(1, 0x1 | 0x8 | 0x20, 1, b"\x01PRIORabP"),
        raw(9, 0, 1, b"cd"),
        raw(9, 4, 1, b""),
        raw(1, 4, 3, b"next"),
    ]
    .concat();
    let (seen, result, overhead) = read(client(), &[&input]);
    assert_eq!(result, Ok(()));
    assert_eq!(
        seen[1..],
        [
            Seen::Headers(1, true, b"abcd".to_vec()),
            Seen::Headers(3, false, b"next".to_vec()),
        ]
    );
    assert_eq!(overhead, 1);
}

#[test]
fn padding() {
    for (kind, flags) in [(0, 0x8), (1, 0x8 | 0x4)] {
        let all = raw(kind, flags, 1, b"\x03PPP");
        assert_eq!(of_client(&[all, raw(6, 0, 0, &[0; 8])]), None);
        assert_eq!(of_client(&[raw(kind, flags, 1, b"\x04PPP")]), PROTOCOL);
        assert_eq!(of_client(&[raw(kind, flags, 1, b"\x01")]), PROTOCOL);
    }
    let over_priority = raw(1, 0x4 | 0x8 | 0x20, 1, b"\x01PRIOR");
    assert_eq!(of_client(&[over_priority]), PROTOCOL);
}

#[test]
fn push_promise() {
    let promise = raw(5, 4, 1, &[0, 0, 0, 2, 0x82]);
    assert_eq!(of_client(std::slice::from_ref(&promise)), PROTOCOL);
    assert_eq!(of_server(&[promise]), PROTOCOL);
}

#[test]
fn increments_and_errors_of_streams() {
    assert_eq!(of_client(&[raw(8, 0, 0, &[0; 4])]), PROTOCOL);
    assert_eq!(of_client(&[raw(8, 0, 0, &[0x80, 0, 0, 0])]), PROTOCOL);
    let input = [
        raw(4, 0, 0, &[]),
        raw(8, 0, 5, &[0x80, 0, 0, 0]),
        raw(2, 0, 7, &[0; 6]),
        raw(8, 0, 5, &[0x80, 0, 0, 9]),
    ]
    .concat();
    let (seen, result, _) = read(client(), &[&input]);
    assert_eq!(result, Ok(()));
    assert_eq!(
        seen[1..],
        [
            Seen::StreamError(5, ErrorCode::ProtocolError),
            Seen::StreamError(7, ErrorCode::FrameSizeError),
            Seen::WindowUpdate(5, 9),
        ]
    );
}

#[test]
fn unknown_frames_and_priority_are_ignored() {
    let input = [
        raw(4, 0, 0, &[]),
        raw(0xbe, 0xff, 0, b"unknown"),
        raw(0xbf, 0xff, 9, b""),
        raw(2, 0xff, 9, &[0; 5]),
        raw(7, 0, 0, b"\xff\xff\xff\xff\0\0\0\x02debug"),
        raw(6, 0xff, 0, &[1; 8]),
    ]
    .concat();
    let (seen, result, overhead) = read(client(), &[&input]);
    assert_eq!((result, overhead), (Ok(()), 6));
    assert_eq!(
        seen[1..],
        [Seen::GoAway(0x7fff_ffff, 2), Seen::Ping(true, [1; 8]),]
    );
}
