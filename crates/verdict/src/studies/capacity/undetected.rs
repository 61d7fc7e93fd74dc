//! How much overload the step of a search may fail to detect, because it ends before the queue is long
//! enough.
//!
//! At a rate of (1 + e) times the saturation throughput, with e the overload, a request that is due t
//! after the start of the load is expected to wait e t in a queue. So after a warm-up of W the quantile p
//! of a step of T seconds is expected at e (W + p T), and the queue alone exceeds a limit L if
//! e > L / (W + p T). A growing backlog is detected too, once it is statistically significant.

use super::{Capacity, Objective, Quantity, RateStep};
use crate::trial::overload::least_share;

/// The largest overload that a step of a search may fail to detect, as a multiple of the precision. At
/// the default precision of 2% this is 2.5%, above the 2.04% that a growing backlog can reveal.
const OVERLOAD_PER_PRECISION: f64 = 1.25;
/// The measured time of a step is rounded, and found by bisection.
const TOLERANCE: f64 = 1e-6;
/// Halvings of the longest step, down to less than [`TOLERANCE`].
const HALVINGS: u32 = 40;

/// How long the load of a step lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepTime {
    /// Load at the same rate before the measured time, s.
    pub warmup_s: f64,
    pub measured_s: f64,
}

/// The overload that the steps at the highest rate that held may have failed to detect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UndetectedOverload {
    /// The largest such overload, as a fraction of the saturation throughput.
    pub overload: f64,
    /// The measured time of the shortest of these steps, s.
    pub measured_s: f64,
    /// Whether it is larger than the precision asks for, and longer steps would detect less.
    pub exceeds_target: bool,
}

/// By how much the highest rate that held may exceed the saturation throughput; `None` if none held.
/// `precision` is a fraction.
pub fn undetected_overload(
    objective: &Objective,
    capacity: &Capacity,
    steps: &[RateStep],
    warmup_s: f64,
    precision: f64,
) -> Option<UndetectedOverload> {
    let lower_per_s = capacity.lower_per_s?;
    let at_lower = steps.iter().filter(|step| step.rate_per_s == lower_per_s);
    let measured_s = at_lower.map(|step| step.load.duration_s).reduce(f64::min)?;
    let time = StepTime {
        warmup_s,
        measured_s,
    };
    let overload = objective.undetected_overload(lower_per_s, time);
    let target = objective.target_overload(precision);
    Some(UndetectedOverload {
        overload,
        measured_s,
        exceeds_target: overload > target * (1.0 + TOLERANCE),
    })
}

impl Objective {
    /// The largest overload, as a fraction of the saturation throughput, at which a step is expected to
    /// meet this objective; infinite if there is no such bound. The time that answers take without a
    /// queue is not subtracted, so smaller overloads may be detected. After a warm-up that is longer than
    /// the step all answers take about as long, as those of a slow server without overload: its backlog
    /// then tells nothing.
    pub fn undetected_overload(&self, rate_per_s: f64, time: StepTime) -> f64 {
        let by_latency = self.latency_limits().map(|(limit_s, fraction)| {
            let queue_grows_s = time.warmup_s + fraction * time.measured_s;
            limit_s / queue_grows_s
        });
        let due = rate_per_s * time.measured_s;
        let by_backlog = self
            .achieved()
            .filter(|_| time.warmup_s <= time.measured_s)
            .map(|achieved| overload_of(least_share(due).max(1.0 - achieved)));
        by_latency.chain(by_backlog).fold(f64::INFINITY, f64::min)
    }

    /// The shortest measured time, in s, of a step that detects overloads down to about the precision,
    /// a fraction, or as small ones as the longest step does.
    pub fn time_to_detect_overload(
        &self,
        rate_per_s: f64,
        precision: f64,
        longest: StepTime,
    ) -> f64 {
        let undetected = |measured_s: f64| {
            let time = StepTime {
                measured_s,
                ..longest
            };
            self.undetected_overload(rate_per_s, time)
        };
        let target = undetected(longest.measured_s).max(OVERLOAD_PER_PRECISION * precision);
        let (mut low_s, mut high_s) = (0.0, longest.measured_s);
        for _ in 0..HALVINGS {
            let middle_s = (low_s + high_s) / 2.0;
            match undetected(middle_s) <= target {
                true => high_s = middle_s,
                false => low_s = middle_s,
            }
        }
        high_s
    }

    /// The overload, as a fraction, that a step of a search should detect: about the precision, if steps
    /// can be long enough for that at all.
    fn target_overload(&self, precision: f64) -> f64 {
        let endless = StepTime {
            warmup_s: 0.0,
            measured_s: f64::INFINITY,
        };
        let smallest = self.undetected_overload(1.0, endless);
        smallest.max(OVERLOAD_PER_PRECISION * precision)
    }

