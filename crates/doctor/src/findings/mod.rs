//! Judgements of what was read of the machine, a file a subject.

pub(crate) mod cpus;
pub(crate) mod hosted;
pub(crate) mod installed;
pub(crate) mod instructions;
pub(crate) mod network;
pub(crate) mod pauses;
pub(crate) mod resources;
