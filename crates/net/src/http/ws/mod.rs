//! WebSocket without I/O: frames and messages (RFC 6455), the handshake over HTTP/1.1, and
//! `permessage-deflate` (RFC 7692). Behind an extended CONNECT (RFC 8441) the frames are the same;
//! of the handshake only [`handshake::accept_extension`] and [`handshake::check_extension`] apply.

mod deflate;
mod error;
mod frame;
pub mod handshake;
mod mask;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use deflate::Deflate;
pub use error::{CloseCode, WsError};
pub use frame::{Frame, HEAD_BYTES_MAX, LENGTH_MAX, Opcode, write_frame};
pub use reader::{Event, Reader};
pub use writer::Writer;

/// Which end of a connection this is. Clients mask what they send, servers do not (RFC 6455 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Client,
    Server,
}

/// What a message holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// UTF-8.
    Text,
    Binary,
}

/// Longest payload of a control frame, bytes (RFC 6455 5.5).
pub const CONTROL_BYTES_MAX: usize = 125;
