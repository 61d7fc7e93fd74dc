//! Messages as browsers, tools and servers send them, and how they go on.

use balance::http::{
    BadResponse, BodyPass, BodyTracker, Direction, Edit, EditError, EditKind, Framing, Method,
    Refusal, RequestContext, RequestHead, ResponseRewrite, Rewritten, ToClient, ToUpstream,
    read_request, read_response, rewrite_request, rewrite_response,
};
use testing::Text as _;

const UP: ToUpstream<'_> = ToUpstream {
    edits: &[],
    keep_alive: true,
    upgrade: true,
    trusted: true,
    host: b"10.1.1.100:8080",
};
const DOWN: ToClient<'_> = ToClient {
    edits: &[],
    keep_alive: true,
    minor_version: 1,
};

fn read(text: &str) -> RequestHead<'_> {
    read_request(text.as_bytes())
        .expect("a good head")
        .expect("a whole head")
}

/// A request as it goes on; `None` as it came.
fn up(text: &str, to: &ToUpstream<'_>) -> Option<String> {
    let mut out = Vec::new();
    match rewrite_request(&read(text), to, &mut out) {
        Rewritten::Written => Some(String::from_utf8(out).expect("text")),
        _ => None,
    }
}

/// An answer as it goes on, `None` as it came, and whether the connection is kept.
fn down(
    text: &str,
    context: RequestContext,
    to: &ToClient<'_>,
) -> (Option<String>, ResponseRewrite) {
    let head = read_response(text.as_bytes(), context)
        .expect("a good head")
        .expect("a whole head");
    let mut out = Vec::new();
    let answered = rewrite_response(&head, to, &mut out);
    let text = String::from_utf8(out).expect("text");
    (
        (answered.head == Rewritten::Written).then_some(text),
        answered,
    )
}

const CURL: &str =
    "GET /a/b?c=d HTTP/1.1\r\nHost: example.org\r\nUser-Agent: curl/8.14.1\r\nAccept: */*\r\n\r\n";

