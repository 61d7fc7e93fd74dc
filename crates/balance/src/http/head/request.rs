//! Heads of requests.

use memchr::{memchr, memrchr};

use net::http::{Framing, HEADERS_MAX, is_token_byte};

use super::fields::{Fields, Line, Lines};
use super::head_info::HeadInfo;
use super::target::{Target, is_authority};
use crate::http::{Direction, Refusal};

/// Empty lines allowed before a request (RFC 9112 2.2 asks for at least one).
const EMPTY_LINES_MAX: usize = 2;

/// A method, as far as it matters to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Options,
    Trace,
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

    /// RFC 9110 9.2.1.
    pub fn is_safe(self) -> bool {
        matches!(
            self,
            Method::Get | Method::Head | Method::Options | Method::Trace
        )
    }

    /// Whether it may be sent twice (RFC 9110 9.2.2), and so to another back end.
    pub fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Method::Put | Method::Delete)
    }
}

/// The head of a request, borrowed from the input.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The head without leading empty lines.
    pub(in crate::http) raw: &'a [u8],
    pub(in crate::http) skipped: usize,
    pub(in crate::http) method_name: &'a [u8],
    pub(in crate::http) method: Method,
    pub(in crate::http) target: Target<'a>,
    pub(in crate::http) minor_version: u8,
    pub(in crate::http) fields: Fields<'a>,
    pub(in crate::http) info: HeadInfo<'a>,
}

/// Parses the head of a request at the start of `input`; `None` if incomplete. Allocates nothing.
///
/// A refusal does not depend on how much has arrived: what is refused once is refused with more
/// bytes too.
///
/// # Errors
/// When the request must not be forwarded: respond with [`Refusal::status`] and close.
pub fn read_request(input: &[u8]) -> Result<Option<RequestHead<'_>>, Refusal> {
    let mut lines = Lines::new(Direction::Request, input);
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
            // Checked before the line is complete, to detect other protocols at once.
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
    let (method_name, target, minor_sent) = request_line(line)?;
    let method = Method::of(method_name);
    let target = Target::read(target, method == Method::Options)?;

    let fields_at = lines.at;
    let mut info = HeadInfo::new(Direction::Request);
    // RFC 9110 2.5: a later minor version is processed as the highest that is known.
    let minor_version = minor_sent.min(1);
    info.changes = minor_sent > minor_version;
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
    let settled = info.settle(minor_version);
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
    head.check(settled)?;
    Ok(Some(head))
}

/// Method, target and minor version as it was sent.
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
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor] if minor.is_ascii_digit() => minor - b'0',
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
    /// Checks that need the whole head; `framing`: what its framing fields say together.
    fn check(&self, framing: Result<(), Refusal>) -> Result<(), Refusal> {
        let info = &self.info;
        match info.host {
            None if self.minor_version == 1 => return Err(Refusal::HostMissing),
            // RFC 9110 7.2: empty if the target has no authority.
            None | Some(b"") => {}
            Some(host) if is_authority(host) => {}
            Some(_) => return Err(Refusal::Host),
        }
        framing?;
        let bodied = matches!(self.method, Method::Post | Method::Put);
        if self.minor_version == 0 && bodied && info.length.is_none() {
            // RFC 1945 8.3; its body would be taken for the next request.
            return Err(Refusal::LengthRequired);
        }
        Ok(())
    }

    /// Length of the empty lines before the head, which are not forwarded.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Length of the head in the input, including skipped lines: where the body begins.
    pub fn len(&self) -> usize {
        self.skipped + self.raw.len()
    }

    /// Never: a head has at least one line.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// The head without skipped lines: what to forward for [`crate::http::Rewritten::AsIs`].
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    pub fn method(&self) -> Method {
        self.method
    }

    /// The method as sent.
    pub fn method_name(&self) -> &'a [u8] {
        self.method_name
    }

    /// Path and query; `*` for OPTIONS of the server. In absolute form it may be empty or begin
    /// with `?`; a `/` is added when forwarding.
    pub fn path_and_query(&self) -> &'a [u8] {
        self.target.path_and_query
    }

    /// The path without the query; never empty.
    pub fn path(&self) -> &'a [u8] {
        self.target.path()
    }

    /// The minor version: 1 for HTTP/1.1, 0 for HTTP/1.0.
    pub fn minor_version(&self) -> u8 {
        self.minor_version
    }

    /// The requested host and port: from the target in absolute form, which overrides Host (RFC
    /// 9112 3.2.2). Missing only in HTTP/1.0; may be empty.
    pub fn host(&self) -> Option<&'a [u8]> {
        self.target.authority.or(self.info.host)
    }

    /// How the body is framed.
    pub fn framing(&self) -> Framing {
        Framing::of_request(self.info.chunked, self.info.length)
    }

    /// Whether the client wants a persistent connection.
    pub fn keep_alive(&self) -> bool {
        let options = self.info.options;
        !options.close && (self.minor_version == 1 || options.keep_alive)
    }

    /// Whether the client waits for 100 before sending the body.
    pub fn expects_continue(&self) -> bool {
        // RFC 9110 10.1.1: not without a body, and not in HTTP/1.0.
        let bodied = !matches!(self.framing(), Framing::None | Framing::Length(0));
        self.info.expect && bodied && self.minor_version == 1
    }

    /// Whether the client asks for an upgrade that can be granted.
    ///
    /// Not with a body, after which the start of the new protocol is unclear, and not to HTTP/2,
    /// whose requests could not be inspected.
    pub fn asks_upgrade(&self) -> bool {
        self.info.upgrade
            && self.info.options.upgrade
            && !self.info.upgrade_http2
            && self.minor_version == 1
            && matches!(self.framing(), Framing::None | Framing::Length(0))
    }

    /// Whether it may go no further (RFC 9110 7.6.2): OPTIONS or TRACE with `Max-Forwards: 0`.
    pub fn is_at_last_hop(&self) -> bool {
        self.counts_forwards() && self.info.max_forwards == Some(0)
    }

    /// Whether the method counts hops by Max-Forwards.
    pub(in crate::http) fn counts_forwards(&self) -> bool {
        matches!(self.method, Method::Options | Method::Trace)
    }

    /// The fields, in order.
    pub fn fields(&self) -> Fields<'a> {
        self.fields
    }

    /// The first value of a field; case-insensitive.
    pub fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.fields.values(name).next()
    }

    /// The value of a cookie; the first if there are several.
    pub fn cookie(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.fields.cookie(name)
    }
}
