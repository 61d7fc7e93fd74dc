//! The pipe between a coordinator (the run) and an agent. It is not trusted: container engines and
//! other programs that pass pipes on are known to truncate output, drop input, and report success
//! while the program at the other end still runs.
//!
//! Every message is a frame with number, length and checksum. A final frame ends the conversation,
//! and the other side confirms it with its own. Each side sends heartbeats when it has nothing else
//! to send, so silence means that the pipe or the other side is gone.

mod fault;
mod frame;
mod frame_sender;
mod liveness;

pub use fault::PipeFault;
#[cfg(test)]
pub(crate) use frame::encode;
pub(crate) use frame::{FrameReader, Incoming, Kind, Side};
pub(crate) use frame_sender::FrameSender;
pub use liveness::limit;
pub(crate) use liveness::{BEATS, Liveness, seconds_of, watch};
