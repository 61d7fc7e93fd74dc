//! Reads files that a person wrote, and shows every mistake at its position.
//!
//! A file is opened and parsed ([`open`]) into a tree whose parts know their places ([`tree`]). A
//! [`reader::Reader`] collects mistakes while the tree, or anything else that knows its places, is
//! turned into the types of another crate; [`section`] has the accessors for that. Nothing here
//! knows what the files mean.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod mistake;
pub mod nearest;
pub mod open;
pub mod reader;
pub mod section;
mod shown_as;
pub mod tree;
pub mod units;

pub use mistake::{Mistake, Mistakes};
pub use open::OpenError;
