//! HPACK (RFC 7541): the compression of header blocks.

mod decoder;
mod dynamic_table;
mod encoder;
pub(crate) mod huffman;
pub(crate) mod integer;
mod static_table;
#[cfg(test)]
mod tests;

pub use decoder::Decoder;
pub use encoder::{block, encode};

/// What an entry of the dynamic table and a field of a list count beside their bytes.
const ENTRY_OVERHEAD: usize = 32;
