//! The rules of a run's decisions: the margin, errors, looks.

use readings::RunHeader;
use serde::Serialize;

use crate::{Looks, Metric};

/// What a run declared before it measured: the figures that the decisions hang on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rules {
    /// The subject that the others are compared with.
    pub baseline: String,
    /// The smallest difference that matters, as a fraction: 0.03 is 3%.
    pub matters: f64,
    /// The smallest difference that matters between two shares of failed requests, as a fraction of
    /// all requests: 0.001 is one in a thousand.
    pub matters_failures: f64,
    /// The smallest difference of a latency that matters, ms: a latency is the same within this or
    /// within `matters`.
    pub matters_ms: Option<f64>,
    /// Confidence of the published intervals, between 0 and 1, all looks taken together; 0.95
    /// unless told otherwise.
    pub confidence: f64,
    /// When the run looks at its data.
    pub looks: Looks,
}

impl Rules {
    /// The rules that a run's header declares, with 95% intervals.
    pub fn of(header: &RunHeader) -> Self {
        Self {
            baseline: header.baseline.clone(),
            matters: header.matters,
            matters_failures: header.matters_failures,
            matters_ms: header.matters_ms,
            confidence: 0.95,
            looks: Looks::of(header.blocks),
        }
    }

    /// The rules for a comparison of a metric whose baseline has this value: with the margin of
    /// latencies that is declared as a time, where it is the wider one.
    pub(crate) fn of_comparison(&self, metric: Metric, baseline_value: Option<f64>) -> Self {
        Self {
            matters: self.margin(metric, baseline_value).exp_m1(),
            ..self.clone()
        }
    }

    /// The smallest log ratio that matters for a metric whose baseline has this value, in the
    /// metric's unit. A difference of a latency matters only if it is beyond both margins, so the
    /// wider one counts: 0.5 ms are 50% of 1 ms and 0.5% of 100 ms.
    ///
    /// The margin is the same on both sides in the log ratio; the time is taken upwards from the
    /// baseline, which is the stricter of the two.
    fn margin(&self, metric: Metric, baseline_value: Option<f64>) -> f64 {
        let relative = self.delta();
        let absolute = metric
            .quantile()
            .and_then(|_| Some((self.matters_ms?, baseline_value?)))
            .filter(|(ms, us)| *ms > 0.0 && *us > 0.0)
            .map_or(0.0, |(ms, us)| (ms * 1e3 / us).ln_1p());
        relative.max(absolute)
    }

    /// The smallest log ratio that matters.
    pub(crate) fn delta(&self) -> f64 {
        self.matters.max(0.0).ln_1p()
    }

    /// The error rate that goes with the confidence, for the whole run.
    pub(crate) fn alpha(&self) -> f64 {
        1.0 - self.confidence
    }

    /// The error rate of one look.
    pub(crate) fn look_alpha(&self) -> f64 {
        self.alpha() * self.looks.share()
    }

    /// The confidence of an interval at one look, so that the intervals of all looks together
    /// have the run's (repeated confidence intervals: Jennison and Turnbull 1989).
    pub(crate) fn look_confidence(&self) -> f64 {
        1.0 - self.look_alpha()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::header;

    #[test]
    fn a_latency_matters_only_beyond_both_margins() {
        let mut rules = Rules::of(&header(10));
        let of = |rules: &Rules, metric, us: f64| rules.margin(metric, Some(us)).exp_m1();
        let p50 = Metric::LatencyUsP50;
        assert!((of(&rules, p50, 100.0) - 0.03).abs() < 1e-12);
        rules.matters_ms = Some(0.5);
        // 0.08 ms of 0.15 ms is more than half, and still the same.
        assert!((of(&rules, p50, 150.0) - 0.5 / 0.15).abs() < 1e-9);
        // 0.5 ms of 100 ms is less than 3%, which counts then.
        assert!((of(&rules, p50, 1e5) - 0.03).abs() < 1e-12);
        // Throughput has no such margin, and neither has a latency that was not measured.
        assert!((of(&rules, Metric::RequestsPerS, 150.0) - 0.03).abs() < 1e-12);
        assert!((rules.margin(p50, None) - 1.03_f64.ln()).abs() < 1e-12);
    }
}
