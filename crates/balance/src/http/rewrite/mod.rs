//! Rewriting heads.
//!
//! The output is unambiguous: HTTP/1.1, one framing field in canonical form, and no hop-by-hop
//! fields of the other connection.

mod edits;

use std::io::Write as _;

use net::http::Framing;

use super::guarded::is_forwarded;
use super::head::fields::Field;
use super::head::head_info::{FieldKind, HeadInfo, NominatedNames, field_kind, forwards};
use super::{Direction, RequestHead, ResponseHead};
pub use edits::{Edit, EditError, EditKind};
use edits::{Keep, write_fields};

/// The result of rewriting a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewritten {
    /// Unchanged: forward `raw()`; nothing was written.
    AsIs,
    /// Rewritten: it was appended to the output.
    Written,
    /// Not forwarded: an interim response to an HTTP/1.0 client.
    Dropped,
}

/// How a request is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToUpstream<'e> {
    /// Header edits, in order.
    pub edits: &'e [Edit<'e>],
    /// Whether to keep the upstream connection open.
    pub keep_alive: bool,
    /// Whether an upgrade may be requested, if the client does.
    pub upgrade: bool,
    /// Whether the client may announce another one. If not, `Forwarded`, `X-Forwarded-For` and
    /// similar fields are dropped, however they are spelt.
    pub trusted: bool,
    /// Host for an HTTP/1.0 request without one.
    pub host: &'e [u8],
}

/// How a response is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToClient<'e> {
    /// Header edits, in order; not for interim responses.
    pub edits: &'e [Edit<'e>],
    /// Whether the client connection may persist: the request allows it
    /// ([`RequestHead::keep_alive`]), and nothing else prevents it.
    pub keep_alive: bool,
    /// Minor version of the request.
    pub minor_version: u8,
}

/// The result of rewriting a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseRewrite {
    pub head: Rewritten,
    pub body: BodyPass,
    /// Whether the client connection persists, as the head says. True after 101.
    pub keep_alive: bool,
}

/// How a body is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPass {
    /// Unchanged.
    AsIs,
    /// Decoded ([`super::BodyTracker::take_content`]): chunks to an HTTP/1.0 client, where the end
    /// of the connection ends the body.
    Dechunked,
}

/// Rewrites the head of a request. A changed head is appended to `out`; nothing else is allocated.
pub fn rewrite_request<'a>(
    head: &RequestHead<'a>,
    to: &ToUpstream<'_>,
    out: &mut Vec<u8>,
) -> Rewritten {
    let info = &head.info;
    let upgrade = to.upgrade && head.asks_upgrade();
    let expect = head.expects_continue();
    let http_11 = head.minor_version == 1;
    let te = http_11 && info.te_trailers;
    let says_client = || {
        head.fields
            .into_iter()
            .any(|field| is_forwarded(field.name))
    };
    let forged = !to.trusted && says_client();
    let counts = head.counts_forwards() && info.max_forwards.is_some();
    let kept = !changes(info, to.edits)
        && !forged
        && !counts
        && http_11
        && head.target.authority.is_none()
        && !info.te
        && info.expect == expect
        && connection_is(info, upgrade, !upgrade && !to.keep_alive);
    if kept {
        return Rewritten::AsIs;
    }

    out.extend_from_slice(head.method_name);
    out.push(b' ');
    if head.target.lacks_path() {
        out.push(b'/');
    }
    out.extend_from_slice(head.target.path_and_query);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let named = NominatedNames::gather(head.fields, info.options.names);
    let keep = |field: &Field<'a>| match field_kind(Direction::Request, field.name) {
        FieldKind::Other if named.has(field.name) => false,
        FieldKind::Other if forged && is_forwarded(field.name) => false,
        // A server may take it for the field that an edit sets.
        FieldKind::Other if to.edits.iter().any(|edit| edit.is_spelt_as(field.name)) => false,
        FieldKind::Expect => expect,
        FieldKind::Upgrade => upgrade,
        FieldKind::MaxForwards if named.has(field.name) => false,
        FieldKind::Other
        | FieldKind::MaxForwards
        | FieldKind::Host
        | FieldKind::ContentLength
        | FieldKind::TransferEncoding => true,
        FieldKind::Connection | FieldKind::Te | FieldKind::HopByHop | FieldKind::Lookalike => false,
    };
    let hops = Hops::less_one(info.max_forwards.filter(|_| counts));
    let keep = |field: &Field<'a>| match keep(field) {
        false => Keep::No,
        true if field.is(b"max-forwards") && forwards(field.value).is_some() => hops.keep(),
        true if field.is(b"host") => head.target.authority.map_or(Keep::Line, Keep::Value),
        true => framing_line(field),
    };
    write_fields(head.fields, to.edits, keep, out);
    let host_is_set = || to.edits.iter().any(|edit| edit.is(b"host"));
    if info.host.is_none() && !host_is_set() {
        let host = head.target.authority.unwrap_or(to.host);
        write_field(b"Host", &[host], out);
    }
    match (upgrade, to.keep_alive, te) {
        // With an upgrade, `close` is not sent.
        (true, _, false) => write_field(b"Connection", &[b"upgrade"], out),
        (true, _, true) => write_field(b"Connection", &[b"upgrade, TE"], out),
        (false, false, false) => write_field(b"Connection", &[b"close"], out),
        (false, false, true) => write_field(b"Connection", &[b"close, TE"], out),
        (false, true, true) => write_field(b"Connection", &[b"TE"], out),
        (false, true, false) => {}
    }
    if te {
        write_field(b"TE", &[b"trailers"], out);
    }
    out.extend_from_slice(b"\r\n");
    Rewritten::Written
}

