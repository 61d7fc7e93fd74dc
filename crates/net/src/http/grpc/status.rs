//! Statuses of calls, and the texts beside them.

use std::borrow::Cow;

/// The status of a call that succeeded.
pub const OK: u32 = 0;

/// The names of the statuses
/// (<https://github.com/grpc/grpc/blob/master/doc/statuscodes.md>).
const NAMES: &str = "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS \
    PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED \
    INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED";

/// The name of a status, such as `UNAVAILABLE`; `None` if it has none.
pub fn status_name(status: u32) -> Option<&'static str> {
    NAMES.split(' ').nth(status as usize)
}

/// Reads a `grpc-status`: decimal digits. `None` if it is not one, or above 999,999,999.
#[inline]
pub fn parse_status(value: &[u8]) -> Option<u32> {
    let is_number = (1..=9).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    is_number.then(|| {
        let digits = value.iter().map(|byte| u32::from(byte - b'0'));
        digits.fold(0, |sum, digit| sum * 10 + digit)
    })
}

/// Writes a `grpc-message`: UTF-8, in which all but printable ASCII, and `%`, is percent-encoded.
pub fn encode_message(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            _ => {
                let digit = |half: u8| char::from(b"0123456789ABCDEF"[usize::from(half)]);
                encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
    encoded
}

/// Reads a `grpc-message`. What is no valid encoding stays as it is, or is replaced: a text that
/// cannot be read may not be an error.
pub fn decode_message(value: &[u8]) -> String {
    let hex = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((byte, behind)) = rest.split_first() {
        match (byte, hex(behind.first()), hex(behind.get(1))) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high << 4 | low) as u8);
                rest = &behind[2..];
            }
            _ => {
                decoded.push(*byte);
                rest = behind;
            }
        }
    }
    match String::from_utf8_lossy(&decoded) {
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(text) => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn statuses_are_decimal_and_have_names() {
        assert_eq!(
            parse_status(b"14").and_then(status_name),
            Some("UNAVAILABLE")
        );
        assert_eq!(parse_status(b"0").and_then(status_name), Some("OK"));
        assert_eq!(parse_status(b"17").and_then(status_name), None);
        for bad in [&b""[..], b"-1", b"+1", b" 1", b"1a", b"9999999999"] {
            assert_eq!(parse_status(bad), None, "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn a_message_that_is_badly_encoded_is_kept() {
        assert_eq!(
            decode_message(b"100%25 of%20it: %zz%2"),
            "100% of it: %zz%2"
        );
        assert_eq!(decode_message(b"%ff"), "\u{fffd}");
        assert_eq!(encode_message("50 %\n\u{e4}"), "50 %25%0A%C3%A4");
    }

    proptest! {
        #[test]
        fn messages_come_back(text in any::<String>()) {
            let encoded = encode_message(&text);
            prop_assert!(encoded.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert_eq!(decode_message(encoded.as_bytes()), text);
        }
    }
}
