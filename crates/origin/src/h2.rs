//! One HTTP/2 connection as a server, without I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use net::h2::{ErrorCode, Event, FrameReader, H2Error, frame, hpack, settings};
use net::http::Request;

/// Streams that a client may have open at once.
const STREAMS_MAX: u32 = 256;
const FRAME_MAX: u32 = 16 * 1024;
/// The window that each side begins with (RFC 9113 6.9.2).
const WINDOW_AT_START: i64 = 65_535;
const WINDOW_MAX: i64 = (1 << 31) - 1;
/// The dynamic table that a client may use before it has read the settings, and after.
const TABLE: usize = 4096;
/// Most bytes of a header block, and of the fields in it.
const BLOCK_MAX: usize = 32 * 1024;
/// Frames without requests (RST_STREAM, PING, SETTINGS and so on) that a client may send, in addition
/// to two for each answered request: a bound on floods.
const OVERHEAD_MAX: u64 = 10_000;
/// How much of the answers is encoded while the socket still has unsent bytes.
const OUT_MAX: usize = 64 * 1024;

/// An answer as HTTP/2 sends it.
#[derive(Clone, Debug)]
pub(crate) struct H2Page {
    block: Vec<u8>,
    body: Arc<[u8]>,
}

impl H2Page {
    /// Converts the bytes of an HTTP/1.1 answer of [`crate::pages`].
    pub(crate) fn of(answer: &[u8]) -> Self {
        let end = memchr::memmem::find(answer, b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
        let (head, body) = answer.split_at(end);
        let head = String::from_utf8_lossy(head);
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let mut block = Vec::new();
        hpack::encode(&mut block, b":status", status.unwrap_or("500").as_bytes());
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            let name = name.to_ascii_lowercase();
            if name != "connection" {
                hpack::encode(&mut block, name.as_bytes(), value.as_bytes());
            }
        }
        Self {
            block,
            body: Arc::from(body),
        }
    }
}

/// A stream that is not closed.
#[derive(Debug, Default)]
struct Stream {
    /// The request, until it is complete.
    request: Option<Request>,
    /// The length that the request announced.
    length: Option<u64>,
    /// How many bytes the client lets be sent on it.
    window: i64,
    body: Option<Arc<[u8]>>,
    sent: usize,
}

/// A request that is complete.
#[derive(Debug)]
pub(crate) struct H2Request {
    pub(crate) stream: u32,
    pub(crate) request: Request,
}

pub(crate) struct H2Server {
    reader: FrameReader,
    decoder: hpack::Decoder,
    pub(crate) out: Vec<u8>,
    streams: BTreeMap<u32, Stream>,
    last: u32,
    window: i64,
    stream_window: i64,
    frame_max: u32,
    answered: u64,
    overhead: u64,
}

fn error(code: ErrorCode, what: &'static str) -> H2Error {
    H2Error { code, what }
}

impl H2Server {
    /// A session whose settings are in `out`.
    pub(crate) fn new() -> Self {
        let mut out = Vec::new();
        frame::settings(&mut out, &[(settings::MAX_CONCURRENT_STREAMS, STREAMS_MAX)]);
        Self {
            reader: FrameReader::of_server(FRAME_MAX, BLOCK_MAX),
            decoder: hpack::Decoder::new(TABLE, BLOCK_MAX),
            out,
            streams: BTreeMap::new(),
            last: 0,
            window: WINDOW_AT_START,
            stream_window: WINDOW_AT_START,
            frame_max: FRAME_MAX,
            answered: 0,
            overhead: 0,
        }
    }

    /// Takes received bytes; requests that are complete go to `requests`.
    ///
    /// # Errors
    /// When the client breaks a rule of the connection; a GOAWAY with the reason is in `out`.
    pub(crate) fn feed(
        &mut self,
        input: &[u8],
        requests: &mut Vec<H2Request>,
    ) -> Result<(), H2Error> {
        // The reader lends its events while the rest of the session handles them.
        let mut reader = std::mem::replace(&mut self.reader, FrameReader::new(0, 0));
        let fed = reader.feed(input, |event| self.event(event, requests));
        self.overhead += u64::from(reader.take_overhead());
        self.reader = reader;
        let is_flood = self.overhead > OVERHEAD_MAX + 2 * self.answered;
        let fed = fed.and(match is_flood {
            true => Err(error(
                ErrorCode::EnhanceYourCalm,
                "too many frames without requests",
            )),
            false => Ok(()),
        });
        if let Err(failure) = fed {
            frame::go_away(&mut self.out, self.last, failure.code);
        }
        fed
    }

    /// Answers a request; nothing if its stream was reset meanwhile.
    pub(crate) fn answer(&mut self, stream: u32, page: &H2Page) {
        let Some(one) = self.streams.get_mut(&stream) else {
            return;
        };
        self.answered += 1;
        let is_empty = page.body.is_empty();
        frame::headers(&mut self.out, stream, &page.block, is_empty, self.frame_max);
        match is_empty {
            true => drop(self.streams.remove(&stream)),
            false => one.body = Some(page.body.clone()),
        }
    }

