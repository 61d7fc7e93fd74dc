//! Frames that are written and read again, and input in any pieces.

mod rules;
mod splits;

use super::{ErrorCode, Event, FrameReader, H2Error, PREFACE, frame, settings};

/// An event that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Settings(bool, Vec<(u16, u32)>),
    Headers(u32, bool, Vec<u8>),
    /// Pieces of one stream that follow each other are joined.
    Data(u32, Vec<u8>, u32, bool),
    Reset(u32, u32),
    GoAway(u32, u32),
    Ping(bool, [u8; 8]),
    WindowUpdate(u32, u32),
    StreamError(u32, ErrorCode),
}

fn see(seen: &mut Vec<Seen>, event: Event<'_>) {
    let new = match event {
        Event::Settings { ack, values } => Seen::Settings(ack, values.collect()),
        Event::Headers {
            stream,
            end_stream,
            block,
        } => Seen::Headers(stream, end_stream, block.to_vec()),
        Event::Data {
            stream,
            bytes,
            flow,
            end_stream,
        } => {
            if let Some(Seen::Data(before, joined, sum, end @ false)) = seen.last_mut()
                && *before == stream
            {
                joined.extend_from_slice(bytes);
                *sum += flow;
                *end = end_stream;
                return;
            }
            Seen::Data(stream, bytes.to_vec(), flow, end_stream)
        }
        Event::Reset { stream, code } => Seen::Reset(stream, code),
        Event::GoAway { last_stream, code } => Seen::GoAway(last_stream, code),
        Event::Ping { ack, data } => Seen::Ping(ack, data),
        Event::WindowUpdate { stream, increment } => Seen::WindowUpdate(stream, increment),
        Event::StreamError { stream, code } => Seen::StreamError(stream, code),
    };
    seen.push(new);
}

/// What a reader gives for these pieces, its result and its overhead.
fn read(mut reader: FrameReader, pieces: &[&[u8]]) -> (Vec<Seen>, Result<(), H2Error>, u32) {
    let mut seen = Vec::new();
    for piece in pieces {
        let result = reader.feed(piece, |event| {
            see(&mut seen, event);
            Ok(())
        });
        if result.is_err() {
            return (seen, result, reader.take_overhead());
        }
    }
    let overhead = reader.take_overhead();
    (seen, Ok(()), overhead)
}

/// A frame of any form.
fn raw(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

fn client() -> FrameReader {
    FrameReader::new(16_384, 32_768)
}

#[test]
fn written_frames_are_read() {
    let mut out = PREFACE.to_vec();
    frame::settings(
        &mut out,
        &[
            (settings::INITIAL_WINDOW_SIZE, 0x7fff_ffff),
            (settings::MAX_FRAME_SIZE, 16_384),
            (0xabcd, 7),
        ],
    );
    frame::settings_ack(&mut out);
    frame::ping(&mut out, *b"12345678");
    frame::ping_ack(&mut out, *b"87654321");
    frame::window_update(&mut out, 0, 1);
    frame::window_update(&mut out, 3, 0x7fff_ffff);
    frame::headers(&mut out, 1, b"block", false, 16_384);
    frame::data(&mut out, 1, b"content", false);
    frame::data(&mut out, 1, b"", true);
    frame::headers(&mut out, 3, b"", true, 16_384);
    frame::reset(&mut out, 3, ErrorCode::Cancel);
    frame::go_away(&mut out, 3, ErrorCode::EnhanceYourCalm);
    let values = vec![(4, 0x7fff_ffff), (5, 16_384), (0xabcd, 7)];
    let wanted = vec![
        Seen::Settings(false, values),
        Seen::Settings(true, vec![]),
        Seen::Ping(false, *b"12345678"),
        Seen::Ping(true, *b"87654321"),
        Seen::WindowUpdate(0, 1),
        Seen::WindowUpdate(3, 0x7fff_ffff),
        Seen::Headers(1, false, b"block".to_vec()),
        Seen::Data(1, b"content".to_vec(), 7, true),
        Seen::Headers(3, true, vec![]),
        Seen::Reset(3, 8),
        Seen::GoAway(3, 11),
    ];
    let read = read(FrameReader::of_server(16_384, 1000), &[&out]);
    assert_eq!(read, (wanted, Ok(()), 8));
}

#[test]
fn bytes_of_frames() {
    let written = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        out
    };
    assert_eq!(
        written(&|out| frame::settings(out, &[(3, 100)])),
        raw(4, 0, 0, &[0, 3, 0, 0, 0, 100])
    );
    assert_eq!(written(&frame::settings_ack), raw(4, 1, 0, &[]));
    assert_eq!(
        written(&|out| frame::reset(out, 5, ErrorCode::RefusedStream)),
        raw(3, 0, 5, &[0, 0, 0, 7])
    );
    assert_eq!(
        written(&|out| frame::data(out, 0x8000_0001, b"x", true)),
        raw(0, 1, 1, b"x")
    );
    assert_eq!(
        written(&|out| frame::headers(out, 1, b"abcdefg", true, 3)),
        [
            raw(1, 1, 1, b"abc"),
            raw(9, 0, 1, b"def"),
            raw(9, 4, 1, b"g")
        ]
        .concat()
    );
    assert_eq!(
        written(&|out| frame::headers(out, 1, b"abc", false, 3)),
        raw(1, 4, 1, b"abc")
    );
}

