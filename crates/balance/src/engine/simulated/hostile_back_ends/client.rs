//! A client that sends all that it has to send at once, and takes all that it gets.

use std::collections::BTreeMap;

use super::deeds::{BEYOND, BEYOND_BYTES};
use net::ConnId;
use net::h2::{Event, FrameReader, PREFACE, frame, hpack, settings};
use net::http::{Progress, ResponseParser};
use net::simulated::{Fate, Network};

pub struct Client {
    conn: ConnId,
    number: usize,
    content: u16,
    /// The stream of each request; 0 for one request of HTTP/1.1.
    answers: BTreeMap<u32, Answer>,
    speaks: Speaks,
    has_ended: bool,
}

enum Speaks {
    Http1(ResponseParser),
    Http2(FrameReader, hpack::Decoder),
}

/// What came on a stream.
#[derive(Debug, Default)]
struct Answer {
    /// The status of the last final head.
    status: u16,
    /// Final heads, ends of the answer, and resets before its end.
    heads: u32,
    ends: u32,
    resets: u32,
    /// How the content begins, and how long it is.
    content: Vec<u8>,
    bytes: usize,
}

impl Answer {
    fn take(&mut self, content: &[u8]) {
        let room = 20_usize.saturating_sub(self.content.len());
        self.content.extend(content.iter().take(room));
        self.bytes += content.len();
    }

    fn head(&mut self, status: u16) {
        if status >= 200 {
            self.heads += 1;
            self.status = status;
        }
    }
}

impl Client {
    /// With so many streams of HTTP/2, or one request of HTTP/1.1.
    pub fn new(conn: ConnId, number: usize, streams: Option<u8>, content: u16) -> Self {
        let ids: Vec<u32> = match streams {
            None => vec![0],
            Some(streams) => (0..streams.into())
                .map(|number: u32| 2 * number + 1)
                .collect(),
        };
        let speaks = match streams {
            None => Speaks::Http1(ResponseParser::new(false)),
            Some(_) => Speaks::Http2(
                FrameReader::new(16_384, 64 * 1024),
                hpack::Decoder::new(4_096, 64 * 1024),
            ),
        };
        Self {
            conn,
            number,
            content,
            answers: ids.into_iter().map(|id| (id, Answer::default())).collect(),
            speaks,
            has_ended: false,
        }
    }

    fn path(&self, stream: u32) -> String {
        format!("/{}/{stream}", self.number)
    }

    /// All requests.
    pub fn requests(&self) -> Vec<u8> {
        // The windows that the balancer has opened at first hold all of it.
        let most = 65_535 / self.answers.len();
        let content = vec![b'x'; most.min(self.content.into())];
        let method = if content.is_empty() { "GET" } else { "POST" };
        if matches!(self.speaks, Speaks::Http1(_)) {
            let (path, length) = (self.path(0), content.len());
            let head =
                format!("{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
            return [head.as_bytes(), &content].concat();
        }
        let mut out = PREFACE.to_vec();
        frame::settings(&mut out, &[(settings::INITIAL_WINDOW_SIZE, 1 << 30)]);
        frame::window_update(&mut out, 0, 1 << 30);
        for &stream in self.answers.keys() {
            let path = self.path(stream);
            let fields = [
                (":method", method),
                (":scheme", "http"),
                (":path", &path),
                (":authority", "a"),
            ];
            let is_get = content.is_empty();
            frame::headers(&mut out, stream, &hpack::block(&fields), is_get, 16_384);
            let mut pieces = content.chunks(16_384).peekable();
            while let Some(piece) = pieces.next() {
                frame::data(&mut out, stream, piece, pieces.peek().is_none());
            }
        }
        out
    }

    /// Takes what has come. Returns what is wrong with its form.
    pub fn receive(&mut self, network: &mut Network) -> Option<String> {
        let bytes = network.take_sent(self.conn);
        self.has_ended |= network.fate(self.conn) != Fate::Open;
        let answers = &mut self.answers;
        let read = match &mut self.speaks {
            Speaks::Http1(parser) => http_1(parser, &bytes, answers.entry(0).or_default()),
            Speaks::Http2(reader, decoder) => http_2((reader, decoder), &bytes, answers),
        };
        read.err()
            .map(|what| format!("client {}: {what}", self.number))
    }

    /// Whether nothing more is to come.
    pub fn is_answered(&self) -> bool {
        let is_over = |one: &Answer| one.ends + one.resets > 0;
        self.has_ended || self.answers.values().all(is_over)
    }

    /// What is wrong with what it got.
    pub fn faults(&self) -> Vec<String> {
        let is_h1 = matches!(self.speaks, Speaks::Http1(_));
        let fault = |(stream, one): (&u32, &Answer)| {
            let is_once = match (one.heads, one.ends, one.resets) {
                // The connection was closed within the answer.
                (1, 0, 0) => is_h1 && self.has_ended,
                (heads, 0, 1) => heads <= 1,
                (heads, ends, _) => heads == 1 && ends == 1,
            };
            let path = self.path(*stream);
            let is_own =
                !one.content.starts_with(b"/") || path.as_bytes().starts_with(&one.content);
            let is_short =
                one.ends > 0 && one.content.starts_with(&[BEYOND]) && one.bytes != BEYOND_BYTES;
            let (client, faulty) = (self.number, !is_once || !is_own || is_short);
            faulty.then(|| format!("client {client}, stream {stream}: {one:?}"))
        };
        self.answers.iter().filter_map(fault).collect()
    }

    /// Status of the first answer, and whether it is whole.
    pub fn outcome(&self) -> String {
        let one = self.answers.values().next();
        one.map_or(String::new(), |one| {
            let how = if one.ends > 0 { "whole" } else { "cut" };
            format!("{} {how}", one.status)
        })
    }
}

fn http_1(parser: &mut ResponseParser, bytes: &[u8], answer: &mut Answer) -> Result<(), String> {
    if answer.ends > 0 {
        return match bytes {
            [] => Ok(()),
            _ => Err("bytes behind its answer".into()),
        };
    }
    let read = parser.feed(bytes, |piece| answer.take(piece));
    let status = parser.head().status;
    if status >= 200 && answer.heads == 0 {
        answer.head(status);
    }
    match read {
        Ok(Progress::Done { taken }) => {
            answer.ends += 1;
            match taken == bytes.len() {
                true => Ok(()),
                false => Err("bytes behind its answer".into()),
            }
        }
        Ok(Progress::More) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn http_2(
    (reader, decoder): (&mut FrameReader, &mut hpack::Decoder),
    bytes: &[u8],
    answers: &mut BTreeMap<u32, Answer>,
) -> Result<(), String> {
    let read = reader.feed(bytes, |event| {
        match event {
            Event::Headers {
                stream,
                end_stream,
                block,
            } => {
                let one = answers.entry(stream).or_default();
                decoder.decode(block, |name, value| {
                    if name == b":status" {
                        one.head(String::from_utf8_lossy(value).parse().unwrap_or(0));
                    }
                    Ok(())
                })?;
                one.ends += u32::from(end_stream);
            }
            Event::Data {
                stream,
                bytes,
                end_stream,
                ..
            } => {
                let one = answers.entry(stream).or_default();
                one.take(bytes);
                one.ends += u32::from(end_stream);
            }
            Event::Reset { stream, .. } => {
                let one = answers.entry(stream).or_default();
                one.resets += u32::from(one.ends == 0);
            }
            _ => {}
        }
        Ok(())
    });
    read.map_err(|error| error.to_string())
}
