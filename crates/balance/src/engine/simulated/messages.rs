//! Messages of simulated clients and back ends.
//!
//! A request of client 3 has the tag `(c3r0)` in its path and all through its body; so has its
//! answer.

use super::steps::{Answer, Ask};

/// The tag of a response without a request.
pub const STRAY: &[u8] = b"(stray)";

/// Identifies a request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    pub client: usize,
    pub request: usize,
}

impl Tag {
    pub fn text(self) -> String {
        format!("(c{}r{})", self.client, self.request)
    }
}

/// The complete tags in some bytes; `None` for those of strays.
pub fn tags(bytes: &[u8]) -> Vec<Option<Tag>> {
    let text = String::from_utf8_lossy(bytes);
    let read = |tag: &str| {
        let (client, request) = tag.strip_prefix('c')?.split_once('r')?;
        let (client, request) = (client.parse().ok()?, request.parse().ok()?);
        Some(Tag { client, request })
    };
    let pieces = text.split('(').skip(1);
    let whole = pieces.filter_map(|piece| piece.split_once(')'));
    whole.map(|(tag, _)| read(tag)).collect()
}

/// A body of so many bytes that repeats the tag.
fn body(tag: Tag, bytes: u16) -> String {
    let text = tag.text();
    let mut body = text.repeat(usize::from(bytes) / text.len());
    body.push_str(&".".repeat(usize::from(bytes) - body.len()));
    body
}

fn chunked(tag: Tag, bytes: u16) -> String {
    let (one, two) = (body(tag, bytes / 3), body(tag, bytes - bytes / 3));
    let chunk = |text: String| match text.len() {
        0 => String::new(),
        len => format!("{len:x}\r\n{text}\r\n"),
    };
    format!("{}{}0\r\n\r\n", chunk(one), chunk(two))
}

pub fn request_text(tag: Tag, what: Ask) -> Vec<u8> {
    let text = tag.text();
    let head = |method: &str, fields: &str| {
        format!("{method} /{text} HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n")
    };
    match what {
        Ask::Get => head("GET", ""),
        Ask::GetAndClose => head("GET", "Connection: close\r\n"),
        Ask::Old => format!("GET /{text} HTTP/1.0\r\n\r\n"),
        Ask::Head => head("HEAD", ""),
        Ask::Post { bytes } => {
            head("POST", &format!("Content-Length: {bytes}\r\n")) + &body(tag, bytes)
        }
        Ask::PostChunked { bytes } => {
            head("POST", "Transfer-Encoding: chunked\r\n") + &chunked(tag, bytes)
        }
        Ask::Upgrade => head("GET", "Connection: upgrade\r\nUpgrade: echo\r\n"),
        Ask::Malformed => "GET\r\nthis is no request\r\n\r\n".to_owned(),
    }
    .into_bytes()
}

pub fn answer_text(tag: Tag, what: Answer, is_head: bool) -> Vec<u8> {
    let text = tag.text();
    let head =
        |status: &str, fields: &str| format!("HTTP/1.1 {status}\r\nX-Tag: {text}\r\n{fields}\r\n");
    let with = |head: String, body: String| match is_head {
        true => head,
        false => head + &body,
    };
    let length = |status: &str, bytes: u16| {
        let head = head(status, &format!("Content-Length: {bytes}\r\n"));
        with(head, body(tag, bytes))
    };
    match what {
        Answer::Length { bytes } => length("200 OK", bytes),
        Answer::Chunked { bytes } => with(
            head("200 OK", "Transfer-Encoding: chunked\r\n"),
            chunked(tag, bytes),
        ),
        Answer::UntilClose { bytes } => with(head("200 OK", ""), body(tag, bytes)),
        Answer::Empty => head("204 No Content", ""),
        Answer::Switch => head(
            "101 Switching Protocols",
            "Connection: upgrade\r\nUpgrade: echo\r\n",
        ),
        Answer::Interim => head("103 Early Hints", ""),
        Answer::Error => length("503 Service Unavailable", 20),
        Answer::Malformed => "HTTP/1.1 abc\r\n\r\n".to_owned(),
        Answer::Surplus => {
            length("200 OK", 10) + "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n(stray)"
        }
    }
    .into_bytes()
}
