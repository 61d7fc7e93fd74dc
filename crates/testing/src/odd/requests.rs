//! What odd clients send.

use super::{BAD, Fate};
use Fate::{Passes, Refused, Reset, Unsaid};

/// One row of a dimension.
pub struct Row {
    pub what: &'static str,
    /// As it is sent. `/N` stands for a path that only this message has.
    pub text: &'static [u8],
    pub h1: Fate,
    pub h2: Fate,
    pub section: &'static str,
}

const fn row(
    what: &'static str,
    text: &'static [u8],
    h1: Fate,
    h2: Fate,
    section: &'static str,
) -> Row {
    Row {
        what,
        text,
        h1,
        h2,
        section,
    }
}

#[rustfmt::skip]
pub const METHODS: [Row; 12] = [
    row("GET", b"GET", Passes, Passes, "RFC 9110, 9.3.1"),
    row("HEAD", b"HEAD", Passes, Passes, "RFC 9110, 9.3.2"),
    row("POST", b"POST", Passes, Passes, "RFC 9110, 9.3.3"),
    row("PUT", b"PUT", Passes, Passes, "RFC 9110, 9.3.4"),
    row("DELETE", b"DELETE", Passes, Passes, "RFC 9110, 9.3.5"),
    row("OPTIONS", b"OPTIONS", Passes, Passes, "RFC 9110, 9.3.7"),
    row("TRACE", b"TRACE", Passes, Passes, "RFC 9110, 9.3.8"),
    row("unknown method", b"BREW", Passes, Passes, "RFC 9110, 9.1"),
    row("method in lower case", b"get", Passes, Passes, "RFC 9110, 9.1"),
    row("CONNECT", b"CONNECT", Refused(&[501]), Refused(&[501]), "RFC 9110, 9.1"),
    row("method that is no token", b"G@T", BAD, Reset, "RFC 9112, 3; RFC 9113, 8.3.1"),
    row("blank before the method", b" GET", BAD, Unsaid, "RFC 9112, 3"),
];

#[rustfmt::skip]
pub const TARGETS: [Row; 34] = [
    row("path", b"/N", Passes, Passes, "RFC 9112, 3.2.1"),
    row("path and query", b"/N?a=b&c", Passes, Passes, "RFC 9112, 3.2.1"),
    row("empty segments", b"//N//", Passes, Passes, "RFC 3986, 3.3"),
    row("percent-encoded", b"/N%C3%A9?%20", Passes, Passes, "RFC 3986, 2.1"),
    row("`%` without digits", b"/N%zz", Passes, Passes, "RFC 9112, 3.2 (SHOULD)"),
    row("`[`, `]`, `|` in a path", b"/N[|]", Passes, Passes, "RFC 9112, 3.2 (SHOULD)"),
    row("`{`, `}`, `[`, `]`, `|`, `\\`, `^`, `` ` `` in a query", b"/N?{[|]}\\^`", Passes, Passes, "RFC 9112, 3.2 (SHOULD)"),
    row("`\"` in a path", b"/N\"", BAD, BAD, "RFC 9112, 3.2"),
    row("`<` in a path", b"/N<", BAD, BAD, "RFC 9112, 3.2"),
    row("`>` in a path", b"/N>", BAD, BAD, "RFC 9112, 3.2"),
    row("`\\` in a path", b"/N\\", BAD, BAD, "RFC 9112, 3.2"),
    row("`^` in a path", b"/N^", BAD, BAD, "RFC 9112, 3.2"),
    row("`` ` `` in a path", b"/N`", BAD, BAD, "RFC 9112, 3.2"),
    row("`{` in a path", b"/N{", BAD, BAD, "RFC 9112, 3.2"),
    row("`}` in a path", b"/N}", BAD, BAD, "RFC 9112, 3.2"),
    row("`\"` in a query", b"/N?\"", BAD, BAD, "RFC 9112, 3.2"),
    row("`<`, `>` in a query", b"/N?<>", BAD, BAD, "RFC 9112, 3.2"),
    row("`#`", b"/N#a", BAD, BAD, "RFC 9112, 3.2"),
    row("not ASCII", b"/N\xc3\xa9", BAD, Reset, "RFC 9112, 3.2; RFC 9113, 8.3.1"),
    row("control character", b"/N\x01", BAD, Reset, "RFC 9112, 3.2; RFC 9113, 8.2.1"),
    row("blank", b"/N a", BAD, Reset, "RFC 9112, 3; RFC 9113, 8.3.1"),
    row("two blanks before the version", b"/N ", BAD, Reset, "RFC 9112, 3; RFC 9113, 8.2.1"),
    row("no `/` first", b"N", BAD, Reset, "RFC 9112, 3.2; RFC 9113, 8.3.1"),
    row("`?` first", b"?N", BAD, Reset, "RFC 9112, 3.2; RFC 9113, 8.3.1"),
    row("absolute form", b"http://a.example/N", Passes, Reset, "RFC 9112, 3.2.2; RFC 9113, 8.3.1"),
    row("absolute form, scheme in capitals", b"HTTP://a.example/N", Passes, Reset, "RFC 3986, 3.1"),
    row("absolute form without a path", b"http://a.example?N", Passes, Reset, "RFC 9112, 3.2.1"),
    row("absolute form with an empty port", b"http://a.example:/N", Passes, Reset, "RFC 3986, 3.2.3"),
    row("absolute form with a user", b"http://u:p@a.example/N", BAD, Reset, "RFC 9110, 4.2.4"),
    row("absolute form without a host", b"http:///N", BAD, Reset, "RFC 9110, 4.2.1"),
    row("absolute form of another scheme", b"ftp://a.example/N", BAD, Reset, "RFC 9112, 3.2.2"),
    row("authority form without CONNECT", b"a.example:80", BAD, Reset, "RFC 9112, 3.2.3"),
    row("`*` without OPTIONS", b"*", BAD, Reset, "RFC 9112, 3.2.4; RFC 9113, 8.3.1"),
    row("no target", b"", BAD, Reset, "RFC 9112, 3; RFC 9113, 8.3.1"),
];

