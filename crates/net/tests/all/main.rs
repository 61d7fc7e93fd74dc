//! The event loops and the codec as the other crates use them.
#![allow(clippy::unwrap_used)]

mod bounds;
mod buffers;
mod child_signals;
mod closing_peers;
mod corpus;
mod few_files;
mod loops;
mod messages;
mod no_descriptors;
mod old_kernel;
mod stamps;
