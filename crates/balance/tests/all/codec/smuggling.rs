//! The known ways to make two servers read different requests from the same bytes: each is
//! refused, or goes on in a form that can be read in one way only.

use balance::http::{
    BodyTracker, Direction, Framing, Refusal, Rewritten, ToUpstream, read_request, rewrite_request,
};

/// What becomes of the bytes of a connection.
#[derive(Debug, PartialEq)]
enum Fate {
    Head(Refusal),
    Body(Refusal),
    /// Goes on as it came, with that framing.
    AsIs(Framing),
    /// Goes on as that.
    As(String),
    /// More is needed.
    Partial,
}

const TO: ToUpstream<'_> = ToUpstream {
    edits: &[],
    keep_alive: true,
    upgrade: true,
    trusted: true,
    host: b"upstream",
};

fn fate(bytes: &[u8]) -> Fate {
    let head = match read_request(bytes) {
        Ok(Some(head)) => head,
        Ok(None) => return Fate::Partial,
        Err(refusal) => return Fate::Head(refusal),
    };
    let mut body = BodyTracker::new(Direction::Request, head.framing());
    if !body.is_complete()
        && let Err(refusal) = body.take(&bytes[head.len()..])
    {
        return Fate::Body(refusal);
    }
    let mut out = Vec::new();
    match rewrite_request(&head, &TO, &mut out) {
        Rewritten::AsIs => Fate::AsIs(head.framing()),
        _ => Fate::As(String::from_utf8_lossy(&out).into_owned()),
    }
}

/// The rows of a table of two columns, whose texts are escaped as in Rust.
fn rows(table: &str) -> impl Iterator<Item = [String; 2]> {
    let unescaped = |text: &str| {
        let mut text = text.to_owned();
        while let Some((before, rest)) = text.split_once("\\u{") {
            let (code, behind) = rest.split_once('}').unwrap();
            let code = u32::from_str_radix(code, 16).unwrap();
            text = format!("{before}{}{behind}", char::from_u32(code).unwrap());
        }
        let named = [("\\r", "\r"), ("\\n", "\n"), ("\\t", "\t"), ("\\0", "\0")];
        named
            .iter()
            .fold(text, |text, (name, one)| text.replace(name, one))
    };
    let is_row = |line: &&str| !line.is_empty() && !line.starts_with('#');
    table.lines().filter(is_row).map(move |line| {
        let (one, other) = line.rsplit_once(" | ").expect("two columns");
        [unescaped(one), unescaped(other)]
    })
}

/// POST with these fields and a body that starts another request if it is framed otherwise.
fn post(fields: &str) -> Fate {
    let body = "0\r\n\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n";
    fate(format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}").as_bytes())
}

/// POST with this body in chunks.
fn chunks(body: &str) -> Fate {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    fate(format!("{head}{body}").as_bytes())
}

