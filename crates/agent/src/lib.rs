//! What happens on a host: servers, load, samples.
//!
//! An agent is a process that reads orders from its standard input and writes answers to its
//! standard output, a JSON document in each frame. When its input ends, or brings no heartbeat any
//! more, it kills everything that it started and removes its folder, so that a machine stays clean
//! even when `weigh` is killed.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod client;
mod kernel;
mod links;
mod protocol;
mod sampling;
mod serving;

pub use client::agent::Agent;
pub use client::child_guard::{ChildGuard, end_all};
pub use client::handle::{AgentError, AgentHandle, Clock, LoadObserver};
pub use client::output::read_answers;
pub use client::pipe_command::{PipeCommand, piped};
pub use client::program::Program;
pub use kernel::cgroup::{cpu_quota, hierarchy as cgroup_hierarchy};
pub use kernel::namespace::namespace_id;
pub use kernel::netlink::{netem, route};
pub use kernel::ports::{parse_port_range, port_range, port_reuse};
pub use kernel::{machine, netlink};
pub use protocol::pipe::{PipeFault, limit as heartbeat_limit};
pub use protocol::wire::{self, Measured, Spans, Window};
pub use sampling::instructions;
pub use sampling::network::accept_queues::AcceptQueueAt;
pub use sampling::network::listening::{Listener, listener_at, listening_at};
pub use sampling::server::state::server_state;
pub use serving::leftovers;
#[cfg(feature = "full")]
pub use serving::schemas::schema_of;
pub use serving::serve::serve;
