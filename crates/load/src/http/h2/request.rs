//! A request as HTTP/2 sends it.

use std::sync::Arc;

use net::h2::hpack;

use crate::job::fields;

/// A header block, encoded once: it refers to the static table only, so that every connection can
/// send it at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EncodedRequest {
    pub(crate) block: Vec<u8>,
    pub(crate) body: Arc<[u8]>,
    pub(crate) is_head: bool,
    /// Bytes at the end of the body that are not sent before [`super::Session::release`].
    pub(crate) held_back: usize,
}

impl EncodedRequest {
    /// Converts the bytes of an HTTP/1.1 request; `None` if they are not one.
    pub(crate) fn of(bytes: &[u8], scheme: &str) -> Option<Self> {
        let mut block = Vec::new();
        let body = fields::read(bytes, scheme, |name, value| {
            hpack::encode(&mut block, name, value);
        })?;
        Some(Self {
            block,
            body: Arc::from(body),
            is_head: fields::is_head(bytes),
            held_back: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_keeps_its_fields_but_those_of_a_connection() {
        let bytes = b"POST /a?b HTTP/1.1\r\nHost: x:1\r\nConnection: close\r\nX-Y: z\r\n\
                      Content-Length: 2\r\n\r\nhi";
        let request = EncodedRequest::of(bytes, "https").unwrap();
        assert_eq!((&request.body[..], request.is_head), (&b"hi"[..], false));
        let mut fields = Vec::new();
        let mut decoder = hpack::Decoder::new(0, 10_000);
        decoder
            .decode(&request.block, |name, value| {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                fields.push((text(name), text(value)));
                Ok(())
            })
            .unwrap();
        let expected = [
            (":method", "POST"),
            (":scheme", "https"),
            (":authority", "x:1"),
            (":path", "/a?b"),
            ("x-y", "z"),
            ("content-length", "2"),
        ];
        assert_eq!(
            fields,
            expected.map(|(n, v)| (n.to_string(), v.to_string()))
        );
        assert_eq!(EncodedRequest::of(b"GET /\r\n", "http"), None);
    }
}
