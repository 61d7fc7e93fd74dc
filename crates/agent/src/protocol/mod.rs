//! What an agent and its caller say to each other, and the pipe that carries it.

pub(crate) mod pipe;
pub(crate) mod shortened;
pub mod wire;
