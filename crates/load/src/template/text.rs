//! Numbers as text, and text as URLs have it.

const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// Whether a byte is one of RFC 3986's unreserved characters.
const UNRESERVED: [bool; 256] = {
    let mut set = [false; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        set[at] = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        at += 1;
    }
    set
};

/// The eight decimal digits of a number below 10^8, the first one in the lowest byte; 0 to 9 each. They
/// are made two, four and eight at a time, with divisions by multiplication.
#[inline]
fn eight_decimals(number: u64) -> u64 {
    let four = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((four * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let two = hundreds | ((four - hundreds * 100) << 16);
    let tens = ((two * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((two - tens * 10) << 8)
}

/// Appends a number in decimal digits.
#[inline]
pub(crate) fn decimal(number: u64, out: &mut Vec<u8>) {
    const EIGHT: u64 = 100_000_000;
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    if number < EIGHT {
        let digits = eight_decimals(number);
        // Zeros that lead it, but for a last one.
        let zeros = (digits.trailing_zeros() / 8).min(7);
        out.extend_from_slice(&((digits >> (8 * zeros)) | ZEROS).to_le_bytes());
        out.truncate(out.len() - zeros as usize);
        return;
    }
    decimal_of_many(number / EIGHT, out);
    out.extend_from_slice(&(eight_decimals(number % EIGHT) | ZEROS).to_le_bytes());
}

/// [`decimal`], which is inlined and does not call itself.
fn decimal_of_many(number: u64, out: &mut Vec<u8>) {
    decimal(number, out);
}

/// The same, of one that may be negative.
#[inline]
pub(super) fn signed(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    decimal(number.unsigned_abs(), out);
}

/// The eight hexadecimal digits of a number, made all at once.
#[inline]
fn eight(bits: u32) -> [u8; 8] {
    // One digit in each byte.
    let mut digits = u64::from(bits);
    digits = (digits | digits << 16) & 0x0000_ffff_0000_ffff;
    digits = (digits | digits << 8) & 0x00ff_00ff_00ff_00ff;
    digits = (digits | digits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // 1 where it is a letter.
    let letters = (digits + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (digits + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'9' - 1)).to_be_bytes()
}

/// The sixteen of a number.
#[inline]
fn sixteen(bits: u64) -> [u8; 16] {
    let mut all = [0; 16];
    all[..8].copy_from_slice(&eight((bits >> 32) as u32));
    all[8..].copy_from_slice(&eight(bits as u32));
    all
}

/// Appends the first so many hexadecimal digits of a number, at most 16.
#[inline]
pub(super) fn hex(bits: u64, digits: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&sixteen(bits)[..digits.min(16)]);
}

/// Appends a UUID of version 4 with the random bits of these (RFC 9562, 5.4).
pub(super) fn uuid(high: u64, low: u64, out: &mut Vec<u8>) {
    let high = sixteen(high & !0xf000 | 0x4000);
    let low = sixteen(low & !(3 << 62) | 2 << 62);
    let mut text = [b'-'; 36];
    text[..8].copy_from_slice(&high[..8]);
    text[9..13].copy_from_slice(&high[8..12]);
    text[14..18].copy_from_slice(&high[12..]);
    text[19..23].copy_from_slice(&low[..4]);
    text[24..].copy_from_slice(&low[4..]);
    out.extend_from_slice(&text);
}

/// Appends text, percent-encoded where it has to be in a URL.
#[inline]
pub(super) fn encoded(mut text: &[u8], out: &mut Vec<u8>) {
    let is_special = |byte: &u8| !UNRESERVED[usize::from(*byte)];
    while let Some(at) = text.iter().position(is_special) {
        let byte = text[at];
        out.extend_from_slice(&text[..at]);
        out.extend_from_slice(&[
            b'%',
            UPPER[usize::from(byte >> 4)],
            UPPER[usize::from(byte & 15)],
        ]);
        text = &text[at + 1..];
    }
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(append: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        append(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_uuid_says_its_version_and_variant() {
        let of = |high, low| text(|out| uuid(high, low, out));
        assert_eq!(of(0, 0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(
            of(u64::MAX, u64::MAX),
            "ffffffff-ffff-4fff-bfff-ffffffffffff"
        );
        assert_eq!(
            of(0x0123_4567_89ab_cdef, 0x0123_4567_89ab_cdef),
            "01234567-89ab-4def-8123-456789abcdef"
        );
    }

    #[test]
    fn all_but_unreserved_characters_are_encoded() {
        let of = |from: &str| text(|out| encoded(from.as_bytes(), out));
        assert_eq!(of("aZ09-._~"), "aZ09-._~");
        assert_eq!(of("a b/ü&%\r\n"), "a%20b%2F%C3%BC%26%25%0D%0A");
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_elsewhere(number: u64, shift in 0u32..64) {
            let number = number >> shift;
            prop_assert_eq!(text(|out| decimal(number, out)), number.to_string());
            prop_assert_eq!(text(|out| signed(number as i64, out)), (number as i64).to_string());
            prop_assert_eq!(text(|out| hex(number, 16, out)), format!("{number:016x}"));
        }
    }
}
