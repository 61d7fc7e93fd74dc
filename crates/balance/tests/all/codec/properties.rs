//! Requests and answers that are good go on with all that they say.

use proptest::prelude::*;

use balance::http::{Framing, RequestContext, RequestHead, read_request, read_response};

use crate::proxy_checks::{proxy_request, proxy_response};

/// A field that a proxy has nothing to do with.
fn plain_field() -> impl Strategy<Value = String> {
    let name = proptest::sample::select(vec![
        "Accept",
        "User-Agent",
        "Cookie",
        "X-Forwarded-For",
        "x-added",
        "X-Empty",
        "Range",
        "Referer",
        "Trailer",
        "Via",
        "Forwarded",
    ]);
    (
        name,
        "[ \t]{0,2}",
        "([!-~][ -~\t]{0,20}[!-~])?",
        "[ \t]{0,2}",
    )
        .prop_map(|(name, before, value, after)| format!("{name}:{before}{value}{after}\r\n"))
}

/// A field that belongs to the connection.
fn hop_field() -> impl Strategy<Value = String> {
    proptest::sample::select(vec![
        "Connection: close",
        "Connection: Keep-Alive",
        "Connection: x-added , x-other",
        "connection: TE",
        "Connection: upgrade",
        "Connection: upgrade, keep-alive",
        "Upgrade: websocket",
        "Upgrade: h2c",
        "TE: trailers",
        "TE: gzip;q=0.5, trailers",
        "TE: gzip",
        "Keep-Alive: timeout=5",
        "Proxy-Connection: keep-alive",
        "Proxy: http://x",
        "Proxy-Authorization: Basic eA==",
        "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA",
    ])
    .prop_map(|line| format!("{line}\r\n"))
}

fn framing() -> impl Strategy<Value = (String, Framing, Vec<u8>)> {
    let content = || proptest::collection::vec(any::<u8>(), 0..60);
    let chunks = proptest::collection::vec((content(), "(;[a-z]{1,5}(=[a-z]{1,5})?)?"), 0..4);
    let trailers = proptest::sample::select(vec!["", "X-Sum: 5\r\n", "Expires: 0\r\nETag: a\r\n"]);
    prop_oneof![
        Just((String::new(), Framing::None, Vec::new())),
        (content(), "0{0,3}").prop_map(|(content, zeros)| (
            format!("Content-Length: {zeros}{}\r\n", content.len()),
            Framing::Length(content.len() as u64),
            content
        )),
        (chunks, trailers, "[Cc]hunked").prop_map(|(chunks, trailers, coding)| {
            let mut body = Vec::new();
            for (chunk, extension) in chunks.iter().filter(|(chunk, _)| !chunk.is_empty()) {
                body.extend(format!("{:x}{extension}\r\n", chunk.len()).bytes());
                body.extend(chunk);
                body.extend(b"\r\n");
            }
            body.extend(format!("0\r\n{trailers}\r\n").bytes());
            (
                format!("transfer-encoding: {coding}\r\n"),
                Framing::Chunked,
                body,
            )
        }),
    ]
}

#[derive(Clone, Debug)]
struct Message {
    bytes: Vec<u8>,
    framing: Framing,
    head_bytes: usize,
}

fn message(first: String, fields: Vec<String>, framing: (String, Framing, Vec<u8>)) -> Message {
    let (field, framing, body) = framing;
    let mut bytes = first.into_bytes();
    let cut = fields.len() / 2;
    bytes.extend(fields[..cut].concat().bytes());
    bytes.extend(field.bytes());
    bytes.extend(fields[cut..].concat().bytes());
    bytes.extend(b"\r\n");
    let head_bytes = bytes.len();
    bytes.extend(body);
    // What comes next on the connection.
    bytes.extend(b"GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
    Message {
        bytes,
        framing,
        head_bytes,
    }
}

fn fields() -> impl Strategy<Value = Vec<String>> {
    let field = prop_oneof![2 => plain_field(), 1 => hop_field()];
    proptest::collection::vec(field, 0..8)
}

fn request() -> impl Strategy<Value = Message> {
    let first = prop_oneof![
        "(GET|HEAD|POST|PUT|DELETE|PATCH|PURGE|x!y) /[a-z/.%]{0,12}(\\?[a-z=&?/]{0,9})? HTTP/1[.]1",
        "(GET|POST) https?://[a-z.]{1,9}(:[0-9]{1,4})?(/[a-z]{0,5})?(\\?q)? HTTP/1[.]1",
        Just("OPTIONS * HTTP/1.1".to_string()),
    ];
    let expect = proptest::sample::select(vec!["", "", "", "Expect: 100-continue\r\n"]);
    (first, fields(), framing(), "[a-z.]{0,9}", expect).prop_map(
        |(first, mut fields, framing, host, expect)| {
            fields.push(format!("Host: {host}\r\n{expect}"));
            message(format!("{first}\r\n"), fields, framing)
        },
    )
}

fn old_request() -> impl Strategy<Value = Message> {
    let first = "(GET|HEAD|DELETE) /[a-z]{0,5} HTTP/1[.]0";
    let host = proptest::sample::select(vec!["", "Host: x:1\r\n"]);
    (first, fields(), host).prop_map(|(first, mut fields, host)| {
        fields.push(host.to_string());
        let none = (String::new(), Framing::None, Vec::new());
        message(format!("{first}\r\n"), fields, none)
    })
}

fn answer() -> impl Strategy<Value = Message> {
    let first = "HTTP/1[.][01] (200 OK|204 No Content|304 |404 Not Found|100 Continue|503)";
    (first, fields(), framing())
        .prop_map(|(first, fields, framing)| message(format!("{first}\r\n"), fields, framing))
}

fn accepted(message: &Message) -> RequestHead<'_> {
    read_request(&message.bytes)
        .unwrap_or_else(|e| panic!("{e}: {}", message.bytes.escape_ascii()))
        .expect("a whole head")
}

proptest! {
    #[test]
    fn good_requests_go_on_with_all_that_they_say(message in prop_oneof![3 => request(), 1 => old_request()]) {
        let head = accepted(&message);
        prop_assert_eq!(head.len(), message.head_bytes);
        prop_assert_eq!(head.framing(), message.framing);
        proxy_request(&message.bytes);
    }

    #[test]
    fn good_answers_go_on_with_all_that_they_say(message in answer()) {
        let head = read_response(&message.bytes, RequestContext::default());
        // HTTP/1.0 has no chunked coding, which does not matter where there is no content.
        let has_content = !matches!(&message.bytes[9..12], b"100" | b"204" | b"304");
        let is_old = message.bytes.starts_with(b"HTTP/1.0");
        if is_old && has_content && message.framing == Framing::Chunked {
            prop_assert!(head.is_err());
            return Ok(());
        }
        let head = head
            .unwrap_or_else(|e| panic!("{e}: {}", message.bytes.escape_ascii()))
            .expect("a whole head");
        prop_assert_eq!(head.len(), message.head_bytes);
        proxy_response(&message.bytes);
    }
}
