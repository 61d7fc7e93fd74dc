//! One HTTP/2 connection as a client, without I/O.

use std::sync::Arc;

use net::h2::{
    ErrorCode, Event, FRAME_HEAD, FrameReader, H2Error, PREFACE, frame, hpack, settings,
};

use super::EncodedRequest;
use crate::http::answer_fields::AnswerFields;
use crate::http::session::{Answer, Fields, NO_FIELDS, Overhead, RemainingContent};

/// The flow-control window of each stream and of the connection: larger than almost all bodies, so
/// that the result is not that of a small window.
pub(crate) const WINDOW: u32 = (1 << 31) - 1;
/// A window is opened again when so many bytes of it were used.
const WINDOW_STEP: u32 = 1 << 30;
/// The window of a connection at its start (RFC 9113 6.9.2).
const WINDOW_AT_START: u32 = 65_535;
const FRAME_MAX: u32 = 16 * 1024;
/// Most bytes of an answer's header block.
const BLOCK_MAX: usize = 64 * 1024;
/// The last stream that a client can open on a connection.
const STREAM_MAX: u32 = (1 << 31) - 1;

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// 0 while the place has no request.
    id: u32,
    /// Whether the head of the final answer has arrived.
    has_head: bool,
    /// Whether the request is HEAD.
    is_head_request: bool,
    content: RemainingContent,
    /// How many bytes of the request's body the server lets be sent.
    window: i64,
    /// How much of the body is sent, and how much at its end may not be sent yet.
    sent: usize,
    held_back: usize,
    /// Bytes of content received since its window was opened.
    received: u32,
}

pub(crate) struct Session {
    reader: FrameReader,
    decoder: hpack::Decoder,
    /// Bytes to send.
    pub(crate) out: Vec<u8>,
    streams: Vec<Stream>,
    /// The place of each stream, at half the stream's number modulo the length. A later stream may
    /// have overwritten the entry of a slow one, which is then searched for in `streams`.
    places: Vec<u32>,
    next: u32,
    active: u32,
    active_max: u32,
    is_ending: bool,
    /// How many bytes the server lets be sent on the connection, and on each stream at its start.
    window: i64,
    stream_window: i64,
    frame_max: u32,
    /// Bytes received since the connection's window was opened.
    received: u32,
    /// Places whose request body waits for a window, with the body.
    unsent: Vec<(u32, Arc<[u8]>)>,
    /// Streams whose answer was complete before the request was sent, unless the server has reset
    /// them.
    half_open: Vec<u32>,
    overhead: Overhead,
    /// Answers to pings.
    pub(crate) pongs: u64,
    /// The header block that was decoded last, and what it says.
    block: Vec<u8>,
    section: AnswerFields,
    /// Its fields, if they are kept.
    fields: Option<Box<Fields>>,
}

impl Session {
    /// A session with room for so many streams at once; its first frames are in `out`.
    pub(crate) fn new(places: u32) -> Self {
        let mut out = PREFACE.to_vec();
        frame::settings(
            &mut out,
            &[
                (settings::HEADER_TABLE_SIZE, 0),
                (settings::ENABLE_PUSH, 0),
                (settings::INITIAL_WINDOW_SIZE, WINDOW),
            ],
        );
        frame::window_update(&mut out, 0, WINDOW - WINDOW_AT_START);
        let table = (places as usize * 4).next_power_of_two();
        Self {
            reader: FrameReader::new(FRAME_MAX, BLOCK_MAX),
            decoder: hpack::Decoder::new(0, BLOCK_MAX),
            out,
            streams: vec![Stream::default(); places as usize],
            places: vec![0; table],
            next: 1,
            active: 0,
            active_max: u32::MAX,
            is_ending: false,
            window: i64::from(WINDOW_AT_START),
            stream_window: i64::from(WINDOW_AT_START),
            frame_max: FRAME_MAX,
            received: 0,
            unsent: Vec::new(),
            half_open: Vec::new(),
            overhead: Overhead::default(),
            pongs: 0,
            block: Vec::new(),
            section: AnswerFields::default(),
            fields: None,
        }
    }

    /// The same, whose answers' header fields are kept.
    pub(crate) fn keeping_fields(places: u32) -> Self {
        Self {
            fields: Some(Box::default()),
            ..Self::new(places)
        }
    }

    /// Number of streams that are not answered.
    pub(crate) fn active(&self) -> u32 {
        self.active
    }

    /// Whether no further request can be sent.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Sends a PING, whose answer costs nothing of what the server may send besides answers.
    pub(crate) fn ping(&mut self) {
        self.overhead.offset();
        frame::ping(&mut self.out, *b"weigh ok");
    }

