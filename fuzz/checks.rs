//! What must hold of the HTTP codec for any bytes at all. The fuzz targets and the replay of their
//! corpora (`crates/net/tests/all/corpus.rs`) share it; each
//! function panics when something does not hold.

use std::fmt::Debug;

use net::h2::{Event, FrameReader, H2Error, hpack};
use net::h3;
use net::http::{HttpError, Progress, Request, RequestParser, ResponseParser};
use net::proxy_protocol::{self, Header, Parsed};

#[path = "grpc_checks.rs"]
mod grpc_checks;
#[path = "ws_checks.rs"]
mod ws_checks;

pub use grpc_checks::grpc;
pub use ws_checks::websocket;
#[path = "event_checks.rs"]
mod event_checks;

pub use event_checks::events;

/// How many ways of cutting the bytes are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// In one piece, in single bytes, and a few others that depend on the bytes.
    Some,
    /// Besides, in two pieces at every place.
    All,
}

/// A check, for any bytes.
pub type Check = fn(&[u8], Cuts);

/// The checks by name, which is also that of the fuzz target and of the folder of its corpus.
pub const CHECKS: [(&str, Check); 9] = [
    ("proxy_protocol", proxy_protocol),
    ("response", response),
    ("request", request),
    ("chunked", chunked),
    ("http2", http2),
    ("http3", http3),
    ("websocket", websocket),
    ("grpc", grpc),
    ("events", events),
];

