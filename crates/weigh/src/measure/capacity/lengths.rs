//! How long the steps of a search last.

use std::time::Duration;

use verdict::capacity::{Objective, Quantity, StepTime};

use crate::cli::CapacityArgs;

/// Requests beyond a quantile that resolve it, and some more for those that fail.
const BEYOND: f64 = 110.0;

/// The lengths of the steps under an objective.
pub(super) struct StepLengths<'a> {
    objective: &'a Objective,
    /// Requests that a step needs for the objective's highest quantile.
    pub(super) requests_for_quantile: f64,
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
            requests_for_quantile: requests_for_quantile(objective),
            shortest: args.step,
            longest: args.longest_step(),
            warmup: args.warmup,
            precision: args.precision,
        }
    }

    /// Of a step at a rate: long enough for the quantile, and for the detection of an overload that is
    /// about as large as the precision.
    pub(super) fn at(&self, rate_per_s: f64) -> Duration {
        let longest = StepTime {
            warmup_s: self.warmup.as_secs_f64(),
            measured_s: self.longest.as_secs_f64(),
        };
        let detects = self
            .objective
            .time_to_detect_overload(rate_per_s, self.precision, longest);
        let resolves = self.requests_for_quantile / rate_per_s;
        let wanted = Duration::try_from_secs_f64(resolves.max(detects));
        wanted
            .unwrap_or(self.longest)
            .clamp(self.shortest, self.longest)
    }
}

impl StepLengths<'_> {
    /// Of a step in which so many messages come per second, as far as is known: long enough for the
    /// quantile.
    pub(super) fn of_streams(&self, messages_per_s: f64) -> Duration {
        let resolves = Duration::try_from_secs_f64(self.requests_for_quantile / messages_per_s);
        let wanted = resolves.unwrap_or(self.shortest);
        wanted.clamp(self.shortest, self.longest)
    }
}

/// Requests behind the highest quantile that is limited.
fn requests_for_quantile(objective: &Objective) -> f64 {
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
        let needs = |text: &str| requests_for_quantile(&text.parse().unwrap());
        assert!((needs("p99<10ms") - 11_000.0).abs() < 1e-6);
        assert!((needs("p50<1ms and p90<10ms") - 1_100.0).abs() < 1e-6);
        assert_eq!(needs("mean<10ms"), 0.0);
    }

    #[test]
    fn a_step_is_also_as_long_as_the_detection_of_an_overload_takes() {
        let objective = "p50<60ms".parse().unwrap();
        let of = |longest_s: u64| StepLengths {
            objective: &objective,
            requests_for_quantile: requests_for_quantile(&objective),
            shortest: Duration::from_millis(500),
            longest: Duration::from_secs(longest_s),
            warmup: Duration::from_millis(500),
            precision: 0.02,
        };
        // At an overload of 2.5% the queue is 60 ms long after 2.4 s: 0.5 s of the warm-up and half of
        // 3.8 s.
        let length = of(30).at(200.0);
        assert!((length.as_secs_f64() - 3.8).abs() < 1e-6, "{length:?}");
        assert_eq!(of(3).at(200.0), Duration::from_secs(3));
        // 220 requests are behind the median.
        assert_eq!(of(30).at(20.0), Duration::from_secs(11));
        // Of streams, messages are behind it; without any known, the shortest.
        assert_eq!(of(30).of_streams(20.0), Duration::from_secs(11));
        assert_eq!(of(30).of_streams(0.0), Duration::from_millis(500));
        // With 30,000 requests due, the growing backlog detects it too.
        assert_eq!(of(30).at(200_000.0), Duration::from_millis(500));
        // The longest step is too short at any such rate.
        assert_eq!(of(30).at(0.001), Duration::from_secs(30));
    }
}
