//! Many runs together: the index of a folder of runs, changes over time, and two runs beside each
//! other.
//!
//! Nothing is printed here. Only [`store`] reads and writes files; everything else is a pure
//! function of what was read.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod change;
mod commits;
mod entry;
mod facts;
mod index;
mod pair;
mod shown;
pub mod store;
mod timeline;

pub use entry::{Comparable, Figure, FloorFigure, JournalStamp, RunEntry, metric_names};
pub use facts::{Difference, Facts};
pub use index::{Index, Problem, line};
pub use pair::{Differs, Pair, PairRow, Relation, pair, pair_html, pair_json, pair_terminal};
pub use shown::{csv, html, json, openmetrics, series_picture, series_sentences, terminal};
pub use timeline::{
    Break, Filters, History, LevelLine, NumberedRun, Series, SeriesChange, SeriesKey, SeriesRun,
    history,
};
