//! What Linux offers: processes, control groups, clocks, ports, and netlink.

pub(crate) mod cgroup;
pub(crate) mod clock;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod machine;
pub(crate) mod namespace;
pub mod netlink;
pub(crate) mod owner;
pub(crate) mod ports;
pub(crate) mod proc_files;
pub(crate) mod signals;
pub(crate) mod tcp_table;
