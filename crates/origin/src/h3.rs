//! The server side of one HTTP/3 connection, over a QUIC connection that the caller drives.

use std::collections::HashMap;

use bytes::Bytes;
use net::FieldSection;
use net::h3::{
    ErrorCode, Event as Frame, FrameReader, H3Error, Side, UniEvent, UniReader, frame, qpack,
    settings, stream,
};
use net::http::Request;
use quic::{Connection, Dir, Event, StreamEnd, StreamEvent, StreamId, VarInt, read};

use crate::body::Body;
use crate::fields::{answer_fields, request};
use crate::pages::StreamPage;

/// How many streams a client may have open at once.
pub(crate) const STREAMS_MAX: u32 = 256;
/// The most bytes of a field section, and of the fields in it.
const SECTION_MAX: usize = 32 * 1024;
/// How many unidirectional streams of unknown types a client may open.
const UNKNOWN_MAX: u32 = 64;
/// A bound on floods: how many frames without meaning, resets and stream errors a client may cause,
/// in addition to two for each answered request.
const OVERHEAD_MAX: u64 = 10_000;

/// An answer as HTTP/3 sends it.
#[derive(Clone, Debug)]
pub(crate) struct H3Page {
    /// HEADERS, and the head of DATA if there is a body.
    head: Bytes,
    body: Body,
}

impl H3Page {
    /// Its bytes, without the framing of QUIC.
    pub(crate) fn bytes(&self) -> usize {
        self.head.len() + self.body.size()
    }
}

impl StreamPage for H3Page {
    fn with_body(head: &[u8], body: Body) -> Self {
        let mut section = Vec::new();
        qpack::begin(&mut section);
        answer_fields(head, |name, value| {
            qpack::encode(&mut section, name, value);
        });
        let mut head = Vec::new();
        frame::headers(&mut head, &section);
        if body.size() > 0 {
            frame::data_head(&mut head, body.size() as u64);
        }
        Self {
            head: head.into(),
            body,
        }
    }
}

/// An answer that is being sent.
#[derive(Debug)]
struct Answer {
    /// What is sent next: the head, and a piece of the body.
    parts: [Bytes; 2],
    body: Body,
    /// Bytes of the body that were moved to `parts`, sent or not.
    taken: usize,
}

impl Answer {
    fn of(page: &H3Page) -> Self {
        let piece = page.body.piece(0);
        Self {
            taken: piece.len(),
            parts: [page.head.clone(), piece],
            body: page.body.clone(),
        }
    }

    /// Takes the next piece of the body; `false` at its end.
    fn take_piece(&mut self) -> bool {
        self.parts[1] = self.body.piece(self.taken);
        self.taken += self.parts[1].len();
        !self.parts[1].is_empty()
    }
}

/// A request that is not complete.
#[derive(Debug)]
struct Incoming {
    frames: FrameReader,
    section: FieldSection,
    request: Option<Request>,
    /// The length that the request announced.
    length: Option<u64>,
    has_trailers: bool,
    is_malformed: bool,
}

impl Incoming {
    fn new() -> Self {
        Self {
            frames: FrameReader::of_request(SECTION_MAX),
            section: FieldSection::default(),
            request: None,
            length: None,
            has_trailers: false,
            is_malformed: false,
        }
    }

    fn restart(&mut self) {
        self.frames.restart();
        self.request = None;
        self.length = None;
        self.has_trailers = false;
        self.is_malformed = false;
    }

    fn take(&mut self, input: &[u8], text: &mut Vec<u8>) -> Result<(), H3Error> {
        let mut frames = std::mem::replace(&mut self.frames, FrameReader::of_request(0));
        let fed = frames.feed(input, |event| match event {
            Frame::Headers(section) => self.headers(section, text),
            Frame::Data(_) if self.has_trailers => Err(H3Error::new(
                ErrorCode::FrameUnexpected,
                "DATA after trailers",
            )),
            Frame::Data(bytes) => {
                if let Some(request) = &mut self.request {
                    request.take_body(bytes);
                }
                Ok(())
            }
            Frame::Control { .. } => Ok(()),
        });
        self.frames = frames;
        fed
    }