#[test]
fn lengths_and_codings_that_contradict() {
    for [fields, refusal] in rows(
        r#"
# CL.TE and TE.CL
Content-Length: 5\r\nTransfer-Encoding: chunked\r\n | LengthAndCoding
Transfer-Encoding: chunked\r\nContent-Length: 5\r\n | LengthAndCoding
transfer-encoding: chunked\r\ncontent-length: 0\r\n | LengthAndCoding
# CL.CL
Content-Length: 5\r\nContent-Length: 6\r\n | ContentLengthRepeated
Content-Length: 5\r\nContent-Length: 5\r\n | ContentLengthRepeated
Content-Length: 5\r\ncontent-length: 05\r\n | ContentLengthRepeated
Content-Length: 5, 5\r\n | ContentLength
Content-Length: 5,6\r\n | ContentLength
Content-Length: +5\r\n | ContentLength
Content-Length: -5\r\n | ContentLength
Content-Length: 0x5\r\n | ContentLength
Content-Length: 5 5\r\n | ContentLength
Content-Length: 5;a\r\n | ContentLength
Content-Length: 5.0\r\n | ContentLength
Content-Length: "5"\r\n | ContentLength
Content-Length: 1e1\r\n | ContentLength
Content-Length: 1_0\r\n | ContentLength
Content-Length: \u{661}\r\n | ContentLength
Content-Length:\r\n | ContentLength
Content-Length: 18446744073709551617\r\n | BodyTooLarge
Content-Length: 9223372036854775808\r\n | BodyTooLarge
# Names that are not quite those.
Content-Length : 5\r\n | BlankInName
Content-Length\t: 5\r\n | BlankInName
Content Length: 5\r\n | BlankInName
 Content-Length: 5\r\n | FoldedLine
\tTransfer-Encoding: chunked\r\n | FoldedLine
Content_Length: 5\r\n | LookalikeName
Transfer_Encoding: chunked\r\n | LookalikeName
Transfer.Encoding: chunked\r\n | LookalikeName
Content-Length\0: 5\r\n | FieldName
\0Content-Length: 5\r\n | FieldName
Content-Length\u{b}: 5\r\n | FieldName
\u{feff}Content-Length: 5\r\n | FieldName
: 5\r\n | FieldName
Content-Length\r\n | FieldName
(Content-Length): 5\r\n | FieldName
# TE.TE
Transfer-Encoding: xchunked\r\n | TransferEncoding
Transfer-Encoding: chunkedx\r\n | TransferEncoding
Transfer-Encoding: identity\r\n | TransferEncoding
Transfer-Encoding: chunked, identity\r\n | TransferEncoding
Transfer-Encoding: chunked, chunked\r\n | TransferEncoding
Transfer-Encoding: chunked,\r\n | TransferEncoding
Transfer-Encoding: ,chunked\r\n | CodingUnknown
Transfer-Encoding: gzip, chunked\r\n | CodingUnknown
Transfer-Encoding: identity, chunked\r\n | CodingUnknown
Transfer-Encoding: chunked;q=1\r\n | TransferEncoding
Transfer-Encoding: "chunked"\r\n | TransferEncoding
Transfer-Encoding: 'chunked'\r\n | TransferEncoding
Transfer-Encoding: chunke\u{212a}\r\n | TransferEncoding
Transfer-Encoding:\r\n | TransferEncoding
Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n | TransferEncoding
Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n | TransferEncoding
Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n | TransferEncoding
Transfer-Encoding: \u{b}chunked\r\n | FieldValue
Transfer-Encoding: \u{c}chunked\r\n | FieldValue
Transfer-Encoding: chunked\0\r\n | FieldValue
Transfer-Encoding: chunked\u{7f}\r\n | FieldValue
Transfer-Encoding: \u{a0}chunked\r\n | TransferEncoding
Transfer-Encoding:\r\n chunked\r\n | TransferEncoding
Transfer-Encoding: chunked\r\n \r\n | FoldedLine
X: a\r\n\tTransfer-Encoding: chunked\r\n | FoldedLine
# Ends of lines.
X: a\nTransfer-Encoding: chunked\r\n | LineEnd
X: a\rTransfer-Encoding: chunked\r\n | LineEnd
X: a\r\r\nTransfer-Encoding: chunked\r\n | LineEnd
X\r: a\r\n | LineEnd
X: a\n | LineEnd
X: a\0b\r\n | FieldValue
X: a\u{8}\r\n | FieldValue
# What the next connection must not lose.
Connection: content-length\r\nContent-Length: 5\r\n | Connection
Connection: close, Transfer-Encoding\r\n | Connection
Connection: Host\r\n | Connection
Connection: a b\r\n | Connection
# Whether a body comes before the answer.
Expect: y 100-continue\r\nContent-Length: 5\r\n | Expectation
Expect: 100-continue, 100-continue\r\nContent-Length: 5\r\n | Expectation
Expect:\r\n | Expectation
Expect: 100-continue\r\nExpect: 100-continue\r\n | Expectation
# Who is asked.
Host: b\r\n | HostRepeated
Host: a\r\n | HostRepeated
"#,
    ) {
        assert_eq!(
            format!("{:?}", post(&fields)),
            format!("Head({refusal})"),
            "{fields:?}"
        );
    }
}

