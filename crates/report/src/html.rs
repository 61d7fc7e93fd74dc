//! One self-contained page: nothing is fetched, light or dark as the reader prefers, data included.

mod axis;
mod blocks;
mod bottlenecks;
mod curves;
mod data;
mod event_rows;
mod first_screen;
mod fluid_svg;
mod forest;
mod latency;
mod over_time;
mod page;
mod panel;
mod profiles;
mod proof;
mod settings_table;
mod shift;
mod summary_table;
mod svg;
mod sweep;
mod tables;
mod topology;
mod verdicts;

/// What pages beside that of a run are drawn with.
pub mod drawing {
    pub use super::axis::{Scale, Tick, ratio_ticks};
    pub use super::page::shell;
    pub use super::svg::{Anchor, Picture, escaped};
}

pub use latency::curve_svg;
pub use page::html;
pub(crate) use svg::escaped;
pub use sweep::{capacity_html, scaling_html};
