//! What servers and their machine do while they are measured: one sampler per host appends to one
//! timeline, which is cut into windows afterwards.
//!
//! A sample is taken by `sample` from what the other files read: servers (`server`), the machine
//! (`system_counters`) and its networks (`network`).

pub mod instructions;
pub(crate) mod load_sampler;
pub(crate) mod network;
pub(crate) mod sample;
pub(crate) mod sampler;
pub(crate) mod scheduling;
pub(crate) mod segment_counts;
pub(crate) mod server;
pub(crate) mod system_counters;
pub(crate) mod timeline;
