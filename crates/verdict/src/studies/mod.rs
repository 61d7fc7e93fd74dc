//! What is asked besides how subjects compare, a folder a study.

pub mod bottleneck;
pub mod buffering;
pub mod capacity;
pub mod curve;
pub mod diagnose;
pub mod gates;
pub mod growth;
pub mod load;
pub mod plan;
pub mod scaling;
pub mod shares;
pub mod shift;
pub mod survival;
