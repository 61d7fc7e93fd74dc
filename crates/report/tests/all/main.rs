//! Integration tests of the crate, in one program.

#![allow(clippy::unwrap_used)]

mod corpus;
mod old_journals;
