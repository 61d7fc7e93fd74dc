//! The checksum of journal rows.

/// The polynomial of IEEE 802.3, bits reversed.
const POLYNOMIAL: u32 = 0xedb8_8320;
const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            let carry = rest & 1 == 1;
            rest >>= 1;
            if carry {
                rest ^= POLYNOMIAL;
            }
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
}

/// CRC-32 as in IEEE 802.3, zlib and PNG. It detects every change of up to 32 neighbouring bits.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| TABLE[usize::from(sum as u8 ^ byte)] ^ (sum >> 8);
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_that_of_zlib() {
        // The check value of the catalogue of CRC algorithms, and the empty text.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
