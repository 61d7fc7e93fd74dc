//! Heads of responses.

use net::http::{Framing, HEADERS_MAX};

use super::fields::{Fields, Line, Lines, check_value};
use super::head_info::HeadInfo;
use crate::http::{BadResponse, Direction, Refusal};

/// What parsing a response needs to know of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestContext {
    /// A HEAD request: the response has no body.
    pub head: bool,
    pub upgrade: bool,
}

/// The head of a response, borrowed from the input.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    pub(in crate::http) raw: &'a [u8],
    /// The status line without its end.
    pub(in crate::http) line: &'a [u8],
    pub(in crate::http) status: u16,
    pub(in crate::http) minor_version: u8,
    pub(in crate::http) fields: Fields<'a>,
    pub(in crate::http) info: HeadInfo<'a>,
    pub(in crate::http) framing: Framing,
}

/// Parses the head of a response at the start of `input`; `None` if incomplete. Allocates nothing.
///
/// After an interim head ([`ResponseHead::is_interim`]) comes another; allow at most
/// [`crate::http::INTERIM_MAX`].
///
/// # Errors
/// When the response must not be forwarded: send a 502 and close the upstream connection.
pub fn read_response(
    input: &[u8],
    context: RequestContext,
) -> Result<Option<ResponseHead<'_>>, BadResponse> {
    let mut lines = Lines::new(Direction::Response, input);
    let begin = b"HTTP/1.";
    let seen = lines.rest().len().min(begin.len());
    if lines.rest()[..seen] != begin[..seen] {
        return Err(BadResponse::StatusLine);
    }
    let Some(line) = lines.line()? else {
        return match lines.cut() {
            true => Err(Refusal::HeadTooLarge.into()),
            false => Ok(None),
        };
    };
    let (status, minor_sent) = status_line(line)?;

    let fields_at = lines.at;
    let mut info = HeadInfo::of_response(status, context.head);
    // As in requests.
    let minor_version = minor_sent.min(1);
    info.changes = minor_sent > minor_version;
    let mut count = 0;
    let fields_end = loop {
        let end = lines.at;
        match lines.field()? {
            Line::Field(_) if count == HEADERS_MAX => return Err(Refusal::HeadTooLarge.into()),
            Line::Field(field) => info.field(&field)?,
            Line::Partial => return Ok(None),
            Line::End => break end,
        }
        count += 1;
    };
    info.settle(minor_version)?;
    info.changes |= lines.has_blanks;
    if status == 101 && !context.upgrade {
        return Err(BadResponse::Switch);
    }
    let framing = Framing::of_response(status, context.head, info.chunked, info.length);
    Ok(Some(ResponseHead {
        raw: lines.read_from(0),
        line,
        status,
        minor_version,
        fields: Fields::new(&input[fields_at..fields_end]),
        info,
        framing,
    }))
}

/// Status and minor version as it was sent. Without a reason, the space after the status may be missing.
fn status_line(line: &[u8]) -> Result<(u16, u8), BadResponse> {
    let [
        b'H',
        b'T',
        b'T',
        b'P',
        b'/',
        b'1',
        b'.',
        minor @ b'0'..=b'9',
        b' ',
        a,
        b,
        c,
        rest @ ..,
    ] = line
    else {
        return Err(BadResponse::StatusLine);
    };
    let digits = [a, b, c];
    if !digits.iter().all(|digit| digit.is_ascii_digit()) || !matches!(rest, [] | [b' ', ..]) {
        return Err(BadResponse::StatusLine);
    }
    check_value(rest)?;
    let status = digits
        .iter()
        .fold(0, |status, digit| status * 10 + u16::from(**digit - b'0'));
    if status < 100 {
        return Err(BadResponse::StatusLine);
    }
    Ok((status, minor - b'0'))
}

impl<'a> ResponseHead<'a> {
    /// Length of the head: where the body begins.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Never: a head has at least one line.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// The bytes of the head.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// The status, 100 to 999.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The minor version: 1 for HTTP/1.1, 0 for HTTP/1.0.
    pub fn minor_version(&self) -> u8 {
        self.minor_version
    }

    /// Whether another head follows: 1xx except 101.
    pub fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }

    /// Whether the protocol is switched: 101.
    pub fn switches(&self) -> bool {
        self.status == 101
    }

    /// How the body is framed.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Whether the upstream connection can be reused after the body.
    pub fn keep_alive(&self) -> bool {
        let options = self.info.options;
        let wanted = match self.minor_version {
            0 => options.keep_alive,
            _ => true,
        };
        // RFC 9112 6.1: a coding in HTTP/1.0 ends the connection.
        let is_old_coding = self.info.is_misframed && self.minor_version == 0;
        wanted
            && !options.close
            && !self.switches()
            && !is_old_coding
            && self.framing != Framing::UntilClose
    }

    /// The fields, in order.
    pub fn fields(&self) -> Fields<'a> {
        self.fields
    }

    /// The first value of a field; case-insensitive.
    pub fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.fields.values(name).next()
    }
}
