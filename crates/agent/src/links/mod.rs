//! The links of a host: its own, where it is a network namespace, and those to other hosts, where it
//! is a machine.

mod kernel;
pub(crate) mod own;
pub(crate) mod peers;
pub(crate) mod record;
