//! The built-in balancer.
//!
//! It knows nothing of experiments. Received bytes are sent on from the buffer that they were
//! received in. A client whose back end refuses is given another one in the same attempt.
//! [`Balancer`] runs a [`Config`]; [`engine`] says how.
//!
//! [`config`] reads what a balancer does from Crossroads 1.x files and from TOML. [`access`],
//! [`dispatch`], [`health`] and [`sticky`] hold decisions without input, output and clocks.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
mod command;
pub mod config;
pub mod control;
pub mod dispatch;
pub mod engine;
pub mod health;
pub mod http;
pub mod sticky;

pub use config::{Config, ConfigError, Syntax, Warning, parse_file, parse_text};
pub use engine::{Balancer, BalancerError, Stats};
