//! Splitting a connection's bytes into frames, RFC 9113 sections 4 and 6.

mod checks;
mod content;
mod event;

use super::head::{Head, LOW_31, flag, kind};
use super::{ErrorCode, FRAME_HEAD, H2Error, PREFACE};

pub use event::{Event, SettingsIter};

/// Most CONTINUATION frames of a header block: more is a flood of them (CVE-2024-27316).
const CONTINUATIONS_MAX: u32 = 16;
/// Memory for incomplete frames and header blocks that is kept for the next ones.
const KEPT_BYTES: usize = 8 * 1024;

const BLOCK_TOO_LONG: H2Error = H2Error::calm("a header block that is too long");
const PADDING_TOO_LONG: H2Error = H2Error::protocol("padding longer than its frame");
const TOO_SHORT: H2Error = H2Error::size("a frame too short for its fields");

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// The preface, of which so many bytes have arrived.
    Preface(usize),
    Head,
    /// The first bytes of a payload, which are collected until all needed ones have arrived.
    Payload {
        head: Head,
        needed: usize,
    },
    /// The length of a DATA frame's padding.
    PadLength(Head),
    /// Content of a DATA frame, at least a byte.
    Content {
        stream: u32,
        left: u32,
        padding: u32,
        /// Padding with its length, while no piece has come.
        flow: u32,
        end_stream: bool,
    },
    /// Bytes to skip, at least one.
    Skipped(u32),
}

/// A header block whose CONTINUATION is awaited.
#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    stream: u32,
    end_stream: bool,
    continuations: u32,
}

/// Splits the bytes of a connection's peer into [`Event`]s. Any split of the input gives the same
/// events, but for the pieces of DATA frames.
///
/// A frame that is complete in one input is not copied.
#[derive(Debug)]
pub struct FrameReader {
    max_frame: u32,
    block_max: usize,
    of_server: bool,
    next: Next,
    /// Whether the first frame has come, which has to be SETTINGS.
    has_settings: bool,
    head: [u8; FRAME_HEAD],
    head_len: usize,
    /// What has arrived of a payload that is incomplete.
    payload: Vec<u8>,
    open: Option<OpenBlock>,
    /// What has arrived of the open block.
    block: Vec<u8>,
    overhead: u32,
    failed: Option<H2Error>,
}

impl FrameReader {
    /// A client's reader. `max_frame`: the SETTINGS_MAX_FRAME_SIZE that this side announced, 16384
    /// if none; `block_max`: most bytes of a header block (all its frames).
    pub fn new(max_frame: u32, block_max: usize) -> Self {
        FrameReader {
            max_frame,
            block_max,
            of_server: false,
            next: Next::Head,
            has_settings: false,
            head: [0; FRAME_HEAD],
            head_len: 0,
            payload: Vec::new(),
            open: None,
            block: Vec::new(),
            overhead: 0,
            failed: None,
        }
    }

    /// A server's reader, which first expects the preface.
    pub fn of_server(max_frame: u32, block_max: usize) -> Self {
        FrameReader {
            of_server: true,
            next: Next::Preface(0),
            ..Self::new(max_frame, block_max)
        }
    }

    /// Reads all of the input. Stops at the first error, of the protocol or from `each`.
    ///
    /// # Errors
    /// An error of the connection; from then on each call returns it again.
    pub fn feed(
        &mut self,
        input: &[u8],
        mut each: impl FnMut(Event<'_>) -> Result<(), H2Error>,
    ) -> Result<(), H2Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let taken = self.take(input, &mut each);
        self.failed = taken.err();
        taken
    }

    /// Number of frames since the last call that carry nothing for a request (SETTINGS, PING, empty
    /// DATA without end, PRIORITY, WINDOW_UPDATE, RST_STREAM, GOAWAY, unknown): for limits against
    /// floods.
    pub fn take_overhead(&mut self) -> u32 {
        std::mem::take(&mut self.overhead)
    }

    #[cfg(test)]
    pub(super) fn bytes_held(&self) -> usize {
        self.payload.capacity() + self.block.capacity()
    }

