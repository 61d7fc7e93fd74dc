//! Heads of requests, as they come from clients.

use memchr::{memchr, memrchr};

use super::fields::{Fields, Line, Lines, is_token_byte};
use super::head_info::HeadInfo;
use super::target::{Target, is_authority};
use super::{Direction, EMPTY_LINES_MAX, Framing, HEADERS_MAX, Refusal};

/// A method, as far as a proxy has to tell methods apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET
    Get,
    /// HEAD
    Head,
    /// POST
    Post,
    /// PUT
    Put,
    /// DELETE
    Delete,
    /// OPTIONS
    Options,
    /// TRACE
    Trace,
    /// Any other.
    Other,
}

impl Method {
    fn of(name: &[u8]) -> Method {
        match name {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"OPTIONS" => Method::Options,
            b"TRACE" => Method::Trace,
            _ => Method::Other,
        }
    }

    /// Whether a client asks for nothing to be changed by it (RFC 9110 9.2.1).
    pub fn is_safe(self) -> bool {
        matches!(
            self,
            Method::Get | Method::Head | Method::Options | Method::Trace
        )
    }

    /// Whether it does the same when it is sent twice (RFC 9110 9.2.2), so that it may be sent to
    /// another upstream when the first one has not answered.
    pub fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Method::Put | Method::Delete)
    }
}

/// The head of a request, borrowed from the bytes that it was read from.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The head without the empty lines before it.
    pub(super) raw: &'a [u8],
    pub(super) skipped: usize,
    pub(super) method_name: &'a [u8],
    pub(super) method: Method,
    pub(super) target: Target<'a>,
    pub(super) minor_version: u8,
    pub(super) fields: Fields<'a>,
    pub(super) info: HeadInfo<'a>,
}

/// Reads the head of a request at the front of `input`; `None` when it is not complete. Nothing is
/// allocated.
///
/// Whether a head is refused, and why, is the same however much of it has come: what is refused
/// once is refused with more bytes too.
///
/// # Errors
/// When the request must not be passed on: answer with [`super::refusal_response`] and close.
pub fn read_request(input: &[u8]) -> Result<Option<RequestHead<'_>>, Refusal> {
    let mut lines = Lines::new(input);
    let mut empty_lines = 0;
    while lines.rest().starts_with(b"\r\n") {
        empty_lines += 1;
        if empty_lines > EMPTY_LINES_MAX {
            return Err(Refusal::EmptyLines);
        }
        lines.at += 2;
    }
    let skipped = lines.at;
    match lines.rest() {
        [] | [b'\r'] => return Ok(None),
        [b'\r' | b'\n', ..] => return Err(Refusal::LineEnd),
        rest => {
            // Looked at before the line is complete: other protocols show at once.
            let end = rest.iter().position(|byte| !is_token_byte(*byte));
            if end.is_some_and(|at| at == 0 || rest[at] != b' ') {
                return Err(Refusal::Method);
            }
        }
    }
    let Some(line) = lines.line()? else {
        return match lines.cut() {
            true => Err(Refusal::TargetTooLong),
            false => Ok(None),
        };
    };
    let (method_name, target, minor_version) = request_line(line)?;
    let method = Method::of(method_name);
    let target = Target::read(target, method == Method::Options)?;

    let fields_at = lines.at;
    let mut info = HeadInfo::new(Direction::Request);
    let mut count = 0;
    let fields_end = loop {
        let end = lines.at;
        match lines.field()? {
            Line::Field(_) if count == HEADERS_MAX => return Err(Refusal::HeadTooLarge),
            Line::Field(field) => info.field(&field)?,
            Line::Partial => return Ok(None),
            Line::End => break end,
        }
        count += 1;
    };
    let head = RequestHead {
        raw: lines.read_from(skipped),
        skipped,
        method_name,
        method,
        target,
        minor_version,
        fields: Fields::new(&input[fields_at..fields_end]),
        info,
    };
    head.check()?;
    Ok(Some(head))
}

