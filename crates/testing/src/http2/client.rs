//! A client of HTTP/2 that sends any frames, and says what it is told.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use net::h2::{ErrorCode, Event, FrameReader, PREFACE, frame, hpack};

use super::Windows;

/// No answer takes as long, unless the other side hangs.
const LONG: Duration = Duration::from_secs(20);

/// A response so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Heads and trailers, in order.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub is_complete: bool,
    pub reset: Option<ErrorCode>,
}

impl Response {
    pub fn value(&self, name: &str) -> &str {
        let found = self.fields.iter().rev().find(|(field, _)| field == name);
        found.map_or("", |(_, value)| value)
    }

    pub fn is_over(&self) -> bool {
        self.is_complete || self.reset.is_some()
    }
}

pub struct Client<S> {
    pub stream: S,
    pub out: Vec<u8>,
    reader: FrameReader,
    decoder: hpack::Decoder,
    windows: Windows,
    pub responses: BTreeMap<u32, Response>,
    pub gone: Option<(u32, ErrorCode)>,
    pub pings: usize,
    /// Whether windows are opened as data come.
    pub is_reading: bool,
    pub has_ended: bool,
}

pub const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":path", "/"),
    (":authority", "a.example"),
];

/// [`GET`] with other or more fields; those that begin with `:` come first.
pub fn with<'a>(changed: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut fields: Vec<(&str, &str)> = GET.to_vec();
    for &(name, value) in changed {
        match fields.iter_mut().find(|(known, _)| *known == name) {
            Some(one) => one.1 = value,
            None => fields.push((name, value)),
        }
    }
    fields
}

impl Client<TcpStream> {
    pub fn connect(address: SocketAddr) -> Self {
        Self::connect_with(address, &[])
    }

    /// With these settings.
    pub fn connect_with(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Self::over(stream, settings)
    }

    /// Sends content until there is so much of it, or the windows have stayed closed for half a
    /// second. Returns its length.
    pub fn fill(&mut self, stream: u32, most: usize) -> usize {
        let quiet = Duration::from_millis(500);
        self.stream.set_read_timeout(Some(quiet)).unwrap();
        let (mut sent, mut input) = (0, [0; 65_536]);
        while sent < most {
            let count = self.windows.take(stream);
            if count > 0 {
                self.data(stream, &vec![b'x'; count], false);
                sent += count;
            }
            self.flush();
            if count == 0 {
                match super::read(&mut self.stream, &mut input) {
                    Ok(n @ 1..) => self.take(&input[..n]),
                    _ => break,
                }
            }
        }
        sent
    }
}

impl<S: Read + Write> Client<S> {
    /// With these settings.
    pub fn over(stream: S, settings: &[(u16, u32)]) -> Self {
        let mut out = PREFACE.to_vec();
        frame::settings(&mut out, settings);
        Self {
            stream,
            out,
            reader: FrameReader::new(16_384, 65_536),
            decoder: hpack::Decoder::new(4096, 65_536),
            windows: Windows::default(),
            responses: BTreeMap::new(),
            gone: None,
            pings: 0,
            is_reading: true,
            has_ended: false,
        }
    }

    pub fn head(&mut self, stream: u32, fields: &[(&str, &str)], end: bool) {
        frame::headers(&mut self.out, stream, &hpack::block(fields), end, 16_384);
    }

    pub fn data(&mut self, stream: u32, bytes: &[u8], end: bool) {
        frame::data(&mut self.out, stream, bytes, end);
    }

    pub fn flush(&mut self) {
        // The other side may have closed already.
        let _ = self.stream.write_all(&self.out);
        let _ = self.stream.flush();
        self.out.clear();
    }

    /// Sends, and reads until `is_enough`, or the end.
    pub fn until(&mut self, is_enough: impl Fn(&Self) -> bool) -> &Self {
        self.flush();
        let mut input = [0; 65_536];
        while !is_enough(self) {
            match super::read(&mut self.stream, &mut input) {
                Ok(n @ 1..) => self.take(&input[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                    panic!("nothing came; so far {:?}", self.responses)
                }
                _ => {
                    self.has_ended = true;
                    break;
                }
            }
            self.flush();
        }
        self
    }

    /// How much content of a response has come.
    pub fn received(&self, stream: u32) -> usize {
        self.responses.get(&stream).map_or(0, |one| one.body.len())
    }

    /// The whole response on a stream.
    pub fn response(&mut self, stream: u32) -> Response {
        let is_over = |client: &Self| {
            client.gone.is_some_and(|(last, _)| last < stream)
                || client.responses.get(&stream).is_some_and(Response::is_over)
        };
        self.until(is_over);
        self.responses.get(&stream).cloned().unwrap_or_default()
    }

    /// A request without content, and its response.
    pub fn ask(&mut self, stream: u32, fields: &[(&str, &str)]) -> Response {
        self.head(stream, fields, true);
        self.response(stream)
    }

    fn take(&mut self, input: &[u8]) {
        let Self {
            reader,
            decoder,
            responses,
            out,
            gone,
            pings,
            is_reading,
            windows,
            ..
        } = self;
        let fed = reader.feed(input, |event| {
            match event {
                Event::Headers {
                    stream,
                    end_stream,
                    block,
                } => {
                    let one = responses.entry(stream).or_default();
                    one.is_complete |= end_stream;
                    one.fields.extend(super::fields(decoder, block)?);
                }
                Event::Data {
                    stream,
                    bytes,
                    flow,
                    end_stream,
                } => {
                    let one = responses.entry(stream).or_default();
                    one.body.extend_from_slice(bytes);
                    one.is_complete |= end_stream;
                    if *is_reading && flow > 0 {
                        frame::window_update(out, 0, flow);
                        frame::window_update(out, stream, flow);
                    }
                }
                Event::Reset { stream, code } => {
                    let one = responses.entry(stream).or_default();
                    one.reset = ErrorCode::of(code);
                }
                Event::GoAway { last_stream, code } => {
                    *gone = Some((last_stream, ErrorCode::of(code).unwrap()));
                }
                Event::WindowUpdate { stream, increment } => windows.open(stream, increment),
                Event::Settings { ack: false, .. } => frame::settings_ack(out),
                Event::Ping { ack: true, .. } => *pings += 1,
                Event::Ping { data, .. } => frame::ping_ack(out, data),
                _ => {}
            }
            Ok(())
        });
        fed.unwrap();
    }
}
