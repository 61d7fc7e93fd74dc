//! What servers and their machine do while they are measured: one sampler per host appends to one
//! timeline, which is cut into windows afterwards.
//!
//! A sample is taken by `sample` from what the other files read: control groups and processes
//! (`watched`, `processes`, `proc_files`, `taskstats`), threads that have exited (`thread_exits`,
//! `exited_threads`), the machine and its networks (`system_counters`, `network_counters`).

pub(crate) mod exited_threads;
pub(crate) mod load_sampler;
pub(crate) mod network_counters;
pub(crate) mod proc_files;
pub(crate) mod processes;
pub(crate) mod run_times;
pub(crate) mod sample;
pub(crate) mod sampler;
pub(crate) mod scheduling;
pub(crate) mod server_counters;
pub(crate) mod system_counters;
pub(crate) mod taskstats;
#[cfg(test)]
pub(crate) mod test_processes;
pub(crate) mod thread_exits;
pub(crate) mod timeline;
pub(crate) mod watched;
