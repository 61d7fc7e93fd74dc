//! Messages that the balancer passes on, whole or in part. Those whose heads it refuses, which no server
//! sees, stand in `codec/smuggling.rs`.

pub struct Message {
    pub name: &'static str,
    /// `/N` stands for a target that only this message has.
    pub text: String,
    /// How many requests a server has to see. `None`: at most one, as servers differ from the RFC.
    pub requests: Option<usize>,
}

/// A request that must never be seen: it lies in the body of another.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";

pub fn messages() -> Vec<Message> {
    let tables = [
        (PLAIN, Some(1)),
        (TWO, Some(2)),
        (CHUNKS, Some(0)),
        (DISPUTED, None),
    ];
    let messages = tables.into_iter().flat_map(|(table, requests)| {
        let rows = table.lines().filter_map(|row| row.split_once(" | "));
        rows.map(move |(name, text)| Message {
            name,
            text: filled(text),
            requests,
        })
    });
    messages.collect()
}

/// `\r`, `\n` and so on are what they are in Rust. `<post>` is the head of a POST up to its own fields,
/// `<chunked>` that of one in chunks, `<host>` the end of a first line and Host, `<hidden>` the hidden
/// request, `<length>` and `<hex>` its length, `<long>` 60,000 bytes, `<fields>` 98 fields.
fn filled(text: &str) -> String {
    let (length, hex) = (HIDDEN.len().to_string(), format!("{:x}", HIDDEN.len()));
    [
        ("<chunked>", r"<post>Transfer-Encoding: chunked\r\n\r\n"),
        ("<post>", "POST /N<host>"),
        ("<host>", r" HTTP/1.1\r\nHost: a\r\n"),
        (r"\r", "\r"),
        (r"\n", "\n"),
        (r"\0", "\0"),
        (r"\xff", "\u{ff}"),
        ("<hidden>", HIDDEN),
        ("<length>", &length),
        ("<hex>", &hex),
        ("<long>", &"y".repeat(60_000)),
        ("<fields>", &"X: y\r\n".repeat(98)),
    ]
    .into_iter()
    .fold(text.to_owned(), |text, (name, value)| {
        text.replace(name, value)
    })
}

/// Messages with only one meaning, so that a test that sees nothing is noticed.
const PLAIN: &str = r#"
GET | GET /N<host>\r\n
a request as the body of another, by its length | <post>Content-Length: <length>\r\n\r\n<hidden>
GET with a body | GET /N<host>Content-Length: <length>\r\n\r\n<hidden>
a length with zeros in front | <post>Content-Length: 000<length>\r\n\r\n<hidden>
a request as a chunk | <chunked><hex>\r\n<hidden>\r\n0\r\n\r\n
a coding in capitals | <post>Transfer-Encoding: CHUNKED\r\n\r\n<hex>\r\n<hidden>\r\n0\r\n\r\n
a chunk with an extension | <chunked><hex>;name=value\r\n<hidden>\r\n0\r\n\r\n
a chunk with a quoted extension | <chunked><hex>;name="a b;c"\r\n<hidden>\r\n0\r\n\r\n
a size with zeros in front | <chunked>000<hex>\r\n<hidden>\r\n0\r\n\r\n
a trailer | <chunked><hex>\r\n<hidden>\r\n0\r\nX-Sum: 1\r\n\r\n
absolute form | GET http://a/N<host>\r\n
absolute form that contradicts Host | GET http://a/N HTTP/1.1\r\nHost: b\r\n\r\n
an empty line in front | \r\nGET /N<host>\r\n
HTTP/1.0 | GET /N HTTP/1.0\r\nConnection: keep-alive\r\n\r\n
a field that Connection names | GET /N<host>Connection: X-A\r\nX-A: 1\r\n\r\n
an upgrade that is not granted | GET /N<host>Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n
a request behind the last one | GET /N<host>Connection: close\r\n\r\n<hidden>
"#;

