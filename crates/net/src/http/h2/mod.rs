//! HTTP/2 (RFC 9113) and HPACK (RFC 7541) without I/O: [`FrameReader`] splits a connection's bytes
//! into [`Event`]s, [`mod@frame`] writes frames, [`hpack`] codes header blocks.
//!
//! The reader knows frames, not streams: its user keeps stream states and flow-control windows, as
//! [`Session`] does for servers and proxies.

mod error;
pub mod frame;
mod head;
pub mod hpack;
mod reader;
mod session;
#[cfg(test)]
mod tests;

pub use error::{ErrorCode, H2Error};
pub use reader::{Event, FrameReader, SettingsIter};
pub use session::{Incoming, ResetCause, Session, SessionLimits};

/// The connection preface: what a client sends first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Length of a frame header.
pub const FRAME_HEAD: usize = 9;

/// Identifiers of SETTINGS, RFC 9113 section 6.5.2.
pub mod settings {
    /// Bytes of the dynamic table of the peer's HPACK encoder; 4096 unless announced.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// Whether the server may push, 0 or 1.
    pub const ENABLE_PUSH: u16 = 2;
    /// Most streams that the peer may have open.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// Initial flow-control window of each stream; 65535 unless announced.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// Most bytes of a frame's payload; 16384 unless announced.
    pub const MAX_FRAME_SIZE: u16 = 5;
    /// Most bytes of a decoded header list, 32 added per field.
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}
