//! Servers that break every rule, on both event loops: the load ends in time, every request is
//! counted, as what it was, and a good server beside is measured as if nothing had been.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod bodies;
mod connections;
mod heads;
mod lengths;
