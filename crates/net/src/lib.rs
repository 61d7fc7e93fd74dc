//! The event loop and the HTTP/1.1 and HTTP/2 codecs that `load`, `origin` and `balance` share.
//!
//! One trait, [`Io`], with two implementations: [`Uring`] on io_uring and [`Epoll`] on epoll. A
//! room is generic over it and is compiled once for each, so that no call on the hot path is
//! dynamic. This is the only room with `unsafe` code.
#![allow(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod accepting;
mod address;
mod choose;
mod datagrams;
mod epoll;
pub mod fetch;
mod field_section;
pub mod folder;
pub mod h2;
pub mod h3;
pub mod http;
mod io;
mod lent_buffers;
mod lingering;
mod name;
pub mod namespace;
pub mod os;
pub mod perf;
pub mod plain_file;
pub mod process;
pub mod proxy_protocol;
#[cfg(feature = "simulated")]
pub mod simulated;
mod stamps;
pub mod tun;
mod uring;
pub mod wait;

pub use address::{Address, AddressError, UnixPath, UnixPathError};
pub use choose::{IoKind, uring_lacked_memory, uring_unavailable};
pub use datagrams::{Arrival, Datagrams, Received, SendError};
pub use epoll::Epoll;
pub use field_section::FieldSection;
pub use io::{
    Buf, CarrierState, ConnId, Event, Handshake, Io, IoOptions, LoopId, MALFORMED, NO_PLACE,
    NOT_PROCESSED, PayloadId, SLOTS_FULL, STREAM, TLS_FAILED, TargetId, WireBytes,
};
pub use lent_buffers::LentBuffers;
pub use lingering::Lingering;
pub use name::{AddressSelection, ChosenAddress, NameError, resolve};
pub use uring::Uring;