#[rustfmt::skip]
pub const VERSIONS: [Row; 10] = [
    row("HTTP/1.1", b"HTTP/1.1", Passes, Passes, "RFC 9112, 2.3"),
    row("HTTP/1.0", b"HTTP/1.0", Passes, Unsaid, "RFC 9110, 2.5"),
    row("HTTP/1.2", b"HTTP/1.2", Passes, Unsaid, "RFC 9110, 2.5"),
    row("HTTP/1.9", b"HTTP/1.9", Passes, Unsaid, "RFC 9110, 2.5"),
    row("HTTP/2.0", b"HTTP/2.0", Refused(&[505]), Unsaid, "RFC 9110, 15.6.6"),
    row("HTTP/0.9", b"HTTP/0.9", Refused(&[505]), Unsaid, "RFC 9110, 15.6.6"),
    row("minor version of two digits", b"HTTP/1.10", BAD, Unsaid, "RFC 9112, 2.3"),
    row("name in lower case", b"http/1.1", BAD, Unsaid, "RFC 9112, 2.3"),
    row("no minor version", b"HTTP/1", BAD, Unsaid, "RFC 9112, 2.3"),
    row("another protocol", b"RTSP/1.0", BAD, Unsaid, "RFC 9112, 3"),
];

/// `Host: a.example`, and what else it may be.
#[rustfmt::skip]
pub const HOSTS: [Row; 9] = [
    row("Host", b"Host: a.example\r\n", Passes, Passes, "RFC 9112, 3.2"),
    row("empty Host", b"Host: \r\n", Passes, Unsaid, "RFC 9110, 7.2"),
    row("Host with an empty port", b"Host: a.example:\r\n", Passes, Unsaid, "RFC 3986, 3.2.3"),
    row("no Host", b"", BAD, Unsaid, "RFC 9112, 3.2"),
    row("Host twice", b"Host: a.example\r\nhost: a.example\r\n", BAD, Unsaid, "RFC 9112, 3.2"),
    row("two Hosts", b"Host: a.example\r\nHost: b.example\r\n", BAD, Unsaid, "RFC 9112, 3.2"),
    row("Host with a blank", b"Host: a b\r\n", BAD, Reset, "RFC 9112, 3.2; RFC 9113, 8.3.1"),
    row("Host with a path", b"Host: a.example/b\r\n", BAD, BAD, "RFC 9112, 3.2"),
    row("Host with a user", b"Host: u@a.example\r\n", BAD, BAD, "RFC 9112, 3.2; RFC 9113, 8.3.1"),
];

