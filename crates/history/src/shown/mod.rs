//! A history as text, page, tables and samples.

pub(crate) mod date;
mod json;
mod openmetrics;
mod page;
mod sentence;
mod terminal;

pub use json::{csv, json};
pub use openmetrics::openmetrics;
pub use page::{html, series_picture, series_sentences};
pub use terminal::terminal;
