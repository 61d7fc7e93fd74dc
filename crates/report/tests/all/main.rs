//! Integration tests of the crate, in one program.

#![allow(clippy::unwrap_used)]

mod browser;
mod chromium;
mod corpus;
mod exports;
mod judged;
mod levels;
mod line_limits;
mod names;
mod old_journals;
mod schemas;
mod servers;
mod size;
