//! Tests that measure times, and take next to no CPU time themselves: they take a [`Place::quiet`].
//!
//! [`Place::quiet`]: crate::common::Place::quiet

mod back_ends;
mod events;
mod reloads;
mod slowdowns;
