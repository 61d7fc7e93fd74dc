//! What header fields say about framing and the connection.

use net::http::{is_token, list, may_have_content};

use super::fields::{Field, Fields};
use crate::http::guarded::same_folded;
use crate::http::{Direction, Refusal};

/// Names allowed in a message's Connection fields besides the known options.
const CONNECTION_NAMES_MAX: usize = 32;

/// The meaning of a field to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum FieldKind {
    Connection,
    ContentLength,
    TransferEncoding,
    Host,
    Expect,
    Upgrade,
    Te,
    MaxForwards,
    /// Hop-by-hop; never forwarded (RFC 9110 7.6.1, RFC 2616 13.5.1).
    HopByHop,
    /// `Content_Length` and the like: CGI and many frameworks cannot tell it from the real one.
    Lookalike,
    /// Anything else; forwarded unless Connection names it.
    Other,
}

#[inline]
pub(in crate::http) fn field_kind(direction: Direction, name: &[u8]) -> FieldKind {
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    let request = direction == Direction::Request;
    match name.len() {
        2 if is(b"te") => FieldKind::Te,
        4 if request && is(b"host") => FieldKind::Host,
        // CGI passes it as HTTP_PROXY.
        5 if request && is(b"proxy") => FieldKind::HopByHop,
        6 if request && is(b"expect") => FieldKind::Expect,
        7 if is(b"upgrade") => FieldKind::Upgrade,
        10 if is(b"connection") => FieldKind::Connection,
        10 if is(b"keep-alive") => FieldKind::HopByHop,
        12 if request && is(b"max-forwards") => FieldKind::MaxForwards,
        14 if is(b"content-length") => FieldKind::ContentLength,
        14 if is(b"http2-settings") => FieldKind::HopByHop,
        14 if request && same_folded(name, b"content-length") => FieldKind::Lookalike,
        16 if is(b"proxy-connection") => FieldKind::HopByHop,
        17 if is(b"transfer-encoding") => FieldKind::TransferEncoding,
        17 if request && same_folded(name, b"transfer-encoding") => FieldKind::Lookalike,
        18 if is(b"proxy-authenticate") => FieldKind::HopByHop,
        19 if is(b"proxy-authorization") => FieldKind::HopByHop,
        25 if is(b"proxy-authentication-info") => FieldKind::HopByHop,
        _ => FieldKind::Other,
    }
}

/// The options in Connection fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::http) struct ConnectionOptions {
    pub(in crate::http) close: bool,
    pub(in crate::http) keep_alive: bool,
    pub(in crate::http) upgrade: bool,
    pub(in crate::http) te: bool,
    /// Number of other names.
    pub(in crate::http) names: usize,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::http) struct HeadInfo<'a> {
    direction: Direction,
    pub(in crate::http) length: Option<u64>,
    pub(in crate::http) chunked: bool,
    pub(in crate::http) options: ConnectionOptions,
    pub(in crate::http) host: Option<&'a [u8]>,
    /// `Expect: 100-continue`.
    pub(in crate::http) expect: bool,
    /// Upgrade is present.
    pub(in crate::http) upgrade: bool,
    /// Upgrade names HTTP/2, whose requests could not be inspected.
    pub(in crate::http) upgrade_http2: bool,
    /// TE is present.
    pub(in crate::http) te: bool,
    /// TE names `trailers`.
    pub(in crate::http) te_trailers: bool,
    /// The smallest number in Max-Forwards; larger ones count as `u32::MAX`.
    pub(in crate::http) max_forwards: Option<u32>,
    /// The message has no body, whatever its fields say (RFC 9112 6.3): they are not judged.
    pub(in crate::http) is_bodiless: bool,
    /// Such a message has framing fields that are malformed or contradict each other.
    pub(in crate::http) is_misframed: bool,
    /// Some field has to be dropped or normalized in any case.
    pub(in crate::http) changes: bool,
}

impl<'a> HeadInfo<'a> {
    pub(in crate::http) fn new(direction: Direction) -> Self {
        HeadInfo {
            direction,
            ..HeadInfo::default()
        }
    }

    /// That of a response with this status.
    pub(in crate::http) fn of_response(status: u16, is_head_request: bool) -> Self {
        HeadInfo {
            is_bodiless: !may_have_content(status, is_head_request),
            ..HeadInfo::new(Direction::Response)
        }
    }

    /// Checks what fields say together.
    pub(in crate::http) fn settle(&mut self, minor_version: u8) -> Result<(), Refusal> {
        let fault = match (self.chunked, minor_version, self.length) {
            // RFC 9112 6.1: HTTP/1.0 knows no coding, so an old proxy on the way may have passed on
            // chunks that it took for content.
            (true, 0, _) => Err(Refusal::CodingInHttp10),
            (true, _, Some(_)) => Err(Refusal::LengthAndCoding),
            _ => Ok(()),
        };
        self.judged(fault)
    }

    /// A fault of framing fields, unless they do not matter.
    fn judged(&mut self, framing: Result<(), Refusal>) -> Result<(), Refusal> {
        if framing.is_err() && self.is_bodiless {
            (self.is_misframed, self.changes) = (true, true);
            return Ok(());
        }
        framing
    }

