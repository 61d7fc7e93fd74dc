//! The commands that measure, a file or folder each by its name, and what they share.

mod before;
pub mod bisect;
mod builds;
pub mod capacity;
pub mod compare;
mod compared_traffic;
mod dry_run;
mod former;
pub mod load;
mod own_servers;
pub mod plan;
mod revision;
pub mod run;
