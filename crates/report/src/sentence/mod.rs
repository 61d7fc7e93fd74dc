//! What was found, in sentences: a file per kind.

mod amount;
mod capacity;
mod client;
mod closing;
mod comparison;
mod congestion;
mod curve;
mod diagnosis;
mod events;
mod evidence;
mod finding;
mod flaw;
mod gate;
mod interaction;
mod note;
mod outlook;
mod pauses;
mod placement;
pub(crate) mod plan;
mod run;
mod scaling;
mod tiers;
mod tls;
mod warning;

use readings::at_condition as at;
use verdict::{Dependence, Interaction};

pub(crate) use amount::{change_of, is_measurable, metric_words, shown_change};
pub(crate) use capacity::capacity;
pub use capacity::why_unmet;
pub(crate) use client::late_client;
pub(crate) use closing::closing;
pub(crate) use comparison::{comparison, comparison_placed, direction, noise_floor, verdict_word};
pub(crate) use congestion::congestion;
pub(crate) use curve::{curve_legend, curve_point, curves, rate_with_interval, tidy};
pub(crate) use diagnosis::{diagnosis, kind};
pub(crate) use events::{
    Unit, are_censored, difference, difference_at_most, floor_difference, uncompared,
    unit as unit_of_difference, upper_bound,
};
pub(crate) use finding::finding;
pub use flaw::{flaw, trial_flaw};
pub(crate) use flaw::{full_queue, load_flaws, point_flaw, reason};
pub(crate) use gate::{
    after_outcome as after_gate_outcome, gate, measured as gate_measured, why as gate_why,
};
pub(crate) use interaction::{interaction, interactions_rest};
pub(crate) use note::notes;
pub use outlook::outlook;
pub(crate) use pauses::without_pauses;
pub(crate) use placement::placement;
pub(crate) use run::{probes, rate_choice, stage};
pub(crate) use scaling::{no_fit, scaling};
pub(crate) use tiers::tiers;
pub(crate) use tls::tls;
pub(crate) use warning::warning;

/// The sentences on interactions: those that differ, then what the others came to.
pub(crate) fn interactions(all: &[Interaction]) -> Vec<String> {
    let differ = all.iter().filter(|i| i.dependence == Dependence::Differs);
    differ
        .map(interaction)
        .chain(interactions_rest(all))
        .collect()
}

fn joined<T>(items: &[T], words: impl Fn(&T) -> String) -> String {
    items.iter().map(words).collect::<Vec<_>>().join(", ")
}

/// Each text once, as it first comes.
pub(crate) fn once(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}
