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
const PLAIN: &str = include_str!("corpus/plain.txt");

/// A version to come is processed as 1.1 (RFC 9110, 2.5).
const TWO: &str = r"
two in a row | GET /N<host>\r\nGET /N<host>\r\n
a version to come | GET /N HTTP/1.2\r\nHost: a\r\n\r\nGET /N HTTP/1.2\r\nHost: a\r\n\r\n
";

/// Bodies that are refused, so that the request behind them must not be seen.
const CHUNKS: &str = include_str!("corpus/chunks.txt");

/// Messages that servers may answer, refuse or cut off. None may hide a request.
const DISPUTED: &str = include_str!("corpus/disputed.txt");
