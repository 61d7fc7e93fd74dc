//! Hosts that are network namespaces of this machine, and the links between them.

pub(crate) mod groups;
mod holder_protocol;
pub(crate) mod host;
pub mod link;
mod namespace;
pub(crate) mod netns_holder;
pub(crate) mod setting;
pub(crate) mod topology;
