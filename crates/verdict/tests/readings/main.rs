//! What is said of other tools' outputs, against runs whose truth is known.

#![allow(clippy::unwrap_used)]

mod known;
mod printed;
mod simulated;
