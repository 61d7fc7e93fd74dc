//! The event loop: what it offers ([`Io`]), and the loops that offer it.

mod accepting;
mod choose;
mod datagrams;
mod epoll;
mod event_loop;
mod lent_buffers;
mod lingering;
mod options;
#[cfg(feature = "simulated")]
pub mod simulated;
mod stamps;
mod target;
mod uring;

pub use choose::{IoKind, uring_lacked_memory, uring_unavailable};
pub use datagrams::{Arrival, Datagrams, Received, SendError};
pub use epoll::Epoll;
pub(crate) use event_loop::ENDED_BEFORE;
pub use event_loop::{
    Buf, CANCELLED, CarrierState, ConnId, ENHANCE_YOUR_CALM, Event, FULL_BYTES, Handshake, Io,
    LoopId, MALFORMED, NO_PLACE, NOT_PROCESSED, PayloadId, SCARCE_BYTES, SLOTS_FULL, STREAM,
    TLS_FAILED, TargetId, WireBytes,
};
pub use lent_buffers::LentBuffers;
pub use lingering::Lingering;
pub use options::IoOptions;
pub use uring::Uring;
