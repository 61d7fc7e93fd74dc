//! What a server uses: its processes and threads, those that have exited, and its control group.

pub(crate) mod counters;
pub(crate) mod counts_file;
pub(crate) mod exited_threads;
pub(crate) mod processes;
pub(crate) mod run_times;
pub(crate) mod state;
pub(crate) mod thread_exits;
pub(crate) mod watched;
