//! Results for programs.

pub(crate) mod csv;
pub(crate) mod export;
pub(crate) mod json;
pub(crate) mod junit;
pub(crate) mod load_json;
