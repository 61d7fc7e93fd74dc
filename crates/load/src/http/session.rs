//! What sessions of HTTP/2 and HTTP/3 have in common.

use net::http::{content_length, may_have_content};

/// What arrived on a session's streams; `place` is the number that the request was sent with.
#[derive(Debug)]
pub(crate) enum Answer<'a> {
    /// The head of the final answer, with its fields if the session keeps them.
    Head {
        place: u32,
        status: u16,
        bytes: u64,
        fields: &'a Fields,
    },
    /// A piece of the body.
    Body { place: u32, bytes: &'a [u8] },
    /// The fields behind the body, from a session that keeps fields.
    Trailers { place: u32, fields: &'a Fields },
    /// The answer is complete.
    End { place: u32 },
    /// The answer is not valid: what is wrong with it.
    Malformed { place: u32, what: &'static str },
    /// The server has reset the stream.
    Reset { place: u32, code: u64 },
    /// The server has not processed the request (RFC 9113 8.7, RFC 9114 4.1.1): it can be sent again.
    NotProcessed { place: u32 },
}

/// How much of an answer's content is still to come; `None` if its `content-length` does not say so.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RemainingContent(Option<u64>);

impl RemainingContent {
    /// Takes a `content-length`.
    ///
    /// # Errors
    /// When it is invalid, or not the same as an earlier one; what is wrong.
    pub(crate) fn announce(&mut self, value: &[u8]) -> Result<(), &'static str> {
        let length = content_length(value).map_err(|_| "an invalid content-length")?;
        match self.0.replace(length) {
            Some(other) if other != length => Err("conflicting content-lengths"),
            _ => Ok(()),
        }
    }

    /// The length of an answer that has no content, whatever its fields say.
    pub(crate) fn of_empty(status: u16, is_head_request: bool) -> Option<Self> {
        (!may_have_content(status, is_head_request)).then_some(Self(Some(0)))
    }

    /// Takes content.
    ///
    /// # Errors
    /// When it is longer than announced.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), &'static str> {
        if let Some(left) = &mut self.0 {
            let rest = left.checked_sub(bytes as u64);
            *left = rest.ok_or("more content than announced")?;
        }
        Ok(())
    }

    /// # Errors
    /// When an answer that ends here is shorter than announced.
    #[inline]
    pub(crate) fn end(self) -> Result<(), &'static str> {
        match self.0 {
            None | Some(0) => Ok(()),
            Some(_) => Err("less content than announced"),
        }
    }
}

/// Counts frames that carry nothing for a request, such as PING and SETTINGS.
#[derive(Debug, Default)]
pub(crate) struct Overhead(u64);

impl Overhead {
    /// How many such frames a server may send in addition to those that are offset.
    const MAX: u64 = 100_000;
    /// How many a complete answer offsets, and a DATA frame of a request, for which a server opens its
    /// windows.
    const OFFSET: u64 = 16;

    /// Whether the limit is exceeded.
    #[inline]
    #[must_use]
    pub(crate) fn add(&mut self, frames: u32) -> bool {
        self.0 += u64::from(frames);
        self.0 > Self::MAX
    }

    #[inline]
    pub(crate) fn offset(&mut self) {
        self.0 = self.0.saturating_sub(Self::OFFSET);
    }
}

/// Header fields in order, names in lower case. Its memory is used again for the next ones.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    bytes: Vec<u8>,
    /// Where each name and each value ends.
    ends: Vec<(usize, usize)>,
}

/// What a session that keeps none hands out.
pub(crate) static NO_FIELDS: Fields = Fields {
    bytes: Vec::new(),
    ends: Vec::new(),
};

impl Fields {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a field, unless it is a pseudo-header field.
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) {
        if name.starts_with(b":") {
            return;
        }
        self.bytes.extend_from_slice(name);
        let name = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((name, self.bytes.len()));
    }

    /// Names and values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut from = 0;
        self.ends.iter().map(move |&(name, value)| {
            let field = (&self.bytes[from..name], &self.bytes[name..value]);
            from = value;
            field
        })
    }

    #[allow(dead_code, reason = "the kinds with trailers follow")]
    /// The value of the first field of this name, which is in lower case.
    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        let mut all = self.iter();
        all.find(|(own, _)| *own == name.as_bytes())
            .map(|(_, it)| it)
    }

    /// As [`net::fetch::Answer::fields`].
    pub(crate) fn to_vec(&self) -> Vec<(String, Vec<u8>)> {
        let text = |name| String::from_utf8_lossy(name).into_owned();
        let all = self.iter();
        all.map(|(name, value)| (text(name), value.to_vec()))
            .collect()
    }
}
