//! The curve of latency over the offered rate around a capacity.

use readings::LoadReading;
use serde::Serialize;

use super::{Bound, Capacity, HOLDS, Judgement, Objective, Quantity};
use crate::late_at;
use crate::pairs::resolves;
use crate::text::{counted, number, percent, rate};

/// One trial: a rate that was offered, and its outcome.
#[derive(Clone, Debug)]
pub struct RateStep {
    /// Requests per second that were offered.
    pub rate_per_s: f64,
    /// What was measured.
    pub load: LoadReading,
    /// What that says on the objective.
    pub judgement: Judgement,
}

/// Values of several trials: the smallest, the middle and the largest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The smallest.
    pub low: f64,
    /// The median; of an even number the mean of the two in the middle.
    pub middle: f64,
    /// The largest.
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
    /// Why trials did not hold, each reason once.
    pub reasons: Vec<String>,
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
        .filter(|s| s.load.response.count() > 0)
        .collect();
    let at = |q: &f64| {
        let values = answering.iter().map(|s| s.load.response.quantile_us(*q));
        Some(QuantileAt {
            quantile: *q,
            latency_us: Spread::of(values.collect())?,
            resolved: answering.iter().all(|s| resolves(&s.load, *q)),
        })
    };
    let mut reasons: Vec<String> = Vec::new();
    for step in steps {
        let said = match &step.judgement {
            Judgement::Met => continue,
            Judgement::Missed(why) => why.clone(),
            Judgement::Unusable(why) => vec![why.clone()],
        };
        for reason in said {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    let limited = |s: &&&RateStep| {
        matches!(s.judgement, Judgement::Unusable(_)) && is_client_limited(&s.load)
    };
    let limited = steps.iter().filter(limited).count();
    Some(RatePoint {
        rate_per_s,
        achieved_per_s: of(&LoadReading::requests_per_s)?,
        held: count(|j| matches!(j, Judgement::Met)),
        missed: count(|j| matches!(j, Judgement::Missed(_))),
        unusable: count(|j| matches!(j, Judgement::Unusable(_))),
        errors: match failed + answered {
            0 => 0.0,
            all => failed as f64 / all as f64,
        },
        quantiles: quantiles.iter().filter_map(at).collect(),
        client_limited: 2 * limited > steps.len(),
        reasons,
    })
}

/// What a search found, in sentences. `connections` are those that carried the load.
pub fn sentences(
    capacity: &Capacity,
    objective: &Objective,
    steps: &[RateStep],
    connections: u32,
) -> Vec<String> {
    let mut said = found(capacity, objective);
    let conditions = objective.conditions();
    if !conditions.is_empty() {
        said.push(format!("A trial also has to keep {conditions}."));
    }
    if !capacity.complete {
        said.push(
            "The search was not finished: this is what the trials that were made tell.".to_owned(),
        );
    }
    said.extend(connection_bound(capacity, steps, connections));
    said
}

fn found(capacity: &Capacity, objective: &Objective) -> Vec<String> {
    let of_rate = |at: f64| capacity.trials.iter().find(|t| t.rate_per_s == at);
    let trials = |at: f64| {
        of_rate(at).map_or(String::new(), |t| {
            let judged = t.held + t.missed;
            format!("{} of {} held", t.held, counted(judged as usize, "trial"))
        })
    };
    // Few trials that all held do not show that nearly all would.
    let sure = |at: f64| {
        of_rate(at).map_or(String::new(), |t| {
            format!(
                "{}, so at least {} of all do, with 95% confidence",
                trials(at),
                percent(t.holds_at_least() * 100.0, 0, false)
            )
        })
    };
    let (lower, upper) = (capacity.lower_per_s, capacity.upper_per_s);
    match (lower, upper, capacity.upper_is) {
        (Some(lower), Some(upper), Bound::Missed) => of_both(
            capacity,
            objective,
            [(lower, trials(lower)), (upper, trials(upper))],
        ),
        (Some(lower), Some(upper), _) => vec![format!(
            "At least {} requests/s keep {objective} ({}): the client could not offer {} on time, \
             so more is not known.",
            rate(lower),
            sure(lower),
            rate(upper)
        )],
        (Some(lower), None, _) => vec![format!(
            "At least {} requests/s keep {objective} ({}): nothing higher was offered.",
            rate(lower),
            sure(lower)
        )],
        (None, Some(upper), Bound::Client) => vec![format!(
            "Nothing can be said on {objective}: the client could not offer {} requests/s on time, \
             nor anything lower that was tried.",
            rate(upper)
        )],
        (None, Some(upper), _) => vec![format!(
            "No rate kept {objective}; the lowest that was offered is {} requests/s ({}).",
            rate(upper),
            trials(upper)
        )],
        (None, None, _) => vec![format!(
            "Nothing was measured that says anything on {objective}."
        )],
    }
}

/// The rate that holds in most trials, and the bounds between which half of them hold.
fn of_both(
    capacity: &Capacity,
    objective: &Objective,
    [(lower, of_lower), (upper, of_upper)]: [(f64, String); 2],
) -> Vec<String> {
    let mut said = Vec::new();
    if let (Some(holds), Some(low), Some(high)) = (
        capacity.holds_per_s,
        capacity.low_per_s,
        capacity.high_per_s,
    ) {
        let mut text = format!(
            "The highest rate that keeps {objective} in {} of the trials is {} requests/s (95% \
             interval {} to {}",
            percent(HOLDS * 100.0, 0, false),
            rate(holds),
            rate(low),
            rate(high)
        );
        if capacity.correlation > 0.0 {
            text.push_str(&format!(
                ", widened since successive trials resemble each other: correlation {}",
                number(capacity.correlation, 2, false)
            ));
        }
        said.push(text + ").");
    }
    said.push(format!(
        "About half of the trials hold between {} ({of_lower}) and {} requests/s ({of_upper}).",
        rate(lower),
        rate(upper)
    ));
    said
}

/// All connections count as busy from here on.
const BUSY: f64 = 0.95;
/// Service within so much of the fastest rate's is not slowed down by the load.
const UNSLOWED: f64 = 1.3;

/// Whether requests waited for a free connection at the upper bound, while the server answered as
/// fast as ever: then the connections are what was measured.
fn connection_bound(capacity: &Capacity, steps: &[RateStep], connections: u32) -> Option<String> {
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
    is_bound.then(|| {
        format!(
            "At {} requests/s all {} were busy, and the server answered as fast as at lower rates: \
             the number of connections is the limit, not the server; more of them (-c) would carry \
             more.",
            rate(above.rate_per_s),
            counted(connections as usize, "connection")
        )
    })
}

#[cfg(test)]
mod tests;
