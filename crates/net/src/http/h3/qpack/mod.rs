//! QPACK, RFC 9204, with a dynamic table of capacity 0: the static table, literals, and the Huffman
//! code if a peer uses it. A field section then depends on no other stream, so it can be encoded
//! once and sent many times.

mod static_table;

use super::{ErrorCode, H3Error};
use crate::http::h2::hpack::{huffman, integer};
use static_table::ENTRIES;

/// Bytes that each field counts beyond its own, RFC 9114 section 4.2.2.
const FIELD_OVERHEAD: usize = 32;

const CUT: H3Error = H3Error::decompression("a field section that ends within a field");
const DYNAMIC: H3Error =
    H3Error::decompression("a reference to a dynamic table, whose capacity is 0");

/// The prefix of every field section: it needs no entries of a dynamic table.
pub fn begin(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0]);
}

/// Appends a field. `name` is in lower case.
pub fn encode(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let whole = ENTRIES.iter().position(|&entry| entry == (name, value));
    if let Some(index) = whole {
        return integer::write(out, 0xc0, 6, index);
    }
    match ENTRIES.iter().position(|(known, _)| *known == name) {
        Some(index) => integer::write(out, 0x50, 4, index),
        None => {
            integer::write(out, 0x20, 3, name.len());
            out.extend_from_slice(name);
        }
    }
    integer::write(out, 0, 7, value.len());
    out.extend_from_slice(value);
}

/// Decodes a whole field section. `text` is memory for strings in the Huffman code, and `each`
/// receives the name and value of each field. `list_max`: the most bytes of all fields, counting 32
/// more per field.
///
/// # Errors
/// QPACK_DECOMPRESSION_FAILED for a section that is not QPACK, or needs a dynamic table;
/// H3_EXCESSIVE_LOAD for a list that is too long; or what `each` returns.
pub fn decode(
    section: &[u8],
    list_max: usize,
    text: &mut Vec<u8>,
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), H3Error>,
) -> Result<(), H3Error> {
    let (required, rest) = number(section, 8)?;
    if required != 0 {
        return Err(DYNAMIC);
    }
    let (_, mut rest) = number(rest, 7)?;
    let mut left = list_max;
    while let Some(&first) = rest.first() {
        text.clear();
        if first & 0x80 != 0 {
            let (index, behind) = number(rest, 6)?;
            let (name, value) = entry(first & 0x40 != 0, index)?;
            left = left_behind(left, name, value)?;
            each(name, value)?;
            rest = behind;
            continue;
        }
        let (name, behind) = match first >> 4 {
            0b0100..=0b0111 => {
                let (index, behind) = number(rest, 4)?;
                (Err(entry(first & 0x10 != 0, index)?.0), behind)
            }
            0b0010 | 0b0011 => {
                let (name, behind) = string(rest, 3, first & 8 != 0, text)?;
                (Ok(name), behind)
            }
            // Relative to the base, in the dynamic table.
            _ => return Err(DYNAMIC),
        };
        let split = text.len();
        let is_huffman = behind.first().is_some_and(|byte| byte & 0x80 != 0);
        let (value, behind) = string(behind, 7, is_huffman, text)?;
        let (name_text, value_text) = text.split_at(split);
        let name = match name {
            Ok(own) => own.unwrap_or(name_text),
            Err(known) => known,
        };
        let value = value.unwrap_or(value_text);
        left = left_behind(left, name, value)?;
        each(name, value)?;
        rest = behind;
    }
    Ok(())
}

#[inline]
fn number(input: &[u8], prefix: u32) -> Result<(usize, &[u8]), H3Error> {
    integer::read(input, prefix)
        .map_err(|_| H3Error::decompression("a QPACK integer that is truncated or too large"))
}

#[inline]
fn entry(is_static: bool, index: usize) -> Result<(&'static [u8], &'static [u8]), H3Error> {
    match is_static {
        false => Err(DYNAMIC),
        true => ENTRIES
            .get(index)
            .copied()
            .ok_or(H3Error::decompression("a QPACK index without an entry")),
    }
}

/// Reads a string; one in the Huffman code is appended to `text`, and `None` is returned.
#[inline]
fn string<'a>(
    input: &'a [u8],
    prefix: u32,
    is_huffman: bool,
    text: &mut Vec<u8>,
) -> Result<(Option<&'a [u8]>, &'a [u8]), H3Error> {
    let (len, rest) = number(input, prefix)?;
    let (bytes, rest) = rest.split_at_checked(len).ok_or(CUT)?;
    if !is_huffman {
        return Ok((Some(bytes), rest));
    }
    huffman::decode(bytes, text)
        .map_err(|_| H3Error::decompression("a string that is not in the Huffman code"))?;
    Ok((None, rest))
}

#[inline]
fn left_behind(left: usize, name: &[u8], value: &[u8]) -> Result<usize, H3Error> {
    left.checked_sub(name.len() + value.len() + FIELD_OVERHEAD)
        .ok_or(H3Error::new(
            ErrorCode::ExcessiveLoad,
            "a field section that is too long",
        ))
}
