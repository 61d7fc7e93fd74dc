//! What names, values, lists and lines are made of, in every version of HTTP.

/// Whether it is a byte of a token, such as a method or a field name (RFC 9110 5.6.2).
#[inline]
pub fn is_token_byte(byte: u8) -> bool {
    TOKEN[byte as usize]
}

pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| is_token_byte(*byte))
}

/// Whether it is a control character other than tab, which no field value may have (RFC 9110 5.5).
#[inline]
pub fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

/// The elements of a list, without empty ones (RFC 9110 5.6.1).
#[inline]
pub fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|element| !element.is_empty())
}

/// Whether an empty line, whose end lies behind `from`, follows a line. Both may end with a bare
/// line feed.
pub fn has_empty_line(bytes: &[u8], from: usize) -> bool {
    let rest = bytes.get(from.saturating_sub(2)..).unwrap_or_default();
    rest.iter().enumerate().any(|(at, byte)| {
        *byte == b'\n' && matches!(rest[at + 1..], [b'\n', ..] | [b'\r', b'\n', ..])
    })
}

/// The same bytes as HTTP/1.1 where a later minor version of HTTP/1 stands at this place: it is
/// processed as the highest one that is known (RFC 9110 2.5).
#[cold]
pub(super) fn as_known_version(input: &[u8], at: usize) -> Option<Vec<u8>> {
    match input.get(at..at + "HTTP/1.2".len()) {
        Some([b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9']) => {
            let mut known = input.to_vec();
            known[at + "HTTP/1.".len()] = b'1';
            Some(known)
        }
        _ => None,
    }
}

static TOKEN: [bool; 256] = {
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
