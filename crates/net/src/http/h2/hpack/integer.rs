//! Integers, RFC 7541 section 5.1.

use crate::http::h2::H2Error;

/// Bytes behind the prefix that are accepted: 28 bits.
const BEHIND_MAX: usize = 4;

const CUT: H2Error = H2Error::compression("a header block that ends within an integer");
const TOO_LARGE: H2Error = H2Error::compression("an integer of HPACK that is too large");

/// Reads an integer whose first byte has it in the low `prefix` bits. Returns it and what is behind.
#[inline]
pub(crate) fn read(input: &[u8], prefix: u32) -> Result<(usize, &[u8]), H2Error> {
    let (&first, rest) = input.split_first().ok_or(CUT)?;
    let full = (1usize << prefix) - 1;
    let value = usize::from(first) & full;
    if value < full {
        return Ok((value, rest));
    }
    read_behind(value, rest)
}

fn read_behind(mut value: usize, input: &[u8]) -> Result<(usize, &[u8]), H2Error> {
    for (at, &byte) in input.iter().take(BEHIND_MAX).enumerate() {
        value += usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((value, &input[at + 1..]));
        }
    }
    Err(if input.len() < BEHIND_MAX {
        CUT
    } else {
        TOO_LARGE
    })
}

/// Appends an integer; `pattern` are the bits above the prefix in the first byte.
#[inline]
pub(crate) fn write(out: &mut Vec<u8>, pattern: u8, prefix: u32, value: usize) {
    let full = (1usize << prefix) - 1;
    if value < full {
        // Below 2^8, as the prefix has at most 8 bits.
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | full as u8);
    let mut left = value - full;
    while left >= 0x80 {
        out.push(0x80 | (left & 0x7f) as u8);
        left >>= 7;
    }
    out.push(left as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::h2::ErrorCode;
    use proptest::prelude::*;

    fn written(prefix: u32, value: usize) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, 0, prefix, value);
        out
    }

    /// RFC 7541 appendix C.1.
    #[test]
    fn examples() {
        assert_eq!(written(5, 10), [0x0a]);
        assert_eq!(written(5, 1337), [0x1f, 0x9a, 0x0a]);
        assert_eq!(written(8, 42), [0x2a]);
        assert_eq!(read(&[0xea], 5), Ok((10, &[][..])));
        assert_eq!(read(&[0xff, 0x9a, 0x0a, 7], 5), Ok((1337, &[7][..])));
        assert_eq!(read(&[0x2a], 8), Ok((42, &[][..])));
    }

    #[test]
    fn cut_and_too_large() {
        assert_eq!(read(&[], 7), Err(CUT));
        assert_eq!(read(&[0x7f], 7), Err(CUT));
        assert_eq!(read(&[0x7f, 0x80, 0xff], 7), Err(CUT));
        assert_eq!(read(&[0x7f, 0xff, 0xff, 0xff, 0xff], 7), Err(TOO_LARGE));
        assert_eq!(read(&[0x7f, 0x80, 0x80, 0x80, 0x80, 0], 7), Err(TOO_LARGE));
        assert_eq!(
            read(&[0x7f, 0xff, 0xff, 0xff, 0x7f], 7),
            Ok((127 + (1 << 28) - 1, &[][..]))
        );
        assert_eq!(CUT.code, ErrorCode::CompressionError);
        assert_eq!(TOO_LARGE.code, ErrorCode::CompressionError);
    }

    proptest! {
        #[test]
        fn round_trip(prefix in 1u32..=8, value in 0usize..1 << 28) {
            let bytes = written(prefix, value);
            prop_assert_eq!(read(&bytes, prefix), Ok((value, &[][..])));
        }
    }
}