/// Method, target and minor version.
fn request_line(line: &[u8]) -> Result<(&[u8], &[u8], u8), Refusal> {
    if line.contains(&b'\r') {
        return Err(Refusal::LineEnd);
    }
    let (Some(first), Some(last)) = (memchr(b' ', line), memrchr(b' ', line)) else {
        return Err(Refusal::RequestLine);
    };
    if first == last {
        return Err(Refusal::RequestLine);
    }
    let (method, target) = (&line[..first], &line[first + 1..last]);
    let minor_version = match &line[last + 1..] {
        b"HTTP/1.1" => 1,
        b"HTTP/1.0" => 0,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            return Err(Refusal::Version);
        }
        _ => return Err(Refusal::RequestLine),
    };
    if target.is_empty() || target.contains(&b' ') {
        return Err(Refusal::RequestLine);
    }
    if method == b"CONNECT" {
        return Err(Refusal::Connect);
    }
    Ok((method, target, minor_version))
}

impl<'a> RequestHead<'a> {
    /// What only the whole head shows.
    fn check(&self) -> Result<(), Refusal> {
        let info = &self.info;
        match info.host {
            None if self.minor_version == 1 => return Err(Refusal::HostMissing),
            // RFC 9110 7.2: it is empty where the target has no authority.
            None | Some(b"") => {}
            Some(host) if is_authority(host) => {}
            Some(_) => return Err(Refusal::Host),
        }
        if info.chunked && self.minor_version == 0 {
            return Err(Refusal::CodingInHttp10);
        }
        if info.chunked && info.length.is_some() {
            return Err(Refusal::LengthAndCoding);
        }
        let bodied = matches!(self.method, Method::Post | Method::Put);
        if self.minor_version == 0 && bodied && info.length.is_none() {
            // RFC 1945 8.3; its body would otherwise be the next request.
            return Err(Refusal::LengthRequired);
        }
        Ok(())
    }

    /// How many bytes of the input are empty lines before the head; they are not sent on.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// How many bytes of the input the head takes, with what was skipped: where the body begins.
    pub fn len(&self) -> usize {
        self.skipped + self.raw.len()
    }

    /// Never: a head has a line at least.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// The bytes of the head, without what was skipped: what is sent on for
    /// [`super::Rewritten::AsIs`].
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// The method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The method as it was sent.
    pub fn method_name(&self) -> &'a [u8] {
        self.method_name
    }

    /// The path and query of the target. `*` for OPTIONS of the whole server. In the absolute form
    /// without a path it is empty or begins with `?`; a `/` is put in front when it is sent on.
    pub fn path_and_query(&self) -> &'a [u8] {
        self.target.path_and_query
    }

    /// The path of the target without its query; never empty.
    pub fn path(&self) -> &'a [u8] {
        self.target.path()
    }

    /// The minor version: 1 for HTTP/1.1, 0 for HTTP/1.0.
    pub fn minor_version(&self) -> u8 {
        self.minor_version
    }

    /// The host and port that are asked for: of the target where it is in absolute form, which
    /// goes before Host (RFC 9112 3.2.2). Missing in HTTP/1.0 only; may be empty.
    pub fn host(&self) -> Option<&'a [u8]> {
        self.target.authority.or(self.info.host)
    }

    /// How the body is framed.
    pub fn framing(&self) -> Framing {
        match (self.info.chunked, self.info.length) {
            (true, _) => Framing::Chunked,
            (false, Some(length)) => Framing::Length(length),
            (false, None) => Framing::None,
        }
    }

    /// Whether the client wants to use the connection again.
    pub fn keep_alive(&self) -> bool {
        let options = self.info.options;
        !options.close && (self.minor_version == 1 || options.keep_alive)
    }

    /// Whether the client waits for 100 before it sends the body.
    pub fn expects_continue(&self) -> bool {
        // RFC 9110 10.1.1: not without a body, and not in HTTP/1.0.
        let bodied = !matches!(self.framing(), Framing::None | Framing::Length(0));
        self.info.expect && bodied && self.minor_version == 1
    }

    /// Whether the client asks for another protocol on this connection, and may have it.
    ///
    /// Not with a body, behind which it would not be clear where the other protocol begins, and
    /// not for HTTP/2, in which requests could not be looked at.
    pub fn asks_upgrade(&self) -> bool {
        self.info.upgrade
            && self.info.options.upgrade
            && !self.info.upgrade_http2
            && self.minor_version == 1
            && matches!(self.framing(), Framing::None | Framing::Length(0))
    }

    /// The fields, in order.
    pub fn fields(&self) -> Fields<'a> {
        self.fields
    }

    /// The value of the first field of that name, which may be in any case.
    pub fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.fields.values(name).next()
    }

    /// The value of the first cookie of that name.
    pub fn cookie(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.fields.cookie(name)
    }
}
