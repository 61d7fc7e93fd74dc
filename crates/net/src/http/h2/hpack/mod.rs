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
