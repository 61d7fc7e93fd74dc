//! Integration tests of the crate, in one program.

#![allow(clippy::unwrap_used)]

mod docs;
mod drivers;
mod experiment_mistakes;
mod experiment_text;
mod plan;
mod recipes;
mod recipes_installed;
mod settings;
mod support;
