//! The balancer at work.

pub mod state;
