//! Integration tests of the crate, in one program.

#![allow(clippy::unwrap_used)]

mod docs;
mod drivers;
mod event_kinds;
mod experiment_mistakes;
mod experiment_text;
mod loads;
mod machine_links;
mod plan;
mod recipes;
mod recipes_installed;
mod reference;
mod schemas;
mod settings;
mod support;
mod unreadable_files;
