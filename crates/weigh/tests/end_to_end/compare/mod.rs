//! `weigh compare`, `weigh bisect` and `weigh plan`.

pub mod own_servers;
mod plan;
pub mod revisions;
mod same;
