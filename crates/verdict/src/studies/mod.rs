//! What is asked besides how subjects compare, a folder a study.

pub mod bottleneck;
pub mod capacity;
pub(crate) mod curve;
pub mod diagnose;
pub(crate) mod gates;
pub(crate) mod load;
pub mod plan;
pub mod scaling;
pub(crate) mod shift;
