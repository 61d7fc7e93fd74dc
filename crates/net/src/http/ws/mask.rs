//! Masks, RFC 6455 section 5.3.

/// Masks or unmasks bytes, the first of which is number `at` of its frame's payload.
#[inline]
pub(super) fn apply(bytes: &mut [u8], mask: [u8; 4], at: u64) {
    let mut mask = mask;
    mask.rotate_left((at % 4) as usize);
    let word = u64::from_ne_bytes([
        mask[0], mask[1], mask[2], mask[3], mask[0], mask[1], mask[2], mask[3],
    ]);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for bytes in words {
        *bytes = (u64::from_ne_bytes(*bytes) ^ word).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(word.to_ne_bytes()) {
        *byte ^= mask;
    }
}
