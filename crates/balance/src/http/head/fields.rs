//! Strict parsing of the lines and fields of a head.

use memchr::memchr;

use net::http::{HEAD_BYTES_MAX, is_control, is_token_byte};

use crate::http::{Direction, Refusal};
use crate::sticky::cookie;

/// A header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name as sent: a token.
    pub name: &'a [u8],
    /// The value without surrounding whitespace. Tab is its only control character.
    pub value: &'a [u8],
    /// The whole line with its end.
    pub(in crate::http) line: &'a [u8],
}

impl Field<'_> {
    /// Whether the colon follows the name at once, as it has to in what is forwarded.
    #[inline]
    pub(in crate::http) fn is_joined(&self) -> bool {
        self.line.get(self.name.len()) == Some(&b':')
    }

    /// Case-insensitive comparison of the name.
    #[inline]
    pub fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// The fields of a parsed head, in order.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    /// Validated lines without the empty one at the end.
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(in crate::http) fn new(lines: &'a [u8]) -> Self {
        Fields { rest: lines }
    }

    /// All values of a field, in order; case-insensitive.
    pub fn values(self, name: &[u8]) -> impl Iterator<Item = &'a [u8]> {
        self.filter(move |field| field.is(name))
            .map(|field| field.value)
    }

    /// Whether there is such a field; case-insensitive.
    pub(in crate::http) fn has(mut self, name: &[u8]) -> bool {
        self.any(|field| field.is(name))
    }

    /// The value of a cookie, without quotes; the first if there are several. Parsed as RFC 6265
    /// (5.4) has it, as leniently as servers do.
    pub fn cookie(self, name: &[u8]) -> Option<&'a [u8]> {
        self.values(b"cookie").find_map(|value| cookie(value, name))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        let end = memchr(b'\n', self.rest)?;
        let (line, rest) = self.rest.split_at(end + 1);
        self.rest = rest;
        let colon = memchr(b':', line)?;
        Some(Field {
            name: line[..colon].trim_ascii_end(),
            value: line[colon + 1..].trim_ascii(),
            line,
        })
    }
}

/// Reads lines of a head. Only complete lines are read and each is judged by itself, so that part
/// of a head is refused for the same reason as the whole.
pub(in crate::http) struct Lines<'a> {
    direction: Direction,
    bytes: &'a [u8],
    /// The input is longer than a head may be.
    cut: bool,
    pub(in crate::http) at: usize,
    /// Whether blanks stood before a colon.
    pub(in crate::http) has_blanks: bool,
}

/// A line of the header section.
pub(in crate::http) enum Line<'a> {
    Field(Field<'a>),
    End,
    /// An incomplete line.
    Partial,
}

impl<'a> Lines<'a> {
    pub(in crate::http) fn new(direction: Direction, input: &'a [u8]) -> Self {
        Lines {
            direction,
            bytes: &input[..input.len().min(HEAD_BYTES_MAX)],
            cut: input.len() >= HEAD_BYTES_MAX,
            at: 0,
            has_blanks: false,
        }
    }

    pub(in crate::http) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// What was read from `from` on.
    pub(in crate::http) fn read_from(&self, from: usize) -> &'a [u8] {
        &self.bytes[from..self.at]
    }

    /// Whether the head is too long to read on.
    pub(in crate::http) fn cut(&self) -> bool {
        self.cut
    }

    /// The next line without its end; `None` if incomplete.
    #[inline]
    pub(in crate::http) fn line(&mut self) -> Result<Option<&'a [u8]>, Refusal> {
        let rest = self.rest();
        let Some(end) = memchr(b'\n', rest) else {
            return Ok(None);
        };
        match &rest[..end] {
            [text @ .., b'\r'] => {
                self.at += end + 1;
                Ok(Some(text))
            }
            _ => Err(Refusal::LineEnd),
        }
    }

    /// The next line of the header section.
    #[inline]
    pub(in crate::http) fn field(&mut self) -> Result<Line<'a>, Refusal> {
        let from = self.at;
        let Some(text) = self.line()? else {
            return match self.cut {
                true => Err(Refusal::HeadTooLarge),
                false => Ok(Line::Partial),
            };
        };
        if text.is_empty() {
            return Ok(Line::End);
        }
        let end = text.iter().position(|byte| !is_token_byte(*byte));
        let (end, colon) = match end.map(|at| (at, text[at])) {
            Some((at @ 1.., b':')) => (at, at),
            Some((0, b' ' | b'\t')) => return Err(Refusal::FoldedLine),
            Some((at, b' ' | b'\t')) => (at, self.colon_behind_blanks(text, at)?),
            Some((_, b'\r')) => return Err(Refusal::LineEnd),
            _ => return Err(Refusal::FieldName),
        };
        let value = &text[colon + 1..];
        check_value(value)?;
        Ok(Line::Field(Field {
            name: &text[..end],
            value: value.trim_ascii(),
            line: self.read_from(from),
        }))
    }
}

impl Lines<'_> {
    /// Where the colon stands behind the blanks at a place, which are to be removed: a proxy refuses
    /// them in a request and removes them from a response (RFC 9112 5.1).
    #[cold]
    fn colon_behind_blanks(&mut self, text: &[u8], at: usize) -> Result<usize, Refusal> {
        let rest = text[at..].trim_ascii_start();
        if self.direction == Direction::Request || !rest.starts_with(b":") {
            return Err(Refusal::BlankInName);
        }
        self.has_blanks = true;
        Ok(text.len() - rest.len())
    }
}

/// Refuses control characters other than tab (RFC 9110 5.5).
#[inline]
pub(in crate::http) fn check_value(value: &[u8]) -> Result<(), Refusal> {
    // Without an early exit the compiler vectorizes this.
    let bad = value
        .iter()
        .fold(false, |bad, byte| bad | is_control(*byte));
    match bad {
        false => Ok(()),
        true if value.contains(&b'\r') => Err(Refusal::LineEnd),
        true => Err(Refusal::FieldValue),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_found_wherever_they_stand() {
        let lines = b"Host: x\r\nCookie: a=1; b=\"two\";c = 3 \r\ncookie: d=4; a=5; e=x=y\r\n";
        let fields = Fields::new(lines);
        for (name, value) in [
            ("a", Some("1")),
            ("b", Some("two")),
            ("c", Some("3")),
            ("d", Some("4")),
            ("e", Some("x=y")),
            ("A", None),
            ("f", None),
        ] {
            assert_eq!(
                fields.cookie(name.as_bytes()),
                value.map(str::as_bytes),
                "{name}"
            );
        }
    }

    #[test]
    fn values_come_in_order_and_without_blanks() {
        let fields = Fields::new(b"A: 1\r\nb:\t2 \t\r\na:\r\n");
        let values: Vec<&[u8]> = fields.values(b"A").collect();
        assert_eq!(values, [b"1".as_slice(), b""]);
        assert_eq!(fields.values(b"B").next(), Some(b"2".as_slice()));
    }
}
