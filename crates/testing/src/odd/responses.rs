//! What odd servers send.

use super::Fate;
use Fate::{Bad, Broken, Passes, Status};

/// A row: what it does to the answer that a balancer gives, and to a load.
pub struct Row {
    pub what: &'static str,
    pub text: &'static [u8],
    pub balancer: Fate,
    pub load: Fate,
    pub section: &'static str,
}

const fn row(
    what: &'static str,
    text: &'static [u8],
    balancer: Fate,
    load: Fate,
    section: &'static str,
) -> Row {
    Row {
        what,
        text,
        balancer,
        load,
        section,
    }
}

/// Status lines, and interim answers before them.
#[rustfmt::skip]
pub const LINES: [Row; 21] = [
    row("200", b"HTTP/1.1 200 OK\r\n", Passes, Passes, "RFC 9112, 4"),
    row("no reason", b"HTTP/1.1 200 \r\n", Passes, Passes, "RFC 9112, 4"),
    row("no blank before the reason", b"HTTP/1.1 200\r\n", Passes, Passes, "RFC 9112, 4"),
    row("reason that is not ASCII", b"HTTP/1.1 200 \xc3\xa9\r\n", Passes, Passes, "RFC 9112, 4"),
    row("HTTP/1.0", b"HTTP/1.0 200 OK\r\n", Passes, Passes, "RFC 9110, 2.5"),
    row("HTTP/1.2", b"HTTP/1.2 200 OK\r\n", Passes, Passes, "RFC 9110, 2.5"),
    row("HTTP/1.9", b"HTTP/1.9 200 OK\r\n", Passes, Passes, "RFC 9110, 2.5"),
    row("204", b"HTTP/1.1 204 No Content\r\n", Passes, Passes, "RFC 9112, 6.3"),
    row("304", b"HTTP/1.1 304 Not Modified\r\n", Passes, Passes, "RFC 9112, 6.3"),
    row("unknown status", b"HTTP/1.1 299 A\r\n", Passes, Passes, "RFC 9110, 15"),
    row("status of an unknown class", b"HTTP/1.1 999 A\r\n", Passes, Passes, "RFC 9110, 15"),
    row("status below 100", b"HTTP/1.1 099 A\r\n", Bad, Bad, "RFC 9110, 15"),
    row("status of four digits", b"HTTP/1.1 2000 OK\r\n", Bad, Bad, "RFC 9112, 4"),
    row("status of letters", b"HTTP/1.1 abc\r\n", Bad, Bad, "RFC 9112, 4"),
    row("two blanks before the status", b"HTTP/1.1  200 OK\r\n", Bad, Bad, "RFC 9112, 4"),
    row("HTTP/2.0", b"HTTP/2.0 200 OK\r\n", Bad, Bad, "RFC 9110, 2.5"),
    row("another protocol", b"ICY 200 OK\r\n", Bad, Bad, "RFC 9112, 4"),
    row("empty line first", b"\r\nHTTP/1.1 200 OK\r\n", Bad, Bad, "RFC 9112, 2.2"),
    row("interim answers first", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\n", Passes, Passes, "RFC 9110, 15.2"),
    row("interim answer with framing fields first", b"HTTP/1.1 103 A\r\nContent-Length: x\r\nTransfer-Encoding: gzip\r\n\r\nHTTP/1.1 200 OK\r\n", Passes, Passes, "RFC 9112, 6.3"),
    row("101 that was not asked for", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n", Bad, Status, "RFC 9110, 7.8"),
];

#[rustfmt::skip]
pub const FIELDS: [Row; 21] = [
    row("nothing more", b"", Passes, Passes, "RFC 9112, 2.1"),
    row("field", b"X-A: b\r\n", Passes, Passes, "RFC 9110, 5.1"),
    row("empty value", b"X-A:\r\n", Passes, Passes, "RFC 9110, 5.5"),
    row("value that is not ASCII", b"X-A: \xe9\r\n", Passes, Passes, "RFC 9110, 5.5"),
    row("line that ends with LF alone", b"X-A: b\nX-B: c\r\n", Bad, Passes, "RFC 9112, 2.2 (MAY accept)"),
    row("folded line", b"X-A: b\r\n c\r\n", Bad, Passes, "RFC 9112, 5.2"),
    row("CR in a line", b"X-A: b\rc\r\n", Bad, Bad, "RFC 9112, 2.2"),
    row("NUL in a value", b"X-A: a\0b\r\n", Bad, Bad, "RFC 9110, 5.5"),
    row("control character in a value", b"X-A: a\x01b\r\n", Bad, Bad, "RFC 9110, 5.5"),
    row("blank before the colon", b"X-A : b\r\n", Passes, Bad, "RFC 9112, 5.1"),
    row("blank before the first field", b" X-A: b\r\n", Bad, Bad, "RFC 9112, 2.2"),
    row("no colon", b"nonsense\r\n", Bad, Bad, "RFC 9112, 5"),
    row("no name", b": b\r\n", Bad, Bad, "RFC 9112, 5"),
    row("name that is no token", b"X(A): b\r\n", Bad, Bad, "RFC 9110, 5.1"),
    row("Connection: close", b"Connection: close\r\n", Passes, Passes, "RFC 9112, 9.6"),
    row("Connection: keep-alive", b"Connection: keep-alive\r\n", Passes, Passes, "RFC 9112, 9.3"),
    row("field that Connection names", b"Connection: X-A\r\nX-A: b\r\n", Passes, Passes, "RFC 9110, 7.6.1"),
    row("Upgrade", b"Connection: upgrade\r\nUpgrade: h2\r\n", Passes, Passes, "RFC 9110, 7.8"),
    row("Keep-Alive", b"Keep-Alive: timeout=5\r\n", Passes, Passes, "RFC 9110, 7.6.1"),
    row("Set-Cookie twice", b"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n", Passes, Passes, "RFC 9110, 5.3"),
    row("Content_Length", b"Content_Length: 3\r\n", Passes, Passes, "RFC 9110, 5.1"),
];

/// How the content is framed, and when the connection ends.
pub struct Framing {
    pub what: &'static str,
    pub fields: &'static str,
    pub body: &'static str,
    pub content: &'static str,
    /// Whether the server closes behind it; otherwise it waits for another request.
    pub closes: bool,
    pub balancer: Fate,
    pub load: Fate,
    pub section: &'static str,
}

const fn framing(
    what: &'static str,
    fields: &'static str,
    body: &'static str,
    fate: Fate,
    section: &'static str,
) -> Framing {
    Framing {
        what,
        fields,
        body,
        content: if matches!(fate, Passes) && !body.is_empty() {
            "hello"
        } else {
            ""
        },
        closes: false,
        balancer: fate,
        load: fate,
        section,
    }
}

impl Framing {
    const fn and_closes(self) -> Framing {
        Framing {
            closes: true,
            ..self
        }
    }

    const fn with(self, content: &'static str) -> Framing {
        Framing { content, ..self }
    }

    const fn over_a_load(self, load: Fate) -> Framing {
        Framing { load, ..self }
    }

    /// Whether bytes stand behind the answer.
    fn has_more(&self) -> bool {
        self.balancer != self.load
    }
}

const CL: &str = "RFC 9110, 8.6";
const LENGTH: &str = "RFC 9112, 6.3";
const CHUNKS: &str = "RFC 9112, 7.1";
const CODING: &str = "RFC 9112, 6.3; RFC 9110, 10.1.4";
const CHUNKED: &str = "Transfer-Encoding: chunked\r\n";
const FIVE: &str = "Content-Length: 5\r\n";
const HELLO: &str = "5\r\nhello\r\n0\r\n\r\n";
const CUT: &str = "RFC 9112, 8";

#[rustfmt::skip]
pub const FRAMINGS: [Framing; 44] = [
    framing("length", FIVE, "hello", Passes, CL),
    framing("length, then the end", FIVE, "hello", Passes, CL).and_closes(),
    framing("length 0", "Content-Length: 0\r\n", "", Passes, CL),
    framing("length with zeros in front", "Content-Length: 005\r\n", "hello", Passes, CL),
    framing("same length twice", "Content-Length: 5\r\nContent-Length: 5\r\n", "hello", Passes, CL),
    framing("until the end", "", "hello", Passes, LENGTH).and_closes(),
    framing("nothing until the end", "", "", Passes, LENGTH).and_closes(),
    framing("chunks", CHUNKED, HELLO, Passes, CHUNKS),
    framing("coding in capitals", "Transfer-Encoding: CHUNKED\r\n", HELLO, Passes, "RFC 9112, 7"),
    framing("several chunks", CHUNKED, "2\r\nhe\r\n03\r\nllo\r\n000\r\n\r\n", Passes, CHUNKS),
    framing("chunk extension", CHUNKED, "5;a=\"b c\"\r\nhello\r\n0;d\r\n\r\n", Passes, "RFC 9112, 7.1.1"),
    framing("blank behind a size", CHUNKED, "5 \r\nhello\r\n0\r\n\r\n", Passes, "RFC 9112, 7.1.1"),
    framing("trailer", CHUNKED, "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n", Passes, "RFC 9112, 7.1.2"),
    framing("two lengths", "Content-Length: 5\r\nContent-Length: 6\r\n", "hello!", Bad, LENGTH),
    framing("list of lengths", "Content-Length: 5, 5\r\n", "hello", Bad, CL),
    framing("length with a sign", "Content-Length: +5\r\n", "hello", Bad, LENGTH),
    framing("negative length", "Content-Length: -5\r\n", "hello", Bad, LENGTH),
    framing("empty length", "Content-Length:\r\n", "", Bad, LENGTH).and_closes(),
    framing("length of letters", "Content-Length: abc\r\n", "hello", Bad, LENGTH),
    framing("length of 2^63 bytes", "Content-Length: 9223372036854775808\r\n", "hello", Bad, LENGTH),
    framing("length, then chunks", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", HELLO, Bad, "RFC 9112, 6.3"),
    framing("chunks, then length", "Transfer-Encoding: chunked\r\nContent-Length: 15\r\n", HELLO, Bad, "RFC 9112, 6.3"),
    framing("coding before chunked", "Transfer-Encoding: gzip, chunked\r\n", HELLO, Bad, CODING),
    framing("coding without chunked", "Transfer-Encoding: gzip\r\n", "hello", Bad, CODING).and_closes(),
    framing("chunked twice", "Transfer-Encoding: chunked, chunked\r\n", HELLO, Bad, "RFC 9112, 6.1"),
    framing("chunked in two fields", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", HELLO, Bad, "RFC 9112, 6.1"),
    framing("identity", "Transfer-Encoding: identity\r\n", "hello", Bad, CODING).and_closes(),
    framing("size that is no number", CHUNKED, "x\r\nhello\r\n0\r\n\r\n", Broken, CHUNKS),
    framing("size with a sign", CHUNKED, "-5\r\nhello\r\n0\r\n\r\n", Broken, CHUNKS),
    framing("size of more than 64 bits", CHUNKED, "10000000000000005\r\nhello\r\n0\r\n\r\n", Broken, CHUNKS),
    framing("size line that ends with LF", CHUNKED, "5\nhello\r\n0\r\n\r\n", Broken, CHUNKS),
    framing("content longer than its size", CHUNKED, "5\r\nhello!\r\n0\r\n\r\n", Broken, CHUNKS),
    framing("end without CR", CHUNKED, "5\r\nhello\r\n0\r\n\n", Broken, CHUNKS),
    framing("end before the content", FIVE, "", Broken, CUT).and_closes(),
    framing("end in the content", FIVE, "hel", Broken, CUT).and_closes(),
    framing("end in a size", CHUNKED, "5", Broken, CUT).and_closes(),
    framing("end in a chunk", CHUNKED, "5\r\nhel", Broken, CUT).and_closes(),
    framing("end before the last chunk", CHUNKED, "5\r\nhello\r\n", Broken, CUT).and_closes(),
    framing("end before the last line", CHUNKED, "5\r\nhello\r\n0\r\n", Broken, CUT).and_closes(),
    framing("end in a trailer", CHUNKED, "5\r\nhello\r\n0\r\nX-S", Broken, CUT).and_closes(),
    framing("more than the length", FIVE, "hello and more", Passes, LENGTH).over_a_load(Bad),
    framing("second answer", FIVE, "helloHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Passes, LENGTH).over_a_load(Bad),
    framing("more than the chunks", CHUNKED, "5\r\nhello\r\n0\r\n\r\nmore", Passes, CHUNKS).over_a_load(Bad),
    framing("more than length 0", "Content-Length: 0\r\n", "more", Passes, LENGTH).with("").over_a_load(Bad),
];

/// An answer: a row of each dimension, to GET or HEAD.
#[derive(Clone, Copy)]
pub struct Response {
    pub is_head: bool,
    pub line: &'static Row,
    pub fields: &'static Row,
    pub framing: &'static Framing,
    /// Only so many bytes are sent before the end.
    pub cut: Option<usize>,
}

/// Every row alone and every pair, to GET and to HEAD, and every `cut_step`th place where an answer
/// may end too early; of pairs every `step`th.
pub fn all(step: usize, cut_step: usize) -> Vec<Response> {
    let mut all = Vec::new();
    for is_head in [false, true] {
        let plain = Response {
            is_head,
            line: &LINES[0],
            fields: &FIELDS[0],
            framing: &FRAMINGS[0],
            cut: None,
        };
        all.extend(LINES.iter().map(|line| Response { line, ..plain }));
        all.extend(FIELDS.iter().map(|fields| Response { fields, ..plain }));
        all.extend(FRAMINGS.iter().map(|framing| Response { framing, ..plain }));
        let mut pairs = Vec::new();
        for line in &LINES {
            pairs.extend(FIELDS.iter().map(|fields| Response {
                line,
                fields,
                ..plain
            }));
            pairs.extend(FRAMINGS.iter().map(|framing| Response {
                line,
                framing,
                ..plain
            }));
        }
        for fields in &FIELDS {
            pairs.extend(FRAMINGS.iter().map(|framing| Response {
                fields,
                framing,
                ..plain
            }));
        }
        // Answers without content are where servers err most.
        let (bodiless, others): (Vec<_>, Vec<_>) = pairs
            .into_iter()
            .partition(|one: &Response| one.has_no_content() && !is_head);
        all.extend(bodiless);
        all.extend(others.into_iter().step_by(step));
        let cuts = (0..plain.bytes().len()).step_by(cut_step);
        all.extend(cuts.map(|at| Response {
            cut: Some(at),
            ..plain
        }));
    }
    all
}

impl Response {
    /// Whether it has no content, whatever its fields say (RFC 9112, 6.3).
    pub fn has_no_content(&self) -> bool {
        self.is_head || matches!(self.status(), 101 | 204 | 304)
    }

    /// The status of the final answer.
    pub fn status(&self) -> u16 {
        let line = String::from_utf8_lossy(self.line.text);
        let last = line.rsplit("HTTP/").next().unwrap_or_default();
        let digits = last.split(' ').nth(1).unwrap_or_default().trim_end();
        digits.parse().unwrap_or(0)
    }

    /// What is sent.
    pub fn bytes(&self) -> Vec<u8> {
        let framing = self.framing;
        let fields = [framing.fields.as_bytes(), self.fields.text];
        // Blanks before the first field have to come first.
        let [one, two] = match self.fields.text.first() {
            Some(b' ') => [fields[1], fields[0]],
            _ => fields,
        };
        let mut all = [self.line.text, one, two, b"\r\n", framing.body.as_bytes()].concat();
        if self.has_no_content() && !framing.has_more() {
            all.truncate(all.len() - framing.body.len());
        }
        all.truncate(self.cut.unwrap_or(usize::MAX));
        all
    }

    pub fn closes(&self) -> bool {
        self.framing.closes || self.cut.is_some()
    }

    /// The content that reaches a client.
    pub fn content(&self) -> &'static str {
        match self.has_no_content() {
            true => "",
            false => self.framing.content,
        }
    }

    /// What has to become of it, by one row or another; none if it passes.
    pub fn faults(&self, of_load: bool) -> Vec<Fate> {
        let of = |row: &Row| if of_load { row.load } else { row.balancer };
        let mut faults = vec![of(self.line), of(self.fields)];
        let framing = if of_load {
            self.framing.load
        } else {
            self.framing.balancer
        };
        faults.push(match framing {
            _ if of(self.line) == Bad => Passes,
            // The head ends the answer. A load does not bear bytes behind it.
            _ if self.has_no_content() && of_load && self.framing.has_more() => Bad,
            _ if self.has_no_content() => Passes,
            other => other,
        });
        if self.cut.is_some() {
            faults.push(Broken);
        }
        // RFC 9112, 6.1: HTTP/1.0 knows no coding. A load reads the chunks and closes.
        let is_old = self.line.text.starts_with(b"HTTP/1.0");
        let is_coded = self.framing.fields.contains("Transfer-Encoding");
        if is_old && is_coded && !of_load && !self.has_no_content() {
            faults.push(Bad);
        }
        faults.retain(|fate| *fate != Passes);
        faults
    }

    /// The rows of which it is made.
    pub fn name(&self) -> String {
        let asked = if self.is_head { "HEAD" } else { "GET" };
        let names = [asked, self.line.what, self.fields.what, self.framing.what];
        match self.cut {
            Some(at) => format!("{}, end after {at} bytes", names.join(", ")),
            None => names.join(", "),
        }
    }
}
