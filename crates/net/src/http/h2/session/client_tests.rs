use super::tests::{data, head};
use super::*;
use crate::http::h2::hpack::block;
use crate::http::h2::{Event, PREFACE};

const LIMITS: SessionLimits = SessionLimits {
    streams_max: 0,
    overhead_max: 100,
    reset_cost: 1,
};

/// A session that has read the server's settings.
fn open(values: &[(u16, u32)]) -> Session {
    let mut session = Session::of_client(LIMITS);
    assert!(session.out.starts_with(PREFACE));
    let mut hello = Vec::new();
    frame::settings(&mut hello, values);
    session.feed(&hello, |_| panic!("no response yet")).unwrap();
    session.out.clear();
    session
}

fn get(session: &mut Session) -> u32 {
    let head = block(&[(":method", "GET"), (":scheme", "http"), (":path", "/")]);
    session.open(&head, true).unwrap()
}

/// Feeds a session. Returns a word for each [`Incoming`], and the error.
fn seen(session: &mut Session, input: &[u8]) -> (Vec<String>, Option<ErrorCode>) {
    let mut all = Vec::new();
    let fed = session.feed(input, |incoming| {
        all.push(match incoming {
            Incoming::Head {
                stream,
                head,
                is_complete,
            } => format!("{stream} {} {is_complete}", head.status()),
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
    });
    (all, fed.err().map(|error| error.code))
}

/// The resets and window updates that the session has sent.
fn sent(session: &mut Session) -> Vec<String> {
    let mut input = PREFACE.to_vec();
    frame::settings(&mut input, &[]);
    input.append(&mut session.out);
    let mut all = Vec::new();
    let mut reader = FrameReader::of_server(16_384, 1 << 16);
    reader
        .feed(&input, |event| {
            match event {
                Event::Reset { stream, code } => {
                    all.push(format!("{stream} {:?}", ErrorCode::of(code).unwrap()));
                }
                Event::WindowUpdate { stream, increment } => {
                    all.push(format!("{stream} +{increment}"));
                }
                Event::GoAway { code, .. } => {
                    all.push(format!("gone {:?}", ErrorCode::of(code).unwrap()));
                }
                Event::Ping { ack, .. } => all.push(format!("ping {ack}")),
                _ => {}
            }
            Ok(())
        })
        .unwrap();
    all
}

#[test]
fn responses_come_with_interim_heads_content_and_trailers() {
    let mut session = open(&[]);
    assert_eq!((get(&mut session), get(&mut session)), (1, 3));
    let input = [
        head(1, &[(":status", "103"), ("link", "</a>")], false),
        head(3, &[(":status", "204")], true),
        head(1, &[(":status", "200")], false),
        data(1, b"hello", false),
        head(1, &[("x-sum", "5")], true),
    ]
    .concat();
    let expected = [
        "1 103 false",
        "3 204 true",
        "1 200 false",
        "1 5B false",
        "1 trailers",
    ];
    let (all, failure) = seen(&mut session, &input);
    assert_eq!((all, failure), (expected.map(String::from).to_vec(), None));
    assert_eq!(session.streams(), 0);
}

#[test]
fn content_has_to_have_the_announced_length() {
    let length = [(":status", "200"), ("content-length", "5")];
    for (is_head, input, expected) in [
        (false, data(1, b"hello", true), "1 5B true"),
        (false, data(1, b"hell", true), "1 Fault"),
        (false, data(1, b"hello!", false), "1 Fault"),
        (true, data(1, b"h", true), "1 Fault"),
        (true, data(1, b"", true), "1 0B true"),
    ] {
        let mut session = open(&[]);
        let stream = get(&mut session);
        if is_head {
            session.expect_no_content(stream);
        }
        assert_eq!(seen(&mut session, &head(1, &length, false)).1, None);
        let (all, failure) = seen(&mut session, &input);
        assert_eq!((all, failure), (vec![expected.to_string()], None));
        assert_eq!(session.streams(), 0, "{expected}");
    }
}

#[test]
fn malformed_responses_reset_their_stream_only() {
    let heads: [&[(&str, &str)]; 9] = [
        &[("x-a", "b")],
        &[(":status", "20")],
        &[(":status", "2000")],
        &[(":status", "101")],
        &[(":status", "200"), (":status", "200")],
        &[(":status", "200"), (":path", "/")],
        &[(":status", "200"), ("connection", "close")],
        &[(":status", "200"), ("x-a", "b\r\nx-c: d")],
        &[(":status", "200"), ("X-A", "b")],
    ];
    for fields in heads {
        let mut session = open(&[]);
        get(&mut session);
        get(&mut session);
        let (all, failure) = seen(&mut session, &head(1, fields, false));
        assert_eq!((all, failure), (vec!["1 Fault".to_string()], None));
        assert_eq!(sent(&mut session), ["1 ProtocolError"]);
        let (all, _) = seen(&mut session, &head(3, &[(":status", "200")], true));
        assert_eq!(all, ["3 200 true"]);
    }
    // Frames in the wrong order.
    let ok = head(1, &[(":status", "200")], false);
    for input in [
        data(1, b"early", false),
        head(1, &[(":status", "100")], true),
        [ok.clone(), head(1, &[("x-a", "b")], false)].concat(),
        [ok, head(1, &[(":status", "200")], true)].concat(),
    ] {
        let mut session = open(&[]);
        get(&mut session);
        let (all, failure) = seen(&mut session, &input);
        assert_eq!(all.last().map(String::as_str), Some("1 Fault"), "{input:?}");
        assert_eq!(failure, None);
    }
}

#[test]
fn what_was_not_processed_is_told_apart() {
    let mut session = open(&[]);
    for _ in 0..4 {
        get(&mut session);
    }
    let mut input = Vec::new();
    frame::reset(&mut input, 1, ErrorCode::RefusedStream);
    frame::reset(&mut input, 3, ErrorCode::InternalError);
    frame::go_away(&mut input, 5, ErrorCode::NoError);
    let (all, failure) = seen(&mut session, &input);
    assert_eq!(all, ["1 NotProcessed", "3 Peer(2)", "7 NotProcessed"]);
    assert_eq!(failure, None);
    // The streams up to the last one are still answered, and no further one is opened.
    assert!(session.open(&[], true).is_none() && session.is_draining());
    let (all, _) = seen(&mut session, &head(5, &[(":status", "200")], true));
    assert_eq!(all, ["5 200 true"]);
}

#[test]
fn a_response_may_end_before_its_request() {
    let mut session = open(&[]);
    let post = block(&[(":method", "POST"), (":scheme", "http"), (":path", "/")]);
    let stream = session.open(&post, false).unwrap();
    assert_eq!(session.send_data(stream, b"some", false), 4);
    let mut input = head(1, &[(":status", "413")], true);
    frame::reset(&mut input, 1, ErrorCode::NoError);
    let (all, failure) = seen(&mut session, &input);
    // This reset does not make the response fail.
    assert_eq!((all, failure), (vec!["1 413 true".to_string()], None));
    assert!(!session.is_sending(stream));
    assert_eq!(session.send_data(stream, b"more", true), 0);
}

#[test]
fn windows_bound_both_directions() {
    let mut session = open(&[(settings::INITIAL_WINDOW_SIZE, 10)]);
    let post = block(&[(":method", "POST"), (":scheme", "http"), (":path", "/")]);
    let stream = session.open(&post, false).unwrap();
    assert_eq!(session.send_data(stream, &[b'x'; 100], true), 10);
    let mut input = Vec::new();
    frame::window_update(&mut input, stream, 90);
    seen(&mut session, &input);
    assert_eq!(session.send_data(stream, &[b'x'; 90], true), 90);
    // More than the window of a stream.
    seen(&mut session, &head(1, &[(":status", "200")], false));
    let part = data(1, &[b'x'; 16_000], false);
    let (all, failure) = seen(&mut session, &[&part[..]; 5].concat());
    assert_eq!(all.last().map(String::as_str), Some("1 Fault"));
    assert_eq!(failure, None);
    assert!(sent(&mut session).contains(&"1 FlowControlError".to_string()));
    // The stream's window is refilled with what has been consumed, the connection's by itself.
    let stream = get(&mut session);
    seen(&mut session, &head(stream, &[(":status", "200")], false));
    for _ in 0..100 {
        let part = data(stream, &[b'x'; 16_000], false);
        let (all, failure) = seen(&mut session, &part);
        assert_eq!((all.len(), failure), (1, None), "{all:?}");
        session.release(stream, 16_000);
    }
}

#[test]
fn floods_of_a_server_end_the_connection() {
    let ping: fn(&mut Vec<u8>) = |out| frame::ping(out, [0; 8]);
    let settings: fn(&mut Vec<u8>) = |out| frame::settings(out, &[]);
    let empty: fn(&mut Vec<u8>) = |out| frame::data(out, 1, &[], false);
    let window: fn(&mut Vec<u8>) = |out| frame::window_update(out, 1, 1);
    for flood in [ping, settings, empty, window] {
        let mut session = open(&[]);
        get(&mut session);
        seen(&mut session, &head(1, &[(":status", "200")], false));
        let mut input = Vec::new();
        for _ in 0..200 {
            flood(&mut input);
        }
        let (_, failure) = seen(&mut session, &input);
        assert_eq!(failure, Some(ErrorCode::EnhanceYourCalm));
        let sent = sent(&mut session);
        assert_eq!(
            sent.last().map(String::as_str),
            Some("gone EnhanceYourCalm")
        );
    }
    // On streams that were never opened, and pushed ones.
    for stream in [2, 3] {
        let mut session = open(&[]);
        get(&mut session);
        let (_, failure) = seen(&mut session, &head(stream, &[(":status", "200")], true));
        assert_eq!(failure, Some(ErrorCode::ProtocolError), "{stream}");
    }
}

#[test]
fn a_reset_stream_may_still_get_what_was_in_flight() {
    let mut session = open(&[(settings::MAX_CONCURRENT_STREAMS, 7)]);
    assert_eq!(session.streams_allowed(), 7);
    let stream = get(&mut session);
    session.reset(stream, ErrorCode::Cancel);
    let late = [
        head(1, &[(":status", "200")], false),
        data(1, b"late", true),
    ]
    .concat();
    let (all, failure) = seen(&mut session, &late);
    assert_eq!((all.len(), failure), (0, None), "{all:?}");
    assert_eq!(sent(&mut session), ["1 Cancel"]);
    session.ping();
    assert_eq!(sent(&mut session), ["ping false"]);
}

#[test]
fn a_reset_stream_gets_no_more_than_its_window() {
    let mut session = open(&[]);
    let stream = get(&mut session);
    session.reset(stream, ErrorCode::Cancel);
    let piece = data(stream, &[b'x'; 16_384], false);
    // The connection's window is opened again all the time, the stream's is not.
    for _ in 0..3 {
        assert_eq!(seen(&mut session, &piece), (Vec::new(), None));
    }
    let (all, failure) = seen(&mut session, &piece);
    assert!(all.is_empty());
    assert_eq!(failure, Some(ErrorCode::FlowControlError));
}
