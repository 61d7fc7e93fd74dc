//! What was found, in sentences: a file per kind.

mod comparison;
mod curve;
mod finding;
mod note;
mod run;
mod warning;

use readings::Condition;
use verdict::text::condition;

pub(crate) use comparison::{comparison, noise_floor};
pub(crate) use curve::{curve_legend, curve_point, curves, rate_with_interval, tidy};
pub(crate) use finding::finding;
pub(crate) use note::notes;
pub(crate) use run::{probes, rate_choice, stage};
pub(crate) use warning::warning;

fn joined<T>(items: &[T], words: impl Fn(&T) -> String) -> String {
    items.iter().map(words).collect::<Vec<_>>().join(", ")
}

/// ` at connections=96`; empty without factors.
fn at(place: &Condition) -> String {
    match condition(place) {
        text if text.is_empty() => text,
        text => format!(" at {text}"),
    }
}
