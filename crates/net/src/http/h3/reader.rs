//! Splits the bytes of a stream into frames, RFC 9114 sections 4.1 and 7.

use super::{ErrorCode, H3Error, kind, varint};

pub(super) const MISSING_SETTINGS: H3Error = H3Error::new(
    ErrorCode::MissingSettings,
    "a control stream that does not begin with SETTINGS",
);

/// The longest frame head: two integers.
const HEAD_MAX: usize = 16;
/// How much memory for incomplete frames is kept for later ones.
const KEPT_BYTES: usize = 8 * 1024;

/// A frame of a stream, or a piece of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// HEADERS: a field section as [`super::qpack`] codes it.
    Headers(&'a [u8]),
    /// A piece of DATA, at least one byte.
    Data(&'a [u8]),
    /// A whole frame of a control stream.
    Control {
        /// SETTINGS, GOAWAY, MAX_PUSH_ID or CANCEL_PUSH.
        kind: u64,
        payload: &'a [u8],
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Head,
    /// A payload that is buffered until it is complete.
    Payload {
        kind: u64,
        len: usize,
    },
    /// Remaining bytes of DATA, at least one.
    Content(u64),
    /// Remaining bytes to skip, at least one.
    Skipped(u64),
}

/// The kind of stream, which determines the frames it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Request,
    Control,
}

/// Splits the bytes of one stream into [`Event`]s. The events do not depend on how the input is
/// split, except for the pieces of DATA frames. A frame that is complete in one input is not
/// copied.
#[derive(Debug)]
pub struct FrameReader {
    of: Of,
    payload_max: usize,
    next: Next,
    /// The part of an incomplete head or payload that has arrived.
    held: Vec<u8>,
    overhead: u32,
    /// Whether HEADERS have begun, or SETTINGS on a control stream.
    has_headers: bool,
}

impl FrameReader {
    /// A reader of a request stream. `section_max`: the most bytes of a field section.
    pub fn of_request(section_max: usize) -> Self {
        Self::new(Of::Request, section_max)
    }

    pub(super) fn of_control(payload_max: usize) -> Self {
        Self::new(Of::Control, payload_max)
    }

    fn new(of: Of, payload_max: usize) -> Self {
        Self {
            of,
            payload_max,
            next: Next::Head,
            held: Vec::new(),
            overhead: 0,
            has_headers: false,
        }
    }

    /// Begins another stream of the same kind, and reuses the memory.
    pub fn restart(&mut self) {
        self.next = Next::Head;
        self.held.clear();
        self.held.shrink_to(KEPT_BYTES);
        self.has_headers = false;
    }

    /// Number of frames without meaning (empty DATA and unknown types) since the last call, for
    /// limits against floods.
    pub fn take_overhead(&mut self) -> u32 {
        std::mem::take(&mut self.overhead)
    }

    /// Reads all of the input. Stops at the first error of the protocol or of `each`.
    ///
    /// # Errors
    /// An error of the connection.
    pub fn feed(
        &mut self,
        mut input: &[u8],
        mut each: impl FnMut(Event<'_>) -> Result<(), H3Error>,
    ) -> Result<(), H3Error> {
        while !input.is_empty() {
            input = match self.next {
                Next::Head => self.take_head(input, &mut each)?,
                Next::Payload { kind, len } => self.take_payload(kind, len, input, &mut each)?,
                Next::Content(left) => {
                    let (piece, rest) = split(input, left);
                    self.next = after(left - piece.len() as u64, Next::Content);
                    each(Event::Data(piece))?;
                    rest
                }
                Next::Skipped(left) => {
                    let (piece, rest) = split(input, left);
                    self.next = after(left - piece.len() as u64, Next::Skipped);
                    rest
                }
            };
        }
        Ok(())
    }

    /// Tells the reader that the stream has ended.
    ///
    /// # Errors
    /// If a frame is incomplete.
    pub fn finish(&self) -> Result<(), H3Error> {
        match self.next == Next::Head && self.held.is_empty() {
            true => Ok(()),
            false => Err(H3Error::frame("a stream that ends within a frame")),
        }
    }

    #[cfg(test)]
    pub(super) fn bytes_held(&self) -> usize {
        self.held.capacity()
    }

    fn take_head<'i>(
        &mut self,
        input: &'i [u8],
        each: &mut impl FnMut(Event<'_>) -> Result<(), H3Error>,
    ) -> Result<&'i [u8], H3Error> {
        if self.held.is_empty()
            && let Some((kind, len, rest)) = head(input)
        {
            return self.begin(kind, len, rest, each);
        }
        let before = self.held.len();
        let more = input.len().min(HEAD_MAX - before);
        self.held.extend_from_slice(&input[..more]);
        let Some((kind, len, rest)) = head(&self.held) else {
            // A head of 16 bytes is complete, so all of the input was taken.
            return Ok(&input[more..]);
        };
        let taken = self.held.len() - rest.len() - before;
        self.held.clear();
        self.begin(kind, len, &input[taken..], each)
    }

    /// Begins a frame. Returns the rest of the input.
    fn begin<'i>(
        &mut self,
        kind: u64,
        len: u64,
        input: &'i [u8],
        each: &mut impl FnMut(Event<'_>) -> Result<(), H3Error>,
    ) -> Result<&'i [u8], H3Error> {
        let is_collected = self.check(kind)?;
        if is_collected {
            let Some(len) = usize::try_from(len)
                .ok()
                .filter(|&len| len <= self.payload_max)
            else {
                return Err(H3Error::new(
                    super::ErrorCode::ExcessiveLoad,
                    "a frame that is too long",
                ));
            };
            return self.take_payload(kind, len, input, each);
        }
        if kind != kind::DATA || len == 0 {
            self.overhead = self.overhead.saturating_add(1);
        }
        self.next = match kind {
            kind::DATA => after(len, Next::Content),
            _ => after(len, Next::Skipped),
        };
        Ok(input)
    }

    /// Checks whether the stream may have this type of frame. Returns whether its payload is
    /// buffered.
    fn check(&mut self, kind: u64) -> Result<bool, H3Error> {
        if kind::is_reserved(kind) {
            return Err(H3Error::unexpected("a frame of HTTP/2"));
        }
        match (self.of, kind) {
            (Of::Request, kind::HEADERS) => {
                self.has_headers = true;
                Ok(true)
            }
            (Of::Request, kind::DATA) if !self.has_headers => {
                Err(H3Error::unexpected("DATA before HEADERS"))
            }
            // This side never allows pushes.
            (Of::Request, kind::PUSH_PROMISE) => Err(H3Error::new(
                super::ErrorCode::IdError,
                "PUSH_PROMISE without MAX_PUSH_ID",
            )),
            (
                Of::Request,
                kind::SETTINGS | kind::GOAWAY | kind::MAX_PUSH_ID | kind::CANCEL_PUSH,
            ) => Err(H3Error::unexpected("a control frame on a request stream")),
            (Of::Control, kind) if !self.has_headers && kind != kind::SETTINGS => {
                Err(MISSING_SETTINGS)
            }
            (Of::Control, kind::DATA | kind::HEADERS | kind::PUSH_PROMISE) => {
                Err(H3Error::unexpected("a request frame on the control stream"))
            }
            (Of::Control, kind::SETTINGS) => {
                self.has_headers = true;
                Ok(true)
            }
            (Of::Control, _) => Ok(matches!(
                kind,
                kind::GOAWAY | kind::MAX_PUSH_ID | kind::CANCEL_PUSH
            )),
            (Of::Request, _) => Ok(false),
        }
    }

    fn take_payload<'i>(
        &mut self,
        kind: u64,
        len: usize,
        input: &'i [u8],
        each: &mut impl FnMut(Event<'_>) -> Result<(), H3Error>,
    ) -> Result<&'i [u8], H3Error> {
        let missing = len - self.held.len();
        let Some((taken, rest)) = input.split_at_checked(missing) else {
            self.held.extend_from_slice(input);
            self.next = Next::Payload { kind, len };
            return Ok(&[]);
        };
        self.next = Next::Head;
        let event = |payload| match kind {
            kind::HEADERS => Event::Headers(payload),
            kind => Event::Control { kind, payload },
        };
        if self.held.is_empty() {
            each(event(taken))?;
            return Ok(rest);
        }
        self.held.extend_from_slice(taken);
        let given = each(event(&self.held));
        self.held.clear();
        self.held.shrink_to(KEPT_BYTES);
        given.map(|()| rest)
    }
}

/// Type and length of a frame, and the rest of the input.
#[inline]
fn head(input: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (kind, rest) = varint::read(input)?;
    let (len, rest) = varint::read(rest)?;
    Some((kind, len, rest))
}

fn split(input: &[u8], most: u64) -> (&[u8], &[u8]) {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    input.split_at(input.len().min(most))
}

fn after(left: u64, next: fn(u64) -> Next) -> Next {
    match left {
        0 => Next::Head,
        left => next(left),
    }
}
