//! The client side of one HTTP/3 connection, over a QUIC connection that the caller drives.

use bytes::Bytes;
use net::h3::{
    ErrorCode, Event as Frame, FrameReader, H3Error, Side, UniEvent, UniReader, frame, qpack,
    stream,
};
use quic::{Connection, Dir, Event, StreamEnd, StreamEvent, StreamId, VarInt, read};

use super::EncodedRequest;
use crate::http::answer_fields::AnswerFields;
use crate::http::session::{Answer, Fields, NO_FIELDS, Overhead, RemainingContent};

/// The most bytes of an answer's field section.
const SECTION_MAX: usize = 64 * 1024;

/// The bytes of a request: its frames, and behind them a body that is not copied.
type Parts = [Bytes; 2];

/// What changed on the connection.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Polled {
    /// The handshake is complete.
    pub(crate) is_established: bool,
    /// Why the connection is over, if it is.
    pub(crate) lost: Option<String>,
}

impl Polled {
    pub(crate) fn add(&mut self, other: Polled) {
        self.is_established |= other.is_established;
        self.lost = self.lost.take().or(other.lost);
    }
}

/// The name of an error code, for messages.
pub(crate) fn error_name(code: u64) -> Option<&'static str> {
    ErrorCode::of(code).map(ErrorCode::name)
}

#[derive(Debug)]
struct Stream {
    /// `None` while the place has no request.
    id: Option<StreamId>,
    frames: FrameReader,
    /// Whether the head of the final answer has arrived.
    has_head: bool,
    /// Whether the request is HEAD.
    is_head_request: bool,
    content: RemainingContent,
}

pub(crate) struct Session {
    streams: Vec<Stream>,
    /// The place of each stream, at the stream's index modulo the length. A later stream may have
    /// overwritten the entry of a slow one, which is then searched for in `streams`.
    places: Vec<u32>,
    active: u32,
    is_ending: bool,
    uni: Vec<(StreamId, UniReader)>,
    /// One bit for each type of critical stream that the server has opened.
    has_uni: u8,
    /// The rest of requests for which the windows had too little room.
    unsent: Vec<(u32, Parts)>,
    text: Vec<u8>,
    overhead: Overhead,
    /// The header fields that were decoded last, if they are kept.
    fields: Option<Box<Fields>>,
}

const FLOOD: H3Error = H3Error::new(
    ErrorCode::ExcessiveLoad,
    "too many frames that carry nothing for a request",
);

fn code(code: ErrorCode) -> VarInt {
    VarInt::from_u32(code as u32)
}

