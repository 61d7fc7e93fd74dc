//! The tests of the balancer that need no privilege and no other program.
#![allow(clippy::unwrap_used)]

#[path = "../../../../fuzz/balance_checks.rs"]
mod balance_checks;
#[path = "../../../../fuzz/proxy_checks.rs"]
mod proxy_checks;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

mod codec;
mod config;
mod connections;
mod control;
mod http;
mod http2;
mod odd;
mod support;
