//! What must hold of the proxy's side of HTTP for any bytes at all. The fuzz targets, the replay
//! of their corpora and the property tests (`crates/balance/tests`) share it; each function panics
//! when something does not hold.
//!
//! The codec of `net` is the second reader: what the proxy passes on, it has to read as the proxy
//! has read it.

use balance::http::{
    BodyPass, BodyTracker, Direction, Edit, EditKind, Fields, Framing, HEADERS_MAX, Refusal,
    RequestContext, RequestHead, ResponseHead, ResponseRewrite, Rewritten, ToClient, ToUpstream,
    read_request, read_response, rewrite_request, rewrite_response,
};
use net::http::{Progress, RequestParser, ResponseParser};

/// A check, for any bytes.
pub type Check = fn(&[u8]);

/// The checks by name, which is also that of the fuzz target and of the folder of its corpus.
pub const CHECKS: [(&str, Check); 2] = [
    ("proxy_request", proxy_request),
    ("proxy_response", proxy_response),
];

/// Heads are cut at every place up to here.
const CUT_BYTES: usize = 1024;
/// Most fields that the proxy adds here. A head with so many fields that these do not fit goes on,
/// but would not be read a second time.
const ADDED_FIELDS: usize = 8;

/// The bytes are what a client sends.
pub fn proxy_request(data: &[u8]) {
    let read = |bytes: &[u8]| match read_request(bytes) {
        Ok(Some(head)) => Some(Ok(head.len())),
        Ok(None) => None,
        Err(refusal) => Some(Err(refusal)),
    };
    same_in_any_piece(data, read);
    let Ok(Some(head)) = read_request(data) else {
        return;
    };
    let edit = |how, name, value: &'static str| {
        Edit::new(how, name, value.as_bytes()).expect("a good edit")
    };
    let edits = [
        edit(EditKind::Append, "X-Forwarded-For", "192.0.2.1"),
        edit(EditKind::Set, "X-Real-IP", "192.0.2.1"),
        edit(EditKind::Add, "X-Added", "yes"),
    ];
    let body = &data[head.len()..];
    body_is_the_same_in_any_pieces(Direction::Request, head.framing(), body);
    if head.fields().count() + ADDED_FIELDS > HEADERS_MAX {
        return;
    }
    for keep_alive in [true, false] {
        for upgrade in [true, false] {
            for edits in [&[][..], &edits] {
                let to = ToUpstream {
                    edits,
                    keep_alive,
                    upgrade,
                    trusted: true,
                    host: b"upstream:80",
                };
                let sent = request_as_sent(&head, &to);
                request_goes_on(&head, &to, &sent);
                second_server_agrees(&head, &to, &sent, body);
            }
        }
    }
}

/// The bytes are what an upstream sends.
pub fn proxy_response(data: &[u8]) {
    for context in [(false, false), (true, false), (false, true)] {
        let context = RequestContext {
            head: context.0,
            upgrade: context.1,
        };
        let read = |bytes: &[u8]| match read_response(bytes, context) {
            Ok(Some(head)) => Some(Ok(head.len())),
            Ok(None) => None,
            Err(refusal) => Some(Err(refusal)),
        };
        same_in_any_piece(data, read);
        let Ok(Some(head)) = read_response(data, context) else {
            continue;
        };
        let body = &data[head.len()..];
        body_is_the_same_in_any_pieces(Direction::Response, head.framing(), body);
        if head.fields().count() + ADDED_FIELDS > HEADERS_MAX {
            continue;
        }
        for keep_alive in [true, false] {
            for minor_version in [0, 1] {
                let to = ToClient {
                    edits: &[],
                    keep_alive,
                    minor_version,
                };
                answer_goes_on(&head, context, &to, body);
            }
        }
    }
}

/// The beginning of a head is refused, or read, as the whole is.
fn same_in_any_piece<R: PartialEq + std::fmt::Debug>(
    data: &[u8],
    read: impl Fn(&[u8]) -> Option<R>,
) {
    let whole = read(data);
    for cut in 0..data.len().min(CUT_BYTES) {
        if let Some(part) = read(&data[..cut]) {
            assert_eq!(Some(part), whole, "cut at {cut}");
        }
    }
}

fn request_as_sent(head: &RequestHead<'_>, to: &ToUpstream<'_>) -> Vec<u8> {
    let mut out = b"before".to_vec();
    match rewrite_request(head, to, &mut out) {
        Rewritten::AsIs => {
            assert_eq!(out, b"before");
            head.raw().to_vec()
        }
        Rewritten::Written => out.split_off(b"before".len()),
        Rewritten::Dropped => panic!("a request was dropped"),
    }
}

