//! One self-contained page: nothing is fetched, light or dark as the reader prefers, data included.

mod data;
mod first_screen;
mod page;
pub(crate) mod picture;
pub(crate) mod section;
mod sweep;
pub(crate) mod table;

/// What pages beside that of a run are drawn with.
pub mod drawing {
    pub use crate::html::first_screen::{caveats, measured_on};
    pub use crate::html::page::{sections, shell, shell_with};
    pub use crate::html::picture::axis::{Scale, Tick, ratio_ticks};
    pub use crate::html::picture::ranking::rankings;
    pub use crate::html::picture::svg::{Anchor, Picture, escaped, prose};
    pub use crate::html::table::{boxed, folded, list, section};
}

pub use page::html;
pub use picture::latency::curve_svg;
#[cfg(feature = "full")]
pub use picture::ranking::ranking_png;
pub use picture::ranking::ranking_svg;
pub(crate) use picture::svg::escaped;
pub use sweep::{capacity_html, scaling_html};
