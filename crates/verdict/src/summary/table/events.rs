//! Failures and recovery in the table of figures.

use readings::{EVENT_ROW_MS, EventReading, EventsReading};
use serde::Serialize;

use crate::Metric;
use crate::comparison::events::{Side, at_most, is_applicable};
use crate::stats::student::t_quantile;
use crate::trial::cells::Cell;

/// Failures and recovery of a subject under a condition, over its valid trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EventsRow {
    pub trials: usize,
    pub requests: u64,
    pub failed: u64,
    pub failed_share: f64,
    /// With no failure: the share that they can have at most, by the rule of three, with 95%
    /// confidence.
    pub failed_share_at_most: Option<f64>,
    /// Failures of the trial that had the fewest.
    pub failed_min: u64,
    /// Failures of the trial that had the most.
    pub failed_max: u64,
    /// What happened in all of them; 0 for a subject to which nothing happens, as to a control.
    pub events: usize,
    /// Where all that happened was reloads and rolling restarts: failures for each.
    pub failures_per_event: Option<f64>,
    /// Its exact interval with 95% confidence, were failures independent.
    pub failures_per_event_low: Option<f64>,
    pub failures_per_event_high: Option<f64>,
    /// Mean time until the rate was full again, of the trials in which it was.
    pub full_rate_after_s: Option<f64>,
    /// Trials with an event in which the rate was not full at the window's end.
    pub not_full_at_end: usize,
    /// The longest time without any good answer, from the first event on, of all trials; absent in
    /// journals of before it was recorded.
    pub longest_silence_s: Option<f64>,
    /// The longest that a good answer took which came after the first event, of all trials; absent
    /// likewise.
    pub longest_response_s: Option<f64>,
    /// Mean time until the load had left a server that was lost, where it had.
    pub left_after_s: Option<f64>,
    /// Its interval with 95% confidence, of two trials and more.
    pub left_after_s_low: Option<f64>,
    pub left_after_s_high: Option<f64>,
    /// How often the load had not left a server before it was back.
    pub not_left: usize,
    /// How often a server was lost whose usual share is known.
    pub were_lost: usize,
    /// Mean time until a server that was back had its share of the load again, where it had.
    pub in_rotation_after_s: Option<f64>,
    /// How often a server that came back did not get its share within the window.
    pub not_in_rotation: usize,
    /// How often a server came back whose usual share is known.
    pub were_back: usize,
    /// The most connections that were open at a stopped server in any trial.
    pub connections_max: Option<u64>,
    /// Mean memory of the server that the load addresses before the load, bytes.
    pub memory_before_bytes: Option<f64>,
    /// The same after it, before events were undone.
    pub memory_after_bytes: Option<f64>,
    /// Connections that ended and were opened again, for each event; absent where there were none, and
    /// where the load closes its connections itself.
    pub reopened_per_event: Option<f64>,
    /// Mean time until a reload was seen to be in effect, where it was.
    pub in_effect_after_s: Option<f64>,
    /// How often a reload was not seen to be in effect.
    pub not_in_effect: usize,
    /// How often a server was reloaded.
    pub reloads: usize,
}