    fn take<F>(&mut self, mut input: &[u8], each: &mut F) -> Result<(), H2Error>
    where
        F: FnMut(Event<'_>) -> Result<(), H2Error>,
    {
        while !input.is_empty() {
            input = match self.next {
                Next::Head => self.take_head(input, each)?,
                Next::Content { .. } => self.take_content(input, each)?,
                Next::Payload { head, needed } => self.take_payload(head, needed, input, each)?,
                Next::PadLength(head) => {
                    let (&padding, rest) = (&input[0], &input[1..]);
                    self.begin_padded(head, padding, each)?;
                    rest
                }
                Next::Skipped(left) => {
                    let taken = input.len().min(left as usize);
                    self.skip(left - taken as u32);
                    &input[taken..]
                }
                Next::Preface(at) => self.take_preface(at, input)?,
            };
        }
        Ok(())
    }

    fn take_preface<'i>(&mut self, at: usize, input: &'i [u8]) -> Result<&'i [u8], H2Error> {
        let wanted = &PREFACE[at..];
        let (taken, rest) = input.split_at(input.len().min(wanted.len()));
        if !wanted.starts_with(taken) {
            return Err(H2Error::protocol("no HTTP/2 connection preface"));
        }
        self.next = match at + taken.len() {
            at if at < PREFACE.len() => Next::Preface(at),
            _ => Next::Head,
        };
        Ok(rest)
    }

    #[inline]
    fn take_head<'i, F>(&mut self, input: &'i [u8], each: &mut F) -> Result<&'i [u8], H2Error>
    where
        F: FnMut(Event<'_>) -> Result<(), H2Error>,
    {
        if self.head_len == 0
            && let Some((head, rest)) = input.split_first_chunk()
        {
            return self.begin(Head::of(head), rest, each);
        }
        let missing = FRAME_HEAD - self.head_len;
        let (taken, rest) = input.split_at(input.len().min(missing));
        self.head[self.head_len..][..taken.len()].copy_from_slice(taken);
        self.head_len += taken.len();
        if self.head_len < FRAME_HEAD {
            return Ok(rest);
        }
        self.head_len = 0;
        self.begin(Head::of(&self.head), rest, each)
    }

    /// Begins a frame. Returns what is left of the input.
    fn begin<'i, F>(
        &mut self,
        head: Head,
        input: &'i [u8],
        each: &mut F,
    ) -> Result<&'i [u8], H2Error>
    where
        F: FnMut(Event<'_>) -> Result<(), H2Error>,
    {
        self.check(&head)?;
        let needed = match head.kind {
            kind::DATA if head.has(flag::PADDED) => {
                self.next = Next::PadLength(head);
                return Ok(input);
            }
            kind::DATA => {
                self.begin_content(&head, 0, 0, each)?;
                return Ok(input);
            }
            kind::HEADERS
            | kind::CONTINUATION
            | kind::SETTINGS
            | kind::PING
            | kind::RST_STREAM
            | kind::WINDOW_UPDATE => head.length,
            // Debug data is behind it.
            kind::GOAWAY => 8,
            kind::PRIORITY if head.length != 5 => {
                self.skip(head.length);
                each(Event::StreamError {
                    stream: head.stream,
                    code: ErrorCode::FrameSizeError,
                })?;
                return Ok(input);
            }
            kind::PRIORITY => head.length,
            _ => {
                self.skip(head.length);
                return Ok(input);
            }
        };
        self.take_payload(head, needed as usize, input, each)
    }

    fn take_payload<'i, F>(
        &mut self,
        head: Head,
        needed: usize,
        input: &'i [u8],
        each: &mut F,
    ) -> Result<&'i [u8], H2Error>
    where
        F: FnMut(Event<'_>) -> Result<(), H2Error>,
    {
        let missing = needed - self.payload.len();
        let Some((taken, rest)) = input.split_at_checked(missing) else {
            self.payload.extend_from_slice(input);
            self.next = Next::Payload { head, needed };
            return Ok(&[]);
        };
        self.skip(head.length - needed as u32);
        if self.payload.is_empty() {
            self.frame(&head, taken, each)?;
        } else {
            let mut payload = std::mem::take(&mut self.payload);
            payload.extend_from_slice(taken);
            self.frame(&head, &payload, each)?;
            payload.clear();
            payload.shrink_to(KEPT_BYTES);
            self.payload = payload;
        }
        Ok(rest)
    }

    /// Reads a frame other than DATA. `payload` is all of it, or its first 8 bytes for GOAWAY.
    fn frame<F>(&mut self, head: &Head, payload: &[u8], each: &mut F) -> Result<(), H2Error>
    where
        F: FnMut(Event<'_>) -> Result<(), H2Error>,
    {
        let stream = head.stream;
        match head.kind {
            kind::HEADERS => {
                let fragment = fragment(head, payload)?;
                let end_stream = head.has(flag::END_STREAM);
                if head.has(flag::END_HEADERS) {
                    if fragment.len() > self.block_max {
                        return Err(BLOCK_TOO_LONG);
                    }
                    return each(Event::Headers {
                        stream,
                        end_stream,
                        block: fragment,
                    });
                }
                self.open = Some(OpenBlock {
                    stream,
                    end_stream,
                    continuations: 0,
                });
                self.append(fragment)
            }
            kind::CONTINUATION => {
                self.append(payload)?;
                if !head.has(flag::END_HEADERS) {
                    return Ok(());
                }
                let end_stream = self.open.take().is_some_and(|open| open.end_stream);
                each(Event::Headers {
                    stream,
                    end_stream,
                    block: &self.block,
                })?;
                self.block.clear();
                self.block.shrink_to(KEPT_BYTES);
                Ok(())
            }
            kind::SETTINGS => {
                let values = SettingsIter::new(payload);
                checks::settings(values.clone(), self.of_server)?;
                each(Event::Settings {
                    ack: head.has(flag::ACK),
                    values,
                })
            }
            kind::PING => each(Event::Ping {
                ack: head.has(flag::ACK),
                data: *payload.first_chunk().ok_or(TOO_SHORT)?,
            }),
            kind::RST_STREAM => each(Event::Reset {
                stream,
                code: number(payload, 0)?,
            }),
            kind::GOAWAY => each(Event::GoAway {
                last_stream: number(payload, 0)? & LOW_31,
                code: number(payload, 4)?,
            }),
            kind::WINDOW_UPDATE => match (stream, number(payload, 0)? & LOW_31) {
                (0, 0) => Err(H2Error::protocol("WINDOW_UPDATE of 0")),
                (stream, 0) => each(Event::StreamError {
                    stream,
                    code: ErrorCode::ProtocolError,
                }),
                (stream, increment) => each(Event::WindowUpdate { stream, increment }),
            },
            // Priorities mean nothing any more (RFC 9113 5.3.2), except that a stream that depends on
            // itself is a mistake to older peers (RFC 7540 5.3.1).
            kind::PRIORITY if number(payload, 0)? & LOW_31 == stream => each(Event::StreamError {
                stream,
                code: ErrorCode::ProtocolError,
            }),
            _ => Ok(()),
        }
    }

    fn append(&mut self, fragment: &[u8]) -> Result<(), H2Error> {
        if fragment.len() > self.block_max - self.block.len() {
            return Err(BLOCK_TOO_LONG);
        }
        self.block.extend_from_slice(fragment);
        Ok(())
    }

    #[inline]
    fn skip(&mut self, bytes: u32) {
        self.next = match bytes {
            0 => Next::Head,
            left => Next::Skipped(left),
        };
    }

    #[inline]
    fn count_overhead(&mut self) {
        self.overhead = self.overhead.saturating_add(1);
    }
}

/// The part of a header block in HEADERS, without padding and priority.
#[inline]
fn fragment<'p>(head: &Head, payload: &'p [u8]) -> Result<&'p [u8], H2Error> {
    let (padding, rest) = match head.has(flag::PADDED) {
        true => {
            let (&padding, rest) = payload.split_first().ok_or(TOO_SHORT)?;
            (usize::from(padding), rest)
        }
        false => (0, payload),
    };
    let rest = match head.has(flag::PRIORITY) {
        true if number(rest, 0)? & LOW_31 == head.stream => {
            return Err(H2Error::protocol("a stream that depends on itself"));
        }
        true => rest.get(5..).ok_or(TOO_SHORT)?,
        false => rest,
    };
    let length = rest.len().checked_sub(padding).ok_or(PADDING_TOO_LONG)?;
    Ok(&rest[..length])
}

/// A number of 32 bits in a payload.
fn number(payload: &[u8], at: usize) -> Result<u32, H2Error> {
    let bytes = payload.get(at..).and_then(<[u8]>::first_chunk);
    bytes
        .map(|bytes| u32::from_be_bytes(*bytes))
        .ok_or(TOO_SHORT)
}
