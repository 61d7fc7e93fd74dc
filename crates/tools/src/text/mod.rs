//! Lines, numbers with units, and tables in a text.

pub(crate) mod lines;
pub(crate) mod named;
mod numbered;
pub(crate) mod table;
pub(crate) mod units;