impl Session {
    /// A session with room for this many concurrent streams.
    pub(crate) fn new(places: u32) -> Self {
        let table = (places as usize * 4).next_power_of_two();
        let stream = || Stream {
            id: None,
            frames: FrameReader::of_request(SECTION_MAX),
            has_head: false,
            is_head_request: false,
            content: RemainingContent::default(),
        };
        Self {
            streams: (0..places).map(|_| stream()).collect(),
            places: vec![0; table],
            active: 0,
            is_ending: false,
            uni: Vec::new(),
            has_uni: 0,
            unsent: Vec::new(),
            text: Vec::new(),
            overhead: Overhead::default(),
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

    /// Number of streams whose answers are not complete.
    pub(crate) fn active(&self) -> u32 {
        self.active
    }

    /// Whether no further request can be sent.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Opens no further streams.
    pub(crate) fn end(&mut self) {
        self.is_ending = true;
    }

    /// Sends a request as the stream of a place that has none. Returns false if it cannot now: the
    /// server allows no further stream, or the connection takes no further request.
    pub(crate) fn request(
        &mut self,
        connection: &mut Connection,
        place: u32,
        request: &EncodedRequest,
    ) -> bool {
        let frames = || [request.frames.clone(), Bytes::new()];
        self.request_of(connection, place, frames, request.is_head)
    }

    /// The same, of frames that are made once there is a stream for them.
    pub(crate) fn request_of(
        &mut self,
        connection: &mut Connection,
        place: u32,
        frames: impl FnOnce() -> Parts,
        is_head: bool,
    ) -> bool {
        if self.is_ending {
            return false;
        }
        let Some(id) = connection.streams().open(Dir::Bi) else {
            return false;
        };
        self.active += 1;
        let one = &mut self.streams[place as usize];
        one.id = Some(id);
        one.has_head = false;
        one.is_head_request = is_head;
        one.content = RemainingContent::default();
        one.frames.restart();
        let at = self.at(id);
        self.places[at] = place;
        self.send(connection, place, frames());
        true
    }

    /// Sends the bytes of a request, the last of which ends the stream.
    fn send(&mut self, connection: &mut Connection, place: u32, mut parts: Parts) {
        let Some(id) = self.streams[place as usize].id else {
            return;
        };
        let mut stream = connection.send_stream(id);
        match stream.write_chunks(&mut parts) {
            Ok(_) if parts.iter().all(Bytes::is_empty) => {
                let _ = stream.finish();
            }
            Ok(_) | Err(quic::WriteError::Blocked) => {
                self.unsent.push((place, parts));
            }
            // The server wants no more of the request, but still answers it.
            Err(_) => {}
        }
    }

    /// Resets the stream of a request that has been given up.
    pub(crate) fn cancel(&mut self, connection: &mut Connection, place: u32) {
        self.reset(connection, place, ErrorCode::RequestCancelled);
    }

    fn reset(&mut self, connection: &mut Connection, place: u32, why: ErrorCode) {
        if let Some(id) = self.streams[place as usize].id {
            let why = code(why);
            let _ = connection.recv_stream(id).stop(why);
            let _ = connection.send_stream(id).reset(why);
            self.free(place);
        }
    }

    fn at(&self, id: StreamId) -> usize {
        id.index() as usize & (self.places.len() - 1)
    }

    fn free(&mut self, place: u32) {
        self.streams[place as usize].id = None;
        self.active -= 1;
        if !self.unsent.is_empty() {
            self.unsent.retain(|(other, _)| *other != place);
        }
    }

    fn place(&self, id: StreamId) -> Option<u32> {
        let place = self.places[self.at(id)];
        if self.streams[place as usize].id == Some(id) {
            return Some(place);
        }
        let found = self.streams.iter().position(|one| one.id == Some(id));
        found.map(|place| place as u32)
    }

    /// Handles the events of the connection.
    ///
    /// # Errors
    /// When the server breaks a rule of the connection, which has to be closed with the code.
    pub(crate) fn poll(
        &mut self,
        connection: &mut Connection,
        mut each: impl FnMut(Answer<'_>),
    ) -> Result<Polled, H3Error> {
        let mut polled = Polled::default();
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => {
                    polled.is_established = true;
                    begin(connection);
                }
                Event::ConnectionLost { reason } => {
                    polled.lost = Some(quic::reason(&reason, error_name));
                }
                Event::Stream(StreamEvent::Readable { id }) if id.dir() == Dir::Bi => {
                    self.answer(connection, id, &mut each)?;
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    self.uni(connection, id, &mut each)?;
                }
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    while let Some(id) = connection.streams().accept(Dir::Uni) {
                        self.uni(connection, id, &mut each)?;
                    }
                }
                Event::Stream(StreamEvent::Writable { id }) => {
                    let place = self.place(id);
                    let found = self.unsent.iter().position(|(of, _)| Some(*of) == place);
                    if let Some(at) = found {
                        let (place, parts) = self.unsent.swap_remove(at);
                        self.send(connection, place, parts);
                    }
                }
                Event::Stream(StreamEvent::Stopped { id, .. }) => {
                    if let Some(place) = self.place(id) {
                        self.unsent.retain(|(other, _)| *other != place);
                    }
                    let why = code(ErrorCode::NoError);
                    let _ = connection.send_stream(id).reset(why);
                }
                _ => {}
            }
        }
        Ok(polled)
    }

