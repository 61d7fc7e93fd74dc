//! Many runs together: the index of a folder of runs, changes over time, and two runs beside each
//! other.
//!
//! Nothing is printed here. Only [`store`] reads and writes files; everything else is a pure
//! function of what was read.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod change;
mod commits;
mod date;
mod entry;
mod facts;
mod index;
mod json;
mod openmetrics;
mod page;
mod pair;
mod pair_shown;
mod sentence;
pub mod store;
mod terminal;
mod timeline;

pub use entry::{Comparable, Figure, FloorFigure, JournalStamp, RunEntry, metric_names};
pub use facts::{Difference, Facts};
pub use index::{Index, Problem, line};
pub use json::{csv, json};
pub use openmetrics::openmetrics;
pub use page::html;
pub use pair::{Differs, Pair, PairRow, Relation, pair};
pub use pair_shown::{pair_html, pair_json, pair_terminal};
pub use terminal::terminal;
pub use timeline::{
    Break, Filters, History, LevelLine, NumberedRun, Series, SeriesChange, SeriesKey, SeriesRun,
    history,
};
