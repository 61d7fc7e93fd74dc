//! Input in any pieces, and any input.

use proptest::prelude::*;

use super::*;

/// A frame, mostly one that is right.
fn frame_bytes() -> impl Strategy<Value = Vec<u8>> {
    let stream = 0u32..4;
    let payload = prop::collection::vec(any::<u8>(), 0..60);
    let any_frame = (0u8..12, any::<u8>(), stream.clone(), payload.clone());
    let data = (0u8..2, 1u32..4, payload.clone());
    let padded = (0u8..2, 1u32..4, 0u8..20, payload.clone());
    let block = (any::<bool>(), 1u32..4, 1u32..30, payload);
    let number = (stream, 1u32..0x8000_0000);
    prop_oneof![
        1 => any_frame.prop_map(|(kind, flags, stream, payload)| raw(kind, flags, stream, &payload)),
        4 => data.prop_map(|(flags, stream, payload)| raw(0, flags, stream, &payload)),
        4 => padded.prop_map(|(flags, stream, padding, mut payload)| {
            payload.insert(0, padding);
            payload.resize(payload.len() + usize::from(padding), 0);
            raw(0, flags | 0x8, stream, &payload)
        }),
        4 => block.prop_map(|(end_stream, stream, max_frame, payload)| {
            let mut out = Vec::new();
            frame::headers(&mut out, stream, &payload, end_stream, max_frame + 4);
            out
        }),
        4 => number.prop_map(|(stream, number)| raw(8, 0, stream, &number.to_be_bytes())),
        1 => any::<[u8; 8]>().prop_map(|data| raw(6, 0, 0, &data)),
        1 => any::<[u8; 30]>().prop_map(|data| raw(7, 0, 0, &data)),
        1 => any::<[u8; 12]>().prop_map(|data| raw(0x40, 0, 0, &data)),
        1 => (0u32..9).prop_map(|value| {
            let mut out = Vec::new();
            frame::settings(&mut out, &[(settings::MAX_CONCURRENT_STREAMS, value)]);
            out
        }),
    ]
}

fn connection() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(frame_bytes(), 0..12)
        .prop_map(|frames| [PREFACE.to_vec(), raw(4, 0, 0, &[]), frames.concat()].concat())
}

fn server() -> FrameReader {
    FrameReader::of_server(16_384, 200)
}

proptest! {
    #[test]
    fn any_split_gives_the_same(
        input in connection(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let whole = read(server(), &[&input]);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts {
            pieces.push(&input[from..cut]);
            from = cut;
        }
        pieces.push(&input[from..]);
        let split = read(server(), &pieces);
        let bytes: Vec<&[u8]> = input.chunks(1).collect();
        let single = read(server(), &bytes);
        prop_assert_eq!(&split, &whole);
        prop_assert_eq!(&single, &whole);
    }

    /// No bytes make it panic or keep more than the longest block and frame.
    #[test]
    fn any_bytes(
        is_server in any::<bool>(),
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..10),
    ) {
        let start = [PREFACE, &raw(4, 0, 0, &[])].concat();
        let mut reader = match is_server {
            true => FrameReader::of_server(0xff_ffff, 200),
            false => FrameReader::new(0xff_ffff, 200),
        };
        let start = if is_server { &start[..] } else { &start[PREFACE.len()..] };
        reader.feed(start, |_| Ok(())).unwrap();
        for piece in pieces {
            let _ = reader.feed(&piece, |_| Ok(()));
            prop_assert!(reader.bytes_held() <= 2 * (200 + 300));
        }
    }
}

/// Frames of the largest size that come slowly, and one block after the other.
#[test]
fn memory_is_bounded() {
    let mut reader = FrameReader::new(0xff_ffff, 1 << 20);
    reader.feed(&raw(4, 0, 0, &[]), |_| Ok(())).unwrap();
    let mut held = 0;
    for stream in 0..3 {
        let mut block = Vec::new();
        frame::headers(&mut block, 2 * stream + 1, &vec![0; 1 << 20], true, 1 << 18);
        for kind in [0, 0x40] {
            block.extend_from_slice(&raw(kind, 0, 1, &vec![0; 1 << 20]));
        }
        for piece in block.chunks(1000) {
            reader.feed(piece, |_| Ok(())).unwrap();
            held = held.max(reader.bytes_held());
        }
        assert!(reader.bytes_held() <= 16 * 1024);
    }
    assert!(held <= 3 << 20, "{held}");
}
