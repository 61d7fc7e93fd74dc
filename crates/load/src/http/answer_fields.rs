//! The field sections of answers in HTTP/2 and HTTP/3, checked as RFC 9113 8.2 and 8.3, and RFC 9114
//! 4.2 and 4.3 require. Nothing of them is kept, as [`net::FieldSection`] does.

use net::http::{is_control, is_token_byte};

use super::session::RemainingContent;

/// What is known of a section while its fields come.
#[derive(Default)]
pub(crate) struct AnswerFields {
    /// 0 if there is no valid one.
    status: u16,
    has_status: bool,
    has_field: bool,
    content: RemainingContent,
    wrong_length: Option<&'static str>,
    wrong: Option<&'static str>,
}

impl AnswerFields {
    /// Takes the next field.
    #[inline]
    pub(crate) fn take(&mut self, name: &[u8], value: &[u8]) {
        if name.first() == Some(&b':') {
            let is_first = name == b":status" && !self.has_status && !self.has_field;
            if !is_first {
                self.wrong = self.wrong.or(Some("pseudo-fields that no answer has"));
            }
            (self.status, self.has_status) = (status(value), true);
            return;
        }
        self.has_field = true;
        // Without an early end, so that several bytes are looked at at once.
        let is_broken = name
            .iter()
            .fold(false, |is, byte| is | !is_name_byte(*byte))
            | value.iter().fold(false, |is, byte| is | is_control(*byte));
        let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        if is_broken || name.is_empty() || is_blank(value.first()) || is_blank(value.last()) {
            self.wrong = self.wrong.or(Some(told(name, value)));
        }
        match name {
            b"content-length" => {
                let announced = self.content.announce(value).err();
                self.wrong_length = self.wrong_length.or(announced);
            }
            b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding"
            | b"upgrade" | b"te" => {
                self.wrong = self.wrong.or(Some("a field of HTTP/1.1 connections"));
            }
            _ => {}
        }
    }

    /// The status of a head, which may be an interim one. HTTP/2 and HTTP/3 have no 101 (RFC 9113, 8.6).
    ///
    /// # Errors
    /// What makes the answer malformed.
    #[inline]
    pub(crate) fn head(&self) -> Result<u16, &'static str> {
        match (self.wrong, self.status) {
            (Some(what), _) => Err(what),
            (None, 0 | 101) => Err("no valid status"),
            (None, status) => Ok(status),
        }
    }

    /// How much content the head of a final answer announces.
    ///
    /// # Errors
    /// When its `content-length` is wrong, and it may have content.
    #[inline]
    pub(crate) fn content(&self, is_head_request: bool) -> Result<RemainingContent, &'static str> {
        match RemainingContent::of_empty(self.status, is_head_request) {
            Some(empty) => Ok(empty),
            None => self.wrong_length.map_or(Ok(self.content), Err),
        }
    }

    /// What makes a trailer section malformed.
    #[inline]
    pub(crate) fn wrong_trailers(&self) -> Option<&'static str> {
        let has_status = self.has_status.then_some("a second head");
        self.wrong.or(has_status)
    }
}

/// Whether it is a byte of a token, and no capital.
#[inline]
fn is_name_byte(byte: u8) -> bool {
    is_token_byte(byte) & !byte.is_ascii_uppercase()
}

/// A status of three digits, from 100; 0 for others.
#[inline]
fn status(value: &[u8]) -> u16 {
    match value {
        [
            hundreds @ b'1'..=b'9',
            tens @ b'0'..=b'9',
            ones @ b'0'..=b'9',
        ] => {
            let digit = |byte: u8| u16::from(byte - b'0');
            100 * digit(*hundreds) + 10 * digit(*tens) + digit(*ones)
        }
        _ => 0,
    }
}

/// What is wrong with a field.
#[cold]
fn told(name: &[u8], value: &[u8]) -> &'static str {
    let ends_text = |byte: &u8| matches!(byte, 0 | b'\n' | b'\r');
    match () {
        () if name.iter().chain(value).any(ends_text) => "a field with CR, LF or NUL",
        () if name.iter().any(u8::is_ascii_uppercase) => "a field name with capitals",
        () if name.is_empty() || !name.iter().all(|byte| is_name_byte(*byte)) => {
            "an invalid field name"
        }
        () => "an invalid field value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[(&str, &str)]) -> AnswerFields {
        let mut all = AnswerFields::default();
        for (name, value) in fields {
            all.take(name.as_bytes(), value.as_bytes());
        }
        all
    }

    /// The same section means the same to the balancer.
    #[test]
    fn heads_are_good_where_the_other_reader_takes_them() {
        let statuses = [
            "200", "103", "999", "101", "099", "20", "2000", "+20", "abc", "",
        ];
        let (names, values) = (
            [
                "a",
                "A",
                "",
                "a b",
                "a:b",
                "a(",
                "\u{e9}",
                "a\n",
                "te",
                "upgrade",
                ":a",
                "connection",
            ],
            [
                "", "b", "\u{e9}", "a\tb", " a", "a\t", "\r", "\0", "\u{1}", "\u{7f}",
            ],
        );
        let mut cases = Vec::new();
        for status in statuses {
            for name in names {
                for value in values {
                    cases.push(vec![(":status", status), (name, value)]);
                    cases.push(vec![(name, value), (":status", status)]);
                    cases.push(vec![
                        (":status", status),
                        (":status", status),
                        (name, value),
                    ]);
                }
            }
        }
        cases.extend([vec![], vec![("a", "b")]]);
        for fields in cases {
            let mut other = net::http::FieldSection::default();
            for (name, value) in &fields {
                other.take(name.as_bytes(), value.as_bytes());
            }
            let own = of(&fields);
            assert_eq!(own.head().is_ok(), other.is_response(), "{fields:?}");
            assert_eq!(
                own.head().unwrap_or(0),
                if other.is_response() {
                    other.status()
                } else {
                    0
                }
            );
            let is_trailers = own.wrong_trailers().is_none();
            assert_eq!(is_trailers, other.is_trailers(), "{fields:?}");
        }
    }

    #[test]
    fn lengths_matter_where_there_is_content() {
        let wrong = of(&[
            (":status", "200"),
            ("content-length", "5"),
            ("content-length", "6"),
        ]);
        assert!(wrong.content(false).is_err() && wrong.content(true).is_ok());
        let same = of(&[
            (":status", "200"),
            ("content-length", "5"),
            ("content-length", "5"),
        ]);
        let mut left = same.content(false).unwrap();
        assert!(left.take(5).is_ok() && left.end().is_ok() && left.take(1).is_err());
    }
}
