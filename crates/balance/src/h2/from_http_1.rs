//! From HTTP/1.1 to HTTP/2: the head, content and trailers of a message.

use super::websocket::{is_agreed, is_websocket};
use memchr::memmem;
use net::h2::hpack;

use net::http::{BodySink, Framing, HEAD_BYTES_MAX, HttpError, MessageBody, content_length};

/// A part of a message, for HTTP/2.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// An encoded head; `is_last`: nothing follows.
    Head { block: &'a [u8], is_last: bool },
    /// An encoded head that asks for a WebSocket, or agrees to one. What follows is content without an
    /// end of its own.
    Tunnel { block: &'a [u8] },
    /// Content, not empty.
    Content(&'a [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Request {
        /// Whether it is sent over TLS.
        is_secure: bool,
    },
    Response,
}

/// What a head is encoded as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Request,
    Response,
    /// Either, of a WebSocket.
    Tunnel,
}

/// Reads one message as the balancer sends it in HTTP/1.1.
#[derive(Debug)]
pub(crate) struct Message {
    kind: Kind,
    /// Known for a request once its head was read, for a response from the start.
    is_head_request: bool,
    /// Of a request, whether the back end takes extended CONNECT.
    takes_connect: bool,
    /// The key of the WebSocket for which the request asks.
    key: Option<String>,
    /// Part of a head.
    partial: Vec<u8>,
    /// The framing of the content, after the final head.
    body: Option<MessageBody>,
    /// The trailer section so far: lines that end with a line feed.
    trailers: Vec<u8>,
    block: Vec<u8>,
}

struct Sink<'r, F> {
    content: F,
    trailers: &'r mut Vec<u8>,
}

impl<F: FnMut(&[u8])> BodySink for Sink<'_, F> {
    fn content(&mut self, bytes: &[u8]) {
        (self.content)(bytes);
    }

    fn trailer(&mut self, byte: u8) -> Result<(), HttpError> {
        self.trailers.push(byte);
        Ok(())
    }
}

impl Message {
    /// A request to a back end. `is_secure`: it is sent over TLS.
    pub(crate) fn request(is_secure: bool) -> Self {
        Self::new(Kind::Request { is_secure }, false)
    }

    /// A response to a client. `key`: that of the WebSocket for which its request asks.
    pub(crate) fn response(is_head_request: bool, key: Option<String>) -> Self {
        Self {
            key,
            ..Self::new(Kind::Response, is_head_request)
        }
    }

    /// Notes, before the head of a request, whether the back end takes extended CONNECT.
    pub(crate) fn note_connect(&mut self, is_taken: bool) {
        self.takes_connect = is_taken;
    }

    /// The key of the WebSocket for which a request asks.
    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    fn new(kind: Kind, is_head_request: bool) -> Self {
        Self {
            kind,
            is_head_request,
            takes_connect: false,
            key: None,
            partial: Vec::new(),
            body: None,
            trailers: Vec::new(),
            block: Vec::new(),
        }
    }

    /// Whether it is a HEAD request, or the response to one.
    pub(crate) fn is_head_request(&self) -> bool {
        self.is_head_request
    }

    /// Whether all of it has been taken. Its trailers may not have been sent.
    pub(crate) fn is_complete(&self) -> bool {
        self.body.is_some_and(|body| body.is_complete())
    }

    pub(crate) fn ends_with_connection(&self) -> bool {
        self.body.is_some_and(|body| body.ends_with_connection())
    }

    /// The trailer section, encoded; `None` if there is none.
    pub(crate) fn trailers(&self) -> Option<Vec<u8>> {
        if self.trailers.is_empty() {
            return None;
        }
        let mut block = Vec::new();
        encode_lines(&self.trailers, Form::Response, &mut block);
        (!block.is_empty()).then_some(block)
    }

