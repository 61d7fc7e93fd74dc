//! The common rate of the open loops, from the throughput of the closed loops.

use readings::{LoadReading, RateChoice};

use super::schedule;
use crate::group::{GroupResult, ReadySubject};
use experiment::plan::Group;
use experiment::{Rate, ResolvedCondition};

/// The common rate from this block's closed loops; `None` unless all subjects are ready.
pub(crate) fn choose_rate(
    group: &Group,
    ready: &[ReadySubject],
    resolved: &ResolvedCondition,
    closed: &[LoadReading],
    result: &mut GroupResult,
) -> Option<f64> {
    if let Rate::PerSecond(rate) = resolved.load.rate {
        return Some(rate);
    }
    if ready.len() != group.trials.len() {
        return None;
    }
    choose_rate_of(group, resolved, closed, result)
}

/// The common rate from the closed loops of all subjects.
pub(crate) fn choose_rate_of(
    group: &Group,
    resolved: &ResolvedCondition,
    closed: &[LoadReading],
    result: &mut GroupResult,
) -> Option<f64> {
    if let Rate::PerSecond(rate) = resolved.load.rate {
        return Some(rate);
    }
    let slowest = closed
        .iter()
        .map(LoadReading::requests_per_s)
        .fold(f64::INFINITY, f64::min);
    if !slowest.is_finite() || slowest <= 0.0 {
        return None;
    }
    let client = closed
        .iter()
        .map(schedule::client_rate)
        .fold(f64::INFINITY, f64::min);
    let rate_per_s = schedule::common_rate(slowest, client);
    result.rate = Some(RateChoice {
        condition: group.condition.clone(),
        rate_per_s,
        slowest_per_s: Some(slowest),
    });
    Some(rate_per_s)
}
