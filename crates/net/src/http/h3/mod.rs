//! HTTP/3 (RFC 9114) and QPACK (RFC 9204) without I/O and without QUIC: [`FrameReader`] splits the
//! bytes of one stream into [`Event`]s, [`UniReader`] reads a peer's unidirectional streams,
//! [`mod@frame`] writes frames, and [`qpack`] codes field sections without a dynamic table.
//!
//! Each reader knows one stream; the caller keeps the state of requests and connections.

mod error;
pub mod frame;
mod ids;
pub mod qpack;
mod reader;
mod uni;
pub mod varint;

#[cfg(test)]
mod tests;

pub use error::{ErrorCode, H3Error};
pub(crate) use ids::kind;
pub use ids::{settings, stream};
pub use reader::{Event, FrameReader};
pub use uni::{Side, UniEvent, UniReader};

/// The protocol's name in ALPN.
pub const ALPN: &str = "h3";