    /// Takes bytes. What follows a complete message is ignored.
    ///
    /// # Errors
    /// When the bytes are no such message.
    pub(crate) fn take(
        &mut self,
        mut input: &[u8],
        mut each: impl FnMut(Part<'_>),
    ) -> Result<(), HttpError> {
        while self.body.is_none() {
            let Some(end) = self.head(input)? else {
                return Ok(());
            };
            let (body, rest) = (self.begin(&input[..end], &mut each)?, &input[end..]);
            self.partial.clear();
            self.body = body;
            input = rest;
        }
        let Some(body) = &mut self.body else {
            return Ok(());
        };
        let mut sink = Sink {
            content: |bytes: &[u8]| each(Part::Content(bytes)),
            trailers: &mut self.trailers,
        };
        body.take(input, &mut sink).map(drop)
    }

    /// How many bytes of the input belong to the head; `None` if all of them do and more is needed.
    fn head(&mut self, input: &[u8]) -> Result<Option<usize>, HttpError> {
        if self.partial.is_empty()
            && let Some(at) = memmem::find(input, b"\r\n\r\n")
        {
            return Ok(Some(at + 4));
        }
        let before = self.partial.len();
        self.partial.extend_from_slice(input);
        let from = before.saturating_sub(3);
        match memmem::find(&self.partial[from..], b"\r\n\r\n") {
            Some(at) => {
                let end = from + at + 4;
                self.partial.truncate(end);
                Ok(Some(end - before))
            }
            // The engine's edits may make a head longer than it was received.
            None if self.partial.len() > 2 * HEAD_BYTES_MAX => Err(HttpError::HeadTooLarge),
            None => Ok(None),
        }
    }

    /// Encodes a head. Returns the framing of the content behind it; `None` behind an interim head.
    fn begin(
        &mut self,
        input: &[u8],
        each: &mut impl FnMut(Part<'_>),
    ) -> Result<Option<MessageBody>, HttpError> {
        let head = match self.partial.is_empty() {
            true => input,
            false => &self.partial[..],
        };
        self.block.clear();
        if let Kind::Request { is_secure } = self.kind {
            let key = match self.takes_connect {
                true => asked_key(head),
                false => None,
            };
            let (method, fields) = encode_request(head, is_secure, key, &mut self.block)?;
            self.is_head_request = method == b"HEAD";
            if let Some(key) = key {
                self.key = Some(String::from_utf8_lossy(key).into_owned());
                each(Part::Tunnel { block: &self.block });
                return Ok(Some(MessageBody::new(Framing::UntilClose)));
            }
            let body = MessageBody::new(Framing::of_request(fields.is_chunked, fields.length));
            each(Part::Head {
                block: &self.block,
                is_last: body.is_complete(),
            });
            return Ok(Some(body));
        }
        let status = head.get(9..12).ok_or(HttpError::Head)?;
        let number: u16 = std::str::from_utf8(status)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .ok_or(HttpError::Head)?;
        let line_end = memchr::memchr(b'\n', head).ok_or(HttpError::Head)?;
        let lines = &head[line_end + 1..];
        if number == 101 {
            // The loop's user lets it pass only if the request has asked.
            let key = self
                .key
                .as_deref()
                .filter(|key| is_agreed(fields(lines), key));
            key.ok_or(HttpError::Head)?;
            hpack::encode(&mut self.block, b":status", b"200");
            encode_lines(lines, Form::Tunnel, &mut self.block);
            each(Part::Tunnel { block: &self.block });
            return Ok(Some(MessageBody::new(Framing::UntilClose)));
        }
        hpack::encode(&mut self.block, b":status", status);
        let fields = encode_lines(lines, Form::Response, &mut self.block);
        if number < 200 {
            each(Part::Head {
                block: &self.block,
                is_last: false,
            });
            return Ok(None);
        }
        let framing = Framing::of_response(
            number,
            self.is_head_request,
            fields.is_chunked,
            fields.length,
        );
        let body = MessageBody::new(framing);
        each(Part::Head {
            block: &self.block,
            is_last: body.is_complete(),
        });
        Ok(Some(body))
    }
}

/// The key of a request that asks for a WebSocket.
fn asked_key(head: &[u8]) -> Option<&[u8]> {
    // Each GET is asked, so only the beginnings of lines are looked at.
    let value = |name: &[u8]| {
        let mut lines = memchr::memchr_iter(b'\n', head).map(|end| &head[end + 1..]);
        let value = lines.find_map(|line| {
            let (start, rest) = line.split_at_checked(name.len())?;
            start.eq_ignore_ascii_case(name).then_some(rest)
        })?;
        let end = memchr::memchr(b'\n', value)?;
        Some(value[..end].trim_ascii())
    };
    let asks = head.starts_with(b"GET ") && value(b"upgrade:").is_some_and(is_websocket);
    asks.then(|| value(b"sec-websocket-key:"))?
}

/// Encodes the head of a request. Returns its method, and what its fields say about the content.
/// `key`: that of the WebSocket for which it asks.
fn encode_request<'h>(
    head: &'h [u8],
    is_secure: bool,
    key: Option<&[u8]>,
    block: &mut Vec<u8>,
) -> Result<(&'h [u8], FieldsSeen), HttpError> {
    let line_end = memchr::memchr(b'\n', head).ok_or(HttpError::Head)?;
    let (line, lines) = (head[..line_end].trim_ascii_end(), &head[line_end + 1..]);
    let mut parts = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(_), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(HttpError::Head);
    };
    match key {
        Some(_) => {
            hpack::encode(block, b":method", b"CONNECT");
            hpack::encode(block, b":protocol", b"websocket");
        }
        None => hpack::encode(block, b":method", method),
    }
    let scheme: &[u8] = if is_secure { b"https" } else { b"http" };
    hpack::encode(block, b":scheme", scheme);
    let host = fields(lines).find(|(name, _)| name.eq_ignore_ascii_case(b"host"));
    if let Some((_, host)) = host {
        hpack::encode(block, b":authority", host);
    }
    hpack::encode(block, b":path", target);
    let form = match key {
        Some(_) => Form::Tunnel,
        None => Form::Request,
    };
    Ok((method, encode_lines(lines, form, block)))
}