    #[inline]
    pub(in crate::http) fn field(&mut self, field: &Field<'a>) -> Result<(), Refusal> {
        match field_kind(self.direction, field.name) {
            FieldKind::Other => Ok(()),
            field_kind => self.special(field_kind, field.value),
        }
    }

    fn special(&mut self, field_kind: FieldKind, value: &'a [u8]) -> Result<(), Refusal> {
        match field_kind {
            FieldKind::Connection => self.connection(value)?,
            FieldKind::ContentLength => {
                let read = self.length(value);
                self.judged(read)?;
            }
            FieldKind::TransferEncoding => {
                let read = self.coding(value);
                self.judged(read)?;
            }
            FieldKind::MaxForwards => {
                let number = forwards(value);
                self.max_forwards = self.max_forwards.into_iter().chain(number).min();
            }
            FieldKind::Host if self.host.is_some() => return Err(Refusal::HostRepeated),
            FieldKind::Host => self.host = Some(value),
            FieldKind::Expect if self.expect || !value.eq_ignore_ascii_case(b"100-continue") => {
                return Err(Refusal::Expectation);
            }
            FieldKind::Expect => self.expect = true,
            FieldKind::Upgrade => {
                self.upgrade = true;
                self.upgrade_http2 |= list(value).any(|protocol| {
                    protocol.len() >= 2 && protocol[..2].eq_ignore_ascii_case(b"h2")
                });
            }
            FieldKind::Te => {
                self.te = true;
                self.te_trailers |=
                    list(value).any(|coding| coding.eq_ignore_ascii_case(b"trailers"));
            }
            FieldKind::HopByHop => self.changes = true,
            FieldKind::Lookalike => return Err(Refusal::LookalikeName),
            FieldKind::Other => {}
        }
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) -> Result<(), Refusal> {
        for option in list(value) {
            let is = |name: &[u8]| option.eq_ignore_ascii_case(name);
            if is(b"keep-alive") {
                self.options.keep_alive = true;
            } else if is(b"close") {
                self.options.close = true;
            } else if is(b"upgrade") {
                self.options.upgrade = true;
            } else if is(b"te") {
                self.options.te = true;
            } else {
                // Framing and routing fields are end-to-end.
                let fixed = matches!(
                    field_kind(Direction::Request, option),
                    FieldKind::ContentLength
                        | FieldKind::TransferEncoding
                        | FieldKind::Host
                        | FieldKind::Expect
                );
                if fixed || !is_token(option) || self.options.names >= CONNECTION_NAMES_MAX {
                    return Err(Refusal::Connection);
                }
                self.options.names += 1;
            }
        }
        Ok(())
    }

    fn length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let length = match net::http::content_length(value) {
            Ok(length) => length,
            Err(_) if value.is_empty() || !value.iter().all(u8::is_ascii_digit) => {
                return Err(Refusal::ContentLength);
            }
            Err(_) => return Err(Refusal::BodyTooLarge),
        };
        if let Some(known) = self.length {
            // A client must accept repeated equal values (RFC 9110 8.6), a server need not.
            if self.direction == Direction::Request || known != length {
                return Err(Refusal::ContentLengthRepeated);
            }
            self.changes = true;
        }
        self.changes |= value.len() > 1 && value[0] == b'0';
        self.length = Some(length);
        Ok(())
    }

    fn coding(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
        if self.chunked {
            return Err(Refusal::TransferEncoding);
        }
        if !is_chunked(value) {
            let mut codings = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            let last_only = codings.clone().filter(|coding| is_chunked(coding)).count() == 1
                && codings.next_back().is_some_and(is_chunked);
            return Err(match last_only {
                true => Refusal::CodingUnknown,
                false => Refusal::TransferEncoding,
            });
        }
        self.chunked = true;
        self.changes |= value != b"chunked";
        Ok(())
    }
}

/// A value of Max-Forwards (RFC 9110 7.6.2); `None` if it is no number.
pub(in crate::http) fn forwards(value: &[u8]) -> Option<u32> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let number = value.iter().fold(0_u32, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(u32::from(digit - b'0'))
    });
    is_number.then_some(number)
}

/// The fields that Connection names, to be dropped.
pub(in crate::http) struct NominatedNames<'a> {
    names: [&'a [u8]; CONNECTION_NAMES_MAX],
    count: usize,
}

impl<'a> NominatedNames<'a> {
    /// Collects the names of a head that has `count` of them.
    pub(in crate::http) fn gather(fields: Fields<'a>, count: usize) -> Self {
        let mut named = NominatedNames {
            names: [b""; CONNECTION_NAMES_MAX],
            count: 0,
        };
        if count == 0 {
            return named;
        }
        for name in fields.values(b"connection").flat_map(list) {
            let known = [&b"close"[..], b"keep-alive", b"upgrade", b"te"];
            if !known.iter().any(|known| name.eq_ignore_ascii_case(known))
                && let Some(place) = named.names.get_mut(named.count)
            {
                *place = name;
                named.count += 1;
            }
        }
        named
    }

    pub(in crate::http) fn has(&self, name: &[u8]) -> bool {
        self.names[..self.count]
            .iter()
            .any(|named| named.eq_ignore_ascii_case(name))
    }
}
