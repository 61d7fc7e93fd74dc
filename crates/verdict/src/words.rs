//! Every sentence that a report says, by what it is about.
//!
//! Nothing that detects or decides calls these: the sentences follow from the values.

pub use crate::comparison::interactions::words::{interaction, interactions, interactions_rest};
pub use crate::comparison::tiers::words::place;
pub use crate::comparison::tiers::words::tiers;
pub use crate::comparison::words::events::{
    Unit, are_censored, difference, difference_at_most, floor_difference,
    unit as unit_of_difference, upper_bound,
};
pub use crate::comparison::words::notes::notes;
pub use crate::comparison::words::{
    change_of, comparison, comparison_placed, direction, noise_floor, verdict_word,
};
pub use crate::metric::words::{
    bounded, bounded_change, cell, is_measurable, metric_words, resolved_by, rough_cell,
    shown_change, value,
};
pub use crate::studies::bottleneck::words::finding;
pub use crate::studies::buffering::words::held_back;
pub use crate::studies::capacity::words::{capacity, offered, why_unmet};
pub use crate::studies::curve::words::{
    curve_legend, curve_point, curves, point_flaw, rate_with_interval, tidy,
};
pub use crate::studies::diagnose::words::{diagnosis, heading, kind};
pub use crate::studies::gates::words::{
    after_outcome as after_gate_outcome, gate, measured as gate_measured, why as gate_why,
};
pub use crate::studies::growth::words::{growth, heads as growth_heads, row as growth_row};
pub use crate::studies::plan::words as plan;
pub use crate::studies::scaling::words::{no_fit, scaling};
pub use crate::studies::shares::expiry::words::expiries;
pub use crate::studies::shares::limit::words::limiting;
pub use crate::studies::shares::words::shares;
pub use crate::studies::survival::words::survival;
pub use crate::summary::by_request::words::by_request;
pub use crate::summary::congestion::words::congestion;
pub use crate::summary::ranking::words::{rate_of, short, unplaced};
pub use crate::summary::settings::words as settings;
pub use crate::summary::settings::words::upgrades;
pub use crate::summary::table::words::{closes_connections, kept};
pub use crate::summary::tls::words::tls;
pub use crate::summary::warnings::words::caveats::{caveats, widening};
pub use crate::summary::warnings::words::{warning, warnings};
pub use crate::summary::words::closing;
pub use crate::summary::words::events::{failed_requests, failures_per_event, uncompared};
pub use crate::summary::words::placement::{placement, placement_in_short};
pub use crate::summary::words::run::{probes, questions, rate_choice, stage, warm_up};
pub use crate::trial::drift::words::drift;
pub use crate::trial::flaw::words::{flaw, flaws, full_queue, reason, trial_flaw};
pub use crate::trial::lag::words::late_client;
pub use crate::trial::pauses::words::without_pauses;