#[test]
fn first_lines_and_hosts_that_are_read_in_two_ways() {
    for [bytes, refusal] in rows(
        r#"
GET / HTTP/1.1\r\n\r\n | HostMissing
GET http://a/ HTTP/1.1\r\n\r\n | HostMissing
GET / HTTP/1.1\r\nHost: a, b\r\n\r\n | Host
GET / HTTP/1.1\r\nHost: a b\r\n\r\n | Host
GET / HTTP/1.1\r\nHost: u@a\r\n\r\n | Host
GET / HTTP/1.1\r\nHost: a/b\r\n\r\n | Host
GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n | Host
GET / HTTP/1.1\r\nHost: a:b\r\n\r\n | Host
GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n | HostRepeated
GET / HTTP/1.1\nHost: a\r\n\r\n | LineEnd
GET / HTTP/1.1\r\nHost: a\n\n | LineEnd
GET / HTTP/1.1\r\nHost: a\r\n\n | LineEnd
\nGET / HTTP/1.1\r\nHost: a\r\n\r\n | LineEnd
\r\n\r\n\r\nGET / HTTP/1.1\r\n | EmptyLines
GET /\rx HTTP/1.1\r\nHost: a\r\n\r\n | LineEnd
GET  / HTTP/1.1\r\nHost: a\r\n\r\n | RequestLine
GET /  HTTP/1.1\r\nHost: a\r\n\r\n | RequestLine
GET /a b HTTP/1.1\r\nHost: a\r\n\r\n | RequestLine
GET / HTTP/1.1 \r\nHost: a\r\n\r\n | RequestLine
GET /\r\nHost: a\r\n\r\n | RequestLine
GET / http/1.1\r\nHost: a\r\n\r\n | RequestLine
GET / HTTP/1.1x\r\nHost: a\r\n\r\n | RequestLine
GET / HTTP/01.1\r\nHost: a\r\n\r\n | RequestLine
GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n | Method
 GET / HTTP/1.1\r\nHost: a\r\n\r\n | Method
G(T / HTTP/1.1\r\nHost: a\r\n\r\n | Method
GET: / HTTP/1.1\r\nHost: a\r\n\r\n | Method
\u{16}\u{3}\u{1} | Method
GET / HTTP/2.0\r\nHost: a\r\n\r\n | Version
GET / HTTP/0.9\r\nHost: a\r\n\r\n | Version
PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n | Version
CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n | Connect
GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n | Target
GET a HTTP/1.1\r\nHost: a\r\n\r\n | Target
GET * HTTP/1.1\r\nHost: a\r\n\r\n | Target
GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n | Target
GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n | Target
GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n | Target
GET file:///etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n | Target
POST / HTTP/1.0\r\n\r\nabc | LengthRequired
POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n | CodingInHttp10
"#,
    ) {
        let fate = fate(bytes.as_bytes());
        assert_eq!(format!("{fate:?}"), format!("Head({refusal})"), "{bytes:?}");
    }
}

#[test]
fn heads_without_end_are_refused_at_their_limit() {
    let long = format!("GET /{}", "a".repeat(70_000));
    assert_eq!(fate(long.as_bytes()), Fate::Head(Refusal::TargetTooLong));
    let begin = "GET / HTTP/1.1\r\nHost: a\r\n";
    let long = format!("{begin}X: {}\r\n\r\n", "a".repeat(70_000));
    assert_eq!(fate(long.as_bytes()), Fate::Head(Refusal::HeadTooLarge));
    assert_eq!(fate(&long.as_bytes()[..65_535]), Fate::Partial);
    let many = |n: usize| format!("{begin}{}\r\n", "X: y\r\n".repeat(n));
    assert_eq!(fate(many(99).as_bytes()), Fate::AsIs(Framing::None));
    assert_eq!(
        fate(many(100).as_bytes()),
        Fate::Head(Refusal::HeadTooLarge)
    );
    let names = |n: usize| format!("{begin}Connection: {}\r\n\r\n", "a,".repeat(n));
    assert!(matches!(fate(names(32).as_bytes()), Fate::As(_)));
    assert_eq!(fate(names(33).as_bytes()), Fate::Head(Refusal::Connection));
}

#[test]
fn chunks_that_are_read_in_two_ways() {
    use Refusal::*;
    let long_extension = format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(5000));
    let long_trailers = format!("0\r\nA: {}\r\n\r\n", "x".repeat(20_000));
    for (body, refusal) in [
        // Sizes.
        ("0x1\r\na\r\n0\r\n\r\n", Chunk),
        ("+1\r\na\r\n0\r\n\r\n", Chunk),
        ("-1\r\na\r\n0\r\n\r\n", Chunk),
        (" 1\r\na\r\n0\r\n\r\n", Chunk),
        ("\u{b}1\r\na\r\n0\r\n\r\n", Chunk),
        ("1 \r\na\r\n0\r\n\r\n", Chunk),
        ("1 1\r\na\r\n0\r\n\r\n", Chunk),
        ("1_0\r\na\r\n0\r\n\r\n", Chunk),
        ("\r\n1\r\na\r\n0\r\n\r\n", Chunk),
        ("10000000000000001\r\na\r\n0\r\n\r\n", Chunk),
        ("FFFFFFFFFFFFFFFF\r\na\r\n0\r\n\r\n", Chunk),
        // 2^32 + 1: one byte for a counter of 32 bits.
        ("100000001\r\na\r\n0\r\n\r\n", Chunk),
        ("80000000\r\na\r\n0\r\n\r\n", Chunk),
        // Ends of lines.
        ("1\na\r\n0\r\n\r\n", Chunk),
        ("1\ra\r\n0\r\n\r\n", Chunk),
        ("1\r\na\n0\r\n\r\n", Chunk),
        ("1\r\na\r0\r\n\r\n", Chunk),
        ("1\r\naXX0\r\n\r\n", Chunk),
        ("1\r\na0\r\n\r\n", Chunk),
        ("0\r\n\n", Chunk),
        ("0\n\r\n", Chunk),
        ("0\r\n\rX", Chunk),
        // Extensions.
        ("1;\nxx\r\na\r\n0\r\n\r\n", Chunk),
        ("1;a\rb\r\na\r\n0\r\n\r\n", Chunk),
        ("1;a=\"\n\"\r\na\r\n0\r\n\r\n", Chunk),
        ("1;\0\r\na\r\n0\r\n\r\n", Chunk),
        ("1;\u{b}\r\na\r\n0\r\n\r\n", Chunk),
        ("1,a\r\na\r\n0\r\n\r\n", Chunk),
        (long_extension.as_str(), Chunk),
        // Trailers.
        ("0\r\nContent-Length: 5\r\n\r\n", TrailerName),
        ("0\r\nA: b\r\ncontent_length: 5\r\n\r\n", TrailerName),
        ("0\r\nTransfer-Encoding: chunked\r\n\r\n", TrailerName),
        ("0\r\nHOST: b\r\n\r\n", TrailerName),
        ("0\r\nConnection: close\r\n\r\n", TrailerName),
        ("0\r\nAuthorization: Basic eA==\r\n\r\n", TrailerName),
        ("0\r\nCookie: a=b\r\n\r\n", TrailerName),
        ("0\r\nGET /admin HTTP/1.1\r\n\r\n", Trailer),
        ("0\r\nA : b\r\n\r\n", Trailer),
        ("0\r\nA: b\r\n c\r\n\r\n", Trailer),
        ("0\r\n: b\r\n\r\n", Trailer),
        ("0\r\nA\r\n\r\n", Trailer),
        ("0\r\nA: \0\r\n\r\n", Trailer),
        ("0\r\nA: b\nContent-Length: 5\r\n\r\n", Chunk),
        ("0\r\nA: b\rContent-Length: 5\r\n\r\n", Chunk),
        (long_trailers.as_str(), TrailersTooLarge),
    ] {
        assert_eq!(chunks(body), Fate::Body(refusal), "{body:.60?}");
    }
    for good in [
        "0\r\n\r\n",
        "1\r\na\r\n0\r\n\r\n",
        "0001;a=b;c=\"d\"\r\na\r\n000\r\nExpires: 0\r\nContent-Length-X: 1\r\n\r\n",
        "1 ;a\r\na\r\n0\r\n\r\n",
        "7FFFFFFF\r\na",
    ] {
        assert_eq!(chunks(good), Fate::AsIs(Framing::Chunked), "{good:?}");
    }
}

