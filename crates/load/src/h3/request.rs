//! A request as HTTP/3 sends it.

use bytes::Bytes;
use net::h3::{frame, qpack};

use crate::request_fields;

/// The frames of an HTTP/1.1 request, encoded once: the field section refers to the static table
/// only, so that every connection can send it at any time. `None` if the bytes are no such request.
pub(crate) fn encoded(bytes: &[u8]) -> Option<Bytes> {
    let mut section = Vec::new();
    qpack::begin(&mut section);
    let body = request_fields::read(bytes, "https", |name, value| {
        qpack::encode(&mut section, name, value);
    })?;
    let mut out = Vec::new();
    frame::headers(&mut out, &section);
    if !body.is_empty() {
        frame::data_head(&mut out, body.len() as u64);
        out.extend_from_slice(body);
    }
    Some(out.into())
}
