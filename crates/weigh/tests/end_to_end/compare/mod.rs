//! `weigh compare`, `weigh bisect` and `weigh plan`.

pub mod own_servers;
mod plan;
mod requests;
pub mod revisions;
mod same;