    fn answer(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        each: &mut impl FnMut(Answer<'_>),
    ) -> Result<(), H3Error> {
        let Some(place) = self.place(id) else {
            // The request was given up.
            return Ok(());
        };
        let (one, text) = (&mut self.streams[place as usize], &mut self.text);
        let mut fields = self.fields.as_deref_mut();
        let (frames, has_head) = (&mut one.frames, &mut one.has_head);
        let (content, is_head_request) = (&mut one.content, one.is_head_request);
        let mut wrong = None;
        let end = read(connection, id, |bytes| {
            frames.feed(bytes, |event| match event {
                _ if wrong.is_some() => Ok(()),
                Frame::Headers(section) if !*has_head => {
                    let head = read_fields(section, text, fields.as_deref_mut())?;
                    let read = head.head().and_then(|status| match status {
                        // Informational answers come before the final one.
                        100..200 => Ok(None),
                        _ => Ok(Some((status, head.content(is_head_request)?))),
                    });
                    match read {
                        Ok(None) => {}
                        Ok(Some((status, announced))) => {
                            (*has_head, *content) = (true, announced);
                            let bytes = section.len() as u64;
                            each(Answer::Head {
                                place,
                                status,
                                bytes,
                                fields: fields.as_deref().unwrap_or(&NO_FIELDS),
                            });
                        }
                        Err(what) => wrong = Some(what),
                    }
                    Ok(())
                }
                Frame::Data(_) if !*has_head => Err(H3Error::new(
                    ErrorCode::FrameUnexpected,
                    "DATA before the final answer's head",
                )),
                Frame::Data(bytes) => {
                    match content.take(bytes.len()) {
                        Ok(()) => each(Answer::Body { place, bytes }),
                        Err(what) => wrong = Some(what),
                    }
                    Ok(())
                }
                // Trailers.
                Frame::Headers(section) => {
                    let trailers = read_fields(section, text, fields.as_deref_mut())?;
                    wrong = trailers.wrong_trailers();
                    if wrong.is_none()
                        && let Some(fields) = fields.as_deref()
                    {
                        each(Answer::Trailers { place, fields });
                    }
                    Ok(())
                }
                Frame::Control { .. } => Ok(()),
            })
        });
        let one = &mut self.streams[place as usize];
        let is_flood = self.overhead.add(one.frames.take_overhead());
        let end = end?;
        if is_flood {
            return Err(FLOOD);
        }
        if end == StreamEnd::Finished && one.has_head {
            wrong = wrong.or(one.content.end().err());
        }
        match end {
            StreamEnd::Open | StreamEnd::Finished if wrong.is_some() => {
                self.reset(connection, place, ErrorCode::MessageError);
                let what = wrong.unwrap_or_default();
                each(Answer::Malformed { place, what });
            }
            StreamEnd::Open => {}
            StreamEnd::Reset(code) => {
                self.free(place);
                each(match code == ErrorCode::RequestRejected as u64 {
                    true => Answer::NotProcessed { place },
                    false => Answer::Reset { place, code },
                });
            }
            StreamEnd::Finished => {
                let one = &self.streams[place as usize];
                one.frames.finish()?;
                let has_head = one.has_head;
                self.free(place);
                if has_head {
                    self.overhead.offset();
                }
                each(match has_head {
                    true => Answer::End { place },
                    false => Answer::Reset {
                        place,
                        code: ErrorCode::MessageError as u64,
                    },
                });
            }
        }
        Ok(())
    }

    fn uni(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        each: &mut impl FnMut(Answer<'_>),
    ) -> Result<(), H3Error> {
        let at = match self.uni.iter().position(|(other, _)| *other == id) {
            Some(at) => at,
            None => {
                self.uni.push((id, UniReader::new(Side::Client)));
                self.uni.len() - 1
            }
        };
        let (has_uni, reader) = (&mut self.has_uni, &mut self.uni[at].1);
        let (mut last, mut is_unknown) = (None, false);
        let end = read(connection, id, |bytes| {
            reader.feed(bytes, |event| {
                match event {
                    UniEvent::Kind(kind) if kind <= stream::QPACK_DECODER => {
                        let bit = 1 << kind;
                        let is_second = *has_uni & bit != 0;
                        *has_uni |= bit;
                        if is_second {
                            return Err(H3Error::new(
                                ErrorCode::StreamCreationError,
                                "a second control stream or QPACK stream",
                            ));
                        }
                    }
                    UniEvent::Unknown => is_unknown = true,
                    UniEvent::GoAway(id) => last = Some(id),
                    _ => {}
                }
                Ok(())
            })
        })?;
        if self.overhead.add(reader.take_overhead()) {
            return Err(FLOOD);
        }
        if is_unknown {
            let why = code(ErrorCode::StreamCreationError);
            let _ = connection.recv_stream(id).stop(why);
            self.uni.swap_remove(at);
        } else if end != StreamEnd::Open {
            self.uni.swap_remove(at).1.finish()?;
        }
        if let Some(last) = last {
            self.go_away(connection, last, each);
        }
        Ok(())
    }

    /// Requests from the stream with this ID on are not processed.
    fn go_away(
        &mut self,
        connection: &mut Connection,
        first: u64,
        each: &mut impl FnMut(Answer<'_>),
    ) {
        self.is_ending = true;
        for place in 0..self.streams.len() as u32 {
            let id = self.streams[place as usize].id;
            if id.is_some_and(|id| u64::from(id) >= first) {
                self.cancel(connection, place);
                each(Answer::NotProcessed { place });
            }
        }
    }
}

/// Opens the control stream. All settings have their defaults: no dynamic table of QPACK.
fn begin(connection: &mut Connection) {
    let mut out = Vec::new();
    frame::control(&mut out, &[]);
    if let Some(id) = connection.streams().open(Dir::Uni) {
        // These few bytes fit into any window that RFC 9114 6.2 recommends.
        let _ = connection.send_stream(id).write(&out);
    }
}

/// Reads a field section of an answer.
fn read_fields(
    section: &[u8],
    text: &mut Vec<u8>,
    mut fields: Option<&mut Fields>,
) -> Result<AnswerFields, H3Error> {
    let mut read = AnswerFields::default();
    if let Some(fields) = &mut fields {
        fields.clear();
    }
    qpack::decode(section, SECTION_MAX, text, |name, value| {
        read.take(name, value);
        if let Some(fields) = &mut fields {
            fields.push(name, value);
        }
        Ok(())
    })?;
    Ok(read)
}
