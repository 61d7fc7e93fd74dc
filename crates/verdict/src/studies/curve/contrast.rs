//! Which of two subjects is lower at which rates, and where their curves cross.

use serde::Serialize;

use super::{BLOCKS_MIN, CONFIDENCE, Column, Observed, QUANTILES};
use crate::stats::sample::Sample;

/// Two subjects at one quantile, over the rates that both are offered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contrast {
    pub quantile: f64,
    pub subject: String,
    pub other: String,
    /// Each rate, and which of them is surely lower there.
    pub rates: Vec<(f64, Lower)>,
    /// Where the one that is lower changes, in the order of the rates.
    pub crossings: Vec<Crossing>,
}

/// Which of two subjects has the lower latency at a rate. The error rate is shared among the rates,
/// so that all of them hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lower {
    Subject,
    Other,
    Unsettled,
}

/// Between two rates the curves of two subjects cross.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Crossing {
    /// The name of the one that is lower below.
    pub lower_below: String,
    /// The highest rate before it at which that is settled.
    pub low_per_s: f64,
    /// The lowest rate after it at which the opposite is settled.
    pub high_per_s: f64,
    /// Where the mean difference is zero, interpolated; absent where one of both is overloaded.
    pub rate_per_s: Option<f64>,
}

impl Contrast {
    /// The one that is lower at every rate at which it is settled; `None` where that changes, or is
    /// settled nowhere.
    pub fn always_lower(&self) -> Option<Lower> {
        let mut settled = self.rates.iter().map(|(_, lower)| *lower);
        let first = settled.find(|lower| *lower != Lower::Unsettled)?;
        settled
            .all(|lower| lower == Lower::Unsettled || lower == first)
            .then_some(first)
    }

    /// The name of one of both.
    pub fn name(&self, lower: Lower) -> Option<&str> {
        match lower {
            Lower::Subject => Some(&self.subject),
            Lower::Other => Some(&self.other),
            Lower::Unsettled => None,
        }
    }
}

/// Every two subjects at every quantile that both have.
pub(super) fn contrasts(observed: &[Observed]) -> Vec<Contrast> {
    let mut found = Vec::new();
    for (number, quantile) in QUANTILES.into_iter().enumerate() {
        for (at, one) in observed.iter().enumerate() {
            for other in &observed[at + 1..] {
                found.extend(contrast(number, quantile, one, other));
            }
        }
    }
    found
}

/// A rate with the difference of the logarithms over the blocks.
struct At {
    rate_per_s: f64,
    lower: Lower,
    mean: Option<f64>,
}

fn contrast(number: usize, quantile: f64, a: &Observed, b: &Observed) -> Option<Contrast> {
    let shared = a.rates.iter().map(|column| column.rate_per_s);
    let shared = shared.chain(b.rates.iter().map(|column| column.rate_per_s));
    let mut rates: Vec<f64> = shared.collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup_by(|one, other| super::close(*one, *other));
    let confidence = 1.0 - (1.0 - CONFIDENCE) / rates.len().max(1) as f64;
    let each: Vec<At> = rates
        .into_iter()
        .filter_map(|rate_per_s| {
            let (lower, mean) = at(number, rate_per_s, a, b, confidence)?;
            Some(At {
                rate_per_s,
                lower,
                mean,
            })
        })
        .collect();
    if !each.iter().any(|one| one.mean.is_some()) {
        return None;
    }
    let mut crossings = Vec::new();
    let mut last: Option<usize> = None;
    for (now, one) in each.iter().enumerate() {
        if one.lower == Lower::Unsettled {
            continue;
        }
        if let Some(before) = last.filter(|before| each[*before].lower != one.lower) {
            let lower_below = match each[before].lower {
                Lower::Subject => &a.subject,
                _ => &b.subject,
            };
            crossings.push(Crossing {
                lower_below: lower_below.clone(),
                low_per_s: each[before].rate_per_s,
                high_per_s: one.rate_per_s,
                rate_per_s: zero(&each[before..=now]),
            });
        }
        last = Some(now);
    }
    Some(Contrast {
        quantile,
        subject: a.subject.clone(),
        other: b.subject.clone(),
        rates: each.iter().map(|one| (one.rate_per_s, one.lower)).collect(),
        crossings,
    })
}

/// Which is lower at a rate, and the mean difference; nothing where it was not measured.
fn at(
    number: usize,
    rate_per_s: f64,
    a: &Observed,
    b: &Observed,
    confidence: f64,
) -> Option<(Lower, Option<f64>)> {
    let (is_over_a, is_over_b) = (overload(a, rate_per_s), overload(b, rate_per_s));
    let values = |one: &Observed| one.at(rate_per_s).map(|column| column.values(number));
    match (is_over_a, is_over_b) {
        (Overload::None, Overload::None) => {}
        (Overload::All, Overload::None) => {
            let has = values(b).is_some_and(|values| values.len() >= BLOCKS_MIN);
            return has.then_some((Lower::Other, None));
        }
        (Overload::None, Overload::All) => {
            let has = values(a).is_some_and(|values| values.len() >= BLOCKS_MIN);
            return has.then_some((Lower::Subject, None));
        }
        _ => return Some((Lower::Unsettled, None)),
    }
    let (ours, theirs) = (values(a)?, values(b)?);
    let pairs = ours
        .iter()
        .filter_map(|(block, us)| Some((us / theirs.get(block)?).ln()));
    let logs: Vec<f64> = pairs.collect();
    let mean = Sample::of(&logs)?.mean;
    let lower = match super::interval(&logs, confidence) {
        Some((_, high)) if high < 1.0 => Lower::Subject,
        Some((low, _)) if low > 1.0 => Lower::Other,
        _ => Lower::Unsettled,
    };
    Some((lower, Some(mean)))
}

enum Overload {
    None,
    Some,
    All,
}

/// Whether a subject is overloaded at a rate. A rate that it is no longer offered, above one at
/// which it was overloaded in all blocks, counts as such.
fn overload(one: &Observed, rate_per_s: f64) -> Overload {
    let usable = |column: &Column| {
        let all = column.by_block.values();
        all.filter(|seen| !matches!(seen, super::Seen::Unusable(_)))
            .count()
    };
    let is_all = |column: &Column| {
        column.overloaded() >= BLOCKS_MIN && column.overloaded() == usable(column)
    };
    match one.at(rate_per_s) {
        Some(column) if column.overloaded() == 0 => Overload::None,
        Some(column) if is_all(column) => Overload::All,
        Some(_) => Overload::Some,
        None => {
            let mut below = one.rates.iter().filter(|c| c.rate_per_s < rate_per_s);
            match below.any(is_all) {
                true => Overload::All,
                false => Overload::None,
            }
        }
    }
}

/// Where the mean difference changes its sign, linear over the logarithm of the rate.
fn zero(part: &[At]) -> Option<f64> {
    part.windows(2).find_map(|pair| {
        let (d0, d1) = (pair[0].mean?, pair[1].mean?);
        if d0.signum() == d1.signum() {
            return None;
        }
        let share = d0 / (d0 - d1);
        let (r0, r1) = (pair[0].rate_per_s.ln(), pair[1].rate_per_s.ln());
        Some((r0 + share * (r1 - r0)).exp())
    })
}
