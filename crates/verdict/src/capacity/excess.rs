//! By how much a rate may exceed what the target carries and still keep an objective, because a step
//! is too short for the queue to grow.
//!
//! Of a rate r > c, where c is what the target carries, the share 1 - c/r waits in a queue. A request
//! that is due t after the start of the load then waits t (r - c)/c. So the quantile p of a step of T
//! seconds after a warm-up of W is about (W + p T) (r - c)/c, and a limit L is kept up to an excess
//! (r - c)/c of L / (W + p T). The growth of the backlog shows an overload too, once it is more than
//! chance.

use super::{Capacity, Objective, Quantity, RateStep};
use crate::overload::{least_share, requests_for_share};

/// A step may leave an excess of so many times the precision unseen: growing backlogs count from 2% of
/// the requests on, which is an excess of a little more than the usual precision of 2%.
pub const EXCESS_SLACK: f64 = 1.25;

/// How long the load of a step lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepTime {
    /// Load at the same rate before the measured time, s.
    pub warmup_s: f64,
    /// The measured time, s.
    pub measured_s: f64,
}

/// What the steps at the highest rate that held leave open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnseenExcess {
    /// The largest excess over what the target carries, as a fraction, that they may not show.
    pub excess: f64,
    /// The measured time of the shortest of them, s.
    pub measured_s: f64,
}

/// By how much a rate that held may exceed what the target carries; `None` if none held.
pub fn unseen_excess(
    objective: &Objective,
    capacity: &Capacity,
    steps: &[RateStep],
    warmup_s: f64,
) -> Option<UnseenExcess> {
    let lower_per_s = capacity.lower_per_s?;
    let at_lower = steps.iter().filter(|step| step.rate_per_s == lower_per_s);
    let measured_s = at_lower.map(|step| step.load.duration_s).reduce(f64::min)?;
    let time = StepTime {
        warmup_s,
        measured_s,
    };
    Some(UnseenExcess {
        excess: objective.unseen_excess(lower_per_s, time),
        measured_s,
    })
}

impl Objective {
    /// The largest excess over what the target carries, as a fraction, at which a step at a rate may
    /// still keep this objective. It is an upper bound: time that answers take without a queue is not
    /// subtracted.
    pub fn unseen_excess(&self, rate_per_s: f64, time: StepTime) -> f64 {
        let by_latency = self.latencies().map(|(limit_s, part)| {
            let queued_s = time.warmup_s + part * time.measured_s;
            limit_s / queued_s
        });
        let due = rate_per_s * time.measured_s;
        let by_backlog = self
            .achieved()
            .map(|achieved| excess_of(least_share(due).max(1.0 - achieved)));
        by_latency.chain(by_backlog).fold(f64::INFINITY, f64::min)
    }

    /// The shortest measured time, in s, of a step at a rate that shows such an excess; infinite if
    /// none does.
    pub fn time_for_excess(&self, rate_per_s: f64, excess: f64, warmup_s: f64) -> f64 {
        let by_latency = self
            .latencies()
            .map(|(limit_s, part)| ((limit_s / excess - warmup_s) / part).max(0.0));
        let share = excess / (1.0 + excess);
        let by_backlog = self
            .achieved()
            .filter(|achieved| share >= 1.0 - achieved)
            .and_then(|_| requests_for_share(share))
            .map(|requests| requests / rate_per_s);
        by_latency.chain(by_backlog).fold(f64::INFINITY, f64::min)
    }

    /// The limits of latencies, in s, each with the part of the measured time until whose end
    /// requests count for it.
    fn latencies(&self) -> impl Iterator<Item = (f64, f64)> {
        self.limits.iter().filter_map(|limit| {
            let part = match limit.quantity {
                Quantity::Quantile(q) => q,
                Quantity::Mean => 0.5,
                Quantity::Max => 1.0,
                Quantity::Errors | Quantity::Achieved => return None,
            };
            Some((limit.value / 1e6, part))
        })
    }

    /// The share of the requests that has to be achieved.
    fn achieved(&self) -> Option<f64> {
        let limits = self.limits.iter();
        let limits = limits.filter(|limit| limit.quantity == Quantity::Achieved);
        limits.map(|limit| limit.value).reduce(f64::max)
    }
}

