//! What is around the balancer while it runs: logs and commands, the socket that answers
//! operators, the page with counters, and what replaces its configuration.

pub mod chronicle;
