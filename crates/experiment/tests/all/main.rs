//! Integration tests of the crate, in one program.

#![allow(clippy::unwrap_used)]

mod drivers;
mod file;
mod pages;
mod plan;
mod recipes;
mod support;
