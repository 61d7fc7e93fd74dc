//! Integers of QUIC, RFC 9000 section 16.

/// The largest integer.
pub const MAX: u64 = (1 << 62) - 1;

/// Reads an integer. Returns it and the rest of the input; `None` if it is incomplete.
#[inline]
pub fn read(input: &[u8]) -> Option<(u64, &[u8])> {
    let first = *input.first()?;
    let len = 1_usize << (first >> 6);
    let (bytes, rest) = input.split_at_checked(len)?;
    let mut value = u64::from(first & 0x3f);
    for byte in &bytes[1..] {
        value = value << 8 | u64::from(*byte);
    }
    Some((value, rest))
}

/// Appends an integer in its shortest form. Of an integer above [`MAX`], only the low 62 bits.
#[inline]
pub fn write(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0x3f => out.push(value as u8),
        0x40..=0x3fff => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => out.extend_from_slice(&(value as u32 | 1 << 31).to_be_bytes()),
        _ => out.extend_from_slice(&(value & MAX | 3 << 62).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9000 appendix A.1.
    #[test]
    fn examples() {
        let long = [0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c];
        assert_eq!(read(&long), Some((151_288_809_941_952_652, &[][..])));
        let four = [0x9d, 0x7f, 0x3e, 0x7d];
        assert_eq!(read(&four), Some((494_878_333, &[][..])));
        assert_eq!(read(&[0x7b, 0xbd, 9]), Some((15_293, &[9][..])));
        assert_eq!(read(&[0x25]), Some((37, &[][..])));
        assert_eq!(read(&[0x40, 0x25]), Some((37, &[][..])));
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[0x7b]), None);
    }

    proptest! {
        #[test]
        fn round_trip(value in 0..=MAX, shift in 0_u32..62) {
            let value = value >> shift;
            let mut out = Vec::new();
            write(&mut out, value);
            prop_assert_eq!(read(&out), Some((value, &[][..])));
        }
    }
}
