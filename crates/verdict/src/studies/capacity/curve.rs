//! The curve of latency over the offered rate around a capacity.

use readings::LoadReading;
use serde::Serialize;

use super::{Capacity, Judgement, Objective, Quantity, times_of};
use crate::late_at;
use crate::metric::of_trial::{enough, resolves};

/// One trial: a rate that was offered, and its outcome.
#[derive(Clone, Debug)]
pub struct RateStep {
    /// Requests per second that were offered.
    pub rate_per_s: f64,
    pub load: LoadReading,
    /// What that says on the objective.
    pub judgement: Judgement,
}

/// Values of several trials: the smallest, the middle and the largest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub low: f64,
    /// The median; of an even number the mean of the two in the middle.
    pub middle: f64,
    pub high: f64,
}

impl Spread {
    /// The spread of some values; nothing of none.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let middle = (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0;
        Some(Self { low, middle, high })
    }
}

/// A quantile of the response latency at one rate: each trial's own, never an average within.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QuantileAt {
    /// The quantile, between 0 and 1.
    pub quantile: f64,
    /// Its values in the trials, in microseconds.
    pub latency_us: Spread,
    /// Whether enough requests stand behind it in every trial.
    pub resolved: bool,
}

/// All trials of one rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RatePoint {
    /// Requests per second that were offered.
    pub rate_per_s: f64,
    /// Good answers per second.
    pub achieved_per_s: Spread,
    /// Trials that kept the objective.
    pub held: u32,
    /// Trials that did not.
    pub missed: u32,
    /// Trials that say nothing.
    pub unusable: u32,
    /// Failed requests over all, of the trials together.
    pub errors: f64,
    /// The objective's quantiles, and the median.
    pub quantiles: Vec<QuantileAt>,
    /// Whether most of the trials say nothing because the client could not keep up.
    pub client_limited: bool,
    /// What the trials that did not meet the objective say.
    #[serde(skip)]
    pub unmet: Vec<Judgement>,
}

/// Whether a load says as much of the client as of the server: a thread was busy, or it sent late.
fn is_client_limited(load: &LoadReading) -> bool {
    load.client.saturated || late_at(load, 0.5).is_some()
}

/// The median, and the quantiles that an objective limits, ascending.
pub fn quantiles_of(objective: &Objective) -> Vec<f64> {
    let mut quantiles = vec![0.5];
    quantiles.extend(objective.limits().iter().filter_map(|l| match l.quantity {
        // Without what dividing a percentage by 100 has left behind.
        Quantity::Quantile(q) => Some((q * 1e9).round() / 1e9),
        _ => None,
    }));
    if quantiles.len() == 1 {
        quantiles.push(0.99);
    }
    quantiles.sort_by(f64::total_cmp);
    quantiles.dedup();
    quantiles
}

/// Latency against offered rate: a point for each rate, ascending.
pub fn curve(steps: &[RateStep], quantiles: &[f64]) -> Vec<RatePoint> {
    let mut rates: Vec<f64> = steps.iter().map(|s| s.rate_per_s).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let of_rate = |rate: f64| {
        let here: Vec<&RateStep> = steps.iter().filter(|s| s.rate_per_s == rate).collect();
        point(rate, &here, quantiles)
    };
    rates.into_iter().filter_map(of_rate).collect()
}

/// Good answers per second, or messages of streams.
fn answered_per_s(load: &LoadReading) -> f64 {
    match load.messages() {
        0 => load.requests_per_s(),
        messages => messages as f64 / load.duration_s.max(f64::MIN_POSITIVE),
    }
}

fn is_resolved(load: &LoadReading, quantile: f64) -> bool {
    match load.messages() {
        0 => resolves(load, quantile),
        _ => enough(times_of(load).count(), quantile),
    }
}

fn point(rate_per_s: f64, steps: &[&RateStep], quantiles: &[f64]) -> Option<RatePoint> {
    let of = |value: &dyn Fn(&LoadReading) -> f64| {
        Spread::of(steps.iter().map(|s| value(&s.load)).collect())
    };
    let count =
        |is: fn(&Judgement) -> bool| steps.iter().filter(|s| is(&s.judgement)).count() as u32;
    let failed: u64 = steps.iter().map(|s| s.load.errors.total()).sum();
    let answered: u64 = steps.iter().map(|s| s.load.requests).sum();
    let answering: Vec<&RateStep> = steps
        .iter()
        .copied()
        .filter(|s| times_of(&s.load).count() > 0)
        .collect();
    let at = |q: &f64| {
        let values = answering.iter().map(|s| times_of(&s.load).quantile_us(*q));
        Some(QuantileAt {
            quantile: *q,
            latency_us: Spread::of(values.collect())?,
            resolved: answering.iter().all(|s| is_resolved(&s.load, *q)),
        })
    };
    let judgements = steps.iter().map(|step| &step.judgement);
    let unmet = judgements.filter(|one| **one != Judgement::Met).cloned();
    let limited = |s: &&&RateStep| {
        matches!(s.judgement, Judgement::Unusable(_)) && is_client_limited(&s.load)
    };
    let limited = steps.iter().filter(limited).count();
    Some(RatePoint {
        rate_per_s,
        achieved_per_s: of(&answered_per_s)?,
        held: count(|j| matches!(j, Judgement::Met)),
        missed: count(|j| matches!(j, Judgement::Missed(_))),
        unusable: count(|j| matches!(j, Judgement::Unusable(_))),
        errors: match failed + answered {
            0 => 0.0,
            all => failed as f64 / all as f64,
        },
        quantiles: quantiles.iter().filter_map(at).collect(),
        client_limited: 2 * limited > steps.len(),
        unmet: unmet.collect(),
    })
}

/// All connections count as busy from here on.
const BUSY: f64 = 0.95;
/// Service within so much of the fastest rate's is not slowed down by the load.
const UNSLOWED: f64 = 1.3;

/// The rate at or above the upper bound at which requests waited for a free connection while the
/// server answered as fast as ever, if there is one: then the connections are what was measured.
pub fn all_busy_at(capacity: &Capacity, steps: &[RateStep], connections: u32) -> Option<f64> {
    let upper = capacity.upper_per_s?;
    let service = |s: &RateStep| s.load.service.quantile_us(0.5);
    let answered = |s: &&RateStep| s.load.service.count() > 0;
    let above = steps
        .iter()
        .filter(answered)
        .find(|s| s.rate_per_s >= upper)?;
    let fastest = steps
        .iter()
        .filter(answered)
        .map(service)
        .reduce(f64::min)?;
    let busy = above.load.requests_per_s() * above.load.service.quantiles().mean / 1e6;
    let is_bound = busy >= BUSY * f64::from(connections) && service(above) <= UNSLOWED * fastest;
    is_bound.then_some(above.rate_per_s)
}

#[cfg(test)]
mod tests;
