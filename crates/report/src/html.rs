//! One self-contained page: no script, nothing fetched, light or dark as the reader prefers.

mod axis;
mod blocks;
mod curves;
mod forest;
mod latency;
mod page;
mod panel;
mod shift;
mod svg;
mod sweep;

pub use latency::curve_svg;
pub use page::html;
pub use sweep::{capacity_html, scaling_html};
