//! Writing frames; each function appends to `out`.

use super::ErrorCode;
use super::head::{LENGTH_MAX, LOW_31, flag, kind};

#[inline]
fn head(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    debug_assert!(length <= LENGTH_MAX, "a frame of {length} bytes");
    let [.., l0, l1, l2] = length.to_be_bytes();
    let [s0, s1, s2, s3] = (stream & LOW_31).to_be_bytes();
    out.extend_from_slice(&[l0, l1, l2, kind, flags, s0, s1, s2, s3]);
}

/// SETTINGS: pairs of an identifier of [`super::settings`] and its value.
pub fn settings(out: &mut Vec<u8>, values: &[(u16, u32)]) {
    head(out, values.len() * 6, kind::SETTINGS, 0, 0);
    for (id, value) in values {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// The acknowledgement of the peer's SETTINGS.
pub fn settings_ack(out: &mut Vec<u8>) {
    head(out, 0, kind::SETTINGS, flag::ACK, 0);
}

/// The answer to a PING, with its data.
pub fn ping_ack(out: &mut Vec<u8>, data: [u8; 8]) {
    head(out, 8, kind::PING, flag::ACK, 0);
    out.extend_from_slice(&data);
}

pub fn ping(out: &mut Vec<u8>, data: [u8; 8]) {
    head(out, 8, kind::PING, 0, 0);
    out.extend_from_slice(&data);
}

/// WINDOW_UPDATE; stream 0 is the connection. `increment` is 1 to 2^31-1.
pub fn window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    debug_assert!((1..=LOW_31).contains(&increment), "increment {increment}");
    head(out, 4, kind::WINDOW_UPDATE, 0, stream);
    out.extend_from_slice(&(increment & LOW_31).to_be_bytes());
}

/// RST_STREAM.
pub fn reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    head(out, 4, kind::RST_STREAM, 0, stream);
    out.extend_from_slice(&(code as u32).to_be_bytes());
}

/// GOAWAY without debug data.
pub fn go_away(out: &mut Vec<u8>, last_stream: u32, code: ErrorCode) {
    head(out, 8, kind::GOAWAY, 0, 0);
    out.extend_from_slice(&(last_stream & LOW_31).to_be_bytes());
    out.extend_from_slice(&(code as u32).to_be_bytes());
}

/// HEADERS, with CONTINUATION frames where the block is longer than `max_frame`.
pub fn headers(out: &mut Vec<u8>, stream: u32, block: &[u8], end_stream: bool, max_frame: u32) {
    let max = (max_frame as usize).clamp(1, LENGTH_MAX);
    let ends_stream = if end_stream { flag::END_STREAM } else { 0 };
    let ends_block = |last: bool| if last { flag::END_HEADERS } else { 0 };
    let (first, mut rest) = block.split_at(block.len().min(max));
    let flags = ends_stream | ends_block(rest.is_empty());
    head(out, first.len(), kind::HEADERS, flags, stream);
    out.extend_from_slice(first);
    while !rest.is_empty() {
        let (next, behind) = rest.split_at(rest.len().min(max));
        let flags = ends_block(behind.is_empty());
        head(out, next.len(), kind::CONTINUATION, flags, stream);
        out.extend_from_slice(next);
        rest = behind;
    }
}

/// One DATA frame; the peer's longest frame and the windows are the caller's duty.
pub fn data(out: &mut Vec<u8>, stream: u32, bytes: &[u8], end_stream: bool) {
    let flags = if end_stream { flag::END_STREAM } else { 0 };
    head(out, bytes.len(), kind::DATA, flags, stream);
    out.extend_from_slice(bytes);
}
