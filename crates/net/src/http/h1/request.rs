//! Requests, as a server reads them.

use std::borrow::Cow;

use super::framing::{Framing, HeadFields};
use super::head::PartialHead;
use super::syntax::as_known_version;
use super::{HEADERS_MAX, HttpError, MessageBody};

/// A request whose head and body have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// The request target as it was sent.
    pub target: String,
    /// Whether the client wants to keep the connection.
    pub keep_alive: bool,
    /// Whether it is of HTTP/1.0, which has no chunks.
    pub is_http_1_0: bool,
    /// The header fields in order, names as they were sent; values that are not text are shown
    /// with replacement characters.
    pub fields: Vec<(String, String)>,
    /// Length of the body in bytes; its content is not kept.
    pub body_bytes: u64,
    /// CRC-32 of the body; 0 without one.
    pub body_crc32: u32,
}

impl Request {
    /// The request with its target in origin form, in which servers look for pages: of the absolute
    /// form, which every server has to accept (RFC 9112 3.2.2), the path and the query.
    pub fn in_origin_form(&self) -> Cow<'_, Self> {
        let Some(target) = without_authority(&self.target) else {
            return Cow::Borrowed(self);
        };
        let target = match target {
            // RFC 9112 3.2.4.
            "" if self.method == "OPTIONS" => "*".to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            query => format!("/{query}"),
        };
        Cow::Owned(Self {
            target,
            ..self.clone()
        })
    }

    /// The first value of a field, by its name in any case.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Takes a piece of the body.
    pub fn take_body(&mut self, bytes: &[u8]) {
        self.body_bytes += bytes.len() as u64;
        let mut sum = crc32fast::Hasher::new_with_initial(self.body_crc32);
        sum.update(bytes);
        self.body_crc32 = sum.finalize();
    }
}

/// What is behind the authority of a target in absolute form; `None` if it is in another.
fn without_authority(target: &str) -> Option<&str> {
    if target.starts_with('/') {
        return None;
    }
    let (scheme, rest) = target.split_once("://")?;
    let is_known = ["http", "https"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known));
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    (is_known && end > 0).then(|| &rest[end..])
}

/// Reads one request after the other from a connection.
#[derive(Debug, Default)]
pub struct RequestParser {
    partial: PartialHead,
    body: Option<MessageBody>,
    request: Request,
}

impl RequestParser {
    /// Takes bytes from the front of `input`: returns how many, and whether a request is complete
    /// (then it is in [`RequestParser::request`]).
    ///
    /// # Errors
    /// When the bytes are no acceptable HTTP/1.1 request; the connection must be closed then.
    pub fn feed(&mut self, input: &[u8]) -> Result<(usize, bool), HttpError> {
        let mut at = 0;
        if self.body.is_none() {
            let request = &mut self.request;
            let parse = |bytes: &[u8]| read_head(request, bytes);
            let Some((taken, body)) = self.partial.take(input, parse)? else {
                return Ok((input.len(), false));
            };
            at = taken;
            self.body = Some(body);
        }
        let Some(body) = &mut self.body else {
            return Ok((at, false));
        };
        let request = &mut self.request;
        let (n, complete) =
            body.take(&input[at..], &mut |bytes: &[u8]| request.take_body(bytes))?;
        if complete {
            self.body = None;
        }
        Ok((at + n, complete))
    }

    /// Whether it is between two requests.
    pub fn at_start(&self) -> bool {
        self.body.is_none() && self.partial.is_empty()
    }

    /// The request that is complete.
    pub fn request(&self) -> &Request {
        &self.request
    }
}

/// Reads a head: its length, and the framing of the body behind it; the rest goes to `request`.
fn read_head(
    request: &mut Request,
    input: &[u8],
) -> Result<Option<(usize, MessageBody)>, HttpError> {
    // One empty line before a request is tolerated (RFC 9112 2.2).
    let is_end = |byte: &&u8| matches!(byte, b'\r' | b'\n');
    if input.iter().take_while(is_end).count() > 2 {
        return Err(HttpError::Head);
    }
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    let len = match head.parse(input) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::Version) => {
            let blanks = input.iter().enumerate().filter(|(_, byte)| **byte == b' ');
            let version = blanks.map(|(at, _)| at + 1).nth(1);
            let known = version.and_then(|at| as_known_version(input, at));
            return read_head(request, &known.ok_or(HttpError::Head)?);
        }
        Err(httparse::Error::TooManyHeaders) => return Err(HttpError::HeadTooLarge),
        Err(_) => return Err(HttpError::Head),
    };
    let mut seen = HeadFields::default();
    request.fields.clear();
    for field in head.headers.iter() {
        seen.field(field.name, field.value)?;
        request.fields.push((
            field.name.to_string(),
            String::from_utf8_lossy(field.value).into_owned(),
        ));
    }
    let set = |place: &mut String, text: Option<&str>| {
        place.clear();
        place.push_str(text.unwrap_or_default());
    };
    set(&mut request.method, head.method);
    set(&mut request.target, head.path);
    (request.body_bytes, request.body_crc32) = (0, 0);
    request.is_http_1_0 = head.version == Some(0);
    request.keep_alive = seen.keeps_alive(head.version.unwrap_or(0));
    let framing = seen.settled(Framing::of_request(seen.chunked, seen.length))?;
    Ok(Some((len, MessageBody::new(framing))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Result<Vec<Request>, HttpError> {
        let mut parser = RequestParser::default();
        let mut requests = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                let (taken, complete) = parser.feed(rest)?;
                rest = &rest[taken..];
                if complete {
                    requests.push(parser.request().clone());
                }
            }
        }
        Ok(requests)
    }

    #[test]
    fn pipelined_requests_with_and_without_bodies() {
        let bytes = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /c HTTP/1.0\r\n\r\n";
        let whole = read(&[bytes]).unwrap();
        let seen: Vec<_> = whole
            .iter()
            .map(|r| {
                (
                    r.method.as_str(),
                    r.target.as_str(),
                    r.keep_alive,
                    r.body_bytes,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("GET", "/a", true, 0),
                ("POST", "/b", true, 3),
                ("GET", "/c", false, 0)
            ]
        );
        let sums: Vec<_> = whole.iter().map(|r| r.body_crc32).collect();
        assert_eq!(sums, [0, crc32fast::hash(b"abc"), 0]);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single).unwrap(), whole);
    }

    #[test]
    fn smuggling_is_refused() {
        let both =
            b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        assert_eq!(read(&[both]), Err(HttpError::ContentLength));
        assert_eq!(read(&[b"\x00\x01\x02\r\n\r\n"]), Err(HttpError::Head));
    }
}
