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
pub use head::{FRAME_HEAD, PREFACE, settings};
pub use reader::{Event, FrameReader, SettingsIter};
pub use session::{Incoming, ResetCause, Session, SessionLimits};
