//! How the body behind a head is framed.

use super::HttpError;
use super::syntax::list;

/// How a body is delimited (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    None,
    Length(u64),
    Chunked,
    /// By the connection's end; in responses only.
    UntilClose,
}

impl Framing {
    /// That of a request whose fields say this.
    #[inline]
    pub fn of_request(is_chunked: bool, length: Option<u64>) -> Framing {
        match (is_chunked, length) {
            (true, _) => Framing::Chunked,
            (false, Some(length)) => Framing::Length(length),
            (false, None) => Framing::None,
        }
    }

    /// That of a response whose fields say this, to a HEAD request or another.
    #[inline]
    pub fn of_response(
        status: u16,
        is_head_request: bool,
        is_chunked: bool,
        length: Option<u64>,
    ) -> Framing {
        match (is_chunked, length) {
            _ if !may_have_content(status, is_head_request) => Framing::None,
            (true, _) => Framing::Chunked,
            (false, Some(length)) => Framing::Length(length),
            (false, None) => Framing::UntilClose,
        }
    }
}

/// Whether a response with this status may have content, whatever its length says (RFC 9110 section
/// 6.4.1).
pub fn may_have_content(status: u16, is_head_request: bool) -> bool {
    !is_head_request && status >= 200 && !matches!(status, 204 | 304)
}

/// A Content-Length value: at most 19 digits and nothing else, at most 2^63 - 1.
///
/// # Errors
/// [`HttpError::ContentLength`] for anything else.
pub fn content_length(value: &[u8]) -> Result<u64, HttpError> {
    if value.is_empty() || value.len() > 19 || !value.iter().all(u8::is_ascii_digit) {
        return Err(HttpError::ContentLength);
    }
    let mut number: u64 = 0;
    for digit in value {
        number = number
            .checked_mul(10)
            .and_then(|n| n.checked_add(u64::from(digit - b'0')))
            .ok_or(HttpError::ContentLength)?;
    }
    if number > i64::MAX as u64 {
        return Err(HttpError::ContentLength);
    }
    Ok(number)
}

/// What the fields of a head say of framing and of the connection, gathered one by one.
#[derive(Default)]
pub(super) struct HeadFields {
    pub(super) length: Option<u64>,
    pub(super) chunked: bool,
    /// Whether there is any Transfer-Encoding.
    coded: bool,
    pub(super) close: bool,
    pub(super) keep_alive: bool,
}

impl HeadFields {
    #[inline]
    pub(super) fn field(&mut self, name: &str, value: &[u8]) -> Result<(), HttpError> {
        match name.len() {
            14 if name.eq_ignore_ascii_case("content-length") => {
                let length = content_length(value)?;
                if self.length.is_some_and(|known| known != length) {
                    return Err(HttpError::ContentLength);
                }
                self.length = Some(length);
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                self.coded = true;
                if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(HttpError::TransferEncoding);
                }
                self.chunked = true;
            }
            10 if name.eq_ignore_ascii_case("connection") => {
                for option in list(value) {
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The framing that these fields gave, unless they gave two.
    #[inline]
    pub(super) fn settled(&self, framing: Framing) -> Result<Framing, HttpError> {
        match framing == Framing::Chunked && self.length.is_some() {
            // RFC 9112 6.3: such a message may be an attempt at smuggling.
            true => Err(HttpError::ContentLength),
            false => Ok(framing),
        }
    }

    /// Whether the connection can be used again, by the minor version and the fields.
    pub(super) fn keeps_alive(&self, minor_version: u8) -> bool {
        match minor_version {
            // HTTP/1.0 has no chunked coding: an intermediary may have forwarded what it did not
            // understand, and the connection must be closed (RFC 9112 6.1).
            0 => self.keep_alive && !self.close && !self.coded,
            _ => !self.close,
        }
    }
}