/// The bytes are the start of a client's connection on which a PROXY protocol header is expected.
pub fn proxy_protocol(data: &[u8], cuts: Cuts) {
    let whole = proxy_protocol::parse(data);
    // A decision does not change with the bytes that follow.
    let step = if cuts == Cuts::All { 1 } else { 7 };
    let mut decided = None;
    for end in (0..data.len()).step_by(step) {
        let now = proxy_protocol::parse(&data[..end]);
        match (&decided, &now) {
            (None, Ok(Parsed::More)) => {}
            (None, _) => decided = Some(now),
            (Some(before), _) => assert_eq!(*before, now, "after {end} bytes"),
        }
    }
    if let Some(decided) = decided {
        assert_eq!(whole, decided);
    }
    match whole {
        Ok(Parsed::More) => assert!(data.len() < proxy_protocol::HEADER_BYTES_MAX),
        Ok(Parsed::Done { taken, header }) => {
            assert!(taken <= data.len() && taken <= proxy_protocol::HEADER_BYTES_MAX);
            let Header::Proxied { src, dst } = header else {
                return;
            };
            // Written in either version, it reads back the same.
            for encode in [proxy_protocol::encode_v1, proxy_protocol::encode_v2] {
                let mut written = Vec::new();
                encode(src, dst, &mut written);
                let Ok(Parsed::Done { taken, header }) = proxy_protocol::parse(&written) else {
                    panic!("{:?}", written.escape_ascii().to_string());
                };
                assert_eq!(taken, written.len());
                let Header::Proxied {
                    src: again,
                    dst: to,
                } = header
                else {
                    panic!("{header:?}");
                };
                let canonical = |one: std::net::SocketAddr| (one.ip().to_canonical(), one.port());
                assert_eq!(canonical(again), canonical(src));
                assert_eq!(canonical(to), canonical(dst));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The bytes are what a server sends.
pub fn response(data: &[u8], cuts: Cuts) {
    for head_request in [false, true] {
        let read = |pieces: &[&[u8]]| read_answers(pieces, head_request);
        let answers = same_in_any_pieces(data, cuts, read);
        let content: usize = answers.complete.iter().map(|a| a.content.len()).sum();
        assert!(content + answers.rest.len() <= data.len(), "content grew");
        for answer in &answers.complete {
            assert!((100..1000).contains(&answer.status));
            let bodiless = head_request || matches!(answer.status, 101 | 204 | 304);
            assert!(!bodiless || answer.content.is_empty(), "{answer:?}");
        }
    }
}

/// The bytes are what a client sends.
pub fn request(data: &[u8], cuts: Cuts) {
    let (requests, _) = same_in_any_pieces(data, cuts, read_requests);
    let bodies: u64 = requests.iter().map(|r| r.body_bytes).sum();
    assert!(bodies <= data.len() as u64, "bodies grew");
    for request in &requests {
        assert!(!request.method.is_empty() && !request.target.is_empty());
    }
}

/// The bytes are a body in the chunked coding: both parsers must find in it what a decoder finds
/// that sees it whole.
pub fn chunked(data: &[u8], cuts: Cuts) {
    let expected = decode(data);
    let mut answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let head = answer.len();
    answer.extend_from_slice(data);
    let read = |pieces: &[&[u8]]| read_one(pieces);
    let found = same_in_any_pieces(&answer, cuts, read);
    match (&expected, &found) {
        (Decoded::Complete { content, used }, Ok((got, Some(taken)))) => {
            assert!(got == content && *taken == head + used, "{found:?}");
        }
        (Decoded::Partial { content }, Ok((got, None))) => assert_eq!(got, content),
        (Decoded::Malformed, Err(HttpError::Chunk | HttpError::TrailersTooLarge)) => {}
        _ => panic!("expected {expected:?}, found {found:?}"),
    }

    let mut post = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let head = post.len();
    post.extend_from_slice(data);
    let mut parser = RequestParser::default();
    let found = parser.feed(&post);
    match (&expected, found) {
        (Decoded::Complete { content, used }, Ok((taken, true))) => {
            assert_eq!(parser.request().body_bytes, content.len() as u64);
            assert_eq!(taken, head + used);
        }
        (Decoded::Partial { .. }, Ok((_, false))) | (Decoded::Malformed, Err(_)) => {}
        _ => panic!("expected {expected:?}, found {found:?}"),
    }
}

/// HTTP/3: a request's stream gives the same frames however it is split, and so do unidirectional
/// streams; a field section that decodes is encoded to one that decodes to the same.
pub fn http3(data: &[u8], cuts: Cuts) {
    let (frames, _) = same_in_any_pieces(data, cuts, read_request_frames);
    let content: usize = frames.iter().map(Vec::len).sum();
    assert!(content <= 2 * data.len() + 16 * frames.len(), "frames grew");
    for side in [h3::Side::Client, h3::Side::Server] {
        same_in_any_pieces(data, cuts, |pieces| read_uni(pieces, side));
    }
    let decode = |section: &[u8]| {
        let mut fields = Vec::new();
        let done = h3::qpack::decode(section, 65_536, &mut Vec::new(), |name, value| {
            fields.push((name.to_vec(), value.to_vec()));
            Ok(())
        });
        done.map(|()| fields)
    };
    if let Ok(fields) = decode(data) {
        let mut section = Vec::new();
        h3::qpack::begin(&mut section);
        for (name, value) in &fields {
            h3::qpack::encode(&mut section, name, value);
        }
        assert_eq!(decode(&section), Ok(fields));
    }
}

fn read_request_frames(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Option<h3::H3Error>) {
    let mut reader = h3::FrameReader::of_request(4096);
    let mut seen: Vec<Vec<u8>> = Vec::new();
    let mut is_data = false;
    for piece in pieces {
        let fed = reader.feed(piece, |event| {
            match event {
                h3::Event::Data(bytes) => match seen.last_mut() {
                    Some(all) if is_data => all.extend_from_slice(bytes),
                    _ => seen.push(bytes.to_vec()),
                },
                h3::Event::Headers(section) => seen.push(section.to_vec()),
                h3::Event::Control { payload, .. } => seen.push(payload.to_vec()),
            }
            is_data = matches!(event, h3::Event::Data(_));
            Ok(())
        });
        if let Err(error) = fed {
            return (seen, Some(error));
        }
    }
    let end = reader.finish().err();
    (seen, end)
}

fn read_uni(pieces: &[&[u8]], side: h3::Side) -> (Vec<h3::UniEvent>, Option<h3::H3Error>) {
    let mut reader = h3::UniReader::new(side);
    let mut seen = Vec::new();
    for piece in pieces {
        let fed = reader.feed(piece, |event| {
            seen.push(event);
            Ok(())
        });
        if let Err(error) = fed {
            return (seen, Some(error));
        }
    }
    (seen, None)
}

/// The bytes are what a peer sends on an HTTP/2 connection.
pub fn http2(data: &[u8], cuts: Cuts) {
    for is_server in [false, true] {
        let read = |pieces: &[&[u8]]| read_frames(pieces, is_server);
        let (frames, _) = same_in_any_pieces(data, cuts, read);
        let sizes = frames.iter().map(|one| match one {
            Seen::Data(..) => 16,
            Seen::Other(words) => words.len(),
        });
        let content: usize = sizes.sum();
        assert!(content <= 64 * (data.len() + 1), "frames grew");
    }
}

/// What was read of an HTTP/2 connection.
#[derive(Debug, PartialEq)]
enum Seen {
    /// A stream, bytes of its content that follow each other, their weight, and whether it ended.
    Data(u32, usize, u64, bool),
    Other(String),
}

/// The events of a connection, and the error that ended it.
fn read_frames(pieces: &[&[u8]], is_server: bool) -> (Vec<Seen>, Option<H2Error>) {
    const FRAME_MAX: u32 = 16_384;
    const BLOCK_MAX: usize = 4_096;
    let mut reader = match is_server {
        true => FrameReader::of_server(FRAME_MAX, BLOCK_MAX),
        false => FrameReader::new(FRAME_MAX, BLOCK_MAX),
    };
    let mut decoder = hpack::Decoder::new(4_096, BLOCK_MAX);
    let mut seen: Vec<Seen> = Vec::new();
    for piece in pieces {
        let fed = reader.feed(piece, |event| {
            let words = match event {
                Event::Data {
                    stream,
                    bytes,
                    flow,
                    end_stream,
                } => {
                    let (len, flow) = (bytes.len(), u64::from(flow));
                    match seen.last_mut() {
                        Some(Seen::Data(same, all, weight, end @ false)) if *same == stream => {
                            (*all, *weight, *end) = (*all + len, *weight + flow, end_stream);
                        }
                        _ => seen.push(Seen::Data(stream, len, flow, end_stream)),
                    }
                    return Ok(());
                }
                Event::Headers {
                    stream,
                    end_stream,
                    block,
                } => {
                    let (mut fields, mut size) = (0, 0);
                    decoder.decode(block, |name, value| {
                        (fields, size) = (fields + 1, size + name.len() + value.len());
                        Ok(())
                    })?;
                    assert!(size <= BLOCK_MAX);
                    format!("headers {stream} {end_stream} {fields} {size}")
                }
                Event::Settings { ack, values } => format!("settings {ack} {}", values.count()),
                Event::Reset { stream, code } => format!("reset {stream} {code}"),
                Event::GoAway { last_stream, code } => format!("go away {last_stream} {code}"),
                Event::Ping { ack, data } => format!("ping {ack} {data:?}"),
                Event::WindowUpdate { stream, increment } => format!("window {stream} {increment}"),
                Event::StreamError { stream, code } => format!("fault {stream} {code:?}"),
            };
            seen.push(Seen::Other(words));
            Ok(())
        });
        if let Err(error) = fed {
            assert!(!error.to_string().is_empty());
            return (seen, Some(error));
        }
    }
    (seen, None)
}

#[derive(Debug, PartialEq)]
struct Answer {
    status: u16,
    keep_alive: bool,
    content: Vec<u8>,
}

/// What the bytes of a connection mean.
#[derive(Debug, Default, PartialEq)]
struct Answers {
    complete: Vec<Answer>,
    /// Content of an answer that is not complete.
    rest: Vec<u8>,
    error: Option<HttpError>,
}

fn read_answers(pieces: &[&[u8]], head_request: bool) -> Answers {
    let mut parser = ResponseParser::new(head_request);
    let mut answers = Answers::default();
    'pieces: for piece in pieces {
        let mut left = *piece;
        while !left.is_empty() {
            match parser.feed(left, |bytes| answers.rest.extend_from_slice(bytes)) {
                Ok(Progress::More) => break,
                Ok(Progress::Done { taken }) => {
                    assert!(taken <= left.len());
                    left = &left[taken..];
                    let head = parser.head();
                    answers.complete.push(Answer {
                        status: head.status,
                        keep_alive: head.keep_alive,
                        content: std::mem::take(&mut answers.rest),
                    });
                    assert!(parser.at_start());
                }
                Err(e) => {
                    answers.error = Some(e);
                    break 'pieces;
                }
            }
        }
    }
    if answers.error.is_some() {
        parser.reset();
    } else if parser.end() {
        answers.complete.push(Answer {
            status: parser.head().status,
            keep_alive: parser.head().keep_alive,
            content: std::mem::take(&mut answers.rest),
        });
    }
    // Whatever came, the parser serves the next connection as a new one does.
    assert!(parser.at_start());
    let good = b"HTTP/1.1 204 No Content\r\n\r\n";
    let taken = good.len();
    assert_eq!(parser.feed(good, |_| {}), Ok(Progress::Done { taken }));
    answers
}

/// The content of one answer, and how many bytes it took when it is complete.
fn read_one(pieces: &[&[u8]]) -> Result<(Vec<u8>, Option<usize>), HttpError> {
    let mut parser = ResponseParser::new(false);
    let mut content = Vec::new();
    let mut before = 0;
    for piece in pieces {
        match parser.feed(piece, |bytes| content.extend_from_slice(bytes))? {
            Progress::More => before += piece.len(),
            Progress::Done { taken } => return Ok((content, Some(before + taken))),
        }
    }
    Ok((content, None))
}

fn read_requests(pieces: &[&[u8]]) -> (Vec<Request>, Option<HttpError>) {
    let mut parser = RequestParser::default();
    let mut requests = Vec::new();
    for piece in pieces {
        let mut left = *piece;
        while !left.is_empty() {
            match parser.feed(left) {
                Ok((taken, complete)) => {
                    assert!(
                        taken <= left.len() && (taken > 0 || complete),
                        "no progress"
                    );
                    left = &left[taken..];
                    if complete {
                        requests.push(parser.request().clone());
                    }
                }
                Err(e) => return (requests, Some(e)),
            }
        }
    }
    (requests, None)
}

/// Reads the bytes cut in several ways; all have to mean the same.
fn same_in_any_pieces<R: PartialEq + Debug>(
    data: &[u8],
    cuts: Cuts,
    read: impl Fn(&[&[u8]]) -> R,
) -> R {
    let whole = read(&[data]);
    let single: Vec<&[u8]> = data.chunks(1).collect();
    assert_eq!(read(&single), whole, "in single bytes");
    let mut random = fnv(data);
    for _ in 0..3 {
        let mut pieces = Vec::new();
        let mut left = data;
        while !left.is_empty() {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            // Mostly short pieces: heads and chunk lines are short.
            let most = 1 + (random >> 40) as usize % 64;
            let (piece, rest) = left.split_at(left.len().min(1 + (random >> 33) as usize % most));
            pieces.push(piece);
            left = rest;
        }
        assert_eq!(read(&pieces), whole, "in pieces {pieces:?}");
    }
    if cuts == Cuts::All {
        for at in 0..=data.len() {
            let (one, two) = data.split_at(at);
            assert_eq!(read(&[one, two]), whole, "cut at {at}");
        }
    }
    whole
}

/// The FNV-1a hash: a seed that depends on the bytes alone.
fn fnv(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// What the chunked coding of RFC 9112 section 7.1 makes of some bytes.
#[derive(Debug)]
enum Decoded {
    Complete { content: Vec<u8>, used: usize },
    Partial { content: Vec<u8> },
    Malformed,
}

/// A line of the chunked coding, cut at its end.
enum Line<'a> {
    Whole(&'a [u8], &'a [u8]),
    Partial(&'a [u8]),
    Malformed,
}

fn line(bytes: &[u8]) -> Line<'_> {
    let end = bytes.iter().position(|b| matches!(b, b'\r' | b'\n'));
    match end.map(|at| (at, &bytes[at..])) {
        None | Some((_, b"\r")) => Line::Partial(&bytes[..end.unwrap_or(bytes.len())]),
        Some((at, [b'\r', b'\n', rest @ ..])) => Line::Whole(&bytes[..at], rest),
        Some(_) => Line::Malformed,
    }
}

/// The size in a line, or in the beginning of one; `None` when it is malformed.
fn size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let behind = &line[digits..];
    let blanks = behind
        .iter()
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count();
    let extension = &behind[blanks..];
    let fits = digits <= 16 && behind.len() <= 4096 && !behind.contains(&0);
    let named = extension.is_empty() || extension[0] == b';';
    let text = std::str::from_utf8(&line[..digits]).ok()?;
    (fits && named).then(|| u64::from_str_radix(text, 16).ok())?
}

fn decode(data: &[u8]) -> Decoded {
    let mut content = Vec::new();
    let mut rest = data;
    loop {
        let left = match line(rest) {
            Line::Malformed => return Decoded::Malformed,
            Line::Partial(b"") if !rest.starts_with(b"\r") => return Decoded::Partial { content },
            Line::Partial(start) if size(start).is_some() => return Decoded::Partial { content },
            Line::Partial(_) => return Decoded::Malformed,
            Line::Whole(text, behind) => {
                rest = behind;
                match size(text) {
                    None => return Decoded::Malformed,
                    Some(0) => break,
                    Some(left) => left,
                }
            }
        };
        let here = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
        content.extend_from_slice(&rest[..here]);
        rest = match &rest[here..] {
            [b'\r', b'\n', behind @ ..] => behind,
            [] | [b'\r'] => return Decoded::Partial { content },
            _ => return Decoded::Malformed,
        };
    }
    let mut trailers = 0;
    loop {
        let (text, behind) = match line(rest) {
            Line::Malformed => return Decoded::Malformed,
            Line::Partial(start) => (start, None),
            Line::Whole(text, behind) => (text, Some(behind)),
        };
        trailers += text.len();
        match behind {
            _ if trailers > 16 * 1024 => return Decoded::Malformed,
            None => return Decoded::Partial { content },
            Some(behind) => rest = behind,
        }
        if text.is_empty() {
            let used = data.len() - rest.len();
            return Decoded::Complete { content, used };
        }
    }
}
