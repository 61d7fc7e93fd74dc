//! Numbers as text, and text as URLs have it.

/// The numbers from 00 to 99.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut at = 0;
    while at < 100 {
        pairs[at] = [b'0' + at as u8 / 10, b'0' + at as u8 % 10];
        at += 1;
    }
    pairs
};
const LOWER: &[u8; 16] = b"0123456789abcdef";
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

/// Appends a number in decimal digits.
#[inline]
pub(crate) fn decimal(mut number: u64, out: &mut Vec<u8>) {
    // The longest has 20.
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    while number >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    let [tens, ones] = PAIRS[number as usize];
    at -= 1;
    digits[at] = ones;
    if number >= 10 {
        at -= 1;
        digits[at] = tens;
    }
    out.extend_from_slice(&digits[at..]);
}

/// The same, of one that may be negative.
pub(super) fn signed(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    decimal(number.unsigned_abs(), out);
}

/// Appends the first so many hexadecimal digits of a number, at most 16.
#[inline]
pub(super) fn hex(bits: u64, digits: usize, out: &mut Vec<u8>) {
    let mut all = [0u8; 16];
    for (at, byte) in bits.to_be_bytes().into_iter().enumerate() {
        all[2 * at] = LOWER[usize::from(byte >> 4)];
        all[2 * at + 1] = LOWER[usize::from(byte & 15)];
    }
    out.extend_from_slice(&all[..digits.min(16)]);
}

/// Appends a UUID of version 4 with the random bits of these (RFC 9562, 5.4).
pub(super) fn uuid(high: u64, low: u64, out: &mut Vec<u8>) {
    let high = high & !0xf000 | 0x4000;
    let low = low & !(3 << 62) | 2 << 62;
    hex(high, 8, out);
    out.push(b'-');
    hex(high << 32, 4, out);
    out.push(b'-');
    hex(high << 48, 4, out);
    out.push(b'-');
    hex(low, 4, out);
    out.push(b'-');
    hex(low << 16, 12, out);
}

/// Appends text, percent-encoded where it has to be in a URL.
#[inline]
pub(super) fn encoded(text: &[u8], out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| UNRESERVED[usize::from(*byte)];
    if text.iter().all(is_plain) {
        return out.extend_from_slice(text);
    }
    for byte in text {
        match is_plain(byte) {
            true => out.push(*byte),
            false => out.extend_from_slice(&[
                b'%',
                UPPER[usize::from(byte >> 4)],
                UPPER[usize::from(byte & 15)],
            ]),
        }
    }
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
