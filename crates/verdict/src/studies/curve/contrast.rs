//! Which of two subjects is lower at which rates, and where their curves cross.

use serde::Serialize;

use super::{BLOCKS_MIN, CONFIDENCE, Column, HALF_STEP, Observed, QUANTILES, Seen};
use crate::stats::family::{Together, family};
use crate::stats::sample::Sample;

/// Two subjects at one quantile, over the rates that both are offered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contrast {
    pub quantile: f64,
    pub subject: String,
    pub other: String,
    pub rates: Vec<(f64, Lower)>,
    /// Where the one that is lower changes, in the order of the rates.
    pub crossings: Vec<Crossing>,
}

/// Which of two subjects has the lower latency at a rate. All pairs, quantiles and rates of a condition
/// are one family, so that all that is called lower holds together.
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

/// Two subjects at a quantile and a rate.
struct At {
    /// Where they stand among the contrasts.
    contrast: usize,
    rate_per_s: f64,
    /// The one that is lower, if a difference is settled.
    lower: Lower,
    /// Of 'neither is lower'; absent where that cannot be tested.
    p: Option<f64>,
    /// The mean difference of the logarithms; absent where one of both is overloaded.
    mean: Option<f64>,
}

/// Every two subjects at every quantile that both have.
pub(super) fn contrasts(observed: &[Observed]) -> Vec<Contrast> {
    let mut questions = Vec::new();
    let mut each: Vec<At> = Vec::new();
    for (number, quantile) in QUANTILES.into_iter().enumerate() {
        for (place, one) in observed.iter().enumerate() {
            for other in &observed[place + 1..] {
                let found = over_rates(questions.len(), number, one, other);
                if found.iter().any(|at| at.mean.is_some()) {
                    questions.push((quantile, one, other));
                    each.extend(found);
                }
            }
        }
    }
    // Where one is overloaded there is nothing to test, by the plan of the run and not by chance.
    let known: Vec<f64> = each.iter().filter_map(|at| at.p).collect();
    let mut tests = family(known, |p| Some(*p), Together::Any).into_iter();
    let mut of_each: Vec<Vec<At>> = questions.iter().map(|_| Vec::new()).collect();
    for mut at in each {
        let test = at.p.and_then(|_| tests.next());
        let p_adjusted = test.and_then(|test| test.p_adjusted);
        if p_adjusted.is_none_or(|p| p >= 1.0 - CONFIDENCE) {
            at.lower = Lower::Unsettled;
        }
        of_each[at.contrast].push(at);
    }
    let all = questions.into_iter().zip(of_each);
    all.map(|((quantile, one, other), each)| contrast(quantile, one, other, &each))
        .collect()
}

fn over_rates(contrast: usize, number: usize, a: &Observed, b: &Observed) -> Vec<At> {
    let shared = a.rates.iter().chain(&b.rates);
    let mut rates: Vec<f64> = shared.map(|column| column.rate_per_s).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup_by(|one, other| super::close(*one, *other));
    let each = rates.into_iter().filter_map(|rate_per_s| {
        let (lower, p, mean) = at(number, rate_per_s, a, b)?;
        Some(At {
            contrast,
            rate_per_s,
            lower,
            p,
            mean,
        })
    });
    each.collect()
}

fn contrast(quantile: f64, a: &Observed, b: &Observed, each: &[At]) -> Contrast {
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
    Contrast {
        quantile,
        subject: a.subject.clone(),
        other: b.subject.clone(),
        rates: each.iter().map(|one| (one.rate_per_s, one.lower)).collect(),
        crossings,
    }
}

/// Which is lower at a rate, the p value of that, and the mean difference; nothing where it was not
/// measured.
fn at(
    number: usize,
    rate_per_s: f64,
    a: &Observed,
    b: &Observed,
) -> Option<(Lower, Option<f64>, Option<f64>)> {
    let values = |one: &Observed| one.at(rate_per_s).map(|column| column.values(number));
    let has = |one: &Observed| values(one).is_some_and(|values| values.len() >= BLOCKS_MIN);
    match (overload(a, rate_per_s), overload(b, rate_per_s)) {
        (Overload::None, Overload::None) => {}
        (Overload::All(p), Overload::None) => return has(b).then_some((Lower::Other, p, None)),
        (Overload::None, Overload::All(p)) => return has(a).then_some((Lower::Subject, p, None)),
        _ => return Some((Lower::Unsettled, None, None)),
    }
    let (ours, theirs) = (values(a)?, values(b)?);
    let pairs = ours
        .iter()
        .filter_map(|(block, us)| Some((us / theirs.get(block)?).ln()));
    let logs: Vec<f64> = pairs.collect();
    let sample = Sample::of(&logs)?.with_resolution(HALF_STEP);
    let lower = match sample.mean < 0.0 {
        true => Lower::Subject,
        false => Lower::Other,
    };
    Some((lower, sample.p_value(), Some(sample.mean)))
}

enum Overload {
    None,
    Some,
    /// In all blocks, with the p value of 'it carries what it is offered'.
    All(Option<f64>),
}

/// Whether a subject is overloaded at a rate. A rate that it is no longer offered, above one at
/// which it was overloaded in all blocks, counts as such.
fn overload(one: &Observed, rate_per_s: f64) -> Overload {
    let usable = |column: &Column| {
        let all = column.by_block.values();
        all.filter(|seen| !matches!(seen, Seen::Unusable(_)))
            .count()
    };
    let is_all = |column: &Column| {
        column.overloaded() >= BLOCKS_MIN && column.overloaded() == usable(column)
    };
    match one.at(rate_per_s) {
        Some(column) if column.overloaded() == 0 => Overload::None,
        Some(column) if is_all(column) => Overload::All(p_overloaded(column)),
        Some(_) => Overload::Some,
        None => {
            let mut below = one.rates.iter().rev();
            let below = below.find(|c| c.rate_per_s < rate_per_s && is_all(c));
            below.map_or(Overload::None, |column| Overload::All(p_overloaded(column)))
        }
    }
}

/// By the shares of the offered rate that were carried. Near what a subject carries, chance decides in
/// which blocks it is overloaded.
fn p_overloaded(column: &Column) -> Option<f64> {
    let shares = column.carried().map(|log| log - column.rate_per_s.ln());
    let sample = Sample::of(&shares.collect::<Vec<f64>>())?;
    sample.p_value().filter(|_| sample.mean < 0.0)
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