    /// Moves what the windows allow of the answers' bodies to `out`.
    pub(crate) fn send_bodies(&mut self) {
        let mut done = Vec::new();
        for (&id, stream) in &mut self.streams {
            let Some(body) = &stream.body else { continue };
            while self.window > 0 && stream.window > 0 && self.out.len() < OUT_MAX {
                let most = i64::from(self.frame_max)
                    .min(self.window)
                    .min(stream.window);
                let end = body.len().min(stream.sent + most as usize);
                let is_last = end == body.len();
                frame::data(&mut self.out, id, &body[stream.sent..end], is_last);
                let sent = (end - stream.sent) as i64;
                (stream.window, self.window) = (stream.window - sent, self.window - sent);
                stream.sent = end;
                if is_last {
                    done.push(id);
                    break;
                }
            }
        }
        for id in done {
            self.streams.remove(&id);
        }
    }

    fn event(&mut self, event: Event<'_>, requests: &mut Vec<H2Request>) -> Result<(), H2Error> {
        match event {
            Event::Headers {
                stream,
                end_stream,
                block,
            } => self.headers(stream, end_stream, block, requests),
            Event::Data {
                stream,
                bytes,
                flow,
                end_stream,
            } => {
                if flow > 0 {
                    // Content is not kept, so both windows are opened at once.
                    frame::window_update(&mut self.out, 0, flow);
                }
                let Some(one) = self
                    .streams
                    .get_mut(&stream)
                    .filter(|one| one.request.is_some())
                else {
                    return self.unexpected_data(stream);
                };
                if flow > 0 && !end_stream {
                    frame::window_update(&mut self.out, stream, flow);
                }
                if let Some(request) = &mut one.request {
                    request.body_bytes += bytes.len() as u64;
                }
                match end_stream {
                    true => self.complete(stream, requests),
                    false => Ok(()),
                }
            }
            Event::Reset { stream, .. } if stream > self.last => Err(error(
                ErrorCode::ProtocolError,
                "RST_STREAM on an idle stream",
            )),
            Event::Reset { stream, .. } => {
                self.streams.remove(&stream);
                Ok(())
            }
            Event::StreamError { stream, code } if stream > self.last => {
                Err(error(code, "a fault on an idle stream"))
            }
            Event::StreamError { stream, code } => self.reset(stream, code),
            Event::Settings { ack: true, .. } | Event::Ping { ack: true, .. } => Ok(()),
            Event::Settings { values, .. } => {
                for (id, value) in values {
                    self.setting(id, value)?;
                }
                frame::settings_ack(&mut self.out);
                Ok(())
            }
            Event::Ping { data, .. } => {
                frame::ping_ack(&mut self.out, data);
                Ok(())
            }
            Event::WindowUpdate { stream, increment } => self.window_update(stream, increment),
            Event::GoAway { .. } => Ok(()),
        }
    }

    /// DATA on a stream that takes none.
    fn unexpected_data(&mut self, stream: u32) -> Result<(), H2Error> {
        if stream > self.last {
            return Err(error(ErrorCode::ProtocolError, "DATA on an idle stream"));
        }
        self.overhead += 1;
        self.reset(stream, ErrorCode::StreamClosed)
    }

    fn reset(&mut self, stream: u32, code: ErrorCode) -> Result<(), H2Error> {
        // Resets that a client provokes are bounded too (CVE-2025-8671).
        self.overhead += 1;
        self.streams.remove(&stream);
        frame::reset(&mut self.out, stream, code);
        Ok(())
    }