/// A version to come is processed as 1.1 (RFC 9110, 2.5).
const TWO: &str = r"
two in a row | GET /N<host>\r\nGET /N<host>\r\n
a version to come | GET /N HTTP/1.2\r\nHost: a\r\n\r\nGET /N HTTP/1.2\r\nHost: a\r\n\r\n
";

/// Bodies that are refused, so that the request behind them must not be seen.
const CHUNKS: &str = r"
a size with 0x | <chunked>0x5\r\nhello\r\n0\r\n\r\n<hidden>
a size with a sign | <chunked>+5\r\nhello\r\n0\r\n\r\n<hidden>
a negative size | <chunked>-5\r\nhello\r\n0\r\n\r\n<hidden>
a space before a size | <chunked> 5\r\nhello\r\n0\r\n\r\n<hidden>
a space behind a size | <chunked>5 \r\nhello\r\n0\r\n\r\n<hidden>
a bare LF behind a size | <chunked>5\nhello\r\n0\r\n\r\n<hidden>
a bare CR behind a size | <chunked>5\rX\nhello\r\n0\r\n\r\n<hidden>
a bare LF in an extension | <chunked>5;a\nb\r\nhello\r\n0\r\n\r\n<hidden>
a bare CR in an extension | <chunked>5;a\rb\r\nhello\r\n0\r\n\r\n<hidden>
NUL in an extension | <chunked>5;a\0b\r\nhello\r\n0\r\n\r\n<hidden>
an empty size | <chunked>\r\nhello\r\n0\r\n\r\n<hidden>
a size that is no number | <chunked>five\r\nhello\r\n0\r\n\r\n<hidden>
a size of more than 64 bits | <chunked>10000000000000005\r\nhello\r\n0\r\n\r\n<hidden>
a size of more than 32 bits | <chunked>100000005\r\nhello\r\n0\r\n\r\n<hidden>
no line end behind a chunk | <chunked>5\r\nhello0\r\n\r\n<hidden>
a bare LF behind a chunk | <chunked>5\r\nhello\n0\r\n\r\n<hidden>
more than the size says | <chunked>5\r\nhello!!\r\n0\r\n\r\n<hidden>
a bare LF behind the last chunk | <chunked>0\n\r\n<hidden>
bare LFs behind the last chunk | <chunked>0\n\n<hidden>
a length as a trailer | <chunked>0\r\nContent-Length: 5\r\n\r\n<hidden>
a coding as a trailer | <chunked>0\r\nTransfer-Encoding: chunked\r\n\r\n<hidden>
Host as a trailer | <chunked>0\r\nHost: b\r\n\r\n<hidden>
a client as a trailer | <chunked>0\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n<hidden>
a trailer with a bare LF | <chunked>0\r\nX: y\n\r\n<hidden>
a folded trailer | <chunked>0\r\nX: y\r\n z\r\n\r\n<hidden>
a trailer without a colon | <chunked>0\r\nX\r\n\r\n<hidden>
";

/// Messages that servers may answer, refuse or cut off. None may hide a request.
const DISPUTED: &str = r"
HEAD with a body | HEAD /N<host>Content-Length: <length>\r\n\r\n<hidden>
OPTIONS of the server | OPTIONS *<host>\r\n
an unknown method with a body | BREW /N<host>Content-Length: <length>\r\n\r\n<hidden>
an expectation with its body | <post>Expect: 100-continue\r\nContent-Length: <length>\r\n\r\n<hidden>
an upgrade with a body | <post>Connection: Upgrade\r\nUpgrade: x\r\nContent-Length: <length>\r\n\r\n<hidden>
letters beyond ASCII in a value | GET /N<host>X: \xff\r\n\r\n
an escaped NUL in the target | GET /N%00<host>\r\n
dots in the target | GET /../../N<host>\r\n
a fragment in the target | GET /N#e<host>\r\n
another scheme | GET https://a/N<host>\r\n
a user in the target | GET http://u@a/N<host>\r\n
a field of 60 kB | GET /N<host>X: <long>\r\n\r\n
a hundred fields | GET /N<host><fields>\r\n
half a body | <post>Content-Length: 500\r\n\r\n<hidden>
half a chunk | <chunked>ff\r\n<hidden>
";