    /// The limits of latencies, in s, each with the fraction of the measured time at which the wait in
    /// the queue is expected to be the limited quantity.
    fn latency_limits(&self) -> impl Iterator<Item = (f64, f64)> {
        self.limits.iter().filter_map(|limit| {
            let fraction = match limit.quantity {
                Quantity::Quantile(q) => q,
                Quantity::Mean => 0.5,
                Quantity::Max => 1.0,
                Quantity::Errors | Quantity::Achieved => return None,
            };
            Some((limit.value / 1e6, fraction))
        })
    }

    /// The share of the requests that has to be achieved.
    fn achieved(&self) -> Option<f64> {
        let limits = self.limits.iter();
        let limits = limits.filter(|limit| limit.quantity == Quantity::Achieved);
        limits.map(|limit| limit.value).reduce(f64::max)
    }
}

/// The overload at which this share of the requests is not carried.
fn overload_of(share: f64) -> f64 {
    match share < 1.0 {
        true => share / (1.0 - share),
        false => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use readings::{LoadReading, Offered, Pacing};

    use super::*;
    use crate::studies::capacity::{Judgement, Outcome, Search, SearchOptions};

    const WARMUP_S: f64 = 0.5;
    /// Longer than any step of these tests needs.
    const LONG_S: f64 = 1e4;

    fn objective(text: &str) -> Objective {
        text.parse().unwrap()
    }

    fn time(measured_s: f64) -> StepTime {
        StepTime {
            warmup_s: WARMUP_S,
            measured_s,
        }
    }

    /// A step above the saturation throughput of a target that answers at once.
    fn overloaded(saturation_per_s: f64, overload: f64, measured_s: f64) -> LoadReading {
        let rate_per_s = saturation_per_s * (1.0 + overload);
        let mut load = LoadReading::empty(Pacing::Open { rate_per_s });
        let due = (rate_per_s * measured_s).round() as u64;
        load.connections = 10_000;
        load.duration_s = measured_s;
        load.requests = due;
        for number in 0..due {
            let due_s = WARMUP_S + number as f64 / rate_per_s;
            load.response.record_ns((due_s * overload * 1e9) as u64);
        }
        let waiting = |quarter: f64| {
            let at_s = WARMUP_S + quarter / 4.0 * measured_s;
            (at_s * saturation_per_s * overload) as u64
        };
        load.offered = Some(Offered {
            due,
            answered_within: (saturation_per_s * measured_s) as u64,
            backlog: [0.0, 1.0, 2.0, 3.0, 4.0].map(waiting),
        });
        load
    }

    /// Whether steps a little below the largest undetected overload meet the objective, and those a
    /// little above do not. Returns that overload.
    #[track_caller]
    fn bound_of(text: &str, saturation_per_s: f64, measured_s: f64) -> f64 {
        let objective = objective(text);
        // The rate depends on the overload and the overload, by the backlog, on the rate.
        let mut overload = 0.0;
        for _ in 0..20 {
            let rate_per_s = saturation_per_s * (1.0 + overload);
            overload = objective.undetected_overload(rate_per_s, time(measured_s));
        }
        let judge = |factor: f64| {
            objective.judge_load(&overloaded(saturation_per_s, overload * factor, measured_s))
        };
        assert_eq!(judge(0.95), Judgement::Met, "{text}: {overload}");
        let above = judge(1.05);
        assert!(
            matches!(above, Judgement::Missed(_)),
            "{text}: {overload}, {above:?}"
        );
        overload
    }

    fn is_near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 0.01, "{found}");
    }

    #[test]
    fn an_overload_is_detected_once_its_queue_is_longer_than_the_limit() {
        // At an overload of 8% the median request of the step, due 0.75 s after the start of the
        // load, waits for 60 ms.
        is_near(bound_of("p50<60ms", 2_000.0, 0.5), 0.06 / 0.75);
        is_near(bound_of("mean<60ms", 2_000.0, 2.0), 0.06 / 1.5);
        is_near(bound_of("p90<200ms", 1_000.0, 2.0), 0.2 / 2.3);
        is_near(bound_of("max<100ms", 300.0, 2.0), 0.1 / 2.5);
        // Here the backlog is significant before the latency exceeds its limit.
        let share = 3.0 * (2.0f64 / (5_000.0 * 4.0)).sqrt();
        assert!(bound_of("p50<1s", 5_000.0, 4.0) < share / (1.0 - share));
        is_near(bound_of("p50<1s", 100_000.0, 2.0), 0.02 / 0.98);
        let lax = bound_of("p50<1s and achieved>=90%", 100_000.0, 2.0);
        is_near(lax, 0.1 / 0.9);
    }

    #[test]
    fn a_step_is_as_long_as_the_detection_of_an_overload_takes() {
        for (text, rate_per_s, precision) in [
            ("p50<60ms", 200.0, 0.02),
            ("p99<10ms", 5_000.0, 0.02),
            ("p99.9<1s", 5_000.0, 0.02),
            ("p99<100ms", 5_000.0, 0.01),
            ("mean<40ms and p90<60ms", 900.0, 0.05),
            ("max<4s and achieved>=80%", 900.0, 0.25),
            ("errors<1%", 900.0, 0.05),
        ] {
            let objective = objective(text);
            let length_s = objective.time_to_detect_overload(rate_per_s, precision, time(LONG_S));
            let undetected = objective.undetected_overload(rate_per_s, time(length_s));
            let target = 1.25 * precision;
            assert!(
                undetected <= target * 1.0001,
                "{text}: {length_s} s, {undetected}"
            );
            // Not shorter than the warm-up where the backlog detects it, whatever it detects then.
            if length_s > WARMUP_S + 1e-3 {
                assert!(
                    undetected >= target * 0.9999,
                    "{text}: {length_s} s, {undetected}"
                );
            }
        }
        // The warm-up alone makes the queue long enough.
        let quick = objective("p99<1ms").time_to_detect_overload(1_000.0, 0.02, time(LONG_S));
        assert!(quick < 1e-3, "{quick}");
    }

    #[test]
    fn without_a_limited_latency_the_backlog_alone_detects() {
        // It is never significant below 2% of the requests.
        let counted = objective("errors<1%");
        let found = counted.time_to_detect_overload(1_000.0, 0.001, time(LONG_S));
        is_near(found, 45.0);
        let lax = objective("errors<1% and achieved>=90%");
        let found = lax.time_to_detect_overload(1_000.0, 0.02, time(LONG_S));
        is_near(found, 1.8);
        let any = objective("errors<1% and achieved>=0%");
        assert_eq!(any.undetected_overload(100.0, time(2.0)), f64::INFINITY);
        // So no length is needed for it.
        assert!(any.time_to_detect_overload(100.0, 0.5, time(30.0)) < 1e-3);
    }

    #[test]
    fn a_step_is_no_longer_than_what_it_detects_takes() {
        // 1.25% would take 80 s, and 30 s detect no less than the backlog of 2.04% in 0.45 s, or in the
        // length of the warm-up, if that is longer.
        let objective = objective("p99<1s");
        let found = objective.time_to_detect_overload(100_000.0, 0.01, time(30.0));
        is_near(found, WARMUP_S);
        let found = objective.time_to_detect_overload(500.0, 0.02, time(30.0));
        is_near(found, 30.0);
    }

    #[test]
    fn after_a_long_warm_up_a_backlog_tells_nothing() {
        let objective = objective("errors<1%");
        let after = |warmup_s: f64| StepTime {
            warmup_s,
            measured_s: 2.0,
        };
        assert!(objective.undetected_overload(100_000.0, after(2.0)) < 0.03);
        let none = objective.undetected_overload(100_000.0, after(2.1));
        assert_eq!(none, f64::INFINITY);
        let longest = StepTime {
            measured_s: 30.0,
            ..after(5.0)
        };
        let found = objective.time_to_detect_overload(100_000.0, 0.02, longest);
        is_near(found, 5.0);
    }

    #[test]
    fn steps_as_long_as_they_should_be_are_not_called_too_short() {
        let found = |text: &str, measured_s: f64| {
            let objective = objective(text);
            let mut search = Search::new(SearchOptions::around(1_000.0)).unwrap();
            search.record(1_000.0, Outcome::Met);
            let mut load = overloaded(1_000.0, 0.0, 1.0);
            load.duration_s = measured_s;
            let step = RateStep {
                rate_per_s: 1_000.0,
                judgement: Judgement::Met,
                load,
            };
            let capacity = search.so_far();
            undetected_overload(&objective, &capacity, &[step], WARMUP_S, 0.02).unwrap()
        };
        for text in ["p99<100ms", "p95<100ms", "p90<200ms", "errors<1%", "p50<2s"] {
            let objective = objective(text);
            let wanted = objective.time_to_detect_overload(1_000.0, 0.02, time(LONG_S));
            // As the load counts it.
            let rounded_s = Duration::from_secs_f64(wanted).as_secs_f64();
            assert!(!found(text, rounded_s).exceeds_target, "{text}");
            assert!(found(text, 0.9 * rounded_s).exceeds_target, "{text}");
        }
        let unbounded = found("errors<1% and achieved>=0%", 2.0);
        assert!(!unbounded.exceeds_target && unbounded.overload.is_infinite());
    }
}
