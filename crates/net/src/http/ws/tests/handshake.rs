//! The opening handshake.

use crate::ws::Deflate;
use crate::ws::handshake::*;

type Fields<'a> = Vec<(&'a str, &'a str)>;

fn bytes<'a>(fields: &'a Fields<'a>) -> impl Iterator<Item = (&'a str, &'a [u8])> + Clone {
    fields.iter().map(|(name, value)| (*name, value.as_bytes()))
}

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

fn request() -> Fields<'static> {
    vec![
        ("Host", "server.example.com"),
        ("upgrade", "h2c, WebSocket"),
        ("Connection", "keep-alive, upgrade"),
        ("Sec-WebSocket-Key", KEY),
        ("Sec-WebSocket-Version", "13"),
    ]
}

fn answer() -> Fields<'static> {
    vec![
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
    ]
}

#[test]
fn the_example_of_the_rfc_is_accepted_on_both_sides() {
    let fields = request();
    let accepted = accept_request("GET", bytes(&fields), true).unwrap();
    assert_eq!(accepted.accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_eq!(accepted.deflate, None);
    let fields = answer();
    assert_eq!(check_answer(101, bytes(&fields), KEY, true), Ok(None));
    assert_eq!(key(u128::MAX), "/////////////////////w==");
}

#[test]
fn requests_that_ask_for_something_else_are_refused() {
    let with = |name: &'static str, value: &'static str| {
        let mut fields = request();
        fields.retain(|(known, _)| *known != name);
        fields.push((name, value));
        accept_request("GET", bytes(&fields), true).unwrap_err()
    };
    assert_eq!(with("upgrade", "websockets"), HandshakeError::Upgrade);
    assert_eq!(with("Connection", "close"), HandshakeError::Connection);
    assert_eq!(with("Sec-WebSocket-Key", "AAAA"), HandshakeError::Key);
    assert_eq!(with("Sec-WebSocket-Version", "8"), HandshakeError::Version);
    let fields = request();
    let post = accept_request("POST", bytes(&fields), true);
    assert_eq!(post.unwrap_err(), HandshakeError::Method);
}

#[test]
fn answers_that_agree_to_something_else_are_refused() {
    let with = |name: &'static str, value: &'static str| {
        let mut fields = answer();
        fields.retain(|(known, _)| *known != name);
        fields.push((name, value));
        check_answer(101, bytes(&fields), KEY, true).unwrap_err()
    };
    assert_eq!(with("Upgrade", "h2c"), HandshakeError::Upgrade);
    assert_eq!(with("Connection", "close"), HandshakeError::Connection);
    assert_eq!(with("Sec-WebSocket-Accept", "AAAA"), HandshakeError::Accept);
    let extensions = "Sec-WebSocket-Extensions";
    for wrong in [
        "permessage-bzip2",
        "permessage-deflate; client_max_window_bits=10",
        "permessage-deflate; server_max_window_bits=16",
        "permessage-deflate; server_max_window_bits",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        "permessage-deflate, permessage-deflate",
    ] {
        assert_eq!(
            with(extensions, wrong),
            HandshakeError::Extensions,
            "{wrong}"
        );
    }
    assert_eq!(
        with("Sec-WebSocket-Protocol", "chat"),
        HandshakeError::Protocol
    );
    let mut fields = answer();
    let status = check_answer(200, bytes(&fields), KEY, true);
    assert_eq!(status, Err(HandshakeError::Status(200)));
    fields.push((extensions, "permessage-deflate"));
    let not_offered = check_answer(101, bytes(&fields), KEY, false);
    assert_eq!(not_offered, Err(HandshakeError::Extensions));
}

#[test]
fn compression_is_agreed_on_by_both_sides() {
    let mut fields = request();
    let offers = "permessage-deflate; server_max_window_bits=9, x-other, \
                  permessage-deflate; client_max_window_bits; server_no_context_takeover";
    fields.push(("Sec-WebSocket-Extensions", offers));
    let accepted = accept_request("GET", bytes(&fields), true).unwrap();
    let deflate = Deflate {
        client_no_context_takeover: false,
        server_no_context_takeover: true,
    };
    assert_eq!(accepted.deflate, Some(deflate));
    let head = accepted.answer("Server: test\r\n");
    let fields = crate::http::response_fields(head.as_bytes());
    let fields = fields.iter();
    let fields = fields.map(|(name, value)| (name.as_str(), value.as_slice()));
    assert_eq!(check_answer(101, fields, KEY, true), Ok(Some(deflate)));
    let fields = request();
    assert_eq!(accept_extension(bytes(&fields)), None);
}
