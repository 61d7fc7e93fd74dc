//! What happens on a host happens through an agent.
//!
//! An agent is a process that reads orders from its standard input and writes answers to its
//! standard output, a JSON document a line. When its input ends, everything that it started is
//! killed and its folder removed: that is what keeps a machine clean when `weigh` itself dies.

mod cgroup;
mod client;
mod clock;
mod counts;
mod departed;
mod drive;
mod exits;
mod held;
mod link;
mod load;
mod look;
mod patience;
mod ports;
mod probe;
mod proc_files;
mod processes;
mod quota;
mod recorder;
mod run_times;
mod serve;
mod servers;
mod ssh;
mod surroundings;
mod taskstats;
#[cfg(test)]
mod told_shell;
mod watch;
mod window_sampler;
pub mod wire;

pub(crate) use client::read_answers;
pub use client::{Agent, AgentError, Clock};
pub(crate) use clock::Window;
pub(crate) use held::Held;
pub use held::end_all;
pub(crate) use probe::{ends_of, port_range, port_reuse, range_of};
pub(crate) use recorder::Samples;
pub use serve::serve;
pub use ssh::{Far, Program};
