//! What is said of other tools' outputs, against runs whose truth is known.

#![allow(clippy::unwrap_used)]

mod known;
mod named;
mod printed;
mod run;
mod simulated;