#[rustfmt::skip]
pub const FIELDS: [Row; 42] = [
    row("nothing more", b"", Passes, Passes, "RFC 9112, 2.1"),
    row("field", b"X-A: b\r\n", Passes, Passes, "RFC 9110, 5.1"),
    row("empty value", b"X-A:\r\n", Passes, Passes, "RFC 9110, 5.5"),
    row("same field twice", b"X-A: 1\r\nx-a: 2\r\n", Passes, Passes, "RFC 9110, 5.3"),
    row("value that is not ASCII", b"X-A: \xe9\r\n", Passes, Passes, "RFC 9110, 5.5"),
    row("tab in a value", b"X-A: a\tb\r\n", Passes, Passes, "RFC 9110, 5.5"),
    row("line that ends with LF alone", b"X-A: b\nX-B: c\r\n", BAD, Unsaid, "RFC 9112, 2.2 (MAY accept)"),
    row("CR in a line", b"X-A: b\rc\r\n", BAD, Reset, "RFC 9112, 2.2; RFC 9113, 8.2.1"),
    row("folded line", b"X-A: b\r\n c\r\n", BAD, Unsaid, "RFC 9112, 5.2"),
    row("blank before the first field", b" X-A: b\r\n", BAD, Unsaid, "RFC 9112, 2.2"),
    row("blank before the colon", b"X-A : b\r\n", BAD, Reset, "RFC 9112, 5.1; RFC 9113, 8.2.1"),
    row("no name", b": b\r\n", BAD, Unsaid, "RFC 9112, 5"),
    row("no colon", b"nonsense\r\n", BAD, Unsaid, "RFC 9112, 5"),
    row("name that is no token", b"X(A): b\r\n", BAD, Reset, "RFC 9110, 5.1; RFC 9113, 8.2.1"),
    row("NUL in a value", b"X-A: a\0b\r\n", BAD, Reset, "RFC 9110, 5.5; RFC 9113, 8.2.1"),
    row("control character in a value", b"X-A: a\x01b\r\n", BAD, Reset, "RFC 9110, 5.5"),
    row("DEL in a value", b"X-A: a\x7fb\r\n", BAD, Reset, "RFC 9110, 5.5"),
    row("Connection: close", b"Connection: close\r\n", Passes, Reset, "RFC 9112, 9.6; RFC 9113, 8.2.2"),
    row("Connection: keep-alive", b"Connection: keep-alive\r\n", Passes, Reset, "RFC 9112, 9.3; RFC 9113, 8.2.2"),
    row("field that Connection names", b"Connection: X-A\r\nX-A: b\r\n", Passes, Reset, "RFC 9110, 7.6.1; RFC 9113, 8.2.2"),
    row("Connection that names Host", b"Connection: Host\r\n", BAD, Reset, "RFC 9110, 7.6.1; RFC 9113, 8.2.2"),
    row("Connection that is no list of tokens", b"Connection: (\r\n", BAD, Reset, "RFC 9110, 7.6.1; RFC 9113, 8.2.2"),
    row("Keep-Alive", b"Keep-Alive: timeout=5\r\n", Passes, Reset, "RFC 9110, 7.6.1; RFC 9113, 8.2.2"),
    row("Proxy-Connection", b"Proxy-Connection: close\r\n", Passes, Reset, "RFC 9110, 7.6.1; RFC 9113, 8.2.2"),
    row("Upgrade without Connection", b"Upgrade: a\r\n", Passes, Reset, "RFC 9110, 7.8; RFC 9113, 8.2.2"),
    row("upgrade to HTTP/2", b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n", Passes, Reset, "RFC 9110, 7.8; RFC 9113, 8.2.2"),
    row("TE: trailers", b"TE: trailers\r\n", Passes, Passes, "RFC 9110, 10.1.4"),
    row("TE: gzip", b"TE: gzip\r\n", Passes, Reset, "RFC 9110, 10.1.4; RFC 9113, 8.2.2"),
    row("Expect: 100-continue", b"Expect: 100-continue\r\n", Passes, Passes, "RFC 9110, 10.1.1"),
    row("another expectation", b"Expect: a\r\n", Refused(&[417]), Refused(&[417]), "RFC 9110, 10.1.1"),
    row("Max-Forwards: 5", b"Max-Forwards: 5\r\n", Passes, Passes, "RFC 9110, 7.6.2"),
    row("Max-Forwards: 0", b"Max-Forwards: 0\r\n", Passes, Passes, "RFC 9110, 7.6.2"),
    row("Max-Forwards that is no number", b"Max-Forwards: a\r\n", Passes, Passes, "RFC 9110, 7.6.2"),
    row("Content_Length", b"Content_Length: 5\r\n", BAD, BAD, "RFC 3875, 4.1.18"),
    row("Transfer.Encoding", b"Transfer.Encoding: chunked\r\n", BAD, BAD, "RFC 3875, 4.1.18"),
    row("Proxy", b"Proxy: http://b.example/\r\n", Passes, Passes, "RFC 3875, 4.1.18"),
    row("Via", b"Via: 1.1 b.example\r\n", Passes, Passes, "RFC 9110, 7.6.3"),
    row("Trailer", b"Trailer: X-Sum\r\n", Passes, Passes, "RFC 9110, 6.6.2"),
    row("cookies in two fields", b"Cookie: a=1\r\nCookie: b=2\r\n", Passes, Passes, "RFC 9113, 8.2.3"),
    row("comments and quotes", b"User-Agent: a (b \"c\")\r\n", Passes, Passes, "RFC 9110, 5.6.5"),
    row("blanks around a value", b"X-A: \t b \t\r\n", Passes, Reset, "RFC 9110, 5.5; RFC 9113, 8.2.1"),
    row("name in capitals", b"X-A: b\r\nACCEPT: */*\r\n", Passes, Passes, "RFC 9110, 5.1"),
];

/// How the content is framed.
pub struct Framing {
    pub what: &'static str,
    pub fields: &'static str,
    pub body: &'static str,
    pub content: u64,
    pub h1: Fate,
    /// In HTTP/2 the fields are the same, and this is the content, if there is any.
    pub data: &'static str,
    pub h2: Fate,
    pub section: &'static str,
}

const fn framing(
    what: &'static str,
    fields: &'static str,
    body: &'static str,
    h1: Fate,
    section: &'static str,
) -> Framing {
    Framing {
        what,
        fields,
        body,
        content: if matches!(h1, Passes) && !body.is_empty() {
            5
        } else {
            0
        },
        h1,
        data: "",
        h2: Unsaid,
        section,
    }
}

impl Framing {
    const fn in_h2(self, data: &'static str, h2: Fate) -> Framing {
        Framing { data, h2, ..self }
    }
}

const CL: &str = "RFC 9110, 8.6";
const LENGTH: &str = "RFC 9112, 6.3; RFC 9113, 8.1.1";
const CHUNKS: &str = "RFC 9112, 7.1";
const CHUNKED: &str = "Transfer-Encoding: chunked\r\n";
const HELLO: &str = "5\r\nhello\r\n0\r\n\r\n";

#[rustfmt::skip]
pub const FRAMINGS: [Framing; 44] = [
    framing("no content", "", "", Passes, "RFC 9112, 6.3").in_h2("", Passes),
    framing("length", "Content-Length: 5\r\n", "hello", Passes, CL).in_h2("hello", Passes),
    framing("length 0", "Content-Length: 0\r\n", "", Passes, CL).in_h2("", Passes),
    framing("length with zeros in front", "Content-Length: 005\r\n", "hello", Passes, CL).in_h2("hello", Passes),
    framing("same length twice", "Content-Length: 5\r\nContent-Length: 5\r\n", "hello", BAD, CL).in_h2("hello", Reset),
    framing("two lengths", "Content-Length: 5\r\nContent-Length: 6\r\n", "hello!", BAD, LENGTH).in_h2("hello", Reset),
    framing("list of lengths", "Content-Length: 5, 5\r\n", "hello", BAD, CL).in_h2("hello", Reset),
    framing("length with a sign", "Content-Length: +5\r\n", "hello", BAD, LENGTH).in_h2("hello", Reset),
    framing("negative length", "Content-Length: -5\r\n", "hello", BAD, LENGTH).in_h2("hello", Reset),
    framing("hexadecimal length", "Content-Length: 0x5\r\n", "hello", BAD, LENGTH).in_h2("hello", Reset),
    framing("empty length", "Content-Length:\r\n", "", BAD, LENGTH).in_h2("", Reset),
    framing("length with a blank in it", "Content-Length: 5 5\r\n", "hello", BAD, LENGTH).in_h2("hello", Reset),
    framing("length of 2^63 bytes", "Content-Length: 9223372036854775808\r\n", "hello", Refused(&[413]), "RFC 9110, 15.5.14").in_h2("hello", Reset),
    framing("chunks", CHUNKED, HELLO, Passes, CHUNKS).in_h2("hello", Reset),
    framing("coding in capitals", "Transfer-Encoding: CHUNKED\r\n", HELLO, Passes, "RFC 9112, 7"),
    framing("several chunks", CHUNKED, "2\r\nhe\r\n03\r\nllo\r\n000\r\n\r\n", Passes, CHUNKS),
    framing("chunk extension", CHUNKED, "5;a=\"b c\"\r\nhello\r\n0;d\r\n\r\n", Passes, "RFC 9112, 7.1.1"),
    framing("trailer", CHUNKED, "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n", Passes, "RFC 9112, 7.1.2"),
    framing("length, then chunks", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", HELLO, BAD, "RFC 9112, 6.1"),
    framing("chunks, then length", "Transfer-Encoding: chunked\r\nContent-Length: 15\r\n", HELLO, BAD, "RFC 9112, 6.1"),
    framing("coding before chunked", "Transfer-Encoding: gzip, chunked\r\n", HELLO, Refused(&[501]), "RFC 9112, 6.1"),
    framing("coding without chunked", "Transfer-Encoding: gzip\r\n", "hello", BAD, "RFC 9112, 6.3"),
    framing("chunked before a coding", "Transfer-Encoding: chunked, gzip\r\n", HELLO, BAD, "RFC 9112, 6.3"),
    framing("chunked twice", "Transfer-Encoding: chunked, chunked\r\n", HELLO, BAD, "RFC 9112, 6.1"),
    framing("chunked in two fields", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", HELLO, BAD, "RFC 9112, 6.1"),
    framing("identity", "Transfer-Encoding: identity\r\n", "hello", BAD, "RFC 9112, 6.3"),
    framing("empty coding", "Transfer-Encoding:\r\n", "", BAD, "RFC 9112, 6.3"),
    framing("name that begins with chunked", "Transfer-Encoding: chunkedx\r\n", HELLO, BAD, "RFC 9112, 6.3"),
    framing("quoted coding", "Transfer-Encoding: \"chunked\"\r\n", HELLO, BAD, "RFC 9112, 6.3"),
    framing("size that is no number", CHUNKED, "x\r\nhello\r\n0\r\n\r\n", BAD, CHUNKS),
    framing("size with a sign", CHUNKED, "+5\r\nhello\r\n0\r\n\r\n", BAD, CHUNKS),
    framing("size in C's form", CHUNKED, "0x5\r\nhello\r\n0\r\n\r\n", BAD, CHUNKS),
    framing("size of more than 64 bits", CHUNKED, "10000000000000005\r\nhello\r\n0\r\n\r\n", BAD, CHUNKS),
    framing("empty size", CHUNKED, "\r\nhello\r\n0\r\n\r\n", BAD, CHUNKS),
    framing("blank behind a size", CHUNKED, "5 \r\nhello\r\n0\r\n\r\n", BAD, "RFC 9112, 7.1.1"),
    framing("blank before a size", CHUNKED, " 5\r\nhello\r\n0\r\n\r\n", BAD, CHUNKS),
    framing("size line that ends with LF", CHUNKED, "5\nhello\r\n0\r\n\r\n", BAD, CHUNKS),
    framing("content that ends with LF", CHUNKED, "5\r\nhello\n0\r\n\r\n", BAD, CHUNKS),
    framing("content longer than its size", CHUNKED, "5\r\nhello!\r\n0\r\n\r\n", BAD, CHUNKS),
    framing("LF in an extension", CHUNKED, "5;a\nb\r\nhello\r\n0\r\n\r\n", BAD, "RFC 9112, 7.1.1"),
    framing("end without CR", CHUNKED, "5\r\nhello\r\n0\r\n\n", BAD, CHUNKS),
    framing("trailer that frames", CHUNKED, "5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n", BAD, "RFC 9110, 6.5.1"),
    framing("trailer that routes", CHUNKED, "5\r\nhello\r\n0\r\nHost: b\r\n\r\n", BAD, "RFC 9110, 6.5.1"),
    framing("folded trailer", CHUNKED, "5\r\nhello\r\n0\r\nX-Sum: 1\r\n 2\r\n\r\n", BAD, "RFC 9112, 5.2"),
];

/// Framings of HTTP/2 alone: fields, content, fate.
#[rustfmt::skip]
pub const STREAM_FRAMINGS: [Framing; 3] = [
    framing("content without a length (HTTP/2)", "", "", Unsaid, "RFC 9113, 8.1").in_h2("hello", Passes),
    framing("content longer than its length (HTTP/2)", "Content-Length: 4\r\n", "", Unsaid, "RFC 9113, 8.1.1").in_h2("hello", Reset),
    framing("content shorter than its length (HTTP/2)", "Content-Length: 6\r\n", "", Unsaid, "RFC 9113, 8.1.1").in_h2("hello", Reset),
];

/// Names and values.
pub type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// A request: a row of each dimension.
#[derive(Clone, Copy)]
pub struct Request {
    pub method: &'static Row,
    pub target: &'static Row,
    pub version: &'static Row,
    pub host: &'static Row,
    pub fields: &'static Row,
    pub framing: &'static Framing,
}

static PLAIN: Request = Request {
    method: &METHODS[0],
    target: &TARGETS[0],
    version: &VERSIONS[0],
    host: &HOSTS[0],
    fields: &FIELDS[0],
    framing: &FRAMINGS[0],
};

/// Every row alone, then every pair of rows of two dimensions, of which every `step`th is taken.
pub fn all(step: usize) -> Vec<Request> {
    type Change = Box<dyn Fn(Request) -> Request>;
    let mut dimensions: Vec<Vec<Change>> = Vec::new();
    macro_rules! dimension {
        ($rows:expr, $part:ident) => {
            dimensions.push(
                $rows
                    .map(|row| -> Change { Box::new(move |one| Request { $part: row, ..one }) })
                    .collect(),
            );
        };
    }
    dimension!(METHODS.iter(), method);
    dimension!(TARGETS.iter(), target);
    dimension!(VERSIONS.iter(), version);
    dimension!(HOSTS.iter(), host);
    dimension!(FIELDS.iter(), fields);
    dimension!(FRAMINGS.iter().chain(&STREAM_FRAMINGS), framing);
    let mut all: Vec<Request> = dimensions.iter().flatten().map(|row| row(PLAIN)).collect();
    let mut pairs = Vec::new();
    for (at, ones) in dimensions.iter().enumerate() {
        for others in &dimensions[at + 1..] {
            for one in ones {
                pairs.extend(others.iter().map(|other| other(one(PLAIN))));
            }
        }
    }
    all.extend(pairs.into_iter().step_by(step));
    all
}

/// Who answers a request that is not at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    BackEnd,
    Balancer(u16),
}

impl Request {
    /// The fates that one row or another asks for; none if it passes.
    pub fn faults(&self, is_h2: bool) -> Option<Vec<Fate>> {
        let of = |row: &Row| if is_h2 { row.h2 } else { row.h1 };
        let rows = [
            self.method,
            self.target,
            self.version,
            self.host,
            self.fields,
        ];
        let mut fates: Vec<Fate> = rows.map(of).into();
        fates.push(if is_h2 {
            self.framing.h2
        } else {
            self.framing.h1
        });
        if self.is_asterisk_of_options() {
            // RFC 9112, 3.2.4.
            fates[1] = Passes;
        }
        if fates.contains(&Unsaid) {
            return None;
        }
        let is_old = self.version.text == b"HTTP/1.0";
        if is_old && self.host.text.is_empty() {
            fates[3] = Passes;
        }
        if is_old && self.framing.fields.contains("Transfer-Encoding") {
            // RFC 9112, 6.1.
            fates.push(BAD);
        }
        let bodied = matches!(self.method.text, b"POST" | b"PUT");
        if is_old && bodied && !self.framing.fields.contains("Content-Length: ") {
            // RFC 1945, 8.3.
            fates.push(Refused(&[411]));
        }
        fates.retain(|fate| *fate != Passes);
        Some(fates)
    }

    fn is_asterisk_of_options(&self) -> bool {
        self.target.text == b"*" && self.method.text == b"OPTIONS"
    }

    /// Who answers (RFC 9110, 7.6.2).
    pub fn answered_by(&self) -> Answers {
        match (self.fields.text, self.method.text) {
            (b"Max-Forwards: 0\r\n", b"OPTIONS") => Answers::Balancer(200),
            (b"Max-Forwards: 0\r\n", b"TRACE") => Answers::Balancer(501),
            _ => Answers::BackEnd,
        }
    }

    /// The target, with a number for `N`.
    fn target(&self, number: usize) -> Vec<u8> {
        let Some(at) = self.target.text.iter().position(|byte| *byte == b'N') else {
            return self.target.text.to_vec();
        };
        let (before, behind) = (&self.target.text[..at], &self.target.text[at + 1..]);
        [before, number.to_string().as_bytes(), behind].concat()
    }

    /// The bytes of HTTP/1.
    pub fn bytes(&self, number: usize) -> Vec<u8> {
        [
            self.method.text,
            b" ",
            &self.target(number),
            b" ",
            self.version.text,
            b"\r\n",
            self.fields_of_h1(),
            b"\r\n",
            self.framing.body.as_bytes(),
        ]
        .concat()
    }

    fn fields_of_h1(&self) -> &'static [u8] {
        // Blanks before the first field have to come first.
        let parts = match self.fields.text.first() {
            Some(b' ') => [self.fields.text, self.host.text],
            _ => [self.host.text, self.fields.text],
        };
        [parts[0], parts[1], self.framing.fields.as_bytes()]
            .concat()
            .leak()
    }

    /// The fields of HTTP/2, and the content.
    pub fn stream(&self, number: usize) -> (Fields, &'static str) {
        let host = self.host.text.strip_prefix(b"Host: ").unwrap_or_default();
        let mut fields: Fields = vec![
            (b":method".into(), self.method.text.into()),
            (b":scheme".into(), b"http".into()),
            (b":path".into(), self.target(number)),
            (
                b":authority".into(),
                host.strip_suffix(b"\r\n").unwrap_or(host).into(),
            ),
        ];
        let text = [self.fields.text, self.framing.fields.as_bytes()].concat();
        let mut rest = &text[..];
        while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
            let (line, behind) = (&rest[..end], &rest[end + 2..]);
            rest = behind;
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                continue;
            };
            let value = &line[colon + 1..];
            let value = value.strip_prefix(b" ").unwrap_or(value);
            fields.push((line[..colon].to_ascii_lowercase(), value.into()));
        }
        (fields, self.framing.data)
    }

    /// What a back end has to be asked for: method, target, bytes of content.
    pub fn asked(&self, number: usize, is_h2: bool) -> (String, String, u64) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut target = text(&self.target(number));
        if let Some((_, behind)) = target.split_once("://") {
            let at = behind.find(['/', '?']).unwrap_or(behind.len());
            let path = behind[at..].to_owned();
            target = if path.starts_with('?') {
                format!("/{path}")
            } else {
                path
            };
        }
        let content = match is_h2 {
            true => self.framing.data.len() as u64,
            false => self.framing.content,
        };
        (text(self.method.text), target, content)
    }

    /// The rows of which it is made, apart from plain ones.
    pub fn name(&self) -> String {
        let rows = [
            self.method,
            self.target,
            self.version,
            self.host,
            self.fields,
        ];
        let mut names: Vec<&str> = rows.iter().map(|row| row.what).collect();
        names.push(self.framing.what);
        names.join(", ")
    }
}
