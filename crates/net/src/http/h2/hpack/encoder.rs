//! Encoding of header fields. It keeps no state, so a block can be encoded once and sent often.

use super::integer;
use super::static_table::{self, Found};

/// Appends a field: indexed where the static table has name and value, else a literal without
/// indexing. Plain octets, no Huffman code. `name` is in lower case.
pub fn encode(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    match static_table::find(name, value) {
        Found::Field(index) => integer::write(out, 0x80, 7, index),
        Found::Name(index) => {
            integer::write(out, 0, 4, index);
            string(out, value);
        }
        Found::Nothing => {
            out.push(0);
            string(out, name);
            string(out, value);
        }
    }
}

pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        encode(&mut out, name.as_bytes(), value.as_bytes());
    }
    out
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    integer::write(out, 0, 7, bytes.len());
    out.extend_from_slice(bytes);
}