    fn headers(&mut self, section: &[u8], text: &mut Vec<u8>) -> Result<(), H3Error> {
        let fields = &mut self.section;
        fields.clear();
        qpack::decode(section, SECTION_MAX, text, |name, value| {
            fields.take(name, value);
            Ok(())
        })?;
        if self.request.is_some() || self.is_malformed {
            if std::mem::replace(&mut self.has_trailers, true) {
                let code = ErrorCode::FrameUnexpected;
                return Err(H3Error::new(code, "HEADERS after trailers"));
            }
            self.is_malformed |= !fields.is_trailers();
            return Ok(());
        }
        self.length = fields.length();
        self.request = fields.is_request().then(|| request(fields));
        self.is_malformed = self.request.is_none();
        Ok(())
    }

    /// The request, now that its last byte has come, or the code to refuse it with.
    fn finish(&mut self) -> Result<Request, ErrorCode> {
        self.frames.finish().map_err(|error| error.code)?;
        if self.is_malformed {
            return Err(ErrorCode::MessageError);
        }
        let request = self.request.take().ok_or(ErrorCode::RequestIncomplete)?;
        match self.length {
            Some(length) if length != request.body_bytes => Err(ErrorCode::MessageError),
            _ => Ok(request),
        }
    }
}

/// A request that is complete.
#[derive(Debug)]
pub(crate) struct H3Request {
    pub(crate) stream: StreamId,
    pub(crate) request: Request,
}

#[derive(Default)]
pub(crate) struct H3Server {
    incoming: HashMap<StreamId, Incoming>,
    /// The memory of an earlier request.
    spare: Option<Incoming>,
    /// Answers that wait for room in the windows.
    unsent: HashMap<StreamId, Answer>,
    uni: Vec<(StreamId, UniReader)>,
    /// One bit for each type of critical stream that the client has opened.
    has_uni: u8,
    unknown: u32,
    text: Vec<u8>,
    answered: u64,
    overhead: u64,
}

fn code(code: ErrorCode) -> VarInt {
    VarInt::from_u32(code as u32)
}

