//! The HTTP codec, without connections.

mod allocations;
mod corpus;
mod properties;
mod rewriting;
mod smuggling;
