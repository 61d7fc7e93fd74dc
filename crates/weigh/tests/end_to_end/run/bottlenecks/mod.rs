//! Bottlenecks that are provoked, and named.

mod alone;
mod provoked;
