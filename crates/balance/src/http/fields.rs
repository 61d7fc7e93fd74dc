//! The lines of a head, read strictly, and the fields in them.

use memchr::memchr;

use super::{HEAD_BYTES_MAX, Refusal};

/// One field of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name as it was sent: a token.
    pub name: &'a [u8],
    /// The value without the blanks around it. No control character but the tab is in it.
    pub value: &'a [u8],
    /// The whole line with its end.
    pub(super) line: &'a [u8],
}

impl Field<'_> {
    /// Whether this is the name, in any case.
    #[inline]
    pub fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// The fields of a head that was read, in order.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    /// Lines that were checked; the empty one at the end is not among them.
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(lines: &'a [u8]) -> Self {
        Fields { rest: lines }
    }

    /// The values of all fields of that name, in order; the name may be in any case.
    pub fn values(self, name: &[u8]) -> impl Iterator<Item = &'a [u8]> {
        self.filter(move |field| field.is(name))
            .map(|field| field.value)
    }

    /// Whether there is a field of that name, in any case.
    pub(super) fn has(mut self, name: &[u8]) -> bool {
        self.any(|field| field.is(name))
    }

    /// The value of the first cookie of that name in the Cookie fields, without its quotes. Read
    /// as RFC 6265 (5.4) writes them, and as leniently as servers do.
    pub fn cookie(self, name: &[u8]) -> Option<&'a [u8]> {
        self.values(b"cookie")
            .flat_map(|value| value.split(|byte| *byte == b';'))
            .find_map(|pair| {
                let pair = pair.trim_ascii();
                let at = memchr(b'=', pair)?;
                let (key, value) = (pair[..at].trim_ascii_end(), pair[at + 1..].trim_ascii());
                let value = match value {
                    [b'"', inner @ .., b'"'] => inner,
                    plain => plain,
                };
                (key == name).then_some(value)
            })
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
            name: &line[..colon],
            value: line[colon + 1..].trim_ascii(),
            line,
        })
    }
}

/// Reads lines from the front of a head. A line is read only when it is complete, and each is
/// judged by itself, so that the beginning of a head is refused for the same reason as the whole.
pub(super) struct Lines<'a> {
    bytes: &'a [u8],
    /// Whether the head is longer than what may be read of it.
    cut: bool,
    pub(super) at: usize,
}

/// One line of a head's fields.
pub(super) enum Line<'a> {
    Field(Field<'a>),
    /// The empty line: the head ends behind it.
    End,
    /// The line is not complete.
    Partial,
}

impl<'a> Lines<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Lines {
            bytes: &input[..input.len().min(HEAD_BYTES_MAX)],
            cut: input.len() >= HEAD_BYTES_MAX,
            at: 0,
        }
    }

    /// What has not been read.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// What was read from `from` on.
    pub(super) fn read_from(&self, from: usize) -> &'a [u8] {
        &self.bytes[from..self.at]
    }

    /// Whether nothing more can be read because the head is too long.
    pub(super) fn cut(&self) -> bool {
        self.cut
    }

    /// The next line without its end; `None` when it is not complete.
    #[inline]
    pub(super) fn line(&mut self) -> Result<Option<&'a [u8]>, Refusal> {
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

    /// The next line of the fields.
    #[inline]
    pub(super) fn field(&mut self) -> Result<Line<'a>, Refusal> {
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
        let colon = text.iter().position(|byte| !is_token_byte(*byte));
        let colon = match colon.map(|at| (at, text[at])) {
            Some((at @ 1.., b':')) => at,
            Some((0, b' ' | b'\t')) => return Err(Refusal::FoldedLine),
            Some((_, b' ' | b'\t')) => return Err(Refusal::BlankInName),
            Some((_, b'\r')) => return Err(Refusal::LineEnd),
            _ => return Err(Refusal::FieldName),
        };
        let value = &text[colon + 1..];
        check_value(value)?;
        Ok(Line::Field(Field {
            name: &text[..colon],
            value: value.trim_ascii(),
            line: self.read_from(from),
        }))
    }
}

/// Refuses what may not be in a value: control characters but the tab (RFC 9110 5.5).
#[inline]
pub(super) fn check_value(value: &[u8]) -> Result<(), Refusal> {
    // Without a way out of the loop the compiler looks at many bytes at once.
    let bad = value
        .iter()
        .fold(false, |bad, byte| bad | is_control(*byte));
    match bad {
        false => Ok(()),
        true if value.contains(&b'\r') => Err(Refusal::LineEnd),
        true => Err(Refusal::FieldValue),
    }
}

/// Whether a byte is a control character other than the tab.
#[inline]
pub(super) fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

/// Whether a byte can be in a token: a method or the name of a field (RFC 9110 5.6.2).
#[inline]
pub(super) fn is_token_byte(byte: u8) -> bool {
    TOKEN[byte as usize]
}

/// Whether these bytes are a token.
pub(super) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| is_token_byte(*byte))
}

const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            );
        byte += 1;
    }
    table
};

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
