//! The built-in back end: small and sized bodies, statuses, an environment page.
//!
//! It knows nothing of experiments. [`Origin::start`] runs it on threads of its own, each with its
//! own event loop and listening socket.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod body;
mod fields;
mod h2;
mod h3;
mod lasting;
mod pages;
mod server;
mod text;

pub use server::{Always, Origin, OriginError, OriginOptions, Stats, ThreadEnded};