/// What goes on says the same, is not changed again, and keeps its end-to-end fields.
fn request_goes_on(head: &RequestHead<'_>, to: &ToUpstream<'_>, sent: &[u8]) {
    let again = read_request(sent)
        .unwrap_or_else(|e| panic!("{e}: {}", sent.escape_ascii()))
        .expect("a whole head");
    assert_eq!(again.len(), sent.len());
    assert_eq!(again.method_name(), head.method_name());
    assert_eq!(again.minor_version(), 1);
    assert_eq!(again.framing(), head.framing());
    assert_eq!(again.host(), head.host().or(Some(to.host)));
    assert_eq!(again.path(), head.path());
    let query = |head: &RequestHead<'_>| {
        let all = head.path_and_query();
        let at = all.iter().position(|byte| *byte == b'?');
        at.map(|at| all[at..].to_vec())
    };
    assert_eq!(query(&again), query(head));
    assert_eq!(again.expects_continue(), head.expects_continue());
    let upgrades = head.asks_upgrade() && to.upgrade;
    assert_eq!(again.asks_upgrade(), upgrades);
    assert_eq!(again.keep_alive(), to.keep_alive || upgrades);
    let values = |name: &[u8]| {
        let values = again.fields().values(name);
        values.collect::<Vec<_>>().join(&b", "[..])
    };
    if to.edits.is_empty() {
        assert_eq!(end_to_end(again.fields()), end_to_end(head.fields()));
        let mut out = Vec::new();
        match rewrite_request(&again, to, &mut out) {
            // It says how many hops are left.
            _ if sent
                .to_ascii_lowercase()
                .windows(12)
                .any(|part| part == b"max-forwards") => {}
            Rewritten::AsIs => {}
            _ => assert_eq!(out, sent, "changed twice"),
        }
    } else {
        assert_eq!(values(b"x-real-ip"), b"192.0.2.1");
        assert!(values(b"x-added").ends_with(b"yes"));
        assert!(values(b"x-forwarded-for").ends_with(b"192.0.2.1"));
    }
}

/// The names and values of the fields that are for everybody, in order. Those of framing, and
/// those that the proxy makes itself, are compared by what they mean.
fn end_to_end(fields: Fields<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut gone: Vec<Vec<u8>> = [
        "connection",
        // Reserved as a field name, since `Connection: close` would name it (RFC 9110, 18.4).
        "close",
        "keep-alive",
        "te",
        "upgrade",
        "proxy",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-authentication-info",
        "http2-settings",
        "content-length",
        "transfer-encoding",
        "host",
        "expect",
        "max-forwards",
        "trailer",
    ]
    .map(|name| name.as_bytes().to_vec())
    .to_vec();
    for value in fields.values(b"connection") {
        let names = value.split(|byte| *byte == b',');
        gone.extend(names.map(|name| name.trim_ascii().to_ascii_lowercase()));
    }
    fields
        .map(|field| (field.name.to_ascii_lowercase(), field.value.to_vec()))
        .filter(|(name, _)| !gone.contains(name))
        .collect()
}

/// Another server reads the same request from what is sent, and finds the same end of its body.
fn second_server_agrees(head: &RequestHead<'_>, to: &ToUpstream<'_>, sent: &[u8], body: &[u8]) {
    let mut tracker = BodyTracker::new(Direction::Request, head.framing());
    let mut parser = RequestParser::default();
    let (taken, complete) = parser.feed(sent).expect("what is sent is good");
    assert_eq!((taken, complete), (sent.len(), tracker.is_complete()));
    let request = parser.request();
    assert_eq!(request.method.as_bytes(), head.method_name());
    assert!(request.target.starts_with(['/', '*']), "{}", request.target);
    assert!(request.target.as_bytes().ends_with(head.path_and_query()));
    let one = |name: &str| {
        let mut values = request
            .fields
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name));
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} twice");
        value
    };
    let host = head.host().unwrap_or(to.host);
    assert_eq!(one("host").map(str::as_bytes), Some(host));
    let (length, coding) = (one("content-length"), one("transfer-encoding"));
    match head.framing() {
        Framing::None => assert_eq!((length, coding), (None, None)),
        Framing::Chunked => assert_eq!((length, coding), (None, Some("chunked"))),
        Framing::Length(bytes) => {
            assert_eq!((length, coding), (Some(bytes.to_string().as_str()), None));
        }
        Framing::UntilClose => panic!("a request that ends with its connection"),
    }
    if let (false, Ok(end)) = (complete, tracker.take(body)) {
        assert_eq!(parser.feed(body), Ok((end.bytes, end.complete)));
    }
}

