//! Bodies, which arrive in pieces.

use super::{Framing, HttpError};

/// Receives the parts of a body while it is parsed.
///
/// A closure that takes slices receives the content only. A relay, which forwards the body in its
/// coding, can inspect the lines of the chunked coding too, and refuse them.
pub trait BodySink {
    /// Bytes of the content.
    fn content(&mut self, bytes: &[u8]);

    /// The size of a chunk, once its digits are complete; 0 in the last one.
    ///
    /// # Errors
    /// To stop parsing.
    #[inline]
    fn chunk_size(&mut self, _size: u64) -> Result<(), HttpError> {
        Ok(())
    }

    /// A byte behind a chunk's size, up to and with the carriage return that ends the line.
    ///
    /// # Errors
    /// To stop parsing.
    #[inline]
    fn behind_size(&mut self, _byte: u8) -> Result<(), HttpError> {
        Ok(())
    }

    /// A byte of a trailer line; its end is one line feed.
    ///
    /// # Errors
    /// To stop parsing.
    #[inline]
    fn trailer(&mut self, _byte: u8) -> Result<(), HttpError> {
        Ok(())
    }
}

impl<F: FnMut(&[u8])> BodySink for F {
    #[inline]
    fn content(&mut self, bytes: &[u8]) {
        self(bytes);
    }
}

/// A body that is parsed piece by piece. It holds no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageBody(Body);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Nothing,
    Length(u64),
    Chunked(Chunk),
    UntilClose,
}

impl MessageBody {
    /// The body behind a head.
    pub fn new(framing: Framing) -> MessageBody {
        MessageBody(match framing {
            Framing::None | Framing::Length(0) => Body::Nothing,
            Framing::Length(left) => Body::Length(left),
            Framing::Chunked => Body::Chunked(Chunk::Size { size: 0, digits: 0 }),
            Framing::UntilClose => Body::UntilClose,
        })
    }

    pub fn is_complete(&self) -> bool {
        self.0 == Body::Nothing
    }

    /// Whether it is complete if the connection closes now.
    pub fn ends_with_connection(&self) -> bool {
        matches!(self.0, Body::Nothing | Body::UntilClose)
    }

    /// Passes over the bytes of the body at the front of `input`, showing them to `sink`. Returns
    /// how many belong to it, and whether it is complete; nothing more belongs to it then.
    ///
    /// # Errors
    /// When the chunked coding is malformed or the sink refuses something. Parsing must stop then.
    pub fn take(
        &mut self,
        input: &[u8],
        sink: &mut impl BodySink,
    ) -> Result<(usize, bool), HttpError> {
        let (taken, complete) = match &mut self.0 {
            Body::Nothing => (0, true),
            Body::Length(left) => {
                let n = input
                    .len()
                    .min(usize::try_from(*left).unwrap_or(usize::MAX));
                if n > 0 {
                    sink.content(&input[..n]);
                }
                *left -= n as u64;
                (n, *left == 0)
            }
            Body::UntilClose => {
                if !input.is_empty() {
                    sink.content(input);
                }
                (input.len(), false)
            }
            Body::Chunked(chunk) => take_chunks(chunk, input, sink)?,
        };
        if complete {
            self.0 = Body::Nothing;
        }
        Ok((taken, complete))
    }
}

/// The state in the chunked coding before the next byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// In a size: what it is so far, and digits seen.
    Size {
        size: u64,
        digits: u8,
    },
    /// In blanks behind a size; `line` counts the bytes behind it.
    Blanks {
        size: u64,
        line: u16,
    },
    /// In an extension of a size line.
    Extension {
        size: u64,
        line: u16,
    },
    /// After the carriage return of a size line.
    SizeEnd {
        size: u64,
    },
    Data {
        left: u64,
    },
    /// Before the carriage return after the data.
    DataEnd,
    /// Before the line feed after the data.
    DataEndLf,
    /// At the start of a trailer line, or the last empty line.
    Trailer {
        bytes: u16,
    },
    TrailerLine {
        bytes: u16,
    },
    /// After the carriage return of a trailer line.
    TrailerLf {
        bytes: u16,
    },
    /// After the carriage return of the last empty line.
    LastLf,
}

/// Most bytes behind the size in a size line.
const LINE_MAX: u16 = 4096;
/// Most bytes of all trailer lines together, their ends left out.
const TRAILER_MAX: u16 = 16 * 1024;

