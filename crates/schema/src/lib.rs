//! Protocol Buffers.
