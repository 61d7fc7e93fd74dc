//! What happens on a host happens through an agent.
//!
//! An agent is a process that reads orders from its standard input and writes answers to its
//! standard output, a JSON document a line. When its input ends, everything that it started is
//! killed and its folder removed: that is what keeps a machine clean when `weigh` itself dies.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cgroup;
mod child_guard;
mod client;
mod clock;
pub mod control_group;
mod counts;
pub mod cpu_quota;
mod drive;
mod exited_threads;
mod exits;
mod handle;
pub mod leftovers;
mod link;
mod load;
mod look;
pub mod machine;
pub mod netlink;
mod ports;
mod probe;
mod proc_files;
mod processes;
mod quota;
mod recorder;
mod reply_timeout;
pub mod route;
mod run_times;
mod serve;
mod servers;
mod ssh;
mod system_counters;
mod taskstats;
#[cfg(test)]
mod told_shell;
mod watch;
mod window_sampler;
pub mod wire;

pub use child_guard::ChildGuard;
pub use child_guard::end_all;
pub use client::read_answers;
pub use client::{Agent, AgentError, Clock};
pub use clock::Window;
pub use handle::{AgentHandle, LoadObserver};
pub use probe::{parse_port_range, port_range, port_reuse};
pub use recorder::Samples;
pub use serve::serve;
pub use ssh::{Far, Program};
