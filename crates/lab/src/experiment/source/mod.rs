//! Files that a person wrote: reading them with every mistake shown in its place.

pub(crate) mod mistake;
pub(crate) mod nearest;
pub(crate) mod open;
pub(crate) mod reader;
pub(crate) mod section;
pub(crate) mod tree;
pub mod units;

pub use mistake::{Mistake, Mistakes};
pub use open::OpenError;
