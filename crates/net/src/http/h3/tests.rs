use proptest::prelude::*;

use super::*;

type Field = (String, String);

fn bytes(hex: &str) -> Vec<u8> {
    let hex: String = hex.chars().filter(|c| !c.is_whitespace()).collect();
    let at = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(at).collect()
}

fn decoded(section: &[u8]) -> Result<Vec<Field>, H3Error> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    qpack::decode(section, 10_000, &mut Vec::new(), |name, value| {
        fields.push((text(name), text(value)));
        Ok(())
    })?;
    Ok(fields)
}

fn pair(name: &str, value: &str) -> Field {
    (name.into(), value.into())
}

/// RFC 9204 appendix B.1: a literal field line with a name of the static table.
#[test]
fn a_section_without_a_dynamic_table() {
    let section = bytes("0000 510b 2f69 6e64 6578 2e68 746d 6c");
    assert_eq!(decoded(&section), Ok(vec![pair(":path", "/index.html")]));
    let mut own = Vec::new();
    qpack::begin(&mut own);
    qpack::encode(&mut own, b":path", b"/index.html");
    assert_eq!(own, section);
}

/// RFC 9204 appendix B.2: it needs two entries of a dynamic table.
#[test]
fn a_section_with_a_dynamic_table_is_refused() {
    let codes = |hex| decoded(&bytes(hex)).unwrap_err().code;
    let failed = ErrorCode::QpackDecompressionFailed;
    assert_eq!(codes("0381 10 11"), failed);
    // Indexed, named and post-base references, without the insert count that they need.
    for hex in [
        "0000 80",
        "0000 40 00",
        "0000 10",
        "0000 00 00",
        "0000 ff 24",
    ] {
        assert_eq!(codes(hex), failed, "{hex}");
    }
    // A literal that is truncated at each byte.
    let whole = bytes("0000 2161 0162");
    for end in [1, 3, 4, 5] {
        assert!(decoded(&whole[..end]).is_err(), "{end}");
    }
    assert_eq!(decoded(&whole), Ok(vec![pair("a", "b")]));
}

#[test]
fn huffman_strings_and_static_entries() {
    // RFC 7541 appendix C.4.1 and C.6.1: the same code.
    let section = bytes("0000 50 8c f1e3 c2e5 f23a 6ba0 ab90 f4ff");
    assert_eq!(
        decoded(&section),
        Ok(vec![pair(":authority", "www.example.com")])
    );
    let mut section = Vec::new();
    qpack::begin(&mut section);
    let fields = [(":status", "200"), ("x-frame-options", "sameorigin")];
    for (name, value) in fields {
        qpack::encode(&mut section, name.as_bytes(), value.as_bytes());
    }
    assert_eq!(section, bytes("0000 d9 ff23"));
    assert_eq!(
        decoded(&section),
        Ok(fields.map(|(n, v)| pair(n, v)).into())
    );
}

#[test]
fn a_list_that_expands_is_bounded() {
    let mut section = vec![0, 0];
    section.resize(2 + 400, 0xc1);
    let error = decoded(&section).unwrap_err();
    assert_eq!(error.code, ErrorCode::ExcessiveLoad);
}

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Headers(Vec<u8>),
    Data(Vec<u8>),
}

fn read(pieces: &[&[u8]]) -> (Vec<Seen>, Result<(), ErrorCode>) {
    let mut reader = FrameReader::of_request(1000);
    let mut seen = Vec::new();
    for piece in pieces {
        let fed = reader.feed(piece, |event| {
            match event {
                Event::Headers(section) => seen.push(Seen::Headers(section.to_vec())),
                Event::Data(bytes) => match seen.last_mut() {
                    Some(Seen::Data(all)) => all.extend_from_slice(bytes),
                    _ => seen.push(Seen::Data(bytes.to_vec())),
                },
                Event::Control { .. } => unreachable!("not on a request's stream"),
            }
            Ok(())
        });
        if let Err(error) = fed {
            return (seen, Err(error.code));
        }
    }
    (seen, reader.finish().map_err(|error| error.code))
}

#[test]
fn frames_of_a_request() {
    let mut stream = Vec::new();
    frame::headers(&mut stream, b"abc");
    // An unknown type is skipped.
    varint::write(&mut stream, 0x21);
    stream.extend_from_slice(&[2, 9, 9]);
    frame::data_head(&mut stream, 5);
    stream.extend_from_slice(b"hello");
    let (seen, end) = read(&[&stream]);
    let expected = [Seen::Headers(b"abc".into()), Seen::Data(b"hello".into())];
    assert_eq!((&seen[..], end), (&expected[..], Ok(())));
    for at in 0..stream.len() {
        let (first, second) = stream.split_at(at);
        assert_eq!(read(&[first, second]), (read(&[&stream]).0, Ok(())), "{at}");
    }
    let (_, end) = read(&[&stream[..stream.len() - 1]]);
    assert_eq!(end, Err(ErrorCode::FrameError));
}