/// Rewrites the head of a response. A changed head is appended to `out`; nothing else is allocated.
///
/// An HTTP/1.0 client gets chunked bodies decoded, ended by the connection's end, and no interim
/// responses.
pub fn rewrite_response<'a>(
    head: &ResponseHead<'a>,
    to: &ToClient<'_>,
    out: &mut Vec<u8>,
) -> ResponseRewrite {
    let info = &head.info;
    let http_11 = to.minor_version == 1;
    let passes_as_is = |head| ResponseRewrite {
        head,
        body: BodyPass::AsIs,
        keep_alive: true,
    };
    if head.is_interim() && !http_11 {
        return passes_as_is(Rewritten::Dropped);
    }
    let edits = match head.is_interim() {
        true => &[],
        false => to.edits,
    };
    // Interim responses say nothing about persistence.
    let unfinished = head.status < 200;
    let dechunked = head.framing == Framing::Chunked && !http_11;
    let keep_alive =
        unfinished || (to.keep_alive && !dechunked && head.framing != Framing::UntilClose);
    let answered = |head| ResponseRewrite {
        head,
        body: match dechunked {
            true => BodyPass::Dechunked,
            false => BodyPass::AsIs,
        },
        keep_alive,
    };

    // RFC 9110 7.8 wants Upgrade in 426, to say what to upgrade to.
    let upgrade = matches!(head.status, 101 | 426) && info.upgrade;
    // RFC 9110 8.6 and RFC 9112 6.1 forbid framing fields here; a client may believe them.
    let unframed = unfinished || head.status == 204 || info.is_misframed;
    // For HEAD and in 304 the coding is stated but not used.
    let no_coding = unframed || !http_11;
    let kept = !changes(info, edits)
        && head.minor_version == 1
        && head.line.len() > STATUS_LINE_BYTES
        && !info.te
        && !(unframed && info.length.is_some())
        && !(no_coding && info.chunked)
        && connection_is(info, upgrade, !keep_alive)
        && (http_11 || !keep_alive || info.options.keep_alive);
    if kept {
        return answered(Rewritten::AsIs);
    }

    out.extend_from_slice(b"HTTP/1.1");
    out.extend_from_slice(&head.line[b"HTTP/1.1".len()..]);
    if head.line.len() == STATUS_LINE_BYTES {
        out.push(b' ');
    }
    out.extend_from_slice(b"\r\n");
    let named = NominatedNames::gather(head.fields, info.options.names);
    let first_length = head
        .fields
        .into_iter()
        .find(|field| field.is(b"content-length"));
    let keep = |field: &Field<'a>| match field_kind(Direction::Response, field.name) {
        FieldKind::Other if named.has(field.name) => false,
        FieldKind::Other if dechunked && field.is(b"trailer") => false,
        // Equal values are merged.
        FieldKind::ContentLength => {
            !unframed
                && first_length.is_some_and(|first| first.line.as_ptr() == field.line.as_ptr())
        }
        FieldKind::TransferEncoding => !no_coding,
        FieldKind::Upgrade => upgrade,
        FieldKind::Other | FieldKind::MaxForwards | FieldKind::Host | FieldKind::Expect => true,
        FieldKind::Connection | FieldKind::Te | FieldKind::HopByHop | FieldKind::Lookalike => false,
    };
    let keep = |field: &Field<'a>| match keep(field) {
        false => Keep::No,
        true => framing_line(field),
    };
    write_fields(head.fields, edits, keep, out);
    match (upgrade, keep_alive, http_11) {
        (true, true, _) => write_field(b"Connection", &[b"upgrade"], out),
        (true, false, _) => write_field(b"Connection", &[b"close, upgrade"], out),
        (false, false, _) => write_field(b"Connection", &[b"close"], out),
        (false, true, false) => write_field(b"Connection", &[b"keep-alive"], out),
        (false, true, true) => {}
    }
    out.extend_from_slice(b"\r\n");
    answered(Rewritten::Written)
}

