//! Files that say what a load sends.
//!
//! Each reader returns [`RequestSet`] or a part of it, or every mistake with its line and column.
//! Nothing here sends anything, and nothing is sent before all files are read.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub use readings::requests::RequestSet;
