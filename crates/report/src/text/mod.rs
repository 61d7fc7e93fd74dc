//! Results for a terminal.

pub(crate) mod answer;
pub(crate) mod connections;
pub(crate) mod grid;
pub(crate) mod idle;
pub(crate) mod idle_streams;
mod lasting;
pub(crate) mod load;
pub(crate) mod plot;
pub(crate) mod run;
pub(crate) mod section;
pub(crate) mod visible;