/// A status line without reason and the space before it.
const STATUS_LINE_BYTES: usize = "HTTP/1.1 200".len();

/// Whether the head changes regardless of the connection.
fn changes(info: &HeadInfo<'_>, edits: &[Edit<'_>]) -> bool {
    info.changes || info.options.names > 0 || !edits.is_empty()
}

/// Whether Connection and Upgrade already say what the next hop needs.
///
/// A redundant `keep-alive` is tolerated, as many clients and servers send it.
fn connection_is(info: &HeadInfo<'_>, upgrade: bool, close: bool) -> bool {
    let options = info.options;
    options.close == close
        && !(close && options.keep_alive)
        && options.upgrade == upgrade
        && info.upgrade == upgrade
        && !options.te
}

/// The decimal digits of a number of hops.
struct Hops {
    digits: [u8; 10],
    len: usize,
}

impl Hops {
    /// Those of a number less one; of nothing, none.
    fn less_one(number: Option<u32>) -> Hops {
        let mut hops = Hops {
            digits: [0; 10],
            len: 0,
        };
        if let Some(number) = number {
            let mut rest = &mut hops.digits[..];
            // The digits of any number of 32 bits fit.
            let _ = write!(rest, "{}", number.saturating_sub(1));
            let left = rest.len();
            hops.len = hops.digits.len() - left;
        }
        hops
    }

    fn keep(&self) -> Keep<'_> {
        match self.len {
            0 => Keep::Line,
            len => Keep::Value(&self.digits[..len]),
        }
    }
}

/// Framing fields in canonical form, others unchanged but for blanks before their colon.
fn framing_line<'a>(field: &Field<'a>) -> Keep<'a> {
    let value = field.value;
    if field.is(b"transfer-encoding") && value != b"chunked" {
        return Keep::Value(b"chunked");
    }
    if field.is(b"content-length") && value.len() > 1 && value[0] == b'0' {
        let zeros = value.iter().take_while(|digit| **digit == b'0').count();
        return Keep::Value(&value[zeros.min(value.len() - 1)..]);
    }
    match field.is_joined() {
        true => Keep::Line,
        false => Keep::Value(value),
    }
}

fn write_field(name: &[u8], values: &[&[u8]], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    for value in values {
        out.extend_from_slice(value);
    }
    out.extend_from_slice(b"\r\n");
}
