//! A peer's unidirectional streams, RFC 9114 section 6.2 and RFC 9204 section 4.2.

use super::{ErrorCode, Event, FrameReader, H3Error, kind, settings, stream, varint};

/// The most bytes of a frame on a control stream.
const CONTROL_MAX: usize = 4096;
/// The most bytes of a QPACK decoder's instruction.
const INSTRUCTION_MAX: usize = 10;

/// Which side reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// What a peer says on its unidirectional streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UniEvent {
    /// The stream's type, one of [`stream`].
    Kind(u64),
    Setting {
        id: u64,
        value: u64,
    },
    /// All settings have arrived.
    Settled,
    /// Requests from this stream on are not processed; read by a server: pushes from this ID on.
    GoAway(u64),
    /// The type is unknown; the rest of the stream should not be read.
    Unknown,
}

/// Reads one of a peer's unidirectional streams.
#[derive(Debug)]
pub struct UniReader {
    side: Side,
    kind: Option<u64>,
    /// The part of the type or of an instruction that has arrived.
    held: Vec<u8>,
    frames: FrameReader,
    has_settings: bool,
    /// The ID of the last GOAWAY; later ones must not exceed it.
    last: u64,
}

fn is_critical(kind: Option<u64>) -> bool {
    matches!(
        kind,
        Some(stream::CONTROL | stream::QPACK_ENCODER | stream::QPACK_DECODER)
    )
}

impl UniReader {
    /// A reader for a stream whose type has not arrived yet.
    pub fn new(side: Side) -> Self {
        Self {
            side,
            kind: None,
            held: Vec::new(),
            frames: FrameReader::of_control(CONTROL_MAX),
            has_settings: false,
            last: varint::MAX,
        }
    }

    /// The stream's type, once it is known.
    pub fn kind(&self) -> Option<u64> {
        self.kind
    }

    /// Number of frames without meaning since the last call.
    pub fn take_overhead(&mut self) -> u32 {
        self.frames.take_overhead()
    }

    /// Reads all of the input.
    ///
    /// # Errors
    /// An error of the connection, from the protocol or from `each`.
    pub fn feed(
        &mut self,
        mut input: &[u8],
        mut each: impl FnMut(UniEvent) -> Result<(), H3Error>,
    ) -> Result<(), H3Error> {
        if self.kind.is_none() {
            let before = self.held.len();
            let more = input.len().min(8 - before);
            self.held.extend_from_slice(&input[..more]);
            let Some((kind, rest)) = varint::read(&self.held) else {
                return Ok(());
            };
            input = &input[self.held.len() - rest.len() - before..];
            self.held.clear();
            self.kind = Some(kind);
            each(UniEvent::Kind(kind))?;
            match (kind, self.side) {
                (stream::PUSH, Side::Client) => {
                    return Err(H3Error::new(
                        ErrorCode::IdError,
                        "a push without MAX_PUSH_ID",
                    ));
                }
                (stream::PUSH, Side::Server) => {
                    return Err(H3Error::new(
                        ErrorCode::StreamCreationError,
                        "a push from a client",
                    ));
                }
                _ if !is_critical(self.kind) => each(UniEvent::Unknown)?,
                _ => {}
            }
        }
        match self.kind {
            Some(stream::CONTROL) => self.control(input, &mut each),
            Some(stream::QPACK_ENCODER) => encoder(input),
            Some(stream::QPACK_DECODER) => self.decoder(input),
            _ => Ok(()),
        }
    }

    /// Tells the reader that the stream has ended or was reset.
    ///
    /// # Errors
    /// If the connection cannot exist without the stream.
    pub fn finish(&self) -> Result<(), H3Error> {
        match is_critical(self.kind) {
            true => Err(H3Error::new(
                ErrorCode::ClosedCriticalStream,
                "the end of a control stream or of a QPACK stream",
            )),
            false => Ok(()),
        }
    }

