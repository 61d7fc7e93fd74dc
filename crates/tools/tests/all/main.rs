//! Integration tests of the crate, in one program.

#![allow(clippy::unwrap_used)]

mod any_text;
mod corpus;
mod ends;
mod failures;
mod http_tools;
mod named_tools;
mod other_tools;
mod support;
mod tls_and_siege;
