//! The common rate of the open loops, from the throughput of the closed loops.

use readings::requests::RequestSet;
use readings::{LoadReading, RateChoice};

use super::{Findings, GroupSetup};
use experiment::plan::Group;
use experiment::{Rate, ResolvedCondition};

/// The common rate from this block's closed loops; `None` unless all subjects are ready.
pub(super) fn choose_rate(
    setup: &GroupSetup<'_>,
    closed: &[LoadReading],
    found: &mut Findings,
) -> Option<f64> {
    let (resolved, group) = (setup.resolved, setup.group);
    if resolved.load.rate == Rate::Auto && setup.ready.len() != group.trials.len() {
        return None;
    }
    choose_rate_of(group, resolved, closed, found)
}

/// The common rate from the closed loops of all subjects.
pub(crate) fn choose_rate_of(
    group: &Group,
    resolved: &ResolvedCondition,
    closed: &[LoadReading],
    found: &mut Findings,
) -> Option<f64> {
    if let Rate::PerSecond(rate) = resolved.load.rate {
        return Some(rate);
    }
    let slowest = closed
        .iter()
        .map(|load| load.requests_per_s() / due_requests(resolved))
        .fold(f64::INFINITY, f64::min);
    if !slowest.is_finite() || slowest <= 0.0 {
        return None;
    }
    let client = closed.iter().map(client_rate).fold(f64::INFINITY, f64::min);
    let client = client / due_requests(resolved);
    let rate_per_s = common_rate(slowest, client);
    found.rate = Some(RateChoice {
        condition: group.condition.clone(),
        rate_per_s,
        slowest_per_s: Some(slowest),
        of_users: resolved.load.has_users(),
    });
    Some(rate_per_s)
}

/// Requests of what is due at a time in an open loop: one, or all steps of the user who arrives.
pub(super) fn due_requests(resolved: &ResolvedCondition) -> f64 {
    let set = resolved.load.requests.as_ref().map(|file| &*file.set);
    steps(set)
}

fn steps(set: Option<&RequestSet>) -> f64 {
    let users = set.filter(|set| set.users.is_some());
    users.map_or(1.0, |set| set.requests.len().max(1) as f64)
}

/// Share of a busy load thread's closed-loop rate that an open loop may ask for: paced requests
/// cost the client several times as much as batched ones.
const CLIENT_SHARE: f64 = 0.2;

/// The highest rate that the load's threads can keep on time, from their cost in a closed loop.
pub(super) fn client_rate(reading: &LoadReading) -> f64 {
    // The CPU time of a polling client is no measure.
    if reading.client.cpu_s <= 0.0 || reading.client.threads.is_empty() {
        return f64::INFINITY;
    }
    let per_thread = reading.requests as f64 / reading.client.cpu_s;
    per_thread * reading.client.threads.len() as f64 * CLIENT_SHARE
}

/// The common rate: half of the slowest subject's throughput and at most `client_per_s`, rounded
/// down to two digits.
fn common_rate(slowest_per_s: f64, client_per_s: f64) -> f64 {
    round_down((slowest_per_s / 2.0).min(client_per_s))
}

/// A rate rounded down to two digits.
pub(super) fn round_down(rate: f64) -> f64 {
    if rate < 1.0 {
        return rate.max(0.01);
    }
    let unit = 10_f64.powf(rate.log10().floor() - 1.0);
    // What is two digits long already stays, whatever the division leaves.
    (rate / unit + 1e-9).floor() * unit
}

#[cfg(test)]
mod tests {
    use readings::requests::{RequestSpec, Template, Users};

    use super::*;

    #[test]
    fn a_user_who_arrives_makes_all_steps() {
        let request = RequestSpec {
            path: Template::fixed("/"),
            ..RequestSpec::default()
        };
        let mut set = RequestSet {
            requests: vec![request; 4],
            ..RequestSet::default()
        };
        assert_eq!((steps(None), steps(Some(&set))), (1.0, 1.0));
        set.users = Some(Users {
            keeps_cookies: false,
        });
        assert_eq!(steps(Some(&set)), 4.0);
    }

    #[test]
    fn the_common_rate_is_below_half_and_round() {
        assert_eq!(common_rate(48_300.0, f64::INFINITY), 24_000.0);
        assert_eq!(common_rate(250.0, 1e6), 120.0);
        assert_eq!(common_rate(200_000.0, 41_999.0), 41_000.0);
        assert!(common_rate(0.5, 1e6) > 0.0);
    }
}
