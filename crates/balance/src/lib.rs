//! The built-in balancer: a TCP relay, round robin over its upstreams.
//!
//! It knows nothing of experiments. Received bytes are sent on from the buffer that they were
//! received in. A client whose upstream refuses is given the next one in the same attempt.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod config;
pub mod http;
mod relay;
mod server;

pub use config::{BalancerConfig, ConfigError};
pub use server::{Balancer, BalancerError, Stats};
