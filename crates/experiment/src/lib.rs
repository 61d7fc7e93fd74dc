//! Experiment, recipe and driver files, read into checked types, and the plan that follows.

#![cfg_attr(test, allow(clippy::unwrap_used))]

#[macro_use]
mod inner;

pub mod catalogue;
pub mod driver;
mod file;
pub mod manifest;
pub mod plan;
pub mod recipe;
mod recipes;

pub use config::units;
pub use config::{Mistake, Mistakes, OpenError};
pub use file::*;
pub use recipes::Recipes;
