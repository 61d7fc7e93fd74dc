//! What sessions of HTTP/2 and HTTP/3 have in common.

use net::http::content_length;

/// What arrived on a session's streams; `place` is the number that the request was sent with.
#[derive(Debug)]
pub(crate) enum Answer<'a> {
    /// The head of the final answer.
    Head { place: u32, status: u16, bytes: u64 },
    /// A piece of the body.
    Body { place: u32, bytes: &'a [u8] },
    /// The answer is complete.
    End { place: u32 },
    /// The answer is not valid: what is wrong with it.
    Malformed { place: u32, what: &'static str },
    /// The server has reset the stream.
    Reset { place: u32, code: u64 },
    /// The server has not processed the request (RFC 9113 8.7, RFC 9114 4.1.1): it can be sent again.
    NotProcessed { place: u32 },
}

/// How much of an answer's content is still to come, by its `content-length`; `None` if it does not
/// say so.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ContentLeft(Option<u64>);

impl ContentLeft {
    /// Takes a `content-length`.
    ///
    /// # Errors
    /// When it is no length, or not the same as an earlier one; what is wrong.
    pub(crate) fn announce(&mut self, value: &[u8]) -> Result<(), &'static str> {
        let length = content_length(value).map_err(|_| "a content-length that is no length")?;
        match self.0.replace(length) {
            Some(other) if other != length => Err("two different content-lengths"),
            _ => Ok(()),
        }
    }

    /// The same for an answer with this status, which may have a length without content.
    pub(crate) fn of(self, status: u16, is_head_request: bool) -> Self {
        match is_head_request || matches!(status, 204 | 304) {
            true => Self(None),
            false => self,
        }
    }

    /// Takes content.
    ///
    /// # Errors
    /// When it is longer than announced.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), &'static str> {
        if let Some(left) = &mut self.0 {
            let rest = left.checked_sub(bytes as u64);
            *left = rest.ok_or("more content than its content-length")?;
        }
        Ok(())
    }

    /// # Errors
    /// When an answer that ends here is shorter than announced.
    #[inline]
    pub(crate) fn end(self) -> Result<(), &'static str> {
        match self.0 {
            None | Some(0) => Ok(()),
            Some(_) => Err("less content than its content-length"),
        }
    }
}

/// Counts what a server sends that carries nothing for a request: frames such as PING and SETTINGS.
#[derive(Debug, Default)]
pub(crate) struct Overhead(u64);

impl Overhead {
    /// How many such frames a server may send in addition to those that are earned.
    const MAX: u64 = 100_000;
    /// How many a complete answer earns, and a frame of a request's content, for which a server opens
    /// its windows.
    const EARNED: u64 = 16;

    /// Whether these are too many.
    #[inline]
    pub(crate) fn add(&mut self, frames: u32) -> bool {
        self.0 += u64::from(frames);
        self.0 > Self::MAX
    }

    #[inline]
    pub(crate) fn earn(&mut self) {
        self.0 = self.0.saturating_sub(Self::EARNED);
    }
}

/// Header fields in order, names in lower case.
pub(crate) type Fields = Vec<(String, Vec<u8>)>;

/// Why no request can be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The server's limit of concurrent streams.
    Full,
    /// The connection ends: a GOAWAY, or no stream numbers are left.
    Ending,
}
