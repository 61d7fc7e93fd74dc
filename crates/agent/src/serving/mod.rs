//! The agent's side of the pipe: carries out orders, and keeps what it has started.

mod drive;
pub mod leftovers;
mod load;
mod orders;
mod probe;
mod profile;
mod quota;
#[cfg(test)]
mod reused_pids;
pub(crate) mod schemas;
pub(crate) mod serve;
mod servers;
