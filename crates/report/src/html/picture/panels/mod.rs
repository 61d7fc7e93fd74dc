//! Panels side by side.

pub(crate) mod blocks;
pub(crate) mod shift;

/// The size of a panel and of the field inside its axes, in pixels.
pub(super) const WIDTH: f64 = 440.0;
pub(super) const HEIGHT: f64 = 236.0;
pub(super) const LEFT: f64 = 58.0;
pub(super) const RIGHT: f64 = 428.0;
pub(super) const TOP: f64 = 12.0;
pub(super) const BOTTOM: f64 = 196.0;
