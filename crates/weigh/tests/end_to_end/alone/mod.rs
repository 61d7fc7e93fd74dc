//! Tests that measure, or count what the whole machine does: they run one at a time.
//!
//! `./check` runs what has `alone::` in its path after all else, on one thread.

mod bottleneck;
mod lighttpd;
mod probes;
