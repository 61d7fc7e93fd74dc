//! Pictures of the page.

pub(crate) mod axis;
pub(crate) mod curves;
pub(crate) mod event_rows;
pub(crate) mod fluid_svg;
pub(crate) mod forest;
pub(crate) mod latency;
pub(crate) mod over_time;
pub(crate) mod panels;
pub(crate) mod ranking;
pub(crate) mod svg;
pub(crate) mod topology;