/// The names and values of field lines.
fn fields(lines: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
    lines.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// What the fields of a head say about the content.
#[derive(Default)]
struct FieldsSeen {
    is_chunked: bool,
    length: Option<u64>,
}

/// Encodes field lines, without those that only concern an HTTP/1.1 connection.
fn encode_lines(lines: &[u8], form: Form, block: &mut Vec<u8>) -> FieldsSeen {
    let mut seen = FieldsSeen::default();
    let mut name = Vec::new();
    for (written, value) in fields(lines) {
        name.clear();
        name.extend(written.iter().map(u8::to_ascii_lowercase));
        match &name[..] {
            b"connection" | b"keep-alive" | b"proxy-connection" | b"upgrade" => continue,
            // It became `:authority`.
            b"host" if form != Form::Response => continue,
            // HTTP/2 has neither key nor proof (RFC 8441 5), and a tunnel no length.
            b"sec-websocket-key" | b"sec-websocket-accept" | b"content-length"
                if form == Form::Tunnel =>
            {
                continue;
            }
            b"transfer-encoding" => {
                seen.is_chunked = true;
                continue;
            }
            b"content-length" => seen.length = content_length(value).ok(),
            _ => {}
        }
        hpack::encode(block, &name, value);
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A response in pieces of this size: its fields, whether its last head ends it, its content.
    fn read(response: &mut Message, bytes: &[u8], size: usize) -> (Vec<String>, bool, Vec<u8>) {
        let (mut fields, mut ended, mut content) = (Vec::new(), false, Vec::new());
        let mut decoder = hpack::Decoder::new(4096, 1 << 16);
        for piece in bytes.chunks(size) {
            response
                .take(piece, |part| match part {
                    Part::Head { block, is_last } => {
                        ended = is_last;
                        let each = |name: &[u8], value: &[u8]| {
                            let text = String::from_utf8_lossy;
                            fields.push(format!("{}={}", text(name), text(value)));
                            Ok(())
                        };
                        decoder.decode(block, each).unwrap();
                    }
                    Part::Tunnel { .. } => panic!("nobody asked"),
                    Part::Content(bytes) => content.extend_from_slice(bytes),
                })
                .unwrap();
        }
        (fields, ended, content)
    }

    #[test]
    fn any_split_of_a_response_gives_the_same() {
        let sent = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
            HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\nX-A: b\r\n\r\n\
            3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n";
        for size in 1..sent.len() {
            let mut response = Message::response(false, None);
            let (fields, ended, content) = read(&mut response, sent, size);
            assert_eq!(fields, [":status=103", "link=</a>", ":status=200", "x-a=b"]);
            assert_eq!((ended, &content[..]), (false, &b"abcde"[..]), "{size}");
            assert!(response.is_complete());
            let mut expected = Vec::new();
            hpack::encode(&mut expected, b"x-sum", b"5");
            assert_eq!(response.trailers(), Some(expected));
        }
    }

    #[test]
    fn responses_without_content_end_with_their_head() {
        let long = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        let none = "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n";
        let empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        for (is_head, sent, ends) in [
            (false, long, false),
            (true, long, true),
            (false, none, true),
            (false, empty, true),
        ] {
            let mut response = Message::response(is_head, None);
            let (_, ended, content) = read(&mut response, sent.as_bytes(), 1000);
            assert_eq!((ended, content.is_empty()), (ends, ends), "{sent}");
            assert!(response.is_complete());
        }
    }

    #[test]
    fn a_response_may_last_until_the_connection_ends() {
        let mut response = Message::response(false, None);
        let sent = "HTTP/1.1 200 OK\r\n\r\nhello";
        assert_eq!(read(&mut response, sent.as_bytes(), 4).2, b"hello");
        assert!(!response.is_complete() && response.ends_with_connection());
    }

    #[test]
    fn any_split_of_a_request_gives_the_same() {
        let sent = b"POST /a?b HTTP/1.1\r\nhost: a.example\r\nTE: trailers\r\nConnection: TE\r\n\
            Transfer-Encoding: chunked\r\nX-A: b\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n";
        for size in 1..sent.len() {
            let mut request = Message::request(true);
            let (fields, ended, content) = read(&mut request, sent, size);
            let expected = [
                ":method=POST",
                ":scheme=https",
                ":authority=a.example",
                ":path=/a?b",
                "te=trailers",
                "x-a=b",
            ];
            assert_eq!(fields, expected);
            assert_eq!((ended, &content[..]), (false, &b"abcde"[..]), "{size}");
            assert!(request.is_complete() && request.trailers().is_some());
        }
        let mut request = Message::request(false);
        let (fields, ended, _) = read(&mut request, b"HEAD / HTTP/1.1\r\n\r\n", 100);
        assert_eq!(fields, [":method=HEAD", ":scheme=http", ":path=/"]);
        assert!(ended && request.is_head_request());
    }
}
