//! Extended CONNECT (RFC 8441) on both sides.

use super::tests::{LIMITS, data, head};
use super::*;
use crate::http::h2::hpack::block;
use crate::http::h2::{ErrorCode, H2Error, PREFACE, frame};

const CONNECT: [(&str, &str); 5] = [
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    (":scheme", "https"),
    (":path", "/chat"),
    (":authority", "a.example"),
];

/// Feeds a session. Returns a word for each [`Incoming`].
fn seen(session: &mut Session, input: &[u8]) -> Result<Vec<String>, H2Error> {
    let mut all = Vec::new();
    session.feed(input, |incoming| {
        all.push(match incoming {
            Incoming::Head { stream, head, .. } => {
                let protocol = head.protocol().unwrap_or(b"-");
                let protocol = String::from_utf8_lossy(protocol);
                format!("{stream} {} {protocol}", head.status())
            }
            Incoming::Data {
                stream,
                bytes,
                is_complete,
                ..
            } => format!("{stream} {}B {is_complete}", bytes.len()),
            Incoming::Trailers { stream, .. } => format!("{stream} trailers"),
            Incoming::Reset { stream, cause } => format!("{stream} {cause:?}"),
            Incoming::Malformed => "malformed".into(),
        });
    })?;
    Ok(all)
}

/// A server that takes extended CONNECT, or does not, after the client's settings.
fn server(takes_connect: bool) -> Session {
    let mut session = Session::of_server(LIMITS);
    if takes_connect {
        session = session.with_extended_connect();
    }
    let mut hello = PREFACE.to_vec();
    frame::settings(&mut hello, &[]);
    session.feed(&hello, |_| panic!("no request yet")).unwrap();
    session
}

#[test]
fn a_server_announces_it_beside_its_windows() {
    let values = |session: &Session| {
        let mut values = Vec::new();
        let mut reader = FrameReader::new(16_384, 1 << 16);
        let read = reader.feed(&session.out, |event| {
            if let crate::http::h2::Event::Settings { values: all, .. } = event {
                values.extend(all);
            }
            Ok(())
        });
        read.unwrap();
        values
    };
    let plain = Session::of_server(LIMITS);
    assert_eq!(values(&plain), [(3, 4)]);
    assert_eq!(values(&plain.with_extended_connect()), [(3, 4), (8, 1)]);
    let both = Session::of_server(LIMITS).with_extended_connect();
    assert_eq!(
        values(&both.with_windows(1 << 20)),
        [(3, 4), (4, 1 << 20), (8, 1)]
    );
}

#[test]
fn it_is_refused_where_it_was_not_announced_or_is_malformed() {
    let bad = |fields: &[(&str, &str)]| {
        let words = seen(&mut server(true), &head(1, fields, false)).unwrap();
        assert_eq!(words, ["malformed"], "{fields:?}");
    };
    let words = seen(&mut server(false), &head(1, &CONNECT, false)).unwrap();
    assert_eq!(words, ["malformed"]);
    let words = seen(&mut server(true), &head(1, &CONNECT, false)).unwrap();
    assert_eq!(words, ["1 0 websocket"]);
    for at in 0..CONNECT.len() {
        let mut fields = CONNECT.to_vec();
        fields.remove(at);
        // Without a protocol it is a plain CONNECT, which the user of the session refuses.
        if at != 1 {
            bad(&fields);
        }
    }
    for (at, value) in [(0, "GET"), (1, ""), (1, "web socket"), (2, "ws"), (3, "*")] {
        let mut fields = CONNECT.to_vec();
        fields[at].1 = value;
        bad(&fields);
    }
    for field in [
        ("content-length", "5"),
        (":protocol", "x"),
        ("upgrade", "websocket"),
    ] {
        let mut fields = CONNECT.to_vec();
        fields.push(field);
        bad(&fields);
    }
}

#[test]
fn each_side_of_a_tunnel_ends_on_its_own() {
    for server_first in [false, true] {
        let mut session = server(true);
        seen(&mut session, &head(1, &CONNECT, false)).unwrap();
        session.send_headers(1, &block(&[(":status", "200")]), false);
        session.accept_tunnel(1);
        assert_eq!(session.send_data(1, b"hello", server_first), 5);
        let end = data(1, b"bye", true);
        if server_first {
            assert!(session.is_open(1) && !session.is_sending(1));
            assert_eq!(seen(&mut session, &end).unwrap(), ["1 3B true"]);
        } else {
            assert_eq!(seen(&mut session, &end).unwrap(), ["1 3B true"]);
            assert!(session.is_sending(1));
            session.send_data(1, b"", true);
        }
        assert!(!session.is_open(1));
        assert!(!session.was_reset(1), "a tunnel ends without a reset");
    }
}

#[test]
fn a_refused_tunnel_ends_like_a_request() {
    let mut session = server(true);
    seen(&mut session, &head(1, &CONNECT, false)).unwrap();
    session.send_headers(1, &block(&[(":status", "403")]), true);
    assert!(!session.is_open(1) && session.was_reset(1));
    // What the client had sent before it knew is ignored.
    assert_eq!(
        seen(&mut session, &data(1, b"early", false)).unwrap(),
        [""; 0]
    );
}

#[test]
fn a_tunnel_has_no_trailers() {
    for accepted in [false, true] {
        let mut session = server(true);
        seen(&mut session, &head(1, &CONNECT, false)).unwrap();
        if accepted {
            session.accept_tunnel(1);
        }
        let words = seen(&mut session, &head(1, &[("x-a", "b")], true)).unwrap();
        assert_eq!(words, ["1 Fault"]);
    }
}

#[test]
fn a_client_learns_that_it_is_taken_and_opens_tunnels() {
    let mut session = Session::of_client(LIMITS);
    let settings = |value| {
        let mut out = Vec::new();
        frame::settings(&mut out, &[(8, value)]);
        out
    };
    assert!(!session.takes_extended_connect());
    seen(&mut session, &settings(1)).unwrap();
    assert!(session.takes_extended_connect());
    let stream = session.open(&block(&CONNECT), false).unwrap();
    session.expect_tunnel(stream);
    // A length says nothing about a tunnel.
    let fields = [(":status", "200"), ("content-length", "0")];
    let mut input = head(stream, &fields, false);
    input.extend(data(stream, b"hello", true));
    let words = seen(&mut session, &input).unwrap();
    assert_eq!(words, ["1 200 -", "1 5B true"]);
    assert!(session.is_sending(stream));
    // After its end a reset still tells that nobody reads.
    let mut reset = Vec::new();
    frame::reset(&mut reset, stream, ErrorCode::Cancel);
    assert_eq!(seen(&mut session, &reset).unwrap(), ["1 Peer(8)"]);
    // A refusal is a response like others.
    let stream = session.open(&block(&CONNECT), false).unwrap();
    session.expect_tunnel(stream);
    let refusal = [(":status", "403"), ("content-length", "2")];
    let mut input = head(stream, &refusal, false);
    input.extend(data(stream, b"no", false));
    input.extend(head(stream, &[("x-a", "b")], true));
    let words = seen(&mut session, &input).unwrap();
    assert_eq!(words, ["3 403 -", "3 2B false", "3 trailers"]);
    // It cannot be taken back, and is 0 or 1.
    for (value, fails) in [(1, false), (2, true), (0, true)] {
        assert_eq!(
            seen(&mut session, &settings(value)).is_err(),
            fails,
            "{value}"
        );
    }
}