    fn window_update(&mut self, stream: u32, increment: u32) -> Result<(), H2Error> {
        let increment = i64::from(increment);
        if stream == 0 {
            self.window += increment;
            if self.window > WINDOW_MAX {
                return Err(error(ErrorCode::FlowControlError, "a window above 2^31-1"));
            }
            return Ok(());
        }
        if stream > self.last {
            return Err(error(
                ErrorCode::ProtocolError,
                "WINDOW_UPDATE on an idle stream",
            ));
        }
        match self.streams.get_mut(&stream) {
            Some(one) if one.window + increment > WINDOW_MAX => {
                self.reset(stream, ErrorCode::FlowControlError)
            }
            Some(one) => {
                one.window += increment;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn setting(&mut self, id: u16, value: u32) -> Result<(), H2Error> {
        match id {
            settings::MAX_FRAME_SIZE => self.frame_max = value.min(FRAME_MAX),
            settings::INITIAL_WINDOW_SIZE => {
                let change = i64::from(value) - self.stream_window;
                self.stream_window += change;
                for stream in self.streams.values_mut() {
                    stream.window += change;
                    if stream.window > WINDOW_MAX {
                        return Err(error(ErrorCode::FlowControlError, "a window above 2^31-1"));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn headers(
        &mut self,
        stream: u32,
        end_stream: bool,
        block: &[u8],
        requests: &mut Vec<H2Request>,
    ) -> Result<(), H2Error> {
        let mut fields = FieldReader::default();
        self.decoder.decode(block, |name, value| {
            fields.take(name, value);
            Ok(())
        })?;
        if stream.is_multiple_of(2) {
            return Err(error(
                ErrorCode::ProtocolError,
                "a client's stream has an odd number",
            ));
        }
        if stream <= self.last {
            return match self
                .streams
                .get_mut(&stream)
                .filter(|one| one.request.is_some())
            {
                // Trailers end the request, and have no pseudo-fields.
                Some(_) if end_stream && !fields.has_pseudo && !fields.is_malformed => {
                    self.complete(stream, requests)
                }
                Some(_) => self.reset(stream, ErrorCode::ProtocolError),
                None => Err(error(ErrorCode::StreamClosed, "HEADERS on a closed stream")),
            };
        }
        self.last = stream;
        if self.streams.len() >= STREAMS_MAX as usize {
            return self.reset(stream, ErrorCode::RefusedStream);
        }
        let length = fields.length;
        let Some(request) = fields.request() else {
            return self.reset(stream, ErrorCode::ProtocolError);
        };
        let one = Stream {
            request: Some(request),
            length,
            window: self.stream_window,
            ..Stream::default()
        };
        self.streams.insert(stream, one);
        match end_stream {
            true => self.complete(stream, requests),
            false => Ok(()),
        }
    }

    /// A request's last byte has come.
    fn complete(&mut self, stream: u32, requests: &mut Vec<H2Request>) -> Result<(), H2Error> {
        let Some(one) = self.streams.get_mut(&stream) else {
            return Ok(());
        };
        let Some(request) = one.request.take() else {
            return Ok(());
        };
        if one
            .length
            .is_some_and(|length| length != request.body_bytes)
        {
            return self.reset(stream, ErrorCode::ProtocolError);
        }
        requests.push(H2Request { stream, request });
        Ok(())
    }
}

/// The fields of a request, checked as RFC 9113 8.2 and 8.3 ask.
#[derive(Debug, Default)]
struct FieldReader {
    method: Option<String>,
    scheme: Option<String>,
    path: Option<String>,
    authority: Option<String>,
    fields: Vec<(String, String)>,
    length: Option<u64>,
    has_pseudo: bool,
    is_malformed: bool,
}

impl FieldReader {
    fn take(&mut self, name: &[u8], value: &[u8]) {
        let is_bad = |byte: &u8| matches!(byte, 0 | b'\r' | b'\n');
        let is_padded = value.trim_ascii() != value;
        self.is_malformed |= value.iter().any(is_bad) || is_padded || name.is_empty();
        let text = String::from_utf8_lossy(value).into_owned();
        if let Some(pseudo) = name.strip_prefix(b":") {
            self.has_pseudo = true;
            // They come first.
            self.is_malformed |= !self.fields.is_empty();
            let place = match pseudo {
                b"method" => &mut self.method,
                b"scheme" => &mut self.scheme,
                b"path" => &mut self.path,
                b"authority" => &mut self.authority,
                _ => return self.is_malformed = true,
            };
            self.is_malformed |= place.replace(text).is_some();
            return;
        }
        let is_token =
            |byte: &u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase() && *byte != b':';
        self.is_malformed |= !name.iter().all(is_token);
        match name {
            b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding"
            | b"upgrade" => self.is_malformed = true,
            b"te" => self.is_malformed |= value != b"trailers",
            b"content-length" => {
                let length = text.parse().ok();
                let differs = self.length.is_some() && self.length != length;
                self.is_malformed |= length.is_none() || differs;
                self.length = length;
            }
            b"host" => {
                let differs = self.authority.as_ref().is_some_and(|one| *one != text);
                self.is_malformed |= differs;
            }
            _ => {}
        }
        self.fields
            .push((String::from_utf8_lossy(name).into_owned(), text));
    }

    /// The request; `None` if it is malformed.
    fn request(self) -> Option<Request> {
        let (method, path) = (self.method?, self.path?);
        let scheme_is_known = self
            .scheme
            .is_some_and(|one| one == "http" || one == "https");
        let has_space = path.bytes().any(|byte| !byte.is_ascii_graphic());
        let is_path = path.starts_with('/') || (path == "*" && method == "OPTIONS");
        if self.is_malformed || !scheme_is_known || has_space || !is_path || method.is_empty() {
            return None;
        }
        Some(Request {
            method,
            target: path,
            keep_alive: true,
            fields: self.fields,
            body_bytes: 0,
        })
    }
}
