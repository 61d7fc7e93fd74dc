//! WebSocket handshakes between HTTP/2 (RFC 8441) and HTTP/1.1 (RFC 6455 section 4).

use net::FieldSection;
use net::ws::handshake;

use super::to_http_1::field;

/// Whether a head asks for a WebSocket by extended CONNECT.
pub(crate) fn asks_websocket(head: &FieldSection) -> bool {
    head.protocol().is_some_and(is_websocket)
}

pub(super) fn is_websocket(protocol: &[u8]) -> bool {
    protocol.eq_ignore_ascii_case(b"websocket")
}

pub(crate) fn new_key() -> String {
    handshake::key(fastrand::u128(..))
}

/// Appends the fields of a request that asks for a WebSocket.
pub(super) fn write_asking(key: &str, out: &mut Vec<u8>) {
    field(b"Upgrade", b"websocket", out);
    field(b"Connection", b"Upgrade", out);
    field(b"Sec-WebSocket-Key", key.as_bytes(), out);
}

/// Appends the head of the response that agrees to a WebSocket. `key`: that of the client.
pub(crate) fn write_switch(head: &FieldSection, key: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\n");
    field(b"Upgrade", b"websocket", out);
    field(b"Connection", b"Upgrade", out);
    let accept = handshake::accept_of(key);
    field(b"Sec-WebSocket-Accept", accept.as_bytes(), out);
    for (name, value) in head.fields() {
        if !matches!(name, b"content-length" | b"sec-websocket-accept") {
            field(name, value, out);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Whether a server has agreed to a WebSocket for this key, by the fields of its 101.
pub(super) fn is_agreed<'h>(
    fields: impl Iterator<Item = (&'h [u8], &'h [u8])> + Clone,
    key: &str,
) -> bool {
    let value = |wanted: &[u8]| {
        let mut same = fields
            .clone()
            .filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        same.next().map(|(_, value)| value)
    };
    value(b"upgrade").is_some_and(is_websocket)
        && value(b"sec-websocket-accept") == Some(handshake::accept_of(key).as_bytes())
}