fn answer_goes_on(
    head: &ResponseHead<'_>,
    context: RequestContext,
    to: &ToClient<'_>,
    body: &[u8],
) {
    let mut sent = Vec::new();
    let answered = rewrite_response(head, to, &mut sent);
    match answered.head {
        Rewritten::AsIs => {
            assert!(sent.is_empty());
            sent.extend_from_slice(head.raw());
        }
        Rewritten::Written => {}
        Rewritten::Dropped => {
            assert!(sent.is_empty() && head.is_interim() && to.minor_version == 0);
            return;
        }
    }
    let again = read_response(&sent, context)
        .unwrap_or_else(|e| panic!("{e}: {}", sent.escape_ascii()))
        .expect("a whole head");
    assert_eq!(again.len(), sent.len());
    assert_eq!((again.status(), again.minor_version()), (head.status(), 1));
    assert_eq!(end_to_end(again.fields()), end_to_end(head.fields()));
    match answered.body {
        BodyPass::AsIs => assert_eq!(again.framing(), head.framing()),
        BodyPass::Dechunked => assert_eq!(
            (head.framing(), again.framing(), to.minor_version),
            (Framing::Chunked, Framing::UntilClose, 0)
        ),
    }
    if head.status() >= 200 {
        let says: Vec<&[u8]> = again.fields().values(b"connection").collect();
        let says = says.join(&b","[..]).to_ascii_lowercase();
        let has = |word: &[u8]| says.windows(word.len()).any(|part| part == word);
        let keeps = !has(b"close") && (to.minor_version == 1 || has(b"keep-alive"));
        assert!(keeps == answered.keep_alive || has(b"upgrade"), "{sent:?}");
        assert!(to.keep_alive || !answered.keep_alive);
        assert!(!answered.keep_alive || again.framing() != Framing::UntilClose);
    }
    let mut out = Vec::new();
    match rewrite_response(&again, to, &mut out).head {
        Rewritten::AsIs => {}
        _ => assert_eq!(out, sent, "changed twice"),
    }
    second_client_agrees(head, context, answered, sent, body);
}

/// Another client reads the same content from what is sent.
fn second_client_agrees(
    head: &ResponseHead<'_>,
    context: RequestContext,
    answered: ResponseRewrite,
    mut sent: Vec<u8>,
    body: &[u8],
) {
    if head.is_interim() || head.switches() {
        return;
    }
    let mut content = Vec::new();
    let mut tracker = BodyTracker::new(Direction::Response, head.framing());
    let mut complete = tracker.is_complete();
    if !complete {
        let note = |bytes: &[u8]| content.extend_from_slice(bytes);
        let Ok(end) = tracker.take_content(body, note) else {
            return;
        };
        complete = end.complete;
        match answered.body {
            BodyPass::AsIs => sent.extend_from_slice(&body[..end.bytes]),
            BodyPass::Dechunked => sent.extend_from_slice(&content),
        }
    }
    let mut parser = ResponseParser::new(context.head);
    let mut found = Vec::new();
    let end = parser.feed(&sent, |bytes| found.extend_from_slice(bytes));
    assert_eq!(found, content);
    if complete && answered.body == BodyPass::AsIs {
        assert_eq!(end, Ok(Progress::Done { taken: sent.len() }));
    } else {
        assert_eq!(end, Ok(Progress::More));
    }
    assert_eq!(parser.head().status, head.status());
}

/// Any split of a body finds the same content and the same end.
fn body_is_the_same_in_any_pieces(direction: Direction, framing: Framing, body: &[u8]) {
    let whole = follow(direction, framing, body.chunks(body.len().max(1)));
    for size in [1, 2, 3, 7] {
        assert_eq!(
            follow(direction, framing, body.chunks(size)),
            whole,
            "by {size}"
        );
    }
    for cut in 0..body.len().min(CUT_BYTES / 4) {
        let (one, two) = body.split_at(cut);
        let parts = [one, two].into_iter();
        assert_eq!(follow(direction, framing, parts), whole, "cut at {cut}");
    }
}

/// The content and how many bytes belong to the message; `None` while it is not complete.
fn follow<'a>(
    direction: Direction,
    framing: Framing,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> Result<(Vec<u8>, Option<usize>), Refusal> {
    let mut tracker = BodyTracker::new(direction, framing);
    let mut content = Vec::new();
    let mut taken = 0;
    for piece in pieces {
        if tracker.is_complete() {
            break;
        }
        let end = tracker.take_content(piece, |bytes| content.extend_from_slice(bytes))?;
        assert!(end.complete || end.bytes == piece.len(), "bytes left over");
        assert_eq!(end.complete, tracker.is_complete());
        taken += end.bytes;
    }
    Ok((content, tracker.is_complete().then_some(taken)))
}