/// Padding counts with the first piece only, and the last piece has the stream's end.
#[test]
fn pieces_of_padded_data() {
    let mut reader = client();
    reader.feed(&raw(4, 0, 0, &[]), |_| Ok(())).unwrap();
    let frame = raw(0, 0x8 | 0x1, 1, b"\x03contentPPP");
    let mut pieces = Vec::new();
    for piece in [
        &frame[..9],
        &frame[9..10],
        &frame[10..12],
        &frame[12..18],
        &frame[18..],
    ] {
        let each = |event: Event<'_>| {
            let Event::Data {
                stream: 1,
                bytes,
                flow,
                end_stream,
            } = event
            else {
                panic!("{event:?}");
            };
            pieces.push((bytes.to_vec(), flow, end_stream));
            Ok(())
        };
        reader.feed(piece, each).unwrap();
    }
    assert_eq!(
        pieces,
        [(b"co".to_vec(), 2 + 4, false), (b"ntent".to_vec(), 5, true),]
    );
    let only_padding = raw(0, 0x8, 1, b"\x03PPP");
    let mut seen = Vec::new();
    let each = |event: Event<'_>| {
        see(&mut seen, event);
        Ok(())
    };
    reader.feed(&only_padding, each).unwrap();
    assert_eq!(seen, [Seen::Data(1, vec![], 4, false)]);
    // SETTINGS and the empty DATA.
    assert_eq!(reader.take_overhead(), 2);
    assert_eq!(reader.take_overhead(), 0);
}

/// A block in one input is passed as it is in it.
#[test]
fn whole_frames_are_not_copied() {
    let mut reader = client();
    reader.feed(&raw(4, 0, 0, &[]), |_| Ok(())).unwrap();
    let input = raw(1, 0x4 | 0x8 | 0x20, 1, b"\x02PRIORblockPP");
    let mut blocks = 0;
    let each = |event: Event<'_>| {
        if let Event::Headers { block, .. } = event {
            assert_eq!(block, b"block");
            assert_eq!(block.as_ptr(), input[15..].as_ptr());
            blocks += 1;
        }
        Ok(())
    };
    reader.feed(&input, each).unwrap();
    assert_eq!(blocks, 1);
    assert_eq!(reader.bytes_held(), 0);
}

#[test]
fn an_error_is_kept() {
    let mut reader = client();
    let refused = H2Error::protocol("refused");
    let input = [raw(4, 0, 0, &[]), raw(6, 0, 0, &[0; 8])].concat();
    let mut calls = 0;
    for _ in 0..2 {
        let result = reader.feed(&input, |_| {
            calls += 1;
            Err(refused)
        });
        assert_eq!(result, Err(refused));
    }
    assert_eq!(calls, 1);
}
