//! What the sections of a report hold, whatever form they take.

pub(crate) mod columns;
pub(crate) mod curve_table;
pub(crate) mod settings;
pub(crate) mod tiers;
