//! What comparisons came to: the types that reports read.

pub(crate) mod bound;
pub(crate) mod notes;
