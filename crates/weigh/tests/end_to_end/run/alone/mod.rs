//! Tests that measure, or count what the whole machine does: they run one at a time.

mod lighttpd;
mod probes;