impl EventsRow {
    pub(crate) fn of(trials: &[&Cell<'_>]) -> Option<Self> {
        let all: Vec<&EventsReading> = trials
            .iter()
            .filter(|cell| cell.latency().is_some())
            .filter_map(|cell| cell.reading()?.events.as_ref())
            .collect();
        let requests: u64 = all.iter().map(|one| one.requests).sum();
        let failed: u64 = all.iter().map(|one| one.failed).sum();
        let each = || all.iter().map(|one| one.failed);
        let back: Vec<&EventReading> = all
            .iter()
            .flat_map(|one| &one.events)
            .filter(|event| event.back_s.is_some() && event.has_rotation())
            .filter(|event| event.is_rotation_known())
            .collect();
        let lost = all.iter().flat_map(|one| &one.events);
        let lost: Vec<&EventReading> = lost.filter(|event| event.watched_for_s > 0.0).collect();
        let left: Vec<f64> = lost.iter().filter_map(|event| event.left_after_s).collect();
        let left_limits = limits(&left, f64::from(EVENT_ROW_MS as u32) / 1e3);
        let reloads = all.iter().flat_map(|one| &one.events);
        let reloads: Vec<&EventReading> = reloads.filter(|event| event.is_reload()).collect();
        let in_effect = reloads.iter().filter_map(|event| event.in_effect_after_s);
        let in_effect: Vec<f64> = in_effect.collect();
        let in_rotation = back.iter().filter_map(|event| event.in_rotation_after_s);
        let in_rotation: Vec<f64> = in_rotation.collect();
        let affected = all.iter().filter(|one| one.has_events()).count();
        let per_event = failures_per_event(&all);
        let full: Vec<f64> = all.iter().filter_map(|one| one.full_rate_after_s).collect();
        let events = all.iter().flat_map(|one| &one.events);
        (!all.is_empty()).then(|| Self {
            trials: all.len(),
            requests,
            failed,
            failed_share: failed as f64 / requests.max(1) as f64,
            failed_share_at_most: (failed == 0).then(|| at_most(requests)),
            failed_min: each().min().unwrap_or(0),
            failed_max: each().max().unwrap_or(0),
            events: all.iter().map(|one| one.events.len()).sum(),
            failures_per_event: per_event.map(|side| side.share()),
            failures_per_event_low: per_event.map(|side| side.limits_of_mean(CONFIDENCE).0),
            failures_per_event_high: per_event.map(|side| side.limits_of_mean(CONFIDENCE).1),
            full_rate_after_s: mean(&full),
            not_full_at_end: affected.saturating_sub(full.len()),
            longest_silence_s: longest(&all, |one| one.longest_silence_s),
            longest_response_s: longest(&all, |one| one.longest_response_s),
            left_after_s: mean(&left),
            left_after_s_low: left_limits.map(|limits| limits.0),
            left_after_s_high: left_limits.map(|limits| limits.1),
            not_left: lost.len() - left.len(),
            were_lost: lost.len(),
            in_rotation_after_s: mean(&in_rotation),
            not_in_rotation: back.len() - in_rotation.len(),
            were_back: back.len(),
            memory_before_bytes: mean(&bytes(&all, |one| one.memory_before_bytes)),
            memory_after_bytes: mean(&bytes(&all, |one| one.memory_after_bytes)),
            reopened_per_event: reopened_per_event(&all),
            connections_max: events.filter_map(|event| event.connections_max).max(),
            in_effect_after_s: mean(&in_effect),
            not_in_effect: reloads.len() - in_effect.len(),
            reloads: reloads.len(),
        })
    }
}

const CONFIDENCE: f64 = 0.95;

fn failures_per_event(all: &[&EventsReading]) -> Option<Side> {
    let is_counted = is_applicable(Metric::FailuresPerEvent, all.iter().copied());
    is_counted.then(|| Side {
        failed: all.iter().map(|one| one.failed).sum(),
        requests: all.iter().map(|one| one.events.len() as u64).sum(),
    })
}

fn bytes(all: &[&EventsReading], of: fn(&EventsReading) -> Option<u64>) -> Vec<f64> {
    let known = all.iter().filter_map(|one| of(one));
    known.map(|bytes| bytes as f64).collect()
}

/// The share of requests on a connection of their own from which on it is the load that closes them.
const CLOSING: f64 = 0.5;

fn reopened_per_event(all: &[&EventsReading]) -> Option<f64> {
    let affected = all.iter().filter(|one| one.has_events());
    let sum =
        |of: fn(&EventsReading) -> u64| affected.clone().map(|one| of(one)).sum::<u64>() as f64;
    let (reopened, requests) = (sum(|one| one.reopened), sum(|one| one.requests));
    let events = sum(|one| one.events.len() as u64);
    (events > 0.0 && reopened > 0.0 && reopened < CLOSING * requests).then(|| reopened / events)
}

fn longest(all: &[&EventsReading], time_s: fn(&EventsReading) -> Option<f64>) -> Option<f64> {
    all.iter()
        .filter_map(|one| time_s(one))
        .max_by(f64::total_cmp)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Student's interval of a mean of times, each of which is known to a step. Times that are all alike show
/// nothing of the step, so its rounding is added to their variance. `None` of fewer than two.
fn limits(times_s: &[f64], step_s: f64) -> Option<(f64, f64)> {
    let count = times_s.len() as f64;
    let mean = mean(times_s).filter(|_| times_s.len() > 1)?;
    let squares: f64 = times_s.iter().map(|time_s| (time_s - mean).powi(2)).sum();
    let variance = squares / (count - 1.0) + step_s.powi(2) / 12.0;
    let half = t_quantile(0.5 + CONFIDENCE / 2.0, count - 1.0) * (variance / count).sqrt();
    Some(((mean - half).max(0.0), mean + half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_time_is_students_and_never_finer_than_its_step() {
        let (low, high) = limits(&[1.0, 1.2, 1.4], 0.0).unwrap();
        // 4.303 times the standard error of 0.2 over the root of three.
        assert!((low - 0.7032).abs() < 1e-3 && (high - 1.6968).abs() < 1e-3);
        let (low, high) = limits(&[0.0; 5], 0.1).unwrap();
        assert_eq!(low, 0.0);
        assert!((high - 0.0358).abs() < 1e-3, "{high}");
        assert_eq!(limits(&[1.0], 0.1), None);
    }
}
