//! Finding the end of a message body.

use net::http::{BodySink, Framing, HttpError, MessageBody, is_control, is_token_byte, list};

use super::guarded::{GuardedNames, NameHash, fold, is_forwarded};
use super::{Direction, Refusal};

/// Tracks a body and says how many of the received bytes belong to its message.
///
/// The result does not depend on how the bytes are split. It buffers nothing, and looks only at the
/// lines of the chunked coding, not at content.
///
/// The chunked coding is parsed strictly: lines end with CR LF; extensions and trailers are bounded
/// and without control characters; trailers that frame, route or authenticate a message are
/// refused, since a receiver may merge them into the head (RFC 9110 6.5.1). In requests, these
/// are refused too: trailers that say who the client is, chunks of 2 GiB and more, and sizes padded
/// with whitespace, which some servers send.
#[derive(Clone, Copy, Debug)]
pub struct BodyTracker {
    body: MessageBody,
    strict: ChunkRules,
}

/// How far a body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Bytes of the input that belong to the message.
    pub bytes: usize,
    /// Whether the message is complete; what follows is the next one.
    pub complete: bool,
}

impl BodyTracker {
    /// A tracker for the body after a head.
    pub fn new(direction: Direction, framing: Framing) -> Self {
        BodyTracker {
            body: MessageBody::new(framing),
            strict: ChunkRules::new(direction),
        }
    }

    /// Whether the message is complete.
    pub fn is_complete(&self) -> bool {
        self.body.is_complete()
    }

    /// Whether the message is complete if the connection ends now. If not, it is truncated, and the
    /// receiver has to see that.
    pub fn ends_with_connection(&self) -> bool {
        self.body.ends_with_connection()
    }

    /// Says how many bytes of `input` belong to the message.
    ///
    /// # Errors
    /// When the coding is malformed: forward nothing of `input`, and close both connections.
    #[inline]
    pub fn take(&mut self, input: &[u8]) -> Result<Taken, Refusal> {
        self.take_content(input, |_| {})
    }

    /// The same, but trailers with these names are refused.
    #[inline]
    pub fn take_guarded(&mut self, input: &[u8], names: &GuardedNames) -> Result<Taken, Refusal> {
        self.take_with(input, names, |_| {})
    }

    /// The same, passing decoded slices of `input` to `content`.
    #[inline]
    pub fn take_content(
        &mut self,
        input: &[u8],
        content: impl FnMut(&[u8]),
    ) -> Result<Taken, Refusal> {
        self.take_with(input, &GuardedNames::NONE, content)
    }

    #[inline]
    fn take_with(
        &mut self,
        input: &[u8],
        names: &GuardedNames,
        content: impl FnMut(&[u8]),
    ) -> Result<Taken, Refusal> {
        let mut sink = Sink {
            strict: &mut self.strict,
            names,
            content,
            refusal: None,
        };
        match self.body.take(input, &mut sink) {
            Ok((bytes, complete)) => Ok(Taken { bytes, complete }),
            Err(e) => Err(sink.refusal.unwrap_or(match e {
                HttpError::TrailersTooLarge => Refusal::TrailersTooLarge,
                _ => Refusal::Chunk,
            })),
        }
    }
}

/// Largest chunk of a request: fits a signed 32-bit number, as some servers would truncate a larger
/// one.
const REQUEST_CHUNK_MAX: u64 = i32::MAX as u64;
const RESPONSE_CHUNK_MAX: u64 = i64::MAX as u64;

/// Length of the longest name in `HEAD_ONLY`; only so much of a name is stored.
const NAME_MAX: usize = 20;

/// Fields not allowed as trailers: framing, routing, authentication, and the content's form (RFC
/// 9110 6.5.1).
const HEAD_ONLY: &[u8] = b"authorization,connection,content-encoding,content-length,content-range,\
content-type,cookie,expect,host,keep-alive,proxy-authenticate,proxy-authorization,\
proxy-connection,set-cookie,te,trailer,transfer-encoding,upgrade";

