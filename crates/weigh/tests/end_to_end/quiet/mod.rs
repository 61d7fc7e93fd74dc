//! Tests that measure times, and take next to no CPU time themselves: they take a [`Place::quiet`].
//!
//! `./check` runs what has `quiet::` in its path after all else, side by side.
//!
//! [`Place::quiet`]: crate::common::Place::quiet

mod balance_failover;
mod events;
mod reloads;
mod slowdowns;
