//! The program as its users have it, end to end: one program of tests, so that it is linked once. A
//! folder for each command or concern.
//!
//! `./check` runs what has `quiet::` in its path after all else, side by side, and then what has
//! `alone::` in it, one at a time.

#![allow(clippy::unwrap_used)]

mod balance;
mod capacity;
mod common;
mod compare;
mod hosts;
mod load;
mod protocols;
mod recipes;
mod run;
mod show;
