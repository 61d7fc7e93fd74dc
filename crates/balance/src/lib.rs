//! The built-in balancer: a TCP relay, round robin over its upstreams.
//!
//! It knows nothing of experiments. Received bytes are sent on from the buffer that they were
//! received in. A client whose upstream refuses is given the next one in the same attempt.
//!
//! [`config`] reads what a balancer does from Crossroads 1.x files and from TOML. [`access`],
//! [`dispatch`], [`health`] and [`sticky`] hold decisions without input, output and clocks.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
pub mod config;
pub mod dispatch;
pub mod engine;
pub mod health;
pub mod http;
mod plain;
mod relay;
mod server;
pub mod sticky;

pub use config::{Config, ConfigError, Form, Warning, parse_file, parse_text};
pub use plain::{BalancerConfig, Unsupported};
pub use server::{Balancer, BalancerError, Stats};
