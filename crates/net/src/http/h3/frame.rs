//! Writes frames, RFC 9114 section 7.2.

use super::{kind, stream, varint};

fn frame(out: &mut Vec<u8>, kind: u64, payload: &[u8]) {
    varint::write(out, kind);
    varint::write(out, payload.len() as u64);
    out.extend_from_slice(payload);
}

/// HEADERS with a field section of [`super::qpack`].
pub fn headers(out: &mut Vec<u8>, section: &[u8]) {
    frame(out, kind::HEADERS, section);
}

/// The head of a DATA frame, whose content follows.
pub fn data_head(out: &mut Vec<u8>, bytes: u64) {
    varint::write(out, kind::DATA);
    varint::write(out, bytes);
}

/// The start of a control stream: its type and SETTINGS.
pub fn control(out: &mut Vec<u8>, settings: &[(u64, u64)]) {
    varint::write(out, stream::CONTROL);
    let mut payload = Vec::new();
    for (id, value) in settings {
        varint::write(&mut payload, *id);
        varint::write(&mut payload, *value);
    }
    frame(out, kind::SETTINGS, &payload);
}

/// GOAWAY: requests from this stream on are not processed.
pub fn go_away(out: &mut Vec<u8>, id: u64) {
    let mut payload = Vec::new();
    varint::write(&mut payload, id);
    frame(out, kind::GOAWAY, &payload);
}
