//! What is printed: results and notes, the progress of a run, the view of a load that runs.

// First: all others use its macros.
#[macro_use]
pub mod output;

#[cfg_attr(not(feature = "full"), path = "no_live.rs")]
pub mod live;
pub mod progress;
