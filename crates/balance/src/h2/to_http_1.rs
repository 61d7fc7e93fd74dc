//! From HTTP/2 to HTTP/1.1: heads, content and trailers.

use std::io::Write as _;

use net::FieldSection;
use net::http::may_have_content;

use super::websocket::write_asking;
use crate::http::reason;

/// Appends the head of a request. Returns whether its content is sent in chunks. `key`: that of the
/// WebSocket for which it asks.
pub(crate) fn write_request(
    head: &FieldSection,
    is_complete: bool,
    key: Option<&str>,
    out: &mut Vec<u8>,
) -> bool {
    let is_chunked = !is_complete && head.length().is_none() && key.is_none();
    let method = match key {
        Some(_) => b"GET",
        None => head.method(),
    };
    for part in [method, b" ", head.path(), b" HTTP/1.1\r\n"] {
        out.extend_from_slice(part);
    }
    if let Some(authority) = head.authority() {
        field(b"Host", authority, out);
    }
    let mut cookies = 0;
    for (name, value) in head.fields() {
        match name {
            b"host" => {}
            b"sec-websocket-key" if key.is_some() => {}
            // Clients may send each cookie in a field of its own (RFC 9113 8.2.3).
            b"cookie" => cookies += 1,
            b"te" => {
                field(b"TE", value, out);
                field(b"Connection", b"TE", out);
            }
            _ => field(name, value, out),
        }
    }
    if cookies > 0 {
        out.extend_from_slice(b"cookie: ");
        let values = head.fields().filter(|(name, _)| *name == b"cookie");
        for (at, (_, value)) in values.enumerate() {
            if at > 0 {
                out.extend_from_slice(b"; ");
            }
            out.extend_from_slice(value);
        }
        out.extend_from_slice(b"\r\n");
    }
    if let Some(key) = key {
        write_asking(key, out);
    }
    if is_chunked {
        field(b"Transfer-Encoding", b"chunked", out);
    }
    out.extend_from_slice(b"\r\n");
    is_chunked
}

/// Appends the head of a response. Returns whether its content is sent in chunks.
pub(crate) fn write_response(
    head: &FieldSection,
    is_complete: bool,
    is_head_request: bool,
    out: &mut Vec<u8>,
) -> bool {
    let status = head.status();
    let may_have_content = may_have_content(status, is_head_request);
    let is_unframed = may_have_content && head.length().is_none();
    // Writing into a vector cannot fail.
    let _ = write!(out, "HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in head.fields() {
        field(name, value, out);
    }
    match (is_unframed, is_complete) {
        (true, true) => field(b"Content-Length", b"0", out),
        (true, false) => field(b"Transfer-Encoding", b"chunked", out),
        (false, _) => {}
    }
    out.extend_from_slice(b"\r\n");
    is_unframed && !is_complete
}

pub(super) fn field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// A chunk at the end of a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    /// Where its size begins.
    start: usize,
    /// Its content, bytes.
    bytes: usize,
}

/// Content is added to the previous chunk while that has fewer bytes, so that small DATA frames do not
/// cost a chunk head each.
const CHUNK_MIN: usize = 1024;

/// Appends content as a chunk, or to `last`, the chunk at the end of `out`. Returns that chunk.
pub(crate) fn chunk(bytes: &[u8], last: Option<Chunk>, out: &mut Vec<u8>) -> Option<Chunk> {
    if bytes.is_empty() {
        return last;
    }
    let last = last.filter(|last| last.bytes < CHUNK_MIN);
    let chunk = Chunk {
        start: last.map_or(out.len(), |last| last.start),
        bytes: bytes.len() + last.map_or(0, |last| last.bytes),
    };
    let mut text = [0; 16];
    let mut rest = &mut text[..];
    // A length has 16 digits at most.
    let _ = write!(rest, "{:x}", chunk.bytes);
    let digits = 16 - rest.len();
    let size = &text[..digits];
    match last {
        Some(last) => {
            let digits = last.bytes.ilog2() as usize / 4 + 1;
            out.splice(chunk.start..chunk.start + digits, size.iter().copied());
            out.truncate(out.len() - b"\r\n".len());
        }
        None => {
            out.extend_from_slice(size);
            out.extend_from_slice(b"\r\n");
        }
    }
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    Some(chunk)
}

/// Appends the last chunk, with the trailer section.
pub(crate) fn last_chunk(trailers: Option<&FieldSection>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers.into_iter().flat_map(FieldSection::fields) {
        field(name, value, out);
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_share_a_chunk() {
        let mut out = b"head".to_vec();
        let mut last = None;
        for _ in 0..20 {
            last = chunk(b"x", last, &mut out);
            assert!(chunk(b"", last, &mut out).is_some());
        }
        let twenty = format!("head14\r\n{}\r\n", "x".repeat(20));
        assert_eq!(out, twenty.as_bytes());
        // A long one has its own, and what follows it as well.
        out.clear();
        last = chunk(&[b'y'; 5_000], None, &mut out);
        chunk(b"z", last, &mut out);
        let both = format!("1388\r\n{}\r\n1\r\nz\r\n", "y".repeat(5_000));
        assert_eq!(out, both.as_bytes());
        // In single bytes, content takes little more than its length.
        out.clear();
        last = None;
        for _ in 0..100_000 {
            last = chunk(b"x", last, &mut out);
        }
        assert!(out.len() < 101_000, "{}", out.len());
    }
}