    /// Opens no further streams.
    pub(crate) fn end(&mut self) {
        self.is_ending = true;
    }

    /// Sends a request as the stream of a place that has none. Returns false if it cannot now: the
    /// server allows no further stream, or the connection takes no further request.
    pub(crate) fn request(&mut self, place: u32, request: &EncodedRequest) -> bool {
        let body = &request.body;
        if !self.open(place, &request.block, body.is_empty(), request.is_head) {
            return false;
        }
        if !body.is_empty() {
            self.streams[place as usize].held_back = request.held_back;
            self.unsent.push((place, body.clone()));
            self.send_bodies();
        }
        true
    }

    /// Sends more of the body of a place whose end was held back.
    pub(crate) fn release(&mut self, place: u32, bytes: usize) {
        let stream = &mut self.streams[place as usize];
        stream.held_back = stream.held_back.saturating_sub(bytes);
        let at = self.unsent.iter().position(|(other, _)| *other == place);
        if let Some(at) = at {
            let body = self.unsent[at].1.clone();
            if self.send_body(place, &body) {
                self.unsent.remove(at);
            }
        }
    }

    /// The same, of a header block and a body that are not kept; `kept` is the body for as long as the
    /// windows leave some of it.
    pub(crate) fn request_of(
        &mut self,
        place: u32,
        (block, body): (&[u8], &[u8]),
        kept: impl FnOnce() -> Arc<[u8]>,
        is_head: bool,
    ) -> bool {
        if !self.open(place, block, body.is_empty(), is_head) {
            return false;
        }
        // Others that wait for the window come first.
        let is_sent = body.is_empty() || self.unsent.is_empty() && self.send_body(place, body);
        if !is_sent {
            self.unsent.push((place, kept()));
        }
        true
    }

    /// Opens a stream with this header block.
    fn open(&mut self, place: u32, block: &[u8], is_whole: bool, is_head: bool) -> bool {
        if self.next > STREAM_MAX - 2 {
            self.is_ending = true;
        }
        if self.is_ending || self.active >= self.active_max {
            return false;
        }
        let id = self.next;
        self.next += 2;
        self.active += 1;
        self.streams[place as usize] = Stream {
            id,
            is_head_request: is_head,
            window: self.stream_window,
            ..Stream::default()
        };
        let at = self.at(id);
        self.places[at] = place;
        frame::headers(&mut self.out, id, block, is_whole, self.frame_max);
        true
    }

    /// Resets the stream of a request that is given up.
    pub(crate) fn cancel(&mut self, place: u32) {
        self.reset(place, ErrorCode::Cancel);
    }

    fn reset(&mut self, place: u32, code: ErrorCode) {
        let id = self.streams[place as usize].id;
        if id != 0 {
            frame::reset(&mut self.out, id, code);
            self.free(place);
        }
    }

    fn at(&self, id: u32) -> usize {
        (id as usize >> 1) & (self.places.len() - 1)
    }

    fn free(&mut self, place: u32) {
        self.streams[place as usize] = Stream::default();
        self.active -= 1;
        self.unsent.retain(|(other, _)| *other != place);
    }

    fn send_bodies(&mut self) {
        let mut at = 0;
        while at < self.unsent.len() && self.window > 0 {
            let (place, body) = self.unsent[at].clone();
            match self.send_body(place, &body) {
                true => drop(self.unsent.remove(at)),
                false => at += 1,
            }
        }
    }

    /// Sends as much of a body as the windows allow. Returns whether all of it is sent.
    fn send_body(&mut self, place: u32, body: &[u8]) -> bool {
        let stream = &mut self.streams[place as usize];
        let allowed = body.len().saturating_sub(stream.held_back);
        while stream.sent < allowed && self.window > 0 && stream.window > 0 {
            let left = (allowed - stream.sent) as i64;
            let most = i64::from(self.frame_max)
                .min(self.window)
                .min(stream.window);
            let end = stream.sent + left.min(most) as usize;
            let is_last = end == body.len();
            frame::data(&mut self.out, stream.id, &body[stream.sent..end], is_last);
            self.overhead.offset();
            let sent = (end - stream.sent) as i64;
            stream.sent = end;
            stream.window -= sent;
            self.window -= sent;
        }
        stream.sent == body.len()
    }

