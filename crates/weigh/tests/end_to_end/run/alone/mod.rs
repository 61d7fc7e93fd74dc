//! Tests that measure, or count what the whole machine does: they run one at a time.

mod growth;
mod lighttpd;
mod probes;
