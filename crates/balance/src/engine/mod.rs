//! The balancer at work.

pub mod events;
pub mod keeper;
pub mod notices;
pub mod state;
