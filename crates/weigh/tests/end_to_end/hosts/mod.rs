//! Runs and loads whose servers and clients are on hosts of their own.

mod engines;
mod kubernetes;
mod links;
mod machine_links;
mod pipes;
pub mod run;
mod ssh;
mod topology;
