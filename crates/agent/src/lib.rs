//! What happens on a host: servers, load, samples.
//!
//! An agent is a process that reads orders from its standard input and writes answers to its
//! standard output, a JSON document in each frame. When its input ends, or brings no heartbeat any
//! more, it kills everything that it started and removes its folder, so that a machine stays clean
//! even when `weigh` is killed.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod accept_queues;
mod cgroup;
pub mod cgroup_hierarchy;
mod child_guard;
mod client;
mod clock;
pub mod cpu_quota;
mod drive;
mod frame_queue;
mod greeting;
mod handle;
pub mod instructions;
pub mod leftovers;
mod link;
mod link_record;
mod listening;
mod load;
mod load_check;
pub mod machine;
pub mod netem;
pub mod netlink;
mod own_program;
mod peer_links;
mod pipe;
mod pipe_command;
mod ports;
mod profile;
mod program;
mod quota_guard;
mod read_answer;
mod readiness;
mod reload;
mod reply_timeout;
#[cfg(test)]
mod reused_pids;
pub mod route;
mod sampling;
mod serve;
mod server_folder;
mod server_quota;
mod server_user;
mod servers;
mod shortened;
mod signals;
mod socket_diag;
mod stderr_tail;
mod traffic_control;
pub mod wire;

pub use accept_queues::AcceptQueueAt;
pub use child_guard::{ChildGuard, end_all};
pub use client::{Agent, AgentError, Clock, read_answers};
pub use clock::Window;
pub use handle::{AgentHandle, LoadObserver};
pub use listening::{Listener, listener_at, listening_at};
pub use pipe::{PipeFault, limit as heartbeat_limit};
pub use pipe_command::{PipeCommand, piped};
pub use ports::{parse_port_range, port_range, port_reuse};
pub use program::Program;
pub use sampling::network_counters::namespace_id;
pub use sampling::timeline::{Measured, Spans};
pub use serve::serve;
