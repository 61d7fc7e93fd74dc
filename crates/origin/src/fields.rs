//! Heads of requests and answers in HTTP/2 and HTTP/3.

use net::FieldSection;
use net::http::Request;

/// A request whose head was checked. The protocol of an extended CONNECT (RFC 8441) is its field
/// `:protocol`.
pub(crate) fn request(head: &FieldSection) -> Request {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let protocol = head.protocol().map(|value| (&b":protocol"[..], value));
    let protocol = protocol.into_iter();
    Request {
        method: text(head.method()),
        target: text(head.path()),
        keep_alive: true,
        is_http_1_0: false,
        fields: protocol
            .chain(head.fields())
            .map(|(name, value)| (text(name), text(value)))
            .collect(),
        body_bytes: 0,
        body_crc32: 0,
    }
}

/// Passes the fields in the head of an HTTP/1.1 answer of [`crate::pages`] to `each`, `:status`
/// first.
pub(crate) fn answer_fields(head: &[u8], mut each: impl FnMut(&[u8], &[u8])) {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    each(b":status", status.unwrap_or("500").as_bytes());
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        let name = name.to_ascii_lowercase();
        if !matches!(name.as_str(), "connection" | "transfer-encoding") {
            each(name.as_bytes(), value.as_bytes());
        }
    }
}
