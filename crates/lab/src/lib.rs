//! From an experiment file to a plan: what to start, what to load, in which order.

#![cfg_attr(test, allow(clippy::unwrap_used))]

#[macro_use]
mod inner;

mod bound;
mod control_group;
mod lock;
mod netlink;

pub mod agent;
pub mod catalogue;
pub mod doctor;
pub mod driver;
pub mod experiment;
pub mod hosts;
pub mod journal;
pub mod link;
pub mod listing;
pub mod plan;
pub mod recipe;
pub mod run;