    fn control(
        &mut self,
        input: &[u8],
        each: &mut impl FnMut(UniEvent) -> Result<(), H3Error>,
    ) -> Result<(), H3Error> {
        // Taken out, as its events borrow from it while the rest of `self` handles them.
        let mut frames = std::mem::replace(&mut self.frames, FrameReader::of_control(0));
        let fed = frames.feed(input, |event| match event {
            Event::Control { kind, payload } => self.frame(kind, payload, each),
            _ => Ok(()),
        });
        self.frames = frames;
        fed
    }

    fn frame(
        &mut self,
        kind: u64,
        payload: &[u8],
        each: &mut impl FnMut(UniEvent) -> Result<(), H3Error>,
    ) -> Result<(), H3Error> {
        if kind == kind::SETTINGS {
            if std::mem::replace(&mut self.has_settings, true) {
                return Err(H3Error::unexpected("a second SETTINGS"));
            }
            return settings_of(payload, each);
        }
        let id = match varint::read(payload) {
            Some((id, [])) => id,
            _ => {
                return Err(H3Error::frame(
                    "a frame whose length is not that of its fields",
                ));
            }
        };
        match (kind, self.side) {
            (kind::GOAWAY, side) => {
                let is_request = id % 4 == 0 || side == Side::Server;
                if id > self.last || !is_request {
                    return Err(H3Error::new(
                        ErrorCode::IdError,
                        "GOAWAY with an ID that is not a request's, or above an earlier one",
                    ));
                }
                self.last = id;
                each(UniEvent::GoAway(id))
            }
            (kind::MAX_PUSH_ID, Side::Client) => {
                Err(H3Error::unexpected("MAX_PUSH_ID from a server"))
            }
            (kind::CANCEL_PUSH, _) => Err(H3Error::new(
                ErrorCode::IdError,
                "CANCEL_PUSH for a push that was not promised",
            )),
            _ => Ok(()),
        }
    }

    /// The decoder's instructions. Without a dynamic table there is nothing to acknowledge, so only
    /// stream cancellations are allowed.
    fn decoder(&mut self, input: &[u8]) -> Result<(), H3Error> {
        for &byte in input {
            let is_begun = !self.held.is_empty();
            if !is_begun && byte >> 6 != 1 {
                return Err(H3Error::new(
                    ErrorCode::QpackDecoderStreamError,
                    "a QPACK acknowledgement without a dynamic table",
                ));
            }
            let is_last = match is_begun {
                true => byte & 0x80 == 0,
                false => byte & 0x3f != 0x3f,
            };
            self.held.push(byte);
            if is_last {
                self.held.clear();
            } else if self.held.len() > INSTRUCTION_MAX {
                return Err(H3Error::new(
                    ErrorCode::QpackDecoderStreamError,
                    "a QPACK integer that is too large",
                ));
            }
        }
        Ok(())
    }
}

/// The encoder's instructions. With a capacity of 0 it can set only that capacity.
fn encoder(input: &[u8]) -> Result<(), H3Error> {
    match input.iter().all(|byte| *byte == 0x20) {
        true => Ok(()),
        false => Err(H3Error::new(
            ErrorCode::QpackEncoderStreamError,
            "an entry for a dynamic table of capacity 0",
        )),
    }
}

fn settings_of(
    mut payload: &[u8],
    each: &mut impl FnMut(UniEvent) -> Result<(), H3Error>,
) -> Result<(), H3Error> {
    let mut seen = Vec::new();
    while !payload.is_empty() {
        let pair = varint::read(payload)
            .and_then(|(id, rest)| varint::read(rest).map(|(value, rest)| (id, value, rest)));
        let Some((id, value, rest)) = pair else {
            return Err(H3Error::frame("SETTINGS that end within a setting"));
        };
        if settings::is_reserved(id) || seen.contains(&id) {
            return Err(H3Error::new(
                ErrorCode::SettingsError,
                "a setting of HTTP/2, or one that comes twice",
            ));
        }
        // More would slow down the search for duplicates.
        if seen.len() < 64 {
            seen.push(id);
        }
        each(UniEvent::Setting { id, value })?;
        payload = rest;
    }
    each(UniEvent::Settled)
}
