//! The built-in balancer, for TCP, and for HTTP/1.1 and HTTP/2 with HTTP/1.1 back ends.
//!
//! It forwards data from its receive buffers. A client whose back end refuses the connection is
//! given another one in the same attempt. [`Balancer`] runs a [`Config`]; [`engine`] says how. It
//! knows nothing of experiments.
//!
//! [`config`] reads Crossroads 1.x files and TOML. [`access`], [`dispatch`], [`health`] and
//! [`sticky`] decide without I/O and clocks.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
mod command;
pub mod config;
pub mod control;
pub mod dispatch;
pub mod engine;
mod h2;
pub mod health;
pub mod http;
mod sni;
pub mod sticky;

pub use config::{Config, ConfigError, Syntax, Warning, parse_file, parse_text};
pub use engine::{Balancer, BalancerError, Stats};
