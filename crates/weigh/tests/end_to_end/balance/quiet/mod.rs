//! Tests that measure times, and take next to no CPU time themselves.

mod failover;
