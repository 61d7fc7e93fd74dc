//! Decoding of header blocks, RFC 7541 sections 3 and 6.

use super::dynamic_table::{DynamicTable, ENTRY_OVERHEAD};
use super::{huffman, integer, static_table};
use crate::http::h2::H2Error;

/// The table of an encoder that has not read the settings yet, RFC 9113 section 6.5.2.
const TABLE_INITIAL: usize = 4096;
/// Memory for strings that is kept for the next block.
const KEPT_BYTES: usize = 8 * 1024;

const NO_ENTRY: H2Error = H2Error::compression("an index of HPACK without an entry");

/// Decodes the header blocks of one connection, in their order.
#[derive(Debug)]
pub struct Decoder {
    pub(super) table: DynamicTable,
    table_max: usize,
    list_max: usize,
    /// Strings of one field that were Huffman-coded, the name in front.
    text: Vec<u8>,
}

/// A string as it is in a block.
struct Coded<'a> {
    bytes: &'a [u8],
    huffman: bool,
}

impl<'a> Coded<'a> {
    /// Its octets; `text` are those of one in the Huffman code.
    fn or(&self, text: &'a [u8]) -> &'a [u8] {
        if self.huffman { text } else { self.bytes }
    }
}

impl Decoder {
    /// `table_max`: the SETTINGS_HEADER_TABLE_SIZE that this side announced (0: no dynamic table).
    /// `list_max`: most bytes of a decoded list, 32 added per field (RFC 9113 section 6.5.2).
    ///
    /// A client may send requests before it has read the server's settings, with a table of 4096
    /// bytes; so a server cannot announce less and give that here from the start.
    pub fn new(table_max: usize, list_max: usize) -> Self {
        Decoder {
            table: DynamicTable::new(table_max.min(TABLE_INITIAL)),
            table_max,
            list_max,
            text: Vec::new(),
        }
    }

    /// Decodes a whole block; `each` receives name and value of each field.
    ///
    /// # Errors
    /// COMPRESSION_ERROR for a block that is not HPACK, ENHANCE_YOUR_CALM for a list that is too
    /// long, or what `each` returns. The connection has to end then: the table is not complete.
    pub fn decode(
        &mut self,
        block: &[u8],
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), H2Error>,
    ) -> Result<(), H2Error> {
        let mut rest = block;
        let mut left = self.list_max;
        let mut has_field = false;
        while let Some(&first) = rest.first() {
            if first & 0x80 != 0 {
                let (index, behind) = integer::read(rest, 7)?;
                let (name, value) = self.entry(index)?;
                left = left_behind(left, name, value)?;
                each(name, value)?;
                rest = behind;
                has_field = true;
            } else if first & 0xe0 == 0x20 {
                if has_field {
                    return Err(H2Error::compression(
                        "a size update of the dynamic table behind a field",
                    ));
                }
                rest = self.update_size(rest)?;
            } else {
                (rest, left) = self.literal(rest, left, &mut each)?;
                has_field = true;
            }
        }
        self.text.clear();
        self.text.shrink_to(KEPT_BYTES);
        Ok(())
    }

    #[inline]
    fn entry(&self, index: usize) -> Result<(&[u8], &[u8]), H2Error> {
        match index {
            0 => None,
            1..=static_table::LEN => Some(static_table::ENTRIES[index - 1]),
            _ => self.table.get(index - static_table::LEN - 1),
        }
        .ok_or(NO_ENTRY)
    }

    fn update_size<'a>(&mut self, input: &'a [u8]) -> Result<&'a [u8], H2Error> {
        let (size_max, behind) = integer::read(input, 5)?;
        if size_max > self.table_max {
            return Err(H2Error::compression(
                "a dynamic table larger than the announced SETTINGS_HEADER_TABLE_SIZE",
            ));
        }
        self.table.resize(size_max);
        Ok(behind)
    }

    /// A literal field. Returns what is behind it and what is left of the list.
    fn literal<'a>(
        &mut self,
        input: &'a [u8],
        left: usize,
        each: &mut impl FnMut(&[u8], &[u8]) -> Result<(), H2Error>,
    ) -> Result<(&'a [u8], usize), H2Error> {
        let indexed = input.first().is_some_and(|first| first & 0x40 != 0);
        let (index, rest) = integer::read(input, if indexed { 6 } else { 4 })?;
        self.text.clear();
        let (own_name, rest) = match index {
            0 => {
                let (name, rest) = string(rest, &mut self.text)?;
                (Some(name), rest)
            }
            _ => (None, rest),
        };
        let name_len = self.text.len();
        let (value, rest) = string(rest, &mut self.text)?;

        let (name_text, value_text) = self.text.split_at(name_len);
        let own_name = own_name.map(|name| name.or(name_text));
        let value = value.or(value_text);
        let name = match own_name {
            Some(name) => name,
            None => self.entry(index)?.0,
        };
        let left = left_behind(left, name, value)?;
        each(name, value)?;
        if indexed {
            match (own_name, index) {
                (Some(name), _) => self.table.insert(name, value),
                (None, 1..=static_table::LEN) => {
                    let (name, _) = static_table::ENTRIES[index - 1];
                    self.table.insert(name, value);
                }
                (None, _) => {
                    let nth = index - static_table::LEN - 1;
                    self.table.insert_named_by(nth, value);
                }
            }
        }
        Ok((rest, left))
    }
}

/// Reads a string; one in the Huffman code is appended to `text`.
#[inline]
fn string<'a>(input: &'a [u8], text: &mut Vec<u8>) -> Result<(Coded<'a>, &'a [u8]), H2Error> {
    let huffman = input.first().is_some_and(|first| first & 0x80 != 0);
    let (length, rest) = integer::read(input, 7)?;
    let (bytes, rest) = rest.split_at_checked(length).ok_or(H2Error::compression(
        "a header block that ends within a string",
    ))?;
    if huffman {
        huffman::decode(bytes, text)?;
    }
    Ok((Coded { bytes, huffman }, rest))
}

/// What is left of the longest list behind a field.
#[inline]
fn left_behind(left: usize, name: &[u8], value: &[u8]) -> Result<usize, H2Error> {
    left.checked_sub(name.len() + value.len() + ENTRY_OVERHEAD)
        .ok_or(H2Error::calm("a header list that is too long"))
}
