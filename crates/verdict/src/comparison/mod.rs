//! Comparisons of subjects with the baseline, over blocks.

pub(crate) mod words;

pub(crate) mod compare;
pub(crate) mod decide;
pub(crate) mod draft;
pub(crate) mod events;
pub(crate) mod floor;
pub(crate) mod interactions;
pub(crate) mod pairs;
pub(crate) mod record;
pub(crate) mod tiers;
pub(crate) mod withhold;
