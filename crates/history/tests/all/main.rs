//! What the history says where the truth is known.

#![allow(clippy::unwrap_used)]

mod commits;
mod folders;
mod index;
mod made;
mod pairs;
mod rates;
mod series;
mod simulate;
