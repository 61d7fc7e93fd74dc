//! Long data in a written job: whole numbers as varints, compressed, in Base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;

/// The compression level: faster ones save little time, better ones little space.
const LEVEL: u8 = 6;
/// The most bytes that are unpacked.
const BYTES_MAX: usize = 2 << 30;

/// Packed data that is none.
#[derive(Debug, thiserror::Error)]
#[error(
    "expected compressed data in Base64, as `weigh` writes it into a job, found something else"
)]
pub struct Unpackable;

/// Bytes as short text.
pub(crate) fn pack(bytes: &[u8]) -> String {
    STANDARD.encode(compress_to_vec(bytes, LEVEL))
}

/// # Errors
/// When it is not what [`pack`] returns.
pub(crate) fn unpack(text: &str) -> Result<Vec<u8>, Unpackable> {
    let compressed = STANDARD.decode(text).map_err(|_| Unpackable)?;
    decompress_to_vec_with_limit(&compressed, BYTES_MAX).map_err(|_| Unpackable)
}

/// Appends a number, with seven bits in each byte, the lowest ones first.
pub(crate) fn write(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a number at a place, and moves the place behind it; `None` at the end.
#[inline]
pub(crate) fn read(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(numbers: Vec<(u64, u32)>) {
            let numbers: Vec<u64> = numbers.iter().map(|(n, shift)| n >> (shift % 64)).collect();
            let mut bytes = Vec::new();
            for &number in &numbers {
                write(number, &mut bytes);
            }
            let bytes = unpack(&pack(&bytes)).unwrap();
            let mut at = 0;
            let back: Vec<u64> = std::iter::from_fn(|| read(&bytes, &mut at)).collect();
            prop_assert_eq!(back, numbers);
        }

        #[test]
        fn anything_else_is_refused_or_read(bytes: Vec<u8>, text in "[A-Za-z0-9+/=]{0,40}") {
            let _ = unpack(&text);
            let mut at = 0;
            while read(&bytes, &mut at).is_some() {}
        }
    }
}
