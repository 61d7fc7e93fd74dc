//! The fields of heads and trailers in HTTP/2 and HTTP/3, checked as RFC 9113 8.2 and 8.3, and RFC
//! 9114 4.2 and 4.3 require.

use std::ops::Range;

use super::h1::{content_length, is_control, is_token, is_token_byte};

/// A head or a trailer section. It can be cleared and used again, with its memory.
#[derive(Debug, Default)]
pub struct FieldSection {
    bytes: Vec<u8>,
    /// Names and values in `bytes`.
    fields: Vec<(Range<usize>, Range<usize>)>,
    status: Option<Range<usize>>,
    method: Option<Range<usize>>,
    scheme: Option<Range<usize>>,
    path: Option<Range<usize>>,
    authority: Option<Range<usize>>,
    protocol: Option<Range<usize>>,
    host: Option<Range<usize>>,
    length: Option<u64>,
    has_pseudo: bool,
    is_malformed: bool,
}

impl FieldSection {
    /// The status of a response; 0 if there is no valid one.
    pub fn status(&self) -> u16 {
        match self.part(&self.status) {
            digits @ [b'1'..=b'9', _, _] if digits.iter().all(u8::is_ascii_digit) => digits
                .iter()
                .fold(0, |status, digit| status * 10 + u16::from(digit - b'0')),
            _ => 0,
        }
    }

    pub fn method(&self) -> &[u8] {
        self.part(&self.method)
    }

    /// The path with its query, or `*`.
    pub fn path(&self) -> &[u8] {
        self.part(&self.path)
    }

    /// `:authority`, or the `host` field if there is none.
    pub fn authority(&self) -> Option<&[u8]> {
        let range = self.authority.clone().or_else(|| self.host.clone())?;
        Some(&self.bytes[range])
    }

    /// `:protocol` of an extended CONNECT (RFC 8441).
    pub fn protocol(&self) -> Option<&[u8]> {
        let range = self.protocol.clone()?;
        Some(&self.bytes[range])
    }

    /// `content-length`.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Names in lower case and values, in order; pseudo-fields are left out.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields
            .iter()
            .map(|(name, value)| (&self.bytes[name.clone()], &self.bytes[value.clone()]))
    }

    fn part(&self, range: &Option<Range<usize>>) -> &[u8] {
        range
            .as_ref()
            .map_or(&[], |range| &self.bytes[range.clone()])
    }

    /// Empties it for the next section.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
        self.status = None;
        (self.method, self.scheme, self.path) = (None, None, None);
        (self.authority, self.host, self.length) = (None, None, None);
        (self.protocol, self.has_pseudo, self.is_malformed) = (None, false, false);
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// Takes the next field.
    pub fn take(&mut self, name: &[u8], value: &[u8]) {
        let is_padded = value.trim_ascii() != value;
        self.is_malformed |=
            value.iter().any(|byte| is_control(*byte)) || is_padded || name.is_empty();
        let range = self.keep(value);
        if let Some(pseudo) = name.strip_prefix(b":") {
            self.has_pseudo = true;
            // Pseudo-fields come first.
            self.is_malformed |= !self.fields.is_empty();
            let place = match pseudo {
                b"status" => &mut self.status,
                b"method" => &mut self.method,
                b"scheme" => &mut self.scheme,
                b"path" => &mut self.path,
                b"authority" => &mut self.authority,
                b"protocol" => &mut self.protocol,
                _ => return self.is_malformed = true,
            };
            self.is_malformed |= place.replace(range).is_some();
            return;
        }
        self.is_malformed |= !name.iter().all(is_name_byte);
        match name {
            b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding"
            | b"upgrade" => self.is_malformed = true,
            b"te" => self.is_malformed |= value != b"trailers",
            b"content-length" => {
                let length = content_length(value).ok();
                self.is_malformed |= length.is_none() || self.length.is_some();
                self.length = length;
            }
            b"host" => self.is_malformed |= self.host.replace(range.clone()).is_some(),
            _ => {}
        }
        let name = self.keep(name);
        self.fields.push((name, range));
    }

    /// Whether it is the head of a valid request, and no extended CONNECT.
    pub fn is_request(&self) -> bool {
        self.protocol.is_none() && self.has_request()
    }

    /// Whether it is the head of a valid extended CONNECT (RFC 8441 section 4). It has no content,
    /// so that no length can be said of it (RFC 9110 9.3.6).
    pub fn is_extended_connect(&self) -> bool {
        let is_connect = self.method() == b"CONNECT" && self.authority.is_some();
        let names_protocol = self.protocol().is_some_and(is_token);
        is_connect && names_protocol && self.length.is_none() && self.has_request()
    }

    fn has_request(&self) -> bool {
        let (method, path) = (self.method(), self.path());
        let scheme_is_known = matches!(self.part(&self.scheme), b"http" | b"https");
        let has_space = path.iter().any(|byte| !byte.is_ascii_graphic());
        let is_path = path.starts_with(b"/") || (path == b"*" && method == b"OPTIONS");
        // RFC 9113 8.3.1: if both are given, they must be equal.
        let names_two = self.authority.is_some()
            && self.host.is_some()
            && !self
                .part(&self.authority)
                .eq_ignore_ascii_case(self.part(&self.host));
        let is_authority = self.part(&self.authority).iter().all(u8::is_ascii_graphic);
        !self.is_malformed
            && self.status.is_none()
            && scheme_is_known
            && !has_space
            && is_path
            && !names_two
            && is_token(method)
            && is_authority
    }

    /// Whether it is the head of a valid response. HTTP/2 and HTTP/3 have no status 101 (RFC 9113
    /// 8.6).
    pub fn is_response(&self) -> bool {
        let of_requests = [
            &self.method,
            &self.scheme,
            &self.path,
            &self.authority,
            &self.protocol,
        ];
        !self.is_malformed
            && of_requests.iter().all(|part| part.is_none())
            && !matches!(self.status(), 0 | 101)
    }

    /// Whether it is a valid trailer section.
    pub fn is_trailers(&self) -> bool {
        !self.has_pseudo && !self.is_malformed
    }
}

fn is_name_byte(byte: &u8) -> bool {
    is_token_byte(*byte) && !byte.is_ascii_uppercase()
}
