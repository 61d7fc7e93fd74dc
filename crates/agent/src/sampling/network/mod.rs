//! What the kernel counts of network namespaces, and who listens in them.

pub(crate) mod accept_queues;
pub(crate) mod counters;
pub(crate) mod listening;
