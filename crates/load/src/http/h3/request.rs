//! A request as HTTP/3 sends it.

use std::sync::Arc;

use bytes::Bytes;
use net::h3::{frame, qpack};

use crate::job::fields;

/// The frames of a request, encoded once: the field section refers to the static table only, so that
/// every connection can send it at any time.
#[derive(Clone, Debug)]
pub(crate) struct EncodedRequest {
    pub(crate) frames: Bytes,
    pub(crate) is_head: bool,
}

impl EncodedRequest {
    /// Converts the bytes of an HTTP/1.1 request; `None` if they are not one.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let mut section = Vec::new();
        qpack::begin(&mut section);
        let body = fields::read(bytes, "https", |name, value| {
            qpack::encode(&mut section, name, value);
        })?;
        Some(Self {
            frames: frames(&section, body),
            is_head: fields::is_head(bytes),
        })
    }
}

/// The frames of a request with this field section and body.
pub(crate) fn frames(section: &[u8], body: &[u8]) -> Bytes {
    // The heads of two frames take 18 bytes at most.
    let mut frames = Vec::with_capacity(section.len() + body.len() + 18);
    frame::headers(&mut frames, section);
    if !body.is_empty() {
        frame::data_head(&mut frames, body.len() as u64);
        frames.extend_from_slice(body);
    }
    frames.into()
}

/// The same in two parts, the second of which is the body itself.
pub(crate) fn frames_of_shared(section: &[u8], body: Arc<[u8]>) -> [Bytes; 2] {
    let mut heads = Vec::with_capacity(section.len() + 18);
    frame::headers(&mut heads, section);
    frame::data_head(&mut heads, body.len() as u64);
    [heads.into(), Bytes::from_owner(body)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_body_is_sent_from_where_it_is() {
        let body: Arc<[u8]> = Arc::from(vec![b'x'; 20_000]);
        let parts = [(); 2].map(|()| frames_of_shared(b"section", body.clone()));
        for [_, sent] in &parts {
            assert_eq!(sent.as_ptr(), body.as_ptr());
        }
        assert_eq!(parts[0].concat(), frames(b"section", &body));
    }
}
