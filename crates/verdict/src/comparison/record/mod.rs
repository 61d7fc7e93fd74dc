//! What comparisons came to: the types that reports read.

pub(crate) mod comparison;
pub(crate) mod floor;
pub(crate) mod notes;
pub(crate) mod ratio;
pub(crate) mod verdict;