#[test]
fn what_is_unusual_but_clear_goes_on_in_its_usual_form() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\n";
    for [fields, sent] in rows(
        r#"
Content-Length: 0005\r\n | Content-Length: 5\r\n
Content-Length: 000\r\n | Content-Length: 0\r\n
transfer-encoding:CHUNKED\r\n | transfer-encoding: chunked\r\n
# What is not to be waited for: there is no body.
Expect: 100-continue\r\n | nothing
Expect: 100-Continue\r\nContent-Length: 0\r\n | Content-Length: 0\r\n
# Behind an upgrade to HTTP/2 requests could not be looked at.
Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n | nothing
Connection: upgrade\r\nUpgrade: websocket, H2C\r\n | nothing
# Nor is it clear where another protocol begins behind a body.
Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n | Content-Length: 5\r\n
# Programs that take fields as variables would take it for HTTP_PROXY.
Proxy: http://b\r\n | nothing
"#,
    ) {
        let sent = sent.trim_end_matches("nothing");
        let expected = Fate::As(format!("{head}{sent}\r\n"));
        assert_eq!(post(&fields), expected, "{fields:?}");
    }
    let twice = b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let read = read_request(twice).unwrap().unwrap();
    assert_eq!((read.skipped(), read.len()), (4, twice.len()));
    assert_eq!(read.raw(), &twice[4..]);
}