impl H3Server {
    /// Handles the events of the connection; requests that are complete go to `requests`. False when
    /// the connection is over.
    ///
    /// # Errors
    /// When the client breaks a rule of the connection, which has to be closed with the code.
    pub(crate) fn poll(
        &mut self,
        connection: &mut Connection,
        requests: &mut Vec<H3Request>,
    ) -> Result<bool, H3Error> {
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.begin(connection),
                Event::ConnectionLost { .. } => return Ok(false),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = connection.streams().accept(dir) {
                        self.readable(connection, id, requests)?;
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    self.readable(connection, id, requests)?;
                }
                Event::Stream(StreamEvent::Writable { id }) => self.send_rest(connection, id),
                Event::Stream(StreamEvent::Stopped { id, .. }) => {
                    self.overhead += u64::from(self.unsent.remove(&id).is_some());
                    let _ = connection
                        .send_stream(id)
                        .reset(code(ErrorCode::RequestCancelled));
                }
                _ => {}
            }
            if self.overhead > OVERHEAD_MAX + 2 * self.answered {
                return Err(H3Error::new(
                    ErrorCode::ExcessiveLoad,
                    "too many resets, faults and frames without meaning",
                ));
            }
        }
        Ok(true)
    }

    /// Opens the control stream.
    fn begin(&mut self, connection: &mut Connection) {
        let mut out = Vec::new();
        frame::control(
            &mut out,
            &[(settings::MAX_FIELD_SECTION_SIZE, SECTION_MAX as u64)],
        );
        if let Some(id) = connection.streams().open(Dir::Uni) {
            // Its first bytes fit into any window that RFC 9114 6.2 recommends.
            let _ = connection.send_stream(id).write(&out);
        }
    }

    fn readable(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        requests: &mut Vec<H3Request>,
    ) -> Result<(), H3Error> {
        match id.dir() {
            Dir::Uni => self.uni(connection, id),
            Dir::Bi => self.request(connection, id, requests),
        }
    }

    fn request(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        requests: &mut Vec<H3Request>,
    ) -> Result<(), H3Error> {
        let mut one = match self.incoming.remove(&id) {
            Some(one) => one,
            None => self.spare.take().unwrap_or_else(Incoming::new),
        };
        let text = &mut self.text;
        let end = read(connection, id, |bytes| one.take(bytes, text));
        self.overhead += u64::from(one.frames.take_overhead());
        match end? {
            StreamEnd::Open if one.is_malformed => {
                self.refuse(connection, id, ErrorCode::MessageError)
            }
            StreamEnd::Open => {
                self.incoming.insert(id, one);
                return Ok(());
            }
            StreamEnd::Reset(_) => {
                self.overhead += 1;
                let cancelled = code(ErrorCode::RequestCancelled);
                let _ = connection.send_stream(id).reset(cancelled);
            }
            StreamEnd::Finished => match one.finish() {
                Ok(request) => requests.push(H3Request {
                    stream: id,
                    request,
                }),
                Err(ErrorCode::FrameError) => {
                    return Err(H3Error::new(
                        ErrorCode::FrameError,
                        "a request that ends within a frame",
                    ));
                }
                Err(why) => self.refuse(connection, id, why),
            },
        }
        one.restart();
        self.spare = Some(one);
        Ok(())
    }

    /// Refuses a request, without effect on the connection's other requests.
    fn refuse(&mut self, connection: &mut Connection, id: StreamId, why: ErrorCode) {
        self.overhead += 1;
        let _ = connection.recv_stream(id).stop(code(why));
        let _ = connection.send_stream(id).reset(code(why));
    }

    fn uni(&mut self, connection: &mut Connection, id: StreamId) -> Result<(), H3Error> {
        let at = match self.uni.iter().position(|(other, _)| *other == id) {
            Some(at) => at,
            None => {
                self.uni.push((id, UniReader::new(Side::Server)));
                self.uni.len() - 1
            }
        };
        let (has_uni, reader) = (&mut self.has_uni, &mut self.uni[at].1);
        let mut is_unknown = false;
        let end = read(connection, id, |bytes| {
            reader.feed(bytes, |event| match event {
                UniEvent::Kind(
                    kind @ (stream::CONTROL | stream::QPACK_ENCODER | stream::QPACK_DECODER),
                ) => {
                    let bit = 1 << kind;
                    let is_new = *has_uni & bit == 0;
                    *has_uni |= bit;
                    match is_new {
                        true => Ok(()),
                        false => Err(H3Error::new(
                            ErrorCode::StreamCreationError,
                            "a second control stream or QPACK stream",
                        )),
                    }
                }
                UniEvent::Unknown => {
                    is_unknown = true;
                    Ok(())
                }
                _ => Ok(()),
            })
        });
        self.overhead += u64::from(reader.take_overhead());
        let end = end?;
        if is_unknown {
            self.unknown += 1;
            self.overhead += u64::from(self.unknown > UNKNOWN_MAX);
            let why = code(ErrorCode::StreamCreationError);
            let _ = connection.recv_stream(id).stop(why);
            self.uni.swap_remove(at);
            return Ok(());
        }
        if !matches!(end, StreamEnd::Open) {
            let (_, reader) = self.uni.swap_remove(at);
            self.overhead += 1;
            return reader.finish();
        }
        Ok(())
    }

    /// Answers a request, unless its stream has been reset meanwhile.
    pub(crate) fn answer(&mut self, connection: &mut Connection, id: StreamId, page: &H3Page) {
        self.answered += 1;
        self.send(connection, id, Answer::of(page));
    }

    fn send_rest(&mut self, connection: &mut Connection, id: StreamId) {
        if let Some(answer) = self.unsent.remove(&id) {
            self.send(connection, id, answer);
        }
    }

    fn send(&mut self, connection: &mut Connection, id: StreamId, mut answer: Answer) {
        let mut stream = connection.send_stream(id);
        loop {
            match stream.write_chunks(&mut answer.parts) {
                Ok(_) => {
                    let is_sent = answer.parts.iter().all(Bytes::is_empty);
                    if is_sent && !answer.take_piece() {
                        let _ = stream.finish();
                        return;
                    }
                }
                Err(quic::WriteError::Blocked) => {
                    self.unsent.insert(id, answer);
                    return;
                }
                Err(_) => return,
            }
        }
    }
}