/// (r - c)/c for the share (r - c)/r.
fn excess_of(share: f64) -> f64 {
    match share < 1.0 {
        true => share / (1.0 - share),
        false => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use readings::{LoadReading, Offered, Pacing};

    use super::*;
    use crate::capacity::Judgement;

    const WARMUP_S: f64 = 0.5;

    fn objective(text: &str) -> Objective {
        text.parse().unwrap()
    }

    fn time(measured_s: f64) -> StepTime {
        StepTime {
            warmup_s: WARMUP_S,
            measured_s,
        }
    }

    /// A step of a target that answers at once and carries so many requests/s, at a rate above that.
    fn overloaded(carried_per_s: f64, excess: f64, measured_s: f64) -> LoadReading {
        let rate_per_s = carried_per_s * (1.0 + excess);
        let mut load = LoadReading::empty(Pacing::Open { rate_per_s });
        let due = (rate_per_s * measured_s).round() as u64;
        load.connections = 10_000;
        load.duration_s = measured_s;
        load.requests = due;
        for number in 0..due {
            let due_s = WARMUP_S + number as f64 / rate_per_s;
            load.response.record_ns((due_s * excess * 1e9) as u64);
        }
        let waiting = |quarter: f64| {
            let at_s = WARMUP_S + quarter / 4.0 * measured_s;
            (at_s * carried_per_s * excess) as u64
        };
        load.offered = Some(Offered {
            due,
            answered_within: (carried_per_s * measured_s) as u64,
            backlog: [0.0, 1.0, 2.0, 3.0, 4.0].map(waiting),
        });
        load
    }

    /// Whether steps a little below the unseen excess hold, and those a little above do not.
    #[track_caller]
    fn is_the_limit(text: &str, carried_per_s: f64, measured_s: f64) -> f64 {
        let objective = objective(text);
        // The rate depends on the excess and the excess, by the backlog, on the rate.
        let mut excess = 0.0;
        for _ in 0..20 {
            let rate_per_s = carried_per_s * (1.0 + excess);
            excess = objective.unseen_excess(rate_per_s, time(measured_s));
        }
        let judge = |factor: f64| {
            objective.judge_load(&overloaded(carried_per_s, excess * factor, measured_s))
        };
        assert_eq!(judge(0.95), Judgement::Met, "{text}: {excess}");
        let above = judge(1.05);
        assert!(
            matches!(above, Judgement::Missed(_)),
            "{text}: {excess}, {above:?}"
        );
        excess
    }

    #[test]
    fn a_step_shows_the_excess_that_its_length_lets_grow() {
        // A queue that grows by 0.24 s each second is 60 ms long after 0.25 s of the warm-up.
        let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.01);
        near(is_the_limit("p50<60ms", 2_000.0, 0.5), 0.06 / 0.75);
        near(is_the_limit("mean<60ms", 2_000.0, 2.0), 0.06 / 1.5);
        near(is_the_limit("p90<200ms", 1_000.0, 2.0), 0.2 / 2.3);
        near(is_the_limit("max<100ms", 300.0, 2.0), 0.1 / 2.5);
        // Here the backlog shows it before the latency does.
        let share = 3.0 * (2.0f64 / (5_000.0 * 4.0)).sqrt();
        assert!(is_the_limit("p50<1s", 5_000.0, 4.0) < share / (1.0 - share));
        near(is_the_limit("p50<1s", 100_000.0, 2.0), 0.02 / 0.98);
        near(
            is_the_limit("p50<1s and achieved>=90%", 100_000.0, 2.0),
            0.1 / 0.9,
        );
    }

    #[test]
    fn steps_are_as_long_as_an_excess_takes_to_show() {
        for (text, rate_per_s, excess) in [
            ("p50<60ms", 200.0, 0.02),
            ("p99<10ms", 5_000.0, 0.02),
            ("p99.9<1s", 5_000.0, 0.025),
            ("mean<40ms and p90<60ms", 900.0, 0.05),
            ("max<4s and achieved>=80%", 900.0, 0.25),
        ] {
            let objective = objective(text);
            let length_s = objective.time_for_excess(rate_per_s, excess, WARMUP_S);
            let seen = objective.unseen_excess(rate_per_s, time(length_s.max(0.001)));
            assert!(seen <= excess * 1.0001, "{text}: {length_s} s, {seen}");
            if length_s > 0.0 {
                assert!(seen >= excess * 0.9999, "{text}: {length_s} s, {seen}");
            }
        }
        // The warm-up alone lets the queue grow that long.
        let quick = objective("p99<1ms").time_for_excess(1_000.0, 0.02, WARMUP_S);
        assert_eq!(quick, 0.0);
    }

    #[test]
    fn without_a_limit_of_a_queue_any_excess_may_hold() {
        let objective = objective("errors<1% and achieved>=0%");
        assert_eq!(objective.unseen_excess(100.0, time(2.0)), f64::INFINITY);
        assert_eq!(objective.time_for_excess(100.0, 0.5, 0.5), f64::INFINITY);
    }
}
