//! The Huffman code, RFC 7541 section 5.2 and appendix B.
//!
//! The code is canonical: codes of one length follow each other in the order of their symbols, and
//! those of the next length follow them. So the lengths determine all codes.

use crate::http::h2::H2Error;

/// Length of the code of each octet.
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, //
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, //
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, //
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, //
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, //
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, //
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, //
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, //
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, //
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, //
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, //
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, //
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, //
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, //
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, //
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, //
];

/// The end-of-string symbol has the longest code, 30 ones.
const LENGTH_MAX: usize = 30;

/// The codes of one length.
#[derive(Clone, Copy)]
struct Group {
    first: u32,
    /// The code behind the last; end-of-string is not counted.
    end: u32,
    /// Where the symbols begin in `Tables::symbols`.
    at: u32,
}

struct Tables {
    /// By the next 8 bits: the symbol and the length of its code, which is 0 when it is longer.
    short: [(u8, u8); 256],
    groups: [Group; LENGTH_MAX + 1],
    /// In the order of their codes.
    symbols: [u8; 256],
}

static TABLES: Tables = tables();

const fn tables() -> Tables {
    let none = Group {
        first: 0,
        end: 0,
        at: 0,
    };
    let mut tables = Tables {
        short: [(0, 0); 256],
        groups: [none; LENGTH_MAX + 1],
        symbols: [0; 256],
    };
    let mut code: u32 = 0;
    let mut at = 0;
    let mut length = 1;
    while length <= LENGTH_MAX {
        code <<= 1;
        tables.groups[length].first = code;
        tables.groups[length].at = at as u32;
        let mut symbol = 0;
        while symbol < 256 {
            if LENGTHS[symbol] as usize == length {
                tables.symbols[at] = symbol as u8;
                at += 1;
                if length <= 8 {
                    let from = (code as usize) << (8 - length);
                    let mut index = from;
                    while index < from + (1 << (8 - length)) {
                        tables.short[index] = (symbol as u8, length as u8);
                        index += 1;
                    }
                }
                code += 1;
            }
            symbol += 1;
        }
        tables.groups[length].end = code;
        length += 1;
    }
    tables
}

/// Appends the octets that `input` codes.
pub(crate) fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), H2Error> {
    let mut input = input.iter();
    // The next `count` bits, at the top.
    let mut bits: u64 = 0;
    let mut count: u32 = 0;
    loop {
        if count < LENGTH_MAX as u32 {
            while count < 56
                && let Some(&byte) = input.next()
            {
                bits |= u64::from(byte) << (56 - count);
                count += 8;
            }
        }
        // Ones behind the end, as in the padding.
        let next = bits | (u64::MAX >> count);
        if count < 8 && next == u64::MAX {
            return Ok(());
        }
        let (symbol, length) = match TABLES.short[(next >> 56) as usize] {
            (_, 0) => long(next)?,
            (symbol, length) => (symbol, u32::from(length)),
        };
        if length > count {
            return Err(H2Error::compression("a Huffman string with wrong padding"));
        }
        out.push(symbol);
        bits <<= length;
        count -= length;
    }
}

/// The symbol at the top of `bits` whose code is longer than 8 bits, and the length of the code.
fn long(bits: u64) -> Result<(u8, u32), H2Error> {
    for length in 9..=LENGTH_MAX {
        let group = &TABLES.groups[length];
        let code = (bits >> (64 - length)) as u32;
        if code < group.end {
            let symbol = TABLES.symbols[(group.at + code - group.first) as usize];
            return Ok((symbol, length as u32));
        }
    }
    Err(H2Error::compression(
        "a Huffman string with the end-of-string symbol or too much padding",
    ))
}

/// For tests: the code of `text`.
#[cfg(test)]
pub(super) fn encode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bits: u64 = 0;
    let mut count = 0;
    for &octet in text {
        let length = usize::from(LENGTHS[usize::from(octet)]);
        let group = &TABLES.groups[length];
        let symbols = &TABLES.symbols[group.at as usize..];
        let nth = symbols.iter().position(|&symbol| symbol == octet).unwrap();
        bits = bits << length | (u64::from(group.first) + nth as u64);
        count += length;
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        out.push((bits << (8 - count)) as u8 | (0xff >> count));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::h2::ErrorCode;
    use proptest::prelude::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, H2Error> {
        let mut out = Vec::new();
        decode(input, &mut out).map(|()| out)
    }

    /// Codes of appendix B, some of each end of the table.
    #[test]
    fn codes() {
        for (octet, code, length) in [
            (b'0', 0x0, 5),
            (b't', 0x9, 5),
            (b' ', 0x14, 6),
            (b':', 0x5c, 7),
            (b'z', 0x7b, 7),
            (b'&', 0xf8, 8),
            (b'Z', 0xfd, 8),
            (b'!', 0x3f8, 10),
            (b'|', 0x7fc, 11),
            (b'#', 0xffa, 12),
            (0, 0x1ff8, 13),
            (b'{', 0x7ffe, 15),
            (b'\\', 0x7fff0, 19),
            (128, 0xfffe6, 20),
            (1, 0x7fffd8, 23),
            (9, 0xffffea, 24),
            (199, 0x1ffffec, 25),
            (192, 0x3ffffe0, 26),
            (203, 0x7ffffde, 27),
            (2, 0xfffffe2, 28),
            (10, 0x3ffffffc, 30),
            (22, 0x3ffffffe, 30),
        ] {
            let mut wanted = vec![0xff; 4];
            for bit in 0..length {
                if code >> (length - 1 - bit) & 1 == 0 {
                    wanted[bit / 8] &= !(0x80 >> (bit % 8));
                }
            }
            wanted.truncate(length.div_ceil(8));
            assert_eq!(encode(&[octet]), wanted, "{octet}");
            assert_eq!(decoded(&wanted), Ok(vec![octet]), "{octet}");
        }
        // With end-of-string every bit string is a code.
        assert_eq!(TABLES.groups[LENGTH_MAX].end, 0x3fff_ffff);
    }

    #[test]
    fn padding_and_end_of_string() {
        assert_eq!(decoded(&[]), Ok(vec![]));
        // '0' and three bits.
        assert_eq!(decoded(&[0b0000_0111]), Ok(b"0".to_vec()));
        for wrong in [
            // Padding of zeros, of a zero among ones, of 8 bits, of 11 bits.
            &[0b0010_1000][..],
            &[0b0000_0110],
            &[0xff],
            &[0b0000_0111, 0xff],
            // A code that is cut.
            &[0xff, 0xff, 0xff],
            &[0xfe],
            // End-of-string alone and behind '0'.
            &[0xff, 0xff, 0xff, 0xff],
            &[0b0000_0111, 0xff, 0xff, 0xff, 0xff],
        ] {
            let error = decoded(wrong).unwrap_err();
            assert_eq!(error.code, ErrorCode::CompressionError, "{wrong:x?}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(text in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(decoded(&encode(&text)), Ok(text));
        }

        #[test]
        fn what_decodes_is_its_own_code(input in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(text) = decoded(&input) {
                prop_assert_eq!(encode(&text), input);
            }
        }
    }
}
