//! What Linux offers: processes, control groups, clocks, ports, and netlink.

pub(crate) mod cgroup;
pub(crate) mod clock;
pub mod machine;
pub mod netlink;
pub(crate) mod ports;
pub(crate) mod proc_files;
pub(crate) mod signals;
#[cfg(test)]
pub(crate) mod test_processes;