/// State of the current line of the coding.
#[derive(Clone, Copy, Debug)]
struct ChunkRules {
    direction: Direction,
    /// A semicolon, or whitespace, has followed the size.
    extension: bool,
    blank: bool,
    /// The colon of a trailer has come.
    colon: bool,
    /// The start of the trailer's name, folded. `name_bytes` is the length of the whole name.
    name: [u8; NAME_MAX],
    name_bytes: usize,
    hash: NameHash,
}

impl ChunkRules {
    fn new(direction: Direction) -> Self {
        ChunkRules {
            direction,
            extension: false,
            blank: false,
            colon: false,
            name: [0; NAME_MAX],
            name_bytes: 0,
            hash: NameHash::EMPTY,
        }
    }

    fn size(&mut self, size: u64) -> Result<(), Refusal> {
        (self.extension, self.blank) = (false, false);
        let most = match self.direction {
            Direction::Request => REQUEST_CHUNK_MAX,
            Direction::Response => RESPONSE_CHUNK_MAX,
        };
        match size <= most {
            true => Ok(()),
            false => Err(Refusal::Chunk),
        }
    }

    fn behind_size(&mut self, byte: u8) -> Result<(), Refusal> {
        match byte {
            b'\r' if self.blank && !self.extension && self.direction == Direction::Request => {
                Err(Refusal::Chunk)
            }
            b'\r' => Ok(()),
            byte if is_control(byte) => Err(Refusal::Chunk),
            _ => {
                self.extension |= byte == b';';
                self.blank |= matches!(byte, b' ' | b'\t');
                Ok(())
            }
        }
    }

    /// Whether the trailer whose name has been read is allowed only in the head.
    fn is_head_only(&self, names: &GuardedNames) -> bool {
        let whole = self.name.get(..self.name_bytes);
        let begin = &self.name[..self.name_bytes.min(NAME_MAX)];
        let request = self.direction == Direction::Request;
        whole.is_some_and(|name| list(HEAD_ONLY).any(|known| known == name))
            || (request && (is_forwarded(begin) || names.has(self.hash)))
    }

    fn trailer(&mut self, byte: u8, names: &GuardedNames) -> Result<(), Refusal> {
        match (byte, self.colon) {
            (b'\n', true) => {
                (self.colon, self.name_bytes) = (false, 0);
                self.hash = NameHash::EMPTY;
                Ok(())
            }
            (byte, true) if is_control(byte) => Err(Refusal::Trailer),
            (_, true) => Ok(()),
            (b':', false) if self.name_bytes > 0 => {
                self.colon = true;
                match self.is_head_only(names) {
                    true => Err(Refusal::TrailerName),
                    false => Ok(()),
                }
            }
            (byte, false) if is_token_byte(byte) => {
                if let Some(place) = self.name.get_mut(self.name_bytes) {
                    *place = fold(byte);
                }
                self.name_bytes += 1;
                self.hash = self.hash.add(byte);
                Ok(())
            }
            (_, false) => Err(Refusal::Trailer),
        }
    }
}

struct Sink<'s, F> {
    strict: &'s mut ChunkRules,
    names: &'s GuardedNames,
    content: F,
    refusal: Option<Refusal>,
}

impl<F> Sink<'_, F> {
    fn note(&mut self, result: Result<(), Refusal>) -> Result<(), HttpError> {
        result.map_err(|refusal| {
            self.refusal = Some(refusal);
            HttpError::Chunk
        })
    }
}

impl<F: FnMut(&[u8])> BodySink for Sink<'_, F> {
    #[inline]
    fn content(&mut self, bytes: &[u8]) {
        (self.content)(bytes);
    }

    fn chunk_size(&mut self, size: u64) -> Result<(), HttpError> {
        let result = self.strict.size(size);
        self.note(result)
    }

    fn behind_size(&mut self, byte: u8) -> Result<(), HttpError> {
        let result = self.strict.behind_size(byte);
        self.note(result)
    }

    fn trailer(&mut self, byte: u8) -> Result<(), HttpError> {
        let result = self.strict.trailer(byte, self.names);
        self.note(result)
    }
}
