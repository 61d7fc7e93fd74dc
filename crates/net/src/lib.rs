//! The event loop and the HTTP and WebSocket codecs that `load`, `origin` and `balance` share.
//!
//! One trait, [`Io`], with two implementations: [`Uring`] on io_uring and [`Epoll`] on epoll. A
//! room is generic over it and is compiled once for each, so that no call on the hot path is
//! dynamic. This is the only room with `unsafe` code.
#![allow(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod address;
pub mod http;
mod io;
mod name;
pub mod os;
pub mod proxy_protocol;

pub use address::{Address, AddressError, UnixPath, UnixPathError};
pub use http::{FieldSection, fetch, grpc, h2, h3, ws};
#[cfg(feature = "simulated")]
pub use io::simulated;
pub use io::{
    Arrival, Buf, CANCELLED, CarrierState, ConnId, Datagrams, ENHANCE_YOUR_CALM, Epoll, Event,
    FULL_BYTES, Handshake, Io, IoKind, IoOptions, LentBuffers, Lingering, LoopId, MALFORMED,
    NO_PLACE, NOT_PROCESSED, PayloadId, Received, SCARCE_BYTES, SLOTS_FULL, STREAM, SendError,
    TLS_FAILED, TargetId, Uring, WireBytes, uring_lacked_memory, uring_unavailable,
};
pub use name::{AddressSelection, ChosenAddress, NameError, resolve};
pub use os::{folder, namespace, perf, plain_file, process, tun, wait};
