//! Integration tests of the crate, in one program.

#![allow(clippy::unwrap_used)]

mod any_text;
mod corpus;
mod damage;
mod ends;
mod failures;
mod readings;
mod support;