    /// Takes received bytes.
    ///
    /// # Errors
    /// When they are not HTTP/2; a GOAWAY with the reason is in `out`.
    pub(crate) fn feed(
        &mut self,
        input: &[u8],
        mut each: impl FnMut(Answer<'_>),
    ) -> Result<(), H2Error> {
        // The reader lends its events while the rest of the session handles them.
        let mut reader = std::mem::replace(&mut self.reader, FrameReader::new(0, 0));
        let fed = reader.feed(input, |event| self.event(event, &mut each));
        let counted = self.count(reader.take_overhead());
        self.reader = reader;
        let fed = fed.and(counted);
        if self.received >= WINDOW_STEP {
            frame::window_update(&mut self.out, 0, self.received);
            self.received = 0;
        }
        // Otherwise the server would wait for the rest of these requests.
        for stream in self.half_open.drain(..) {
            frame::reset(&mut self.out, stream, ErrorCode::Cancel);
        }
        if let Err(error) = fed {
            frame::go_away(&mut self.out, 0, error.code);
            self.is_ending = true;
        }
        fed
    }

    fn place(&self, id: u32) -> Option<u32> {
        let place = self.places[self.at(id)];
        if self.streams[place as usize].id == id {
            return Some(place);
        }
        let found = self.streams.iter().position(|stream| stream.id == id);
        found.map(|place| place as u32)
    }

    fn event(
        &mut self,
        event: Event<'_>,
        each: &mut impl FnMut(Answer<'_>),
    ) -> Result<(), H2Error> {
        match event {
            Event::Headers {
                stream,
                end_stream,
                block,
            } => self.headers(stream, end_stream, block, each),
            Event::Data {
                stream,
                bytes,
                flow,
                end_stream,
            } => {
                self.received += flow;
                let Some(place) = self.place(stream) else {
                    return self.late_frame(stream);
                };
                let one = &mut self.streams[place as usize];
                let taken = match one.has_head {
                    true => one.content.take(bytes.len()),
                    false => Err("content before its head"),
                };
                if let Err(what) = taken {
                    self.malformed(place, what, end_stream, each);
                    return Ok(());
                }
                one.received = one.received.saturating_add(flow);
                if one.received >= WINDOW_STEP && !end_stream {
                    let opened = std::mem::take(&mut one.received);
                    frame::window_update(&mut self.out, stream, opened);
                }
                if !bytes.is_empty() {
                    each(Answer::Body { place, bytes });
                }
                if end_stream {
                    self.complete(place, each);
                }
                Ok(())
            }
            Event::Reset { stream, code } => {
                let Some(place) = self.place(stream) else {
                    self.half_open.retain(|one| *one != stream);
                    return self.late_frame(stream);
                };
                self.free(place);
                each(match code == ErrorCode::RefusedStream as u32 {
                    true => Answer::NotProcessed { place },
                    false => Answer::Reset {
                        place,
                        code: code.into(),
                    },
                });
                Ok(())
            }
            Event::StreamError { stream, code } => {
                if let Some(place) = self.place(stream) {
                    self.cancel(place);
                    let code = code as u64;
                    each(Answer::Reset { place, code });
                }
                Ok(())
            }
            Event::GoAway { last_stream, .. } => {
                self.is_ending = true;
                for place in 0..self.streams.len() as u32 {
                    if self.streams[place as usize].id > last_stream {
                        self.free(place);
                        each(Answer::NotProcessed { place });
                    }
                }
                Ok(())
            }
            Event::Settings { ack: true, .. } => Ok(()),
            Event::Ping { ack: true, .. } => {
                self.pongs += 1;
                Ok(())
            }
            Event::Settings { values, .. } => {
                for (id, value) in values {
                    self.setting(id, value)?;
                }
                frame::settings_ack(&mut self.out);
                self.send_bodies();
                Ok(())
            }
            Event::Ping { data, .. } => {
                frame::ping_ack(&mut self.out, data);
                Ok(())
            }
            Event::WindowUpdate { stream, increment } => {
                match (stream, self.place(stream)) {
                    (0, _) => {
                        self.window += i64::from(increment);
                        check_window(self.window)?;
                    }
                    (_, Some(place)) => {
                        let one = &mut self.streams[place as usize];
                        one.window += i64::from(increment);
                        if check_window(one.window).is_err() {
                            let code = ErrorCode::FlowControlError;
                            self.reset(place, code);
                            let code = code as u64;
                            each(Answer::Reset { place, code });
                        }
                    }
                    (_, None) => {}
                }
                self.send_bodies();
                Ok(())
            }
        }
    }

    /// Takes a frame on a stream that has no request any more: it was given up, or is complete.
    ///
    /// # Errors
    /// When no request was ever sent on it, or there are too many such frames.
    fn late_frame(&mut self, stream: u32) -> Result<(), H2Error> {
        match stream >= self.next || stream.is_multiple_of(2) {
            true => Err(H2Error::protocol("a frame on an idle stream")),
            false => self.count(1),
        }
    }

    /// Counts frames that carry nothing for a request.
    fn count(&mut self, frames: u32) -> Result<(), H2Error> {
        match self.overhead.add(frames) {
            true => Err(H2Error::calm(
                "too many frames that carry nothing for a request",
            )),
            false => Ok(()),
        }
    }

    /// The answer ends.
    fn complete(&mut self, place: u32, each: &mut impl FnMut(Answer<'_>)) {
        let stream = &self.streams[place as usize];
        let ended = match stream.has_head {
            true => stream.content.end(),
            false => Err("no final head"),
        };
        match ended {
            Ok(()) => {
                self.overhead.offset();
                if self.unsent.iter().any(|(other, _)| *other == place) {
                    self.half_open.push(stream.id);
                }
                self.free(place);
                each(Answer::End { place });
            }
            Err(what) => self.malformed(place, what, true, each),
        }
    }

    fn malformed(
        &mut self,
        place: u32,
        what: &'static str,
        has_ended: bool,
        each: &mut impl FnMut(Answer<'_>),
    ) {
        match has_ended {
            true => self.free(place),
            false => self.reset(place, ErrorCode::ProtocolError),
        }
        each(Answer::Malformed { place, what });
    }

    /// Decodes a header block, also for a stream that was given up: the decoder needs all of them.
    ///
    /// # Errors
    /// When it is not HPACK: the connection ends then.
    fn decode(&mut self, block: &[u8]) -> Result<(), H2Error> {
        let mut fields = self.fields.as_deref_mut();
        if let Some(fields) = &mut fields {
            fields.clear();
        }
        let mut section = AnswerFields::default();
        self.decoder.decode(block, |name, value| {
            section.take(name, value);
            if let Some(fields) = &mut fields {
                fields.push(name, value);
            }
            Ok(())
        })?;
        self.section = section;
        self.block.clear();
        self.block.extend_from_slice(block);
        Ok(())
    }

    fn headers(
        &mut self,
        stream: u32,
        end_stream: bool,
        block: &[u8],
        each: &mut impl FnMut(Answer<'_>),
    ) -> Result<(), H2Error> {
        // The same block says the same, as there is no dynamic table. Most answers differ from the last one
        // in their date alone.
        if self.block != block {
            self.decode(block)?;
        }
        let section = &self.section;
        let Some(place) = self.place(stream) else {
            return self.late_frame(stream);
        };
        let one = &mut self.streams[place as usize];
        let read = match one.has_head {
            false => section.head(),
            // RFC 9113, 8.1.
            true => match section.wrong_trailers() {
                None if end_stream => Ok(0),
                None => Err("fields behind its head that do not end it"),
                Some(what) => Err(what),
            },
        };
        let head = match read {
            // Informational answers come before the final one, trailers after it.
            Ok(100..200) if !end_stream => return self.count(1),
            Ok(0 | 100..200) => Ok(None),
            Ok(status) => section
                .content(one.is_head_request)
                .map(|content| Some((status, content))),
            Err(what) => Err(what),
        };
        let head = match head {
            Ok(head) => head,
            Err(what) => {
                self.malformed(place, what, end_stream, each);
                return Ok(());
            }
        };
        if let Some((status, content)) = head {
            (one.has_head, one.content) = (true, content);
            let bytes = (FRAME_HEAD + block.len()) as u64;
            each(Answer::Head {
                place,
                status,
                bytes,
                fields: self.fields.as_deref().unwrap_or(&NO_FIELDS),
            });
        } else if one.has_head
            && let Some(fields) = self.fields.as_deref()
        {
            each(Answer::Trailers { place, fields });
        }
        if end_stream {
            self.complete(place, each);
        }
        Ok(())
    }

    fn setting(&mut self, id: u16, value: u32) -> Result<(), H2Error> {
        match id {
            settings::MAX_CONCURRENT_STREAMS => self.active_max = value,
            settings::MAX_FRAME_SIZE => self.frame_max = value,
            settings::INITIAL_WINDOW_SIZE => {
                let change = i64::from(value) - self.stream_window;
                self.stream_window += change;
                for stream in &mut self.streams {
                    stream.window += change;
                    check_window(stream.window)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// RFC 9113, 6.9.1 and 6.9.2.
fn check_window(window: i64) -> Result<(), H2Error> {
    match window > i64::from(WINDOW) {
        true => Err(H2Error {
            code: ErrorCode::FlowControlError,
            what: "a window above 2^31-1",
        }),
        false => Ok(()),
    }
}
