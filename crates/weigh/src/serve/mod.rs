//! The commands that serve until they are stopped.

pub mod agent;
pub mod balance;
pub mod origin;