#[test]
fn forbidden_frames() {
    let code = |bytes: &[u8]| read(&[bytes]).1.unwrap_err();
    for kind in [2, 6, 8, 9, 3, 4, 7, 0xd, 0] {
        assert_eq!(code(&[kind, 0]), ErrorCode::FrameUnexpected, "{kind}");
    }
    assert_eq!(code(&[5, 0]), ErrorCode::IdError);
    let mut long = vec![1];
    varint::write(&mut long, 1001);
    assert_eq!(code(&long), ErrorCode::ExcessiveLoad);
}

fn uni(side: Side, pieces: &[&[u8]]) -> Result<Vec<UniEvent>, ErrorCode> {
    let mut reader = UniReader::new(side);
    let mut seen = Vec::new();
    for piece in pieces {
        reader
            .feed(piece, |event| {
                seen.push(event);
                Ok(())
            })
            .map_err(|error| error.code)?;
    }
    Ok(seen)
}

#[test]
fn control_streams() {
    let mut stream = Vec::new();
    frame::control(&mut stream, &[(settings::MAX_FIELD_SECTION_SIZE, 70_000)]);
    frame::go_away(&mut stream, 8);
    let expected = vec![
        UniEvent::Kind(stream::CONTROL),
        UniEvent::Setting {
            id: 6,
            value: 70_000,
        },
        UniEvent::Settled,
        UniEvent::GoAway(8),
    ];
    for at in 0..stream.len() {
        let (first, second) = stream.split_at(at);
        assert_eq!(uni(Side::Client, &[first, second]), Ok(expected.clone()));
    }
    let code = |side, bytes: &[u8]| uni(side, &[bytes]).unwrap_err();
    use ErrorCode::*;
    assert_eq!(code(Side::Server, &[0, 7, 1, 0]), MissingSettings);
    assert_eq!(code(Side::Server, &[0, 0x21, 0]), MissingSettings);
    assert_eq!(code(Side::Server, &[0, 4, 0, 4, 0]), FrameUnexpected);
    assert_eq!(code(Side::Server, &[0, 4, 0, 0, 0]), FrameUnexpected);
    assert_eq!(code(Side::Server, &[0, 4, 2, 2, 1]), SettingsError);
    assert_eq!(code(Side::Server, &[0, 4, 4, 6, 1, 6, 1]), SettingsError);
    assert_eq!(code(Side::Server, &[0, 4, 1, 6]), FrameError);
    assert_eq!(code(Side::Client, &[0, 4, 0, 7, 1, 1]), IdError);
    assert_eq!(
        code(Side::Client, &[0, 4, 0, 7, 1, 4, 7, 1, 8]),
        IdError,
        "it grows"
    );
    assert_eq!(code(Side::Client, &[0, 4, 0, 0xd, 1, 0]), FrameUnexpected);
    assert_eq!(code(Side::Client, &[1, 0]), IdError);
    assert_eq!(code(Side::Server, &[1, 0]), StreamCreationError);
    assert_eq!(code(Side::Server, &[2, 0x3f]), QpackEncoderStreamError);
    assert_eq!(code(Side::Server, &[3, 0x80]), QpackDecoderStreamError);
    assert_eq!(uni(Side::Server, &[&[2, 0x20]]).unwrap().len(), 1);
    assert_eq!(uni(Side::Server, &[&[3, 0x44, 0x7f, 5]]).unwrap().len(), 1);
    assert_eq!(
        uni(Side::Server, &[&[0x21, 1, 2]]),
        Ok(vec![UniEvent::Kind(0x21), UniEvent::Unknown])
    );
}

#[test]
fn a_control_stream_must_not_end() {
    let mut reader = UniReader::new(Side::Server);
    reader.feed(&[0, 4, 0], |_| Ok(())).unwrap();
    let code = reader.finish().unwrap_err().code;
    assert_eq!(code, ErrorCode::ClosedCriticalStream);
    let mut other = UniReader::new(Side::Server);
    other.feed(&[0x21], |_| Ok(())).unwrap();
    other.finish().unwrap();
}

#[test]
fn codes_have_numbers_and_names() {
    assert_eq!(ErrorCode::of(0x10b), Some(ErrorCode::RequestRejected));
    assert_eq!(
        ErrorCode::of(0x202).unwrap().name(),
        "QPACK_DECODER_STREAM_ERROR"
    );
    assert_eq!(ErrorCode::of(0x99), None);
    assert_eq!(ErrorCode::VersionFallback as u64, 0x110);
}

proptest! {
    #[test]
    fn encode_then_decode(fields in prop::collection::vec(("[a-z:-]{1,30}", "[ -~]{0,150}"), 0..20)) {
        let mut section = Vec::new();
        qpack::begin(&mut section);
        for (name, value) in &fields {
            qpack::encode(&mut section, name.as_bytes(), value.as_bytes());
        }
        prop_assert_eq!(decoded(&section), Ok(fields));
    }

    #[test]
    fn any_bytes_in_any_pieces(stream in prop::collection::vec(any::<u8>(), 0..300), at in 0_usize..300) {
        let (first, second) = stream.split_at(at.min(stream.len()));
        prop_assert_eq!(read(&[first, second]).1, read(&[&stream]).1);
        let mut reader = FrameReader::of_request(1000);
        let _ = reader.feed(&stream, |_| Ok(()));
        prop_assert!(reader.bytes_held() < 4096);
    }
}
