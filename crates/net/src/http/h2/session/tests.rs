use super::*;
use crate::http::h2::hpack::block;
use crate::http::h2::{ErrorCode, Event, FrameReader, PREFACE, frame};

pub(super) const LIMITS: SessionLimits = SessionLimits {
    streams_max: 4,
    overhead_max: 100,
    reset_cost: 10,
};

/// A session that has read preface and settings, and a reader of its output.
fn open() -> Session {
    let mut session = Session::of_server(LIMITS);
    let mut hello = PREFACE.to_vec();
    frame::settings(&mut hello, &[]);
    session.feed(&hello, |_| panic!("no request yet")).unwrap();
    session.out.clear();
    session
}

const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":path", "/"),
    (":authority", "a.example"),
];

pub(super) fn head(stream: u32, fields: &[(&str, &str)], end: bool) -> Vec<u8> {
    let mut out = Vec::new();
    frame::headers(&mut out, stream, &block(fields), end, 16_384);
    out
}

pub(super) fn data(stream: u32, bytes: &[u8], end: bool) -> Vec<u8> {
    let mut out = Vec::new();
    frame::data(&mut out, stream, bytes, end);
    out
}

/// The resets, and the code of a GOAWAY, in what was sent.
fn sent(session: &mut Session) -> (Vec<(u32, ErrorCode)>, Option<ErrorCode>) {
    let (mut resets, mut gone) = (Vec::new(), None);
    let mut settings = Vec::new();
    frame::settings(&mut settings, &[]);
    settings.append(&mut session.out);
    let mut reader = FrameReader::new(16_384, 1 << 16);
    reader
        .feed(&settings, |event| {
            match event {
                Event::Reset { stream, code } => {
                    resets.push((stream, ErrorCode::of(code).unwrap()));
                }
                Event::GoAway { code, .. } => gone = ErrorCode::of(code),
                _ => {}
            }
            Ok(())
        })
        .unwrap();
    (resets, gone)
}

/// The requests that begin.
fn begun(session: &mut Session, input: &[u8]) -> usize {
    let mut count = 0;
    let _ = session.feed(input, |incoming| {
        count += usize::from(matches!(incoming, Incoming::Head { .. }));
    });
    count
}

#[test]
fn requests_that_would_become_another_in_http_1_are_refused() {
    let with = |name, value| {
        let mut fields = GET.to_vec();
        fields.push((name, value));
        fields
    };
    let but = |at: usize, value| {
        let mut fields = GET.to_vec();
        fields[at].1 = value;
        fields
    };
    let mut bad = vec![
        but(2, "/a b"),
        but(2, "/a HTTP/1.1\r\nx: y"),
        but(2, "/a\tb"),
        but(2, "/\u{7f}"),
        but(2, "a"),
        but(2, ""),
        but(2, "*"),
        but(0, "GET /other HTTP/1.1\r\nx:"),
        but(0, ""),
        but(1, "ftp"),
        but(3, "a.example\r\nx: y"),
        but(3, "a example"),
        with("host", "b.example"),
        with("transfer-encoding", "chunked"),
        with("connection", "close"),
        with("keep-alive", "1"),
        with("proxy-connection", "close"),
        with("upgrade", "websocket"),
        with("te", "gzip"),
        with("Name", "x"),
        with("a b", "x"),
        with("a:b", "x"),
        with("a\r\nb", "x"),
        with("", "x"),
        with("name", "a\r\nb: c"),
        with("name", "a\0"),
        with("name", " a"),
        with("content-length", "1"),
        with("content-length", "+0"),
        with("content-length", "0x"),
        with(":method", "POST"),
        with(":path", "/b"),
        with(":authority", "b.example"),
        with(":status", "200"),
        GET[..2].to_vec(),
        GET[1..].to_vec(),
    ];
    let mut late = with("name", "x");
    late.push((":path", "/"));
    bad.push(late);
    bad.push([&GET[..], &[("host", "a.example"), ("host", "a.example")]].concat());
    bad.push(
        [
            &GET[..],
            &[("content-length", "0"), ("content-length", "0")],
        ]
        .concat(),
    );
    for fields in bad {
        let mut session = open();
        assert_eq!(
            begun(&mut session, &head(1, &fields, true)),
            0,
            "{fields:?}"
        );
        let expected = (vec![(1, ErrorCode::ProtocolError)], None);
        assert_eq!(sent(&mut session), expected, "{fields:?}");
    }
    for good in [
        GET.to_vec(),
        with("host", "A.example"),
        with("te", "trailers"),
    ] {
        assert_eq!(begun(&mut open(), &head(1, &good, true)), 1, "{good:?}");
    }
}

#[test]
fn content_has_the_announced_length() {
    for (lengths, end, fits) in [
        (&[3, 2][..], true, true),
        (&[3, 3], false, false),
        (&[3], true, false),
    ] {
        let mut session = open();
        let mut fields = GET.to_vec();
        fields.push(("content-length", "5"));
        let mut input = head(1, &fields, false);
        for (number, length) in lengths.iter().enumerate() {
            let is_last = end && number + 1 == lengths.len();
            frame::data(&mut input, 1, &vec![b'x'; *length], is_last);
        }
        begun(&mut session, &input);
        assert_eq!(sent(&mut session).0.is_empty(), fits, "{lengths:?}");
    }
    // Trailers do not complete it either.
    let mut session = open();
    let mut fields = GET.to_vec();
    fields.push(("content-length", "5"));
    let mut input = head(1, &fields, false);
    input.extend(head(1, &[("a", "b")], true));
    begun(&mut session, &input);
    assert_eq!(sent(&mut session).0, [(1, ErrorCode::ProtocolError)]);
}

