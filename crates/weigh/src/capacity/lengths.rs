//! How long the steps of a search last.

use std::time::Duration;

use verdict::capacity::{EXCESS_SLACK, Objective, Quantity};

use crate::cli::CapacityArgs;

/// Requests beyond a quantile that resolve it, and some more for those that fail.
const BEYOND: f64 = 110.0;

/// The lengths of the steps under an objective.
pub(super) struct StepLengths<'a> {
    objective: &'a Objective,
    /// Requests that a step needs for the objective's highest quantile.
    pub(super) needed: f64,
    shortest: Duration,
    longest: Duration,
    warmup: Duration,
    /// How close the bounds have to come, as a fraction.
    precision: f64,
}

impl<'a> StepLengths<'a> {
    pub(super) fn of(objective: &'a Objective, args: &CapacityArgs) -> Self {
        Self {
            objective,
            needed: needed(objective),
            shortest: args.step,
            longest: args.step_max.max(args.step),
            warmup: args.warmup,
            precision: args.precision,
        }
    }

    /// Of a step of the curve: long enough for the quantile.
    pub(super) fn of_curve(&self, rate_per_s: f64) -> Duration {
        self.bounded(self.needed / rate_per_s)
    }

    /// Of a step of the search: also long enough for a queue to show a rate that exceeds what the
    /// target carries by about the precision.
    pub(super) fn of_search(&self, rate_per_s: f64) -> Duration {
        let excess = self.precision * EXCESS_SLACK;
        let warmup_s = self.warmup.as_secs_f64();
        let queue_s = self.objective.time_for_excess(rate_per_s, excess, warmup_s);
        self.bounded(queue_s.max(self.needed / rate_per_s))
    }

    fn bounded(&self, seconds: f64) -> Duration {
        let wanted = Duration::try_from_secs_f64(seconds).unwrap_or(self.longest);
        wanted.clamp(self.shortest, self.longest)
    }
}

/// Requests behind the highest quantile that is limited.
fn needed(objective: &Objective) -> f64 {
    let quantiles = objective.limits().iter().filter_map(|l| match l.quantity {
        Quantity::Quantile(q) => Some(BEYOND / (1.0 - q)),
        _ => None,
    });
    quantiles.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_as_long_as_its_quantile_needs() {
        let needs = |text: &str| needed(&text.parse().unwrap());
        assert!((needs("p99<10ms") - 11_000.0).abs() < 1e-6);
        assert!((needs("p50<1ms and p90<10ms") - 1_100.0).abs() < 1e-6);
        assert_eq!(needs("mean<10ms"), 0.0);
    }

    #[test]
    fn a_step_of_the_search_is_also_as_long_as_a_queue_takes_to_grow() {
        let objective = "p50<60ms".parse().unwrap();
        let of = |longest_s: u64| StepLengths {
            objective: &objective,
            needed: needed(&objective),
            shortest: Duration::from_millis(500),
            longest: Duration::from_secs(longest_s),
            warmup: Duration::from_millis(500),
            precision: 0.02,
        };
        // At 2.5% above what is carried the queue is 60 ms long after 2.4 s: 0.5 s of the warm-up and
        // half of 3.8 s.
        let length = of(30).of_search(200.0);
        assert!((length.as_secs_f64() - 3.8).abs() < 1e-6, "{length:?}");
        assert_eq!(of(3).of_search(200.0), Duration::from_secs(3));
        // 220 requests are behind the median.
        assert_eq!(of(30).of_curve(200.0), Duration::from_millis(1_100));
        assert_eq!(of(30).of_curve(2_000.0), Duration::from_millis(500));
        // The longest step is too short at any rate.
        assert_eq!(of(30).of_search(0.001), Duration::from_secs(30));
    }
}