fn take_chunks(
    chunk: &mut Chunk,
    input: &[u8],
    sink: &mut impl BodySink,
) -> Result<(usize, bool), HttpError> {
    let mut at = 0;
    while at < input.len() {
        if let Chunk::Data { left } = chunk {
            let n = (input.len() - at).min(usize::try_from(*left).unwrap_or(usize::MAX));
            sink.content(&input[at..at + n]);
            at += n;
            *left -= n as u64;
            if *left == 0 {
                *chunk = Chunk::DataEnd;
            }
            continue;
        }
        let byte = input[at];
        at += 1;
        *chunk = match *chunk {
            Chunk::Size { size, digits } => {
                let next = size_byte(byte, size, digits)?;
                if !matches!(next, Chunk::Size { .. }) {
                    sink.chunk_size(size)?;
                    sink.behind_size(byte)?;
                }
                next
            }
            Chunk::Blanks { size, .. } | Chunk::Extension { size, .. } if byte == b'\r' => {
                sink.behind_size(byte)?;
                Chunk::SizeEnd { size }
            }
            Chunk::Blanks { line: LINE_MAX, .. } | Chunk::Extension { line: LINE_MAX, .. } => {
                return Err(HttpError::Chunk);
            }
            Chunk::Blanks { size, line } => {
                sink.behind_size(byte)?;
                let line = line + 1;
                match byte {
                    b' ' | b'\t' => Chunk::Blanks { size, line },
                    b';' => Chunk::Extension { size, line },
                    _ => return Err(HttpError::Chunk),
                }
            }
            Chunk::Extension { .. } if matches!(byte, b'\n' | 0) => return Err(HttpError::Chunk),
            Chunk::Extension { size, line } => {
                sink.behind_size(byte)?;
                Chunk::Extension {
                    size,
                    line: line + 1,
                }
            }
            Chunk::SizeEnd { size } => match (byte, size) {
                (b'\n', 0) => Chunk::Trailer { bytes: 0 },
                (b'\n', left) => Chunk::Data { left },
                _ => return Err(HttpError::Chunk),
            },
            Chunk::Data { .. } => Chunk::DataEnd,
            Chunk::DataEnd if byte == b'\r' => Chunk::DataEndLf,
            Chunk::DataEndLf if byte == b'\n' => Chunk::Size { size: 0, digits: 0 },
            Chunk::DataEnd | Chunk::DataEndLf => return Err(HttpError::Chunk),
            Chunk::Trailer { .. } if byte == b'\r' => Chunk::LastLf,
            Chunk::TrailerLine { bytes } if byte == b'\r' => Chunk::TrailerLf { bytes },
            Chunk::TrailerLf { bytes } if byte == b'\n' => {
                sink.trailer(byte)?;
                Chunk::Trailer { bytes }
            }
            // A line ends with both bytes; one alone could be read in two ways.
            Chunk::Trailer { .. } | Chunk::TrailerLine { .. } if byte == b'\n' => {
                return Err(HttpError::Chunk);
            }
            Chunk::TrailerLf { .. } => return Err(HttpError::Chunk),
            Chunk::Trailer { bytes: TRAILER_MAX } | Chunk::TrailerLine { bytes: TRAILER_MAX } => {
                return Err(HttpError::TrailersTooLarge);
            }
            Chunk::Trailer { bytes } | Chunk::TrailerLine { bytes } => {
                sink.trailer(byte)?;
                Chunk::TrailerLine { bytes: bytes + 1 }
            }
            Chunk::LastLf if byte == b'\n' => return Ok((at, true)),
            Chunk::LastLf => return Err(HttpError::Chunk),
        };
    }
    Ok((at, false))
}

fn size_byte(byte: u8, size: u64, digits: u8) -> Result<Chunk, HttpError> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        b'\r' if digits > 0 => return Ok(Chunk::SizeEnd { size }),
        b';' if digits > 0 => return Ok(Chunk::Extension { size, line: 1 }),
        b' ' | b'\t' if digits > 0 => return Ok(Chunk::Blanks { size, line: 1 }),
        _ => return Err(HttpError::Chunk),
    };
    // Sixteen hexadecimal digits fill 64 bits; leading zeros beyond that are refused too.
    if digits >= 16 {
        return Err(HttpError::Chunk);
    }
    Ok(Chunk::Size {
        size: (size << 4) | u64::from(digit),
        digits: digits + 1,
    })
}