#[test]
fn a_client_that_exceeds_a_streams_window_loses_the_stream() {
    let mut session = open();
    begun(&mut session, &head(1, &GET, false));
    // Nothing is released: the connection's window opens again, but not the stream's.
    for _ in 0..4 {
        begun(&mut session, &data(1, &[0; 16_384], false));
    }
    assert_eq!(
        sent(&mut session),
        (vec![(1, ErrorCode::FlowControlError)], None)
    );
    assert_eq!(session.streams(), 0);
}

#[test]
fn floods_end_the_connection() {
    let frames: [fn(&mut Vec<u8>, u32); 6] = [
        |out, _| frame::ping(out, [0; 8]),
        |out, _| frame::settings(out, &[]),
        |out, _| frame::data(out, 1, &[], false),
        |out, _| frame::window_update(out, 0, 1),
        // Rapid reset.
        |out, at| {
            out.extend(head(3 + 2 * at, &GET, true));
            frame::reset(out, 3 + 2 * at, ErrorCode::Cancel);
        },
        // Resets that the server is made to send.
        |out, at| {
            out.extend(head(3 + 2 * at, &GET, true));
            frame::window_update(out, 3 + 2 * at, (1 << 31) - 1);
        },
    ];
    for (number, flood) in frames.iter().enumerate() {
        let mut session = open();
        begun(&mut session, &head(1, &GET, false));
        let ended = (0..1000).find(|&at| {
            let mut input = Vec::new();
            flood(&mut input, at);
            session.out.clear();
            session.feed(&input, |_| {}).is_err()
        });
        let ended = ended.unwrap_or_else(|| panic!("flood {number} goes on"));
        assert!(ended <= 101, "{number}: after {ended}");
        assert_eq!(
            sent(&mut session).1,
            Some(ErrorCode::EnhanceYourCalm),
            "{number}"
        );
    }
}

#[test]
fn a_long_download_is_no_flood() {
    let mut session = open();
    begun(&mut session, &head(1, &GET, true));
    session.send_headers(1, &block(&[(":status", "200")]), false);
    for _ in 0..10_000 {
        assert_eq!(session.send_data(1, &[0; 10_000], false), 10_000);
        let mut input = Vec::new();
        frame::window_update(&mut input, 0, 10_000);
        frame::window_update(&mut input, 1, 10_000);
        session.out.clear();
        session.feed(&input, |_| {}).unwrap();
    }
}

#[test]
fn a_draining_session_serves_what_has_come_and_no_more() {
    let mut session = open();
    assert_eq!(begun(&mut session, &head(1, &GET, true)), 1);
    session.drain();
    // Requests in flight are still served until the client has seen the announcement.
    assert_eq!(begun(&mut session, &head(3, &GET, true)), 1);
    let mut input = Vec::new();
    frame::ping_ack(&mut input, *b"draining");
    assert_eq!(begun(&mut session, &input), 0);
    assert_eq!(begun(&mut session, &head(5, &GET, false)), 0);
    let late = session.feed(&data(5, b"x", true), |_| panic!("not served"));
    assert!(late.is_ok());
    assert!(!session.is_done());
    for stream in [1, 3] {
        session.send_headers(stream, &block(&[(":status", "204")]), true);
    }
    assert!(session.is_done());
    assert_eq!(sent(&mut session), (vec![], Some(ErrorCode::NoError)));
}

#[test]
fn a_response_before_the_end_of_its_request_stops_the_client() {
    let mut session = open();
    begun(&mut session, &head(1, &GET, false));
    session.send_headers(1, &block(&[(":status", "413")]), true);
    assert_eq!(sent(&mut session).0, [(1, ErrorCode::NoError)]);
    // Requests in flight are ignored.
    let late = [data(1, b"x", false), head(1, &[("a", "b")], true)].concat();
    session.feed(&late, |_| panic!("ignored")).unwrap();
    assert_eq!(sent(&mut session), (vec![], None));
}

#[test]
fn wider_windows_are_announced_and_hold() {
    const WINDOW: u32 = 1 << 20;
    const FRAME: usize = 16_384;
    let mut session = Session::of_server(LIMITS).with_windows(WINDOW);
    let (mut of_streams, mut of_connection) = (0, 0);
    let mut reader = FrameReader::new(16_384, 1 << 16);
    reader
        .feed(&std::mem::take(&mut session.out), |event| {
            match event {
                Event::Settings { values, .. } => {
                    let mut values = values.into_iter();
                    let found = values.find(|(id, _)| *id == settings::INITIAL_WINDOW_SIZE);
                    of_streams = found.unwrap().1;
                }
                Event::WindowUpdate { increment, .. } => of_connection = increment,
                other => panic!("{other:?}"),
            }
            Ok(())
        })
        .unwrap();
    assert_eq!((of_streams, of_connection), (WINDOW, WINDOW - 65_535));
    // Three times what the usual windows let through.
    let mut input = PREFACE.to_vec();
    frame::settings(&mut input, &[]);
    input.extend(head(1, &GET, false));
    for _ in 0..12 {
        frame::data(&mut input, 1, &[0; FRAME], false);
    }
    let mut got = 0;
    let fed = session.feed(&input, |incoming| {
        if let Incoming::Data { bytes, .. } = incoming {
            got += bytes.len();
        }
    });
    fed.unwrap();
    assert_eq!(got, 12 * FRAME);
    assert_eq!(sent(&mut session), (Vec::new(), None));
}