#[test]
fn a_head_tells_what_a_proxy_has_to_know() {
    let head = read(CURL);
    assert_eq!(head.method(), Method::Get);
    assert!(head.method().is_safe() && head.method().is_idempotent());
    assert_eq!(head.path(), b"/a/b");
    assert_eq!(head.path_and_query(), b"/a/b?c=d");
    assert_eq!(head.host(), Some(b"example.org".as_slice()));
    assert_eq!(head.value(b"user-agent"), Some(b"curl/8.14.1".as_slice()));
    assert_eq!(head.framing(), Framing::None);
    assert_eq!((head.len(), head.skipped()), (CURL.len(), 0));
    assert!(head.keep_alive() && !head.asks_upgrade() && !head.expects_continue());

    let post = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nExpect: 100-continue\r\nCookie: x=1; node=two\r\nConnection: close\r\n\r\n";
    let head = read(post);
    assert!(!head.method().is_safe() && head.method().is_idempotent());
    assert_eq!(head.framing(), Framing::Length(12));
    assert!(head.expects_continue() && !head.keep_alive());
    assert_eq!(head.cookie(b"node"), Some(b"two".as_slice()));
    assert!(
        !read("PATCH / HTTP/1.1\r\nHost: a\r\n\r\n")
            .method()
            .is_idempotent()
    );
    assert!(!read("GET / HTTP/1.0\r\n\r\n").keep_alive());
    assert!(read("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep_alive());
    // HTTP/1.0 knows neither.
    let old = "PUT / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    assert!(!read(old).expects_continue() && !read(old).asks_upgrade());
}

#[test]
fn a_request_without_anything_to_change_goes_on_as_it_came() {
    let close = ToUpstream {
        keep_alive: false,
        ..UP
    };
    assert_eq!(up(CURL, &UP), None);
    let browser = "POST / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n";
    assert_eq!(up(browser, &UP), None);
    let closing = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    assert_eq!(up(closing, &close), None);
    assert_eq!(
        up(closing, &UP).as_deref(),
        Some("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    );
    let both = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, keep-alive\r\n\r\n";
    assert_eq!(up(both, &close).as_deref(), Some(closing));
    let sent = up(CURL, &close).expect("a change");
    sent.ends("Accept: */*\r\nConnection: close\r\n\r\n");
    let websocket = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n";
    assert!(read(websocket).asks_upgrade());
    assert_eq!(up(websocket, &UP), None);
    let refused = ToUpstream {
        upgrade: false,
        ..UP
    };
    assert_eq!(
        up(websocket, &refused).as_deref(),
        Some("GET / HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Version: 13\r\n\r\n")
    );
}

#[test]
fn what_belongs_to_the_clients_connection_stays_there() {
    let text = "GET / HTTP/1.1\r\nHost: a\r\nConnection: x-secret,, Close\r\nx-kept: 1\r\nX-Secret: 2\r\nKeep-Alive: 300\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\nTE: gzip;q=1, trailers\r\nUpgrade: x\r\n\r\n";
    assert_eq!(
        up(text, &UP).as_deref(),
        Some("GET / HTTP/1.1\r\nHost: a\r\nx-kept: 1\r\nConnection: TE\r\nTE: trailers\r\n\r\n")
    );
}

#[test]
fn other_forms_and_versions_become_the_usual_one() {
    let lines: Vec<_> = include_str!("rewriting/forms.txt")
        .lines()
        .map(|line| line.replace(r"\r\n", "\r\n"))
        .collect();
    for pair in lines.chunks(2) {
        let (text, sent) = (pair[0].as_str(), pair[1].trim_start());
        assert_eq!(up(text, &UP).as_deref(), Some(sent), "{text}");
    }
}

fn edit<'e>(how: EditKind, name: &'e str, value: &'e str) -> Edit<'e> {
    Edit::new(how, name, value.as_bytes()).expect("a good edit")
}

#[test]
fn fields_are_added_appended_and_set() {
    use EditKind::*;
    let text = "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nx-a: 2\r\nX-E:\r\n\r\n";
    let sent = |edits: &[Edit<'_>]| {
        let out = up(text, &ToUpstream { edits, ..UP }).expect("a change");
        let fields = out.strip_prefix("GET / HTTP/1.1\r\n").expect("the line");
        fields
            .strip_suffix("\r\n\r\n")
            .expect("the end")
            .replace("\r\n", "|")
    };
    let (add, append) = (|to| edit(Add, "X-A", to), |to| edit(Append, "X-A", to));
    let set = |to| edit(Set, "X-A", to);
    let new = |name, to| edit(Append, name, to);
    let is_sent = |edits: &[Edit<'_>], fields| assert_eq!(sent(edits), fields, "{edits:?}");
    is_sent(&[add("3")], "Host: a|X-A: 1|x-a: 2|X-E:|X-A: 3");
    is_sent(&[append("3")], "Host: a|X-A: 1|x-a: 2, 3|X-E:");
    is_sent(&[set("3")], "Host: a|X-E:|X-A: 3");
    is_sent(&[new("X-E", "3")], "Host: a|X-A: 1|x-a: 2|X-E: 3");
    is_sent(&[new("X-N", "3")], "Host: a|X-A: 1|x-a: 2|X-E:|X-N: 3");
    let host = edit(Set, "host", "b:1");
    is_sent(&[host], "X-A: 1|x-a: 2|X-E:|host: b:1");
    // In order.
    let fields = "Host: a|X-A: 1|x-a: 2, 3, 4|X-E:";
    is_sent(&[append("3"), append("4")], fields);
    let fields = "Host: a|X-A: 1|x-a: 2|X-E:|X-N: 3, 4";
    is_sent(&[new("X-N", "3"), new("x-n", "4")], fields);
    let fields = "Host: a|X-A: 1|x-a: 2, 3|X-E:|X-A: 4, 5";
    is_sent(&[append("3"), add("4"), append("5")], fields);
    let fields = "Host: a|X-E:|X-A: 4, 5";
    is_sent(&[append("3"), set("4"), append("5")], fields);
    is_sent(&[add("3"), set("4"), set("5")], "Host: a|X-E:|X-A: 5");
    // What the client asks to be left out is not there to be appended to.
    let spoofed = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\nConnection: x-forwarded-for\r\n\r\n";
    let edits = [edit(Append, "X-Forwarded-For", "192.0.2.1")];
    assert_eq!(
        up(
            spoofed,
            &ToUpstream {
                edits: &edits,
                ..UP
            }
        )
        .as_deref(),
        Some("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n")
    );
}

#[test]
fn an_edit_cannot_make_a_message_ambiguous() {
    use EditKind::*;
    for name in "Content-Length transfer-encoding Connection Upgrade TE Expect Keep-Alive Trailer \
        content_length"
        .split(' ')
    {
        assert_eq!(Edit::new(Set, name, b"x"), Err(EditError::Fixed), "{name}");
    }
    assert_eq!(Edit::new(Add, "X: a\r\nY", b"x"), Err(EditError::Name));
    assert_eq!(Edit::new(Add, "", b"x"), Err(EditError::Name));
    assert_eq!(Edit::new(Add, "X", b"a\r\nY: b"), Err(EditError::Value));
    assert_eq!(Edit::new(Add, "X", b" a"), Err(EditError::Value));
    assert_eq!(Edit::new(Add, "Host", b"a"), Err(EditError::Host));
    assert_eq!(Edit::new(Set, "Host", b"a, b"), Err(EditError::Host));
}

const NGINX: &str =
    "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok";

#[test]
fn an_answer_goes_to_the_client_as_its_connection_needs() {
    let old = ToClient {
        minor_version: 0,
        ..DOWN
    };
    let last = ToClient {
        keep_alive: false,
        ..DOWN
    };
    let none = RequestContext::default();
    let (text, answered) = down(NGINX, none, &DOWN);
    assert_eq!((text, answered.keep_alive), (None, true));
    // A client of HTTP/1.0 has to be told that the connection stays open.
    assert_eq!(down(NGINX, none, &old).0, None);
    let plain = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(down(plain, none, &DOWN).0, None);
    assert_eq!(
        down(plain, none, &old).0.as_deref(),
        Some("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n")
    );
    let (text, answered) = down(NGINX, none, &last);
    assert_eq!(
        text.as_deref(),
        Some("HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 2\r\nConnection: close\r\n\r\n")
    );
    assert!(!answered.keep_alive);

    let apache = "HTTP/1.1 200 OK\r\nUpgrade: h2,h2c\r\nConnection: Upgrade, Keep-Alive\r\nKeep-Alive: timeout=5, max=100\r\nContent-Length: 2\r\n\r\n";
    assert_eq!(
        down(apache, none, &DOWN).0.as_deref(),
        Some("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
    );
    // The body's end is the connection's end, whatever the client wishes.
    let until_close = "HTTP/1.0 200 OK\r\nServer: old\r\n\r\ntext";
    let (text, answered) = down(until_close, none, &DOWN);
    assert_eq!(
        text.as_deref(),
        Some("HTTP/1.1 200 OK\r\nServer: old\r\nConnection: close\r\n\r\n")
    );
    assert!(!answered.keep_alive);
    // The upstream's connection ends, the client's does not.
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    let head = read_response(closing.as_bytes(), none).unwrap().unwrap();
    assert!(!head.keep_alive());
    let (text, answered) = down(closing, none, &DOWN);
    assert_eq!(
        text.as_deref(),
        Some("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
    );
    assert!(answered.keep_alive);
}

#[test]
fn chunks_reach_a_client_of_http_1_0_as_plain_content() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2;x\r\nok\r\n3\r\nay!\r\n0\r\nX-Sum: 5\r\n\r\n";
    let none = RequestContext::default();
    assert_eq!(down(chunked, none, &DOWN).0, None);
    let old = ToClient {
        minor_version: 0,
        ..DOWN
    };
    let (text, answered) = down(chunked, none, &old);
    assert_eq!(
        text.as_deref(),
        Some("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    );
    assert_eq!(
        (answered.body, answered.keep_alive),
        (BodyPass::Dechunked, false)
    );
    let head = read_response(chunked.as_bytes(), none).unwrap().unwrap();
    let mut tracker = BodyTracker::new(Direction::Response, head.framing());
    let mut content = Vec::new();
    let body = &chunked.as_bytes()[head.len()..];
    let taken = tracker
        .take_content(body, |bytes| content.extend_from_slice(bytes))
        .unwrap();
    assert_eq!(
        (content.as_slice(), taken.bytes, taken.complete),
        (&b"okay!"[..], body.len(), true)
    );
}

#[test]
fn answers_whose_status_or_request_says_that_no_body_comes() {
    let none = RequestContext::default();
    let head_request = RequestContext { head: true, ..none };
    let framing = |text: &str, context| {
        read_response(text.as_bytes(), context)
            .unwrap()
            .unwrap()
            .framing()
    };
    assert_eq!(framing(NGINX, head_request), Framing::None);
    assert_eq!(down(NGINX, head_request, &DOWN).0, None);
    let not_modified = "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(framing(not_modified, none), Framing::None);
    assert_eq!(down(not_modified, none, &DOWN).0, None);
    // A length where none may be could be believed.
    let no_content = "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(framing(no_content, none), Framing::None);
    assert_eq!(
        down(no_content, none, &DOWN).0.as_deref(),
        Some("HTTP/1.1 204 No Content\r\n\r\n")
    );
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: b\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(
        down(twice, none, &DOWN).0.as_deref(),
        Some("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: b\r\n\r\n")
    );
}

#[test]
fn interim_answers_and_other_protocols() {
    let none = RequestContext::default();
    let upgrade = RequestContext {
        upgrade: true,
        ..none
    };
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
    let head = read_response(hints.as_bytes(), none).unwrap().unwrap();
    assert!(head.is_interim() && hints[head.len()..].starts_with("HTTP/1.1 200"));
    let edits = [edit(EditKind::Add, "Set-Cookie", "node=two")];
    let to = ToClient {
        edits: &edits,
        keep_alive: false,
        ..DOWN
    };
    // Nothing is said of the connection or the session before the final answer.
    assert_eq!(down(hints, none, &to).0, None);
    let old = ToClient {
        minor_version: 0,
        ..DOWN
    };
    assert_eq!(down(hints, none, &old).1.head, Rewritten::Dropped);

    let switching = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x01\x02";
    assert_eq!(
        read_response(switching.as_bytes(), none).map(|_| ()),
        Err(BadResponse::Switch)
    );
    let (text, answered) = down(switching, upgrade, &DOWN);
    assert_eq!((text, answered.keep_alive), (None, true));
    let head = read_response(switching.as_bytes(), upgrade)
        .unwrap()
        .unwrap();
    assert!(head.switches() && !head.is_interim() && !head.keep_alive());
}

#[test]
fn a_sticky_cookie_is_put_beside_the_servers_own() {
    let edits = [
        edit(EditKind::Append, "Set-Cookie", "node=two; Path=/"),
        edit(EditKind::Set, "Server", "x"),
    ];
    let to = ToClient {
        edits: &edits,
        ..DOWN
    };
    let text = "HTTP/1.1 200 OK\r\nServer: y\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(
        down(text, RequestContext::default(), &to).0.as_deref(),
        Some(
            "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\nSet-Cookie: node=two; Path=/\r\nServer: x\r\n\r\n"
        )
    );
}

#[test]
fn answers_that_are_read_in_two_ways_are_refused() {
    use Refusal::*;
    let read = |text: &str| {
        let text = format!("HTTP/1.1 200 OK\r\n{text}\r\n");
        read_response(text.as_bytes(), RequestContext::default()).map(|_| ())
    };
    for (fields, refusal) in [
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            LengthAndCoding,
        ),
        (
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            ContentLengthRepeated,
        ),
        ("Content-Length: 5, 5\r\n", ContentLength),
        ("Transfer-Encoding: gzip, chunked\r\n", CodingUnknown),
        ("Transfer-Encoding: identity\r\n", TransferEncoding),
        ("A: b\n", LineEnd),
        ("A: b\r\n c\r\n", FoldedLine),
        ("A: \0\r\n", FieldValue),
    ] {
        assert_eq!(read(fields), Err(BadResponse::Head(refusal)), "{fields:?}");
    }
    // HTTP/1.0 has no coding.
    let old = "\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n";
    let text = format!("HTTP/1.0 200 OK{old}");
    let read = read_response(text.as_bytes(), RequestContext::default()).map(|_| ());
    assert_eq!(read, Err(BadResponse::Head(CodingInHttp10)));
    // Nor does this, which has no content: the head ends it, and the connection ends (RFC 9112 6.1).
    let text = format!("HTTP/1.0 304 Not Modified{old}");
    let head = read_response(text.as_bytes(), RequestContext::default());
    assert!(!head.unwrap().unwrap().keep_alive());
    for line in [
        "HTTP/1.10 200 OK",
        "HTTP/2 200",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1 099 OK",
        "ICY 200 OK",
        "SSH-2.0-x",
        "\r\nHTTP/1.1 200 OK",
    ] {
        let text = format!("{line}\r\n\r\n");
        assert_eq!(
            read_response(text.as_bytes(), RequestContext::default()).map(|_| ()),
            Err(BadResponse::StatusLine),
            "{line}"
        );
    }
}

#[test]
fn blanks_before_a_colon_are_removed_from_answers() {
    let text = "HTTP/1.1 200 OK\r\nA \t: b\r\nContent-Length : 05\r\nC: d\r\n\r\n";
    assert_eq!(
        down(text, RequestContext::default(), &DOWN).0.as_deref(),
        Some("HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\nC: d\r\n\r\n")
    );
}

#[test]
fn framing_fields_of_answers_without_content_are_not_judged_and_odd_ones_do_not_go_on() {
    let head = RequestContext {
        head: true,
        upgrade: false,
    };
    for (fields, sent) in [
        ("Content-Length: 5\r\n", "Content-Length: 5\r\n"),
        (
            "Transfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\n",
        ),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", ""),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", ""),
        ("Content-Length: x\r\n", ""),
        ("Transfer-Encoding: gzip, chunked\r\n", ""),
    ] {
        let text = |fields: &str| format!("HTTP/1.1 200 OK\r\nA: b\r\n{fields}\r\n");
        let (got, _) = down(&text(fields), head, &DOWN);
        assert_eq!(got.unwrap_or(text(fields)), text(sent), "{fields}");
    }
}

#[test]
fn hops_are_counted_for_options_and_trace() {
    let up = |method: &str, field: &str| {
        let text = format!("{method} / HTTP/1.1\r\nHost: a\r\n{field}\r\n");
        let head = read_request(text.as_bytes()).unwrap().unwrap();
        let mut out = Vec::new();
        match rewrite_request(&head, &UP, &mut out) {
            Rewritten::AsIs => (head.is_at_last_hop(), text),
            _ => (head.is_at_last_hop(), String::from_utf8(out).unwrap()),
        }
    };
    let table = r"
OPTIONS | Max-Forwards: 10\r\n | false | Max-Forwards: 9\r\n
TRACE | max-forwards: 0001\r\n | false | max-forwards: 0\r\n
TRACE | Max-Forwards: 0\r\n | true | Max-Forwards: 0\r\n
TRACE | Max-Forwards: 9\r\nMax-Forwards: 0\r\n | true | Max-Forwards: 0\r\nMax-Forwards: 0\r\n
TRACE | Max-Forwards: 99999999999999999999\r\n | false | Max-Forwards: 4294967294\r\n
TRACE | Max-Forwards: -1\r\n | false | Max-Forwards: -1\r\n
GET | Max-Forwards: 0\r\n | false | Max-Forwards: 0\r\n";
    for row in table.lines().skip(1) {
        let row = row.replace(r"\r\n", "\r\n");
        let [method, field, is_last, sent] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let expected = format!("{method} / HTTP/1.1\r\nHost: a\r\n{sent}\r\n");
        assert_eq!(
            up(method, field),
            (is_last == "true", expected),
            "{method} {field}"
        );
    }
}
