//! QUIC (RFC 9000) over the UDP sockets of [`net::Datagrams`], with quinn-proto, which does no I/O
//! and reads no clock. [`Client`] is one connection with a socket of its own; [`Server`] has all
//! connections of one socket. An event loop drives both: it says when the socket is readable, when
//! a timer has expired, and when to send what was written.
//!
//! What the streams carry is up to the caller, who has access to the [`Connection`].
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bbr;
mod client;
mod config;
mod read;
mod reason;
mod server;
#[cfg(test)]
mod tests;
mod time;
mod wire;

pub use client::{Client, OpenError};
pub use config::{ClientSettings, ServerLimits, client_window, congestion};
pub use quinn_proto::{
    Connection, ConnectionError, Dir, Event, ReadError, ReadableError, Side, StreamEvent, StreamId,
    VarInt, WriteError,
};
pub use read::{StreamEnd, read};
pub use reason::reason;
pub use server::{Entry, Server, ServerCounts};
pub use time::{Clock, Timers};
pub use wire::{Counts, Scratch};
