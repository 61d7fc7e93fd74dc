//! The smallest difference that matters, as a log ratio: a share for every metric, and for latencies
//! a time as well, where one was declared.

use crate::{Metric, Rules};

/// The margin for a comparison of a metric whose baseline has this value, in the metric's unit. A
/// difference of a latency matters only if it is beyond both margins, so the wider one counts: 0.5 ms
/// are 50% of 1 ms and 0.5% of 100 ms.
///
/// The margin is the same on both sides in the log ratio; the time is taken upwards from the
/// baseline, which is the stricter of the two.
pub(crate) fn margin(rules: &Rules, metric: Metric, baseline_value: Option<f64>) -> f64 {
    let relative = rules.matters.max(0.0).ln_1p();
    let absolute = metric
        .quantile()
        .and_then(|_| Some((rules.matters_ms?, baseline_value?)))
        .filter(|(ms, us)| *ms > 0.0 && *us > 0.0)
        .map_or(0.0, |(ms, us)| (ms * 1e3 / us).ln_1p());
    relative.max(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::header;

    #[test]
    fn a_latency_matters_only_beyond_both_margins() {
        let mut rules = Rules::of(&header(10));
        let of = |rules: &Rules, metric, us: f64| margin(rules, metric, Some(us)).exp_m1();
        let p50 = Metric::LatencyUsP50;
        assert!((of(&rules, p50, 100.0) - 0.03).abs() < 1e-12);
        rules.matters_ms = Some(0.5);
        // 0.08 ms of 0.15 ms is more than half, and still the same.
        assert!((of(&rules, p50, 150.0) - 0.5 / 0.15).abs() < 1e-9);
        // 0.5 ms of 100 ms is less than 3%, which counts then.
        assert!((of(&rules, p50, 1e5) - 0.03).abs() < 1e-12);
        // Throughput has no such margin, and neither has a latency that was not measured.
        assert!((of(&rules, Metric::RequestsPerS, 150.0) - 0.03).abs() < 1e-12);
        assert!((margin(&rules, p50, None) - 1.03_f64.ln()).abs() < 1e-12);
    }
}
